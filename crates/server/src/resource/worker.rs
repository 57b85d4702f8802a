//! Workers: those that are there, and the accounts whose keys they show.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{DrainedWorker, Engine, KnownWorker, MAY_SUBMIT, MadeWorker, WorkerRequest};
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::{Presence, WorkerAccount as Account, WorkerKey};
use runvoy_wire::{Code, CreateWorkerRequest, CreateWorkerResponse, DrainWorkerResponse, RevokeWorkerResponse, Worker, WorkerAccount};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, name, text};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listWorkers", "List workers")
        .about("Lists the workers that were heard from within the last day and have not signed off.")
        .paged()
        .gives_array::<Worker>(200, "The workers, by name");
    routes.get("/api/v1/workers", Rule::Key(Action::ReadQueues), operation, list);
    let rule = Rule::Key(Action::ManageWorkers);
    let operation = Operation::new("listWorkerAccounts", "List worker accounts")
        .about("Lists the accounts that workers sign in with, revoked ones included.")
        .paged()
        .gives_array::<WorkerAccount>(200, "The accounts, by name");
    routes.get("/api/v1/workers/accounts", rule, operation, accounts);
    for (path, id) in [("/api/v1/workers", "createWorker"), ("/api/v1/workers/accounts", "createWorkerAccount")] {
        let operation = Operation::new(id, "Create a worker account")
            .about(
                "Creates an account with a key of its own, or with the `public_key` of the body. \
                 `role` other than worker, and `may`, need a `public_key`; `queues` needs the \
                 role worker.",
            )
            .idempotent()
            .takes::<CreateWorkerRequest>(true)
            .gives::<CreateWorkerResponse>(201, "The account; its key is shown only here");
        routes.post(path, rule, operation, create);
    }
    // An account may be called `accounts`: the longer address names every one.
    for (path, id) in [("/api/v1/workers/{name}", "revokeWorker"), ("/api/v1/workers/accounts/{name}", "revokeWorkerAccount")] {
        let operation = Operation::new(id, "Revoke a worker account")
            .about(
                "The account's key stops working at once. What its workers run is run again \
                 elsewhere when their leases expire.",
            )
            .path("name", name(), "The account's name")
            .gives::<RevokeWorkerResponse>(200, "The account was revoked")
            .refuses(&[Code::NotFound, Code::Conflict]);
        routes.delete(path, rule, operation, revoke);
    }
    let operation = Operation::new("rotateWorkerKey", "Replace the key of a worker account")
        .about(
            "Creates a new key and revokes the old one in the same step. An account with a public \
             key has none to replace (`CONFLICT`).",
        )
        .path("name", name(), "The account's name")
        .idempotent()
        .gives::<CreateWorkerResponse>(200, "The new key; it is shown only here")
        .refuses(&[Code::NotFound]);
    routes.post("/api/v1/workers/accounts/{name}/rotate", rule, operation, rotate);
    add_drain(routes);
}

/// Routes that have a worker take nothing new, and take work again.
fn add_drain(routes: &mut Routes) {
    let operation = |id, summary| {
        Operation::new(id, summary).path("name", text(), "The worker: its name or its id").idempotent().refuses(&[Code::NotFound])
    };
    let rule = Rule::Key(Action::ManageWorkers);
    let drained = operation("drainWorker", "Drain a worker").gives::<DrainWorkerResponse>(
        200,
        "The worker finishes what it runs and gets no new work, also after a restart, until it is resumed",
    );
    routes.post("/api/v1/workers/{name}/drain", rule, drained, drain);
    let resumed = operation("resumeWorker", "Resume a drained worker").gives::<DrainWorkerResponse>(200, "The worker takes work again");
    routes.post("/api/v1/workers/{name}/resume", rule, resumed, resume);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let (engine, pager) = (call.engine(), Pager::of(&call.query()?)?);
    let now = engine.now();
    let mut workers: Vec<Worker> =
        engine.workers(call.caller()?).await?.into_iter().map(|presence| worker(engine, presence, now)).collect();
    // Two may have one name; a NUL comes before whatever a longer name goes on with.
    let next = pager.cut(&mut workers, |worker| format!("{}\0{}", worker.name, worker.worker_id));
    Ok(next.on(answer::json(StatusCode::OK, &workers)))
}

fn worker(engine: &Engine, presence: Presence, now: UnixMs) -> Worker {
    Worker {
        drained_by: engine.drain_of(&presence.name).map(|drain| drain.by),
        live: presence.is_live(now),
        worker_id: presence.worker.to_string(),
        name: presence.name,
        host: presence.host,
        account: presence.account.map(|name| name.to_string()),
        queues: presence.queues.iter().map(ToString::to_string).collect(),
        labels: presence.labels,
        runner: presence.runner,
        running: presence.running,
        // Of those that say nothing of themselves several with one key are seen as one, which then runs more than any of them asked for.
        concurrency: presence.concurrency.max(presence.running),
        draining: presence.draining,
        in_process: presence.in_process,
        version: presence.version,
        since: presence.since.into(),
        seen_at: presence.seen_at.into(),
    }
}

async fn accounts(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let known = call.engine().list_worker_accounts(call.caller()?).await?;
    let mut accounts: Vec<WorkerAccount> = known.iter().map(|KnownWorker { account, last_used }| shown(account, *last_used)).collect();
    let next = pager.cut(&mut accounts, |account| account.name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &accounts)))
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let idempotency_key = call.idempotency_key()?;
    let CreateWorkerRequest { name, role, may, queues, public_key, description, confirm } = call.body_of("a name").await?;
    let request = WorkerRequest { name, role, may, queues, description, confirm, idempotency_key };
    let made = match public_key.as_deref() {
        Some(key) => call.engine().import_worker(call.caller()?, &request, key).await?,
        None => call.engine().create_worker(call.caller()?, &request).await?,
    };
    let message = match &made.api_key {
        Some(_) => format!("worker account {} was created; its key is shown only here", made.account.name),
        None => format!("worker account {} was created; it signs tokens with its private key", made.account.name),
    };
    Ok(answer::json(StatusCode::CREATED, &response(made, message)))
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let made = call.engine().rotate_worker(call.caller()?, call.params.get("name"), key.as_deref()).await?;
    let message = format!("worker account {} has a new key, shown only here; the old key is revoked", made.account.name);
    Ok(answer::json(StatusCode::OK, &response(made, message)))
}

async fn drain(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let DrainedWorker { name, running } = call.engine().drain_worker(call.caller()?, call.params.get("name"), key.as_deref()).await?;
    let message = format!("worker {name} takes nothing new; it runs {running} now");
    Ok(answer::json(StatusCode::OK, &DrainWorkerResponse { name, draining: true, running, message }))
}

async fn resume(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let DrainedWorker { name, running } = call.engine().resume_worker(call.caller()?, call.params.get("name"), key.as_deref()).await?;
    let message = format!("worker {name} takes work");
    Ok(answer::json(StatusCode::OK, &DrainWorkerResponse { name, draining: false, running, message }))
}

async fn revoke(call: Call) -> Result<Response<Body>, Fault> {
    let account = call.engine().revoke_worker(call.caller()?, call.params.get("name")).await?;
    let message = format!("worker account {} was revoked; its executions run again elsewhere when their leases expire", account.name);
    Ok(answer::json(StatusCode::OK, &RevokeWorkerResponse { name: account.name.to_string(), message }))
}

fn response(made: MadeWorker, message: String) -> CreateWorkerResponse {
    CreateWorkerResponse { account: shown(&made.account, None), api_key: made.api_key.map(Into::into), message }
}

fn shown(account: &Account, last_used: Option<UnixMs>) -> WorkerAccount {
    let (key_prefix, fingerprint) = match &account.key {
        WorkerKey::Secret { prefix, .. } => (Some(prefix.clone()), None),
        WorkerKey::Public(_) => (None, Some(account.key.shown())),
    };
    WorkerAccount {
        name: account.name.to_string(),
        id: account.id.to_string(),
        role: account.role.as_str().to_owned(),
        may: if account.may_submit { vec![MAY_SUBMIT.to_owned()] } else { Vec::new() },
        queues: account.queues.iter().map(ToString::to_string).collect(),
        key_prefix,
        fingerprint,
        description: account.description.clone(),
        created_by: account.created_by.clone(),
        created_at: account.created_at.into(),
        keyed_at: account.keyed_at.into(),
        last_used: last_used.map(Into::into),
        revoked: account.revoked_at.is_some(),
    }
}
