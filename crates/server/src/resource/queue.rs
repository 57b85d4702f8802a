//! Queues: what waits, what runs, what was given up, and running that again.

use std::str::FromStr;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode};
use runvoy_engine::{DeadPlace, MOST_COUNTED, QueueState, RedrivePlace, RedriveReport, Wanted};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::queue::{Pause, QueueTerms, QueueUpdate};
use runvoy_model::redrive::Fate;
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::queue::QueueCounts;
use runvoy_wire::{
    Code, DeadLetter, NotRedriven, PutQueueRequest, Queue, QueuePause, QueueTermsResponse, RedriveRequest, RedriveResponse, Redriven,
};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{ABOUT_CURSOR, ABOUT_NEXT_CURSOR, Operation, name, number, pattern};
use crate::pager::{MOST_LISTED, Pager};
use crate::query::NEXT_CURSOR;
use crate::route::{Routes, Rule};

const DEFAULT_LIMIT: u64 = 50;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listQueues", "List queues")
        .about(
            "Lists every queue that has executions or settings, or that a worker serves. The \
             numbers count the executions of all users.",
        )
        .paged()
        .gives_array::<Queue>(200, "The queues, by name");
    routes.get("/api/v1/queues", Rule::Key(Action::ReadQueues), operation, list);
    let operation = Operation::new("putQueue", "Pause, resume or limit a queue")
        .about(
            "Changes the settings that the body names and keeps the others. A paused queue starts \
             nothing new; running executions go on. `reason` is accepted only with `paused: \
             true`.",
        )
        .path("name", name(), "The queue's name")
        .idempotent()
        .takes::<PutQueueRequest>(true)
        .gives::<QueueTermsResponse>(200, "The settings of the queue");
    routes.put("/api/v1/queues/{name}", Rule::Key(Action::ManageQueues), operation, put);
    let operation = Operation::new("resetQueue", "Remove the settings of a queue")
        .about("The queue is no longer paused or limited. Its executions are kept.")
        .path("name", name(), "The queue's name")
        .gives::<QueueTermsResponse>(200, "The queue has no settings any more")
        .refuses(&[Code::NotFound]);
    routes.delete("/api/v1/queues/{name}", Rule::Key(Action::ManageQueues), operation, remove);
    let operation = Operation::new("listDeadLetters", "List the dead letters of a queue")
        .about(
            "Lists the executions that you may see and that failed for good after their last \
             attempt, newest first.",
        )
        .path("name", name(), "The queue's name")
        .query("limit", number(1, Some(MOST_LISTED)), "The maximum number of dead letters; default: 50")
        .query("cursor", pattern("^[0-9]{1,15}\\.[0-9a-f]{32}$"), ABOUT_CURSOR)
        .header("X-Next-Cursor", ABOUT_NEXT_CURSOR)
        .gives_array::<DeadLetter>(200, "The dead letters");
    routes.get("/api/v1/queues/{name}/dead", Rule::Key(Action::Read), operation, dead);
    let operation = Operation::new("redriveDeadLetters", "Run dead letters again")
        .about(
            "Runs each dead letter again: as a new execution of its owner, or by resuming its \
             job. Name them in `execution_ids`, or leave the body out for the oldest ones; `next` \
             in the response continues where one request ended.",
        )
        .path("name", name(), "The queue's name")
        .idempotent()
        .takes::<RedriveRequest>(false)
        .gives::<RedriveResponse>(200, "What became of each dead letter")
        .refuses(&[Code::InvalidRequest, Code::NotFound, Code::Conflict, Code::RateLimited]);
    routes.post("/api/v1/queues/{name}/redrive", Rule::Key(Action::Redrive), operation, redrive);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let (engine, caller, pager) = (call.engine(), call.caller()?, Pager::of(&call.query()?)?);
    let now = engine.now();
    let (mut terms, workers) = (engine.queue_terms(caller).await?, engine.workers(caller).await?);
    let mut queues: Vec<Queue> = Vec::new();
    for counts in engine.queues(caller).await? {
        let own = terms.iter().position(|state| state.terms.name == counts.queue).map(|place| terms.swap_remove(place));
        queues.push(queue(counts, own, &workers, now));
    }
    // One that has terms is shown although nothing is in it.
    queues.extend(terms.into_iter().map(|state| queue(QueueCounts::empty(state.terms.name.clone()), Some(state), &workers, now)));
    // So is one that a worker serves.
    for name in workers.iter().filter(|worker| worker.is_live(now)).flat_map(|worker| &worker.queues) {
        if !queues.iter().any(|known| known.name == name.as_str()) {
            queues.push(queue(QueueCounts::empty(name.clone()), None, &workers, now));
        }
    }
    let next = pager.cut(&mut queues, |queue| queue.name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &queues)))
}

fn queue(counts: QueueCounts, state: Option<QueueState>, workers: &[Presence], now: UnixMs) -> Queue {
    let serving = workers.iter().filter(|worker| worker.is_live(now) && worker.serves(&counts.queue)).count();
    let places_taken = state.as_ref().filter(|state| state.terms.is_limited()).map(|state| state.permits.len() as u64);
    let terms = state.map(|state| state.terms);
    Queue {
        name: counts.queue.to_string(),
        depth: counts.depth,
        // Whoever is in backoff waits for a time to come, and not since one.
        oldest: counts.oldest.filter(|since| *since <= now).map(Into::into),
        in_flight: counts.in_flight,
        dead: counts.dead,
        workers: serving as u64,
        concurrency: terms.as_ref().and_then(|terms| terms.concurrency),
        per_user: terms.as_ref().and_then(|terms| terms.per_user),
        paused: terms.and_then(|terms| terms.paused).map(pause),
        places_taken,
    }
}

fn pause(pause: Pause) -> QueuePause {
    QueuePause { by: pause.by, at: pause.at.into(), reason: pause.reason }
}

async fn put(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let request: PutQueueRequest = call.body_of("paused, concurrency or per_user").await?;
    let name = Name::new(call.params.get("name")).map_err(|error| Fault::invalid("name", error.to_string()))?;
    // No limit is zero: a queue that hands nothing out is paused.
    let limit = |limit: Option<u32>| limit.map(|limit| (limit > 0).then_some(limit));
    let (concurrency, per_user) = (limit(request.concurrency), limit(request.per_user));
    let update = QueueUpdate { name, paused: request.paused, reason: request.reason, concurrency, per_user };
    let terms = call.engine().put_queue(call.caller()?, update, key.as_deref()).await?;
    Ok(answer::json(StatusCode::OK, &with_message(terms)))
}

async fn remove(call: Call) -> Result<Response<Body>, Fault> {
    let name = call.params.get("name");
    call.engine().remove_queue(call.caller()?, name).await?;
    let name = Name::new(name).map_err(|error| Fault::invalid("name", error.to_string()))?;
    Ok(answer::json(StatusCode::OK, &with_message(QueueTerms::none(name))))
}

fn with_message(terms: QueueTerms) -> QueueTermsResponse {
    let state = if terms.paused.is_some() { "is paused; running executions go on" } else { "is not paused" };
    let mut message = format!("queue {} {state}", terms.name);
    if let Some(limit) = terms.concurrency {
        message.push_str(&format!(", runs at most {limit} executions at the same time"));
    }
    if let Some(limit) = terms.per_user {
        message.push_str(&format!(", at most {limit} per user"));
    }
    let QueueTerms { name, paused, concurrency, per_user } = terms;
    QueueTermsResponse { name: name.to_string(), paused: paused.map(pause), concurrency, per_user, message }
}

async fn dead(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let limit = usize::try_from(query.number("limit", 1..=MOST_LISTED)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let after = query.parsed::<Cursor>("cursor")?.map(|cursor| cursor.0);
    // One more than asked for tells whether there is a next page.
    let mut executions = call.engine().dead_letters(call.caller()?, call.params.get("name"), after, limit + 1).await?;
    let more = executions.len() > limit;
    executions.truncate(limit);
    let letters: Vec<DeadLetter> = executions.iter().map(letter).collect();
    let mut response = answer::json(StatusCode::OK, &letters);
    if let Some(last) = executions.last().filter(|_| more) {
        let cursor = Cursor((last.dead_since().unwrap_or_default(), last.id)).to_string();
        response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from_str(&cursor).expect("digits are ASCII"));
    }
    Ok(response)
}

fn letter(execution: &Execution) -> DeadLetter {
    let task = execution.spec.task.as_ref();
    DeadLetter {
        execution_id: execution.id.to_string(),
        queue: execution.spec.queue.to_string(),
        created_by: execution.created_by.clone(),
        command: execution.spec.command.clone(),
        job_id: task.map(|task| task.job.to_string()),
        task_id: task.map(|task| task.task.to_string()),
        attempts: execution.attempt,
        error: execution.end_reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default(),
        error_category: execution.error_category.map(|category| category.as_str().to_owned()),
        failed_at: execution.dead_since().unwrap_or_default().into(),
    }
}

async fn redrive(call: Call) -> Result<Response<Body>, Fault> {
    let request: RedriveRequest = call.json().await?.unwrap_or_default();
    let queue = call.params.get("name");
    let key = call.idempotency_key()?;
    let after = request.after.as_deref().map(str::parse::<Progress>).transpose();
    let after = after.map_err(|error| Fault::invalid("after", error))?.map(|progress| progress.0);
    let wanted = match (&request.execution_ids, after) {
        (Some(_), Some(_)) => return Err(Fault::invalid("after", "continues a redrive of all dead letters: leave execution_ids out")),
        (Some(ids), None) => Wanted::Named(ids),
        (None, after) => Wanted::Oldest(after),
    };
    let report = call.engine().redrive(call.caller()?, queue, wanted, key).await?;
    Ok(answer::json(StatusCode::OK, &response(queue, report)))
}

fn response(queue: &str, report: RedriveReport) -> RedriveResponse {
    let (mut redriven, mut refused, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    for letter in report.letters {
        let execution_id = letter.execution.to_string();
        match letter.fate {
            Fate::Execution(id) => redriven.push(Redriven { execution_id, new_execution_id: Some(id.to_string()), job_id: None }),
            Fate::Job(job) => redriven.push(Redriven { execution_id, new_execution_id: None, job_id: Some(job.to_string()) }),
            Fate::Refused(error) => refused.push(NotRedriven { execution_id, error }),
            Fate::Dropped(error) => dropped.push(NotRedriven { execution_id, error }),
        }
    }
    let mut message = format!("{} run again", redriven.len());
    if !refused.is_empty() {
        message.push_str(&format!(", {} cannot", refused.len()));
    }
    if !dropped.is_empty() {
        message.push_str(&format!(", {} never can and were dropped", dropped.len()));
    }
    if report.left > 0 {
        let or_more = if report.left >= MOST_COUNTED as u64 { " or more" } else { "" };
        message.push_str(&format!(", {}{or_more} are left: the next request goes on after `next`", report.left));
    }
    let next = report.next.map(|place| Progress(place).to_string());
    RedriveResponse { queue: queue.to_owned(), redriven, refused, dropped, left: report.left, next, message }
}

/// A place among dead letters as text.
struct Cursor(DeadPlace);

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self((since, id)) = self;
        write!(f, "{}.{id}", since.0)
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (since, id) = text.split_once('.')?;
            Some((UnixMs(since.parse().ok()?), id.parse::<ExecutionId>().ok()?))
        };
        parse().map(Self).ok_or("is not an X-Next-Cursor of this list")
    }
}

/// How far a redrive of all has come, as text.
struct Progress(RedrivePlace);

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(RedrivePlace { after, until }) = self;
        write!(f, "{}.{}", until.0, Cursor(*after))
    }
}

impl FromStr for Progress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (until, after) = text.split_once('.')?;
            Some(RedrivePlace { after: after.parse::<Cursor>().ok()?.0, until: UnixMs(until.parse().ok()?) })
        };
        parse().map(Self).ok_or("is not `next` of an earlier redrive")
    }
}
