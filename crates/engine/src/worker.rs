//! Accounts of workers as admins manage them: made with a key that is shown once, or with a public key that is brought; given another key; revoked.

use runvoy_model::base58;
use runvoy_model::change::{Change, NewWorker};
use runvoy_model::credential;
use runvoy_model::id::WorkerAccountId;
use runvoy_model::key::{key_hash, key_prefix, key_text};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::{Action, Reach, Role, reach};
use runvoy_model::time::UnixMs;
use runvoy_model::worker::{MOST_QUEUES, WorkerAccount, WorkerKey};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::{EngineError, NOTHING_CHANGED};
use crate::repeat::submit_key;

/// An account to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerRequest {
    /// Its name; for a public key that brings one it may be empty.
    pub name: String,
    /// What it may do: the word; absent is a worker. Another one is for a public key alone.
    pub role: Option<String>,
    /// What else a worker may do: the words; `submit` is the only one. It is for a public key alone.
    pub may: Vec<String>,
    /// The queues it may serve; empty means every queue.
    pub queues: Vec<String>,
    /// What it is for; empty means nothing is said.
    pub description: Option<String>,
    /// It is made although this server then runs no more commands.
    pub confirm: bool,
    /// The client's own key for the request.
    pub idempotency_key: Option<String>,
}

/// The word for a worker that may also submit.
pub const MAY_SUBMIT: &str = "submit";

const MAX_DESCRIPTION_CHARS: usize = 256;

/// An account that was made or given another key.
#[derive(Clone, PartialEq, Eq)]
pub struct MadeWorker {
    /// The account.
    pub account: WorkerAccount,
    /// Its key, which nobody can ask for again; absent where a public key was brought.
    pub api_key: Option<String>,
}

/// An account with what is known beside its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWorker {
    /// The account.
    pub account: WorkerAccount,
    /// When its key was last used, to the minute.
    pub last_used: Option<UnixMs>,
}

impl Engine {
    /// Every account of workers, by name; also those whose key was revoked.
    pub async fn list_worker_accounts(&self, caller: &Caller) -> Result<Vec<KnownWorker>, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let records = self.all(Kind::Worker).await?;
        let accounts: Vec<WorkerAccount> = records.iter().filter_map(Record::worker).cloned().collect();
        let hashes: Vec<[u8; 32]> = accounts.iter().map(|account| *account.key.hash()).collect();
        let uses = self.ports.records.key_uses(&hashes).await?;
        // Uses are kept to the minute, which may have begun before the key was made.
        let known = |(account, used): (WorkerAccount, Option<UnixMs>)| {
            let last_used = used.map(|at| at.max(account.keyed_at));
            KnownWorker { account, last_used }
        };
        Ok(accounts.into_iter().zip(uses).map(known).collect())
    }

    /// Makes an account with a key that is shown once.
    pub async fn create_worker(&self, caller: &Caller, request: &WorkerRequest) -> Result<MadeWorker, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let name = account_name(&request.name)?;
        if account_role(request)? != Role::Worker {
            let message = "is for accounts with a public key: give a user or a worker an API key instead";
            return Err(EngineError::invalid("role", message));
        }
        if !request.may.is_empty() {
            return Err(EngineError::invalid("may", "is for accounts with a public key: import one with `runvoy workers import`"));
        }
        let (api_key, key) = self.new_worker_key();
        self.make_worker(caller, "workers.create", name, request, key, Some(api_key)).await
    }

    /// Makes an account for whoever has the private key to the public one in this text.
    pub async fn import_worker(&self, caller: &Caller, request: &WorkerRequest, blob: &str) -> Result<MadeWorker, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let brought = credential::read(blob).map_err(|error| EngineError::invalid("public_key", error.to_string()))?;
        let fingerprint = base58::encode(brought.key.fingerprint());
        let text = match (request.name.trim(), brought.name.as_deref()) {
            ("", Some(own)) => own,
            // No name is as good as this one, and it is always free.
            ("", None) => fingerprint.as_str(),
            (given, _) => given,
        };
        self.make_worker(caller, "workers.import", account_name(text)?, request, WorkerKey::Public(brought.key), None).await
    }

    /// Gives an account another key, which is shown once; the one before ends in the same step.
    pub async fn rotate_worker(&self, caller: &Caller, name: &str, idempotency_key: Option<&str>) -> Result<MadeWorker, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let name = Name::new(name).map_err(|_| no_account(name))?;
        let record = self.ports.records.record(Kind::Worker, name.as_str()).await?;
        if record.as_ref().and_then(Record::worker).is_some_and(|account| account.role != Role::Worker || account.may_submit) {
            return Err(EngineError::conflict(
                format!("account {name} is for a public key: revoke it and import another"),
                NOTHING_CHANGED,
            ));
        }
        let submit = submit_key(caller, idempotency_key, "workers.rotate", &name)?;
        let (api_key, key) = self.new_worker_key();
        let change = Change::RotateWorker(name.clone(), Box::new(key));
        let (record, repeated) = self.ports.store.change(self.user_step(caller, "workers.rotate"), change, submit).await?;
        shown_once(&name, repeated)?;
        self.account_ended(&name).await;
        Ok(MadeWorker { account: account_in(&record)?, api_key: Some(api_key) })
    }

    /// Ends the key of an account. What its workers run is reaped when their leases lapse, also where others would be waited for.
    pub async fn revoke_worker(&self, caller: &Caller, name: &str) -> Result<WorkerAccount, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let name = Name::new(name).map_err(|_| no_account(name))?;
        let change = Change::RevokeWorker(name.clone());
        let (record, _) = self.ports.store.change(self.user_step(caller, "workers.revoke"), change, None).await?;
        self.account_ended(&name).await;
        account_in(&record)
    }

    /// The account with this id, for callers that know accounts by it.
    pub async fn worker_account(&self, caller: &Caller, id: WorkerAccountId) -> Result<WorkerAccount, EngineError> {
        caller.may(Action::ManageWorkers)?;
        let records = self.all(Kind::Worker).await?;
        let found = records.iter().filter_map(Record::worker).find(|account| account.id == id);
        found.cloned().ok_or_else(|| no_account(&id.to_string()))
    }

    async fn make_worker(
        &self,
        caller: &Caller,
        action: &'static str,
        name: Name,
        request: &WorkerRequest,
        key: WorkerKey,
        api_key: Option<String>,
    ) -> Result<MadeWorker, EngineError> {
        let (role, queues) = (account_role(request)?, account_queues(&request.queues)?);
        let may_submit = account_may_submit(request, role)?;
        if role != Role::Worker && !queues.is_empty() {
            return Err(EngineError::invalid("queues", "are for worker accounts: use rules to limit the queues of users"));
        }
        let description = account_description(request)?;
        let public = api_key.is_none().then(|| key.shown());
        let mut asked = json!({"name": name, "queues": queues, "publicKey": public});
        if let Some(role) = &request.role {
            asked["role"] = json!(role);
        }
        if may_submit {
            asked["may"] = json!([MAY_SUBMIT]);
        }
        if let Some(description) = &description {
            asked["description"] = json!(description);
        }
        let submit = submit_key(caller, request.idempotency_key.as_deref(), action, &asked)?;
        if may_submit || reach(role, Action::Run) != Reach::None {
            self.refuse_second_user(request.confirm).await?;
        }
        let id = WorkerAccountId(self.ports.ids.next_id());
        let change = Change::CreateWorker(Box::new(NewWorker { name: name.clone(), id, role, may_submit, queues, key, description }));
        let (record, repeated) = self.ports.store.change(self.user_step(caller, action), change, submit).await?;
        if api_key.is_some() {
            shown_once(&name, repeated)?;
        }
        Ok(MadeWorker { account: account_in(&record)?, api_key })
    }

    fn new_worker_key(&self) -> (String, WorkerKey) {
        let text = key_text(&self.ports.ids.random());
        let key = WorkerKey::Secret { hash: key_hash(&text), prefix: key_prefix(&text) };
        (text, key)
    }
}

fn account_name(text: &str) -> Result<Name, EngineError> {
    Name::new(text.trim()).map_err(|error| EngineError::invalid("name", error.to_string()))
}

fn account_role(request: &WorkerRequest) -> Result<Role, EngineError> {
    let Some(word) = request.role.as_deref() else { return Ok(Role::Worker) };
    Role::OF_KEYS.into_iter().find(|role| role.as_str() == word).ok_or_else(|| {
        let words = Role::OF_KEYS.map(Role::as_str);
        EngineError::invalid("role", format!("must be {}", runvoy_model::phrase::one_of(&words)))
    })
}

fn account_may_submit(request: &WorkerRequest, role: Role) -> Result<bool, EngineError> {
    if request.may.iter().any(|word| word != MAY_SUBMIT) {
        return Err(EngineError::invalid("may", format!("must be {MAY_SUBMIT}, or left out")));
    }
    if !request.may.is_empty() && role != Role::Worker {
        return Err(EngineError::invalid("may", format!("is for worker accounts: role {} already says what it may do", role.as_str())));
    }
    Ok(!request.may.is_empty())
}

fn account_description(request: &WorkerRequest) -> Result<Option<String>, EngineError> {
    let Some(text) = request.description.as_deref().map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.chars().count() > MAX_DESCRIPTION_CHARS || text.chars().any(char::is_control) {
        let message = format!("must have at most {MAX_DESCRIPTION_CHARS} characters on one line, without control characters");
        return Err(EngineError::invalid("description", message));
    }
    Ok(Some(text.to_owned()))
}

fn account_queues(texts: &[String]) -> Result<Vec<Name>, EngineError> {
    if texts.len() > MOST_QUEUES {
        return Err(EngineError::invalid("queues", format!("must list at most {MOST_QUEUES} queues; leave it out for every queue")));
    }
    texts.iter().map(|text| Name::new(text.trim()).map_err(|error| EngineError::invalid("queues", error.to_string()))).collect()
}

fn account_in(record: &Record) -> Result<WorkerAccount, EngineError> {
    record.worker().cloned().ok_or_else(|| EngineError::Internal("an account that was changed is not there".into()))
}

fn shown_once(name: &Name, repeated: bool) -> Result<(), EngineError> {
    if repeated { Err(EngineError::ShownOnce(format!("the key of worker {name}"))) } else { Ok(()) }
}

fn no_account(text: &str) -> EngineError {
    EngineError::NotFound { what: format!("worker {}", text.escape_default()) }
}
