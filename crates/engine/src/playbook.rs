//! Playbooks on the server: pushing one checks it as a run would be checked, and a run passes its parameters as data. No value of a parameter is
//! ever part of a shell text: it is an environment variable, or one whole argument.

use std::collections::BTreeMap;

use runvoy_model::change::Change;
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::playbook::{Playbook, PlaybookBody};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::{Action, Role};
use runvoy_model::rule::{Asked, Decision, Effect, Verdict, judge};
use runvoy_model::spec::PlaybookRef;
use serde::Serialize;
use serde_json::Value;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::plan::Plan;
use crate::repeat::submit_key;
use crate::request::RunRequest;

/// A run of a playbook, as it came in.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlaybookRun {
    /// The values of its parameters.
    pub parameters: BTreeMap<String, Value>,
    /// An older version; absent means the newest.
    pub version: Option<u32>,
    /// Seconds to wait for its lock, where it holds one.
    pub lock_wait: Option<i64>,
    /// The client's own key for this request.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

impl Engine {
    /// The newest version of every playbook that the caller may run or manage.
    pub async fn playbooks(&self, caller: &Caller) -> Result<Vec<Playbook>, EngineError> {
        caller.may(Action::ReadPlaybooks)?;
        let records = self.all(Kind::Playbook).await?;
        let mut playbooks = Vec::new();
        for playbook in records.iter().filter_map(Record::playbook) {
            if self.may_see(caller, &playbook.name).await? {
                playbooks.push(playbook.clone());
            }
        }
        Ok(playbooks)
    }

    /// One version of a playbook; absent means the newest.
    pub async fn playbook(&self, caller: &Caller, name: &str, version: Option<u32>) -> Result<Playbook, EngineError> {
        caller.may(Action::ReadPlaybooks)?;
        let missing = || EngineError::NotFound { what: format!("playbook {}", name.escape_default()) };
        let name = Name::new(name).map_err(|_| missing())?;
        let newest = self.ports.records.record(Kind::Playbook, name.as_str()).await?;
        let newest = newest.as_ref().and_then(Record::playbook).ok_or_else(missing)?;
        if !self.may_see(caller, &name).await? {
            return Err(missing());
        }
        match version {
            None => Ok(newest.clone()),
            // A version lives as long as its playbook does; the name may have had another one before.
            Some(version) if version < newest.first_version => Err(missing()),
            Some(version) => self.playbook_version(&name, version).await?.ok_or_else(missing),
        }
    }

    /// A version of a playbook as it was pushed, whatever became of the playbook.
    pub(crate) async fn playbook_version(&self, name: &Name, version: u32) -> Result<Option<Playbook>, EngineError> {
        let record = self.ports.records.record(Kind::PlaybookVersion, &format!("{name}@{version}")).await?;
        Ok(record.as_ref().and_then(Record::playbook).cloned())
    }

    /// A new version of a playbook.
    pub async fn push_playbook(&self, caller: &Caller, name: &str, body: PlaybookBody) -> Result<Playbook, EngineError> {
        caller.may(Action::ManagePlaybooks)?;
        let name = Name::new(name).map_err(|error| EngineError::invalid("name", error.to_string()))?;
        body.check().map_err(|error| EngineError::invalid(error.field, error.message))?;
        // What it would run is checked now, as far as no parameter decides: a playbook that can never run is refused here.
        self.plan(caller, &request(&body)).await?;
        let step = self.user_step(caller, "playbooks.push");
        let (record, _) = self.ports.store.change(step, Change::PushPlaybook(name, Box::new(body)), None).await?;
        record.playbook().cloned().ok_or_else(|| EngineError::Internal("a playbook was pushed and is not there".into()))
    }

    /// No such playbook any more. What runs goes on.
    pub async fn remove_playbook(&self, caller: &Caller, name: &str) -> Result<Name, EngineError> {
        caller.may(Action::ManagePlaybooks)?;
        let missing = || EngineError::NotFound { what: format!("playbook {}", name.escape_default()) };
        let name = Name::new(name).map_err(|_| missing())?;
        self.ports.store.change(self.user_step(caller, "playbooks.remove"), Change::RemovePlaybook(name.clone()), None).await?;
        Ok(name)
    }

    /// What a run of a playbook would do. A version that is no longer the newest may have been pushed over for a reason: it is for admins.
    pub async fn plan_playbook(&self, caller: &Caller, name: &str, run: &PlaybookRun) -> Result<Plan, EngineError> {
        caller.may(Action::Run)?;
        let newest = self.playbook(caller, name, None).await?.version;
        let playbook = self.playbook(caller, name, run.version.or(Some(newest))).await?;
        let bound = playbook.steps.bind(&run.parameters).map_err(|error| EngineError::invalid(error.field, error.message))?;
        let mut request = request(&playbook.steps);
        request.args = bound.args;
        request.lock_wait = run.lock_wait.or(request.lock_wait);
        let image = self.image_for(caller, request.image.as_deref()).await?;
        let image_id = image.as_ref().map_or(runvoy_model::spec::LOCAL_IMAGE, |image| image.image_id.as_str());
        let mut spec = request.check(image_id, self.git_reach())?;
        spec.env.extend(bound.env);
        spec.playbook = Some(PlaybookRef { name: playbook.name.clone(), version: playbook.version });
        let mut plan = self.plan_spec(caller, spec, image, Some(&playbook)).await?;
        if plan.verdict.allowed && playbook.version != newest && caller.role != Role::Admin {
            let why = format!("version {newest} is the newest, and only an admin runs another");
            plan.verdict = Verdict { allowed: false, decisions: vec![Decision { rule: None, effect: Effect::Deny, why }] };
        }
        Ok(plan)
    }

    /// Runs a playbook.
    pub async fn run_playbook(&self, caller: &Caller, name: &str, run: &PlaybookRun) -> Result<Execution, EngineError> {
        caller.may(Action::Run)?;
        let key = submit_key(caller, run.idempotency_key.as_deref(), "playbooks.run", &(name, run))?;
        if let Some(execution) = self.submitted_before(key.as_ref()).await? {
            return Ok(execution);
        }
        let plan = self.plan_playbook(caller, name, run).await?;
        self.submit_plan(caller, plan, key, ("playbooks.run", Some(name.to_owned()))).await
    }

    /// Whoever may neither run a playbook nor manage any does not hear of it; whoever only reads, reads all.
    async fn may_see(&self, caller: &Caller, name: &Name) -> Result<bool, EngineError> {
        if matches!(caller.role, Role::Admin | Role::Viewer) {
            return Ok(true);
        }
        let playbook = Some(name.as_str());
        let asked = Asked { command: "", args: None, image: "", reference: None, lock: None, queue: "", secrets: &[], playbook };
        Ok(judge(&self.rules_seen_by(caller).await?, &caller.subject(), &asked).allowed)
    }
}

/// What a playbook runs, as a request would say it.
fn request(steps: &PlaybookBody) -> RunRequest {
    let git = steps.git.as_ref();
    RunRequest {
        command: steps.command.clone(),
        args: steps.args.clone(),
        image: steps.image.clone(),
        env: steps.env.clone(),
        timeout: steps.timeout,
        lock: steps.lock.clone(),
        lock_wait: steps.lock_wait,
        queue: steps.queue.clone(),
        priority: steps.priority,
        labels: steps.labels.clone(),
        worker_labels: steps.worker_labels.clone(),
        terminal: steps.terminal,
        retries: steps.retries,
        redeliveries: 0,
        secrets: steps.secrets.iter().map(ToString::to_string).collect(),
        git_repo: git.map(|git| git.repo.clone()),
        git_ref: git.and_then(|git| git.reference.clone()),
        git_path: git.and_then(|git| git.path.clone()),
        git_token: git.and_then(|git| git.token.as_ref()).map(ToString::to_string),
        rpc: None,
        idempotency_key: None,
    }
}
