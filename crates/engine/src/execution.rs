//! Executions as callers see them: submit, look, list, kill, wait, run again; and the locks they hold.

use std::time::Duration;

use runvoy_model::command::{Kill, LeaseTo, Refusal, Submit, SubmitKey};
use runvoy_model::execution::Execution;
use runvoy_model::hex::hex;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_model::role::{Action, Reach};
use runvoy_model::spec::Spec;
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogError;
use runvoy_ports::store::{EventPage, ListQuery, LockLine, StoreError};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::plan::Plan;
use crate::repeat::submit_key;
use crate::request::RunRequest;
use crate::subject::Subject;

/// The shortest part of an id that may stand for it.
pub(crate) const MIN_ID_DIGITS: usize = 6;
/// How many executions that fit a part of an id are looked at, and how many are shown.
const MOST_FITTING: usize = 10_000;
const MOST_SHOWN: usize = 10;
/// The word of a kill in the trail.
pub(crate) const KILL: &str = "executions.kill";

/// Which executions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only these statuses; empty means all.
    pub statuses: Vec<Status>,
    /// Only those that this user submitted.
    pub user: Option<String>,
    /// Only those that asked for this lock.
    pub lock: Option<Name>,
    /// Only those of this queue.
    pub queue: Option<Name>,
    /// Only the tasks of this job.
    pub job: Option<JobId>,
    /// Only those submitted at this time or later.
    pub since: Option<UnixMs>,
    /// Only those submitted before this time.
    pub until: Option<UnixMs>,
    /// Only those with this text in their command, labels, id or end reason, in any case of letters.
    pub text: Option<String>,
    /// Go on after this one.
    pub after: Option<ExecutionId>,
    /// At most this many.
    pub limit: usize,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// What was found, newest first.
    pub executions: Vec<Execution>,
    /// How many were looked at for it.
    pub looked_at: usize,
    /// Where to go on; `None` after the last one. There may be one on a page that is not full: a text is looked for in so many only at once.
    pub next: Option<ExecutionId>,
}

/// So many executions are looked at for a text in one request.
const MOST_LOOKED_AT: usize = 10_000;
/// So many are read at once.
const READ_AT_ONCE: usize = 500;

/// Whether a text can be the beginning or the end of an id.
pub(crate) fn is_part_of_id(text: &str) -> bool {
    (MIN_ID_DIGITS..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Engine {
    /// Runs a command. The answer is durable: the execution is recorded, its lock held, before this returns.
    pub async fn run(&self, caller: &Caller, request: &RunRequest) -> Result<Execution, EngineError> {
        caller.may(Action::Run)?;
        let key = submit_key(caller, request.idempotency_key.as_deref(), "executions.run", request)?;
        if let Some(execution) = self.submitted_before(key.as_ref()).await? {
            return Ok(execution);
        }
        let plan = self.plan(caller, request).await?;
        self.submit_plan(caller, plan, key, ("executions.run", None)).await
    }

    /// The execution that an earlier request made of this one, with the same key.
    pub async fn ran_before(&self, caller: &Caller, request: &RunRequest) -> Result<Option<Execution>, EngineError> {
        caller.may(Action::Run)?;
        let key = submit_key(caller, request.idempotency_key.as_deref(), "executions.run", request)?;
        self.submitted_before(key.as_ref()).await
    }

    /// Runs the same command again, as a new execution of the caller. What was a task of a job is none then.
    pub async fn rerun(&self, caller: &Caller, id: &str, key: Option<String>) -> Result<Execution, EngineError> {
        caller.may(Action::Run)?;
        let key = submit_key(caller, key.as_deref(), "executions.rerun", &id)?;
        if let Some(execution) = self.submitted_before(key.as_ref()).await? {
            return Ok(execution);
        }
        let earlier = self.execution(caller, id).await?;
        if earlier.spec.is_lost() {
            return Err(EngineError::conflict(
                format!("the command of execution {} can no longer be read: submit it again", earlier.id),
                "nothing was started",
            ));
        }
        // Somebody runs it again by hand, so it runs once.
        let plan = self.plan_again(caller, Spec { redeliveries: 0, ..earlier.spec }).await?;
        self.submit_plan(caller, plan, key, ("executions.rerun", Some(earlier.id.to_string()))).await
    }

    /// Submits what was planned, unless a rule forbids it; that somebody tried is kept, with the action and what it was asked of.
    pub(crate) async fn submit_plan(
        &self,
        caller: &Caller,
        plan: Plan,
        key: Option<SubmitKey>,
        (action, target): (&str, Option<String>),
    ) -> Result<Execution, EngineError> {
        let subject = Subject::of(&plan.spec, target);
        if plan.verdict.allowed {
            return self.submit(caller, plan.spec, key, (action, &subject)).await;
        }
        let decision = plan.verdict.decisions.into_iter().next();
        let (rule, why) = decision.map_or((None, "no rule allows it".to_owned()), |decision| (decision.rule, decision.why));
        self.note_denied(caller, action, &why, &subject).await?;
        Err(EngineError::Denied { rule, why })
    }

    async fn submit(
        &self,
        caller: &Caller,
        spec: Spec,
        key: Option<SubmitKey>,
        (action, subject): (&str, &Subject),
    ) -> Result<Execution, EngineError> {
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        self.take_room(caller, &[(spec.queue.clone(), 1)]).await?;
        let is_served = self.config.queues.contains(&spec.queue) && !self.is_drained(self.worker.id).await;
        let slot = if is_served { self.slots.get().and_then(|slots| slots.reserve()) } else { None };
        let lease_to =
            slot.as_ref().map(|_| LeaseTo { lease: self.lease_id(), worker: self.worker.clone(), ttl_ms: self.config.lease_ttl_ms });
        let id = ExecutionId(self.ports.ids.next_id());
        let submit = Submit { id, spec, created_by: caller.email.clone(), key, lease_to };
        let step = self.about(self.user_step(caller, action), subject).await?;
        let submitted = self.ports.store.submit(step, submit).await;
        let (execution, repeated) = submitted.inspect_err(|error| {
            if let Some(Refusal::LockHeld(_)) = error.refusal() {
                metrics::counter!("runvoy_lock_conflicts_total").increment(1);
            }
        })?;
        if repeated {
            return Ok(execution);
        }
        metrics::counter!("runvoy_executions_submitted_total", "queue" => execution.spec.queue.to_string()).increment(1);
        match slot {
            Some(slot) if execution.lease.is_some() => slot.start(execution.clone()),
            _ => {
                self.note_queued(&execution).await;
                self.hub.work_in(&execution.spec.queue);
            }
        }
        Ok(execution)
    }

    /// One execution that the caller may see, by its id or a part of it.
    pub async fn execution(&self, caller: &Caller, id: &str) -> Result<Execution, EngineError> {
        self.reachable(caller, Action::Read, id).await
    }

    /// Notes that the caller made a link to an execution's log.
    ///
    /// The answer is when the link was made: now, or when the same key was first shown. `until` says how long one of then is good. A link ends with
    /// the key that its maker called with, so that another one would make another link of it.
    pub async fn note_link(
        &self,
        caller: &Caller,
        execution: &Execution,
        key: Option<&str>,
        until: fn(UnixMs) -> UnixMs,
    ) -> Result<UnixMs, EngineError> {
        let asked = json!({"execution": execution.id, "credential": caller.key_hash.map(|hash| hex(&hash))});
        let key = submit_key(caller, key, "executions.link", &asked)?;
        if let Some(made_at) = self.linked_before(key.as_ref()).await? {
            return Ok(made_at);
        }
        let step = self.user_step(caller, "executions.link");
        let now = step.at;
        self.ports.store.note_link(step, execution.id, until(now), key.clone()).await?;
        // Of two at once with one key the first made it.
        Ok(self.linked_before(key.as_ref()).await?.unwrap_or(now))
    }

    pub(crate) async fn reachable(&self, caller: &Caller, action: Action, text: &str) -> Result<Execution, EngineError> {
        let reach = caller.may(action)?;
        let id = match text.parse::<ExecutionId>() {
            Ok(id) => id,
            Err(_) => self.resolve(caller, reach, text).await?,
        };
        let execution = self.ports.store.get(id).await?;
        execution.filter(|execution| caller.reaches(reach, execution)).ok_or_else(|| EngineError::no_execution(text.escape_default()))
    }

    async fn resolve(&self, caller: &Caller, reach: Reach, digits: &str) -> Result<ExecutionId, EngineError> {
        if !is_part_of_id(digits) {
            return Err(EngineError::no_execution(digits.escape_default()));
        }
        let mut visible = Vec::new();
        // Many may fit that the caller cannot see: those must neither hide one that fits nor make it look like the only one.
        for id in self.ports.store.find(digits, MOST_FITTING).await? {
            let execution = self.ports.store.get(id).await?;
            visible.extend(execution.filter(|execution| caller.reaches(reach, execution)).map(|execution| execution.id));
            if visible.len() >= MOST_SHOWN {
                break;
            }
        }
        match visible[..] {
            [] => Err(EngineError::no_execution(digits)),
            [id] => Ok(id),
            _ => {
                let candidates = visible.iter().map(ToString::to_string).collect();
                Err(EngineError::Ambiguous { digits: digits.to_owned(), what: "executions", candidates })
            }
        }
    }

    /// A page of executions that the caller may see, newest first.
    pub async fn list(&self, caller: &Caller, filter: ListFilter) -> Result<ListPage, EngineError> {
        let owner = match caller.may(Action::Read)? {
            Reach::All => None,
            Reach::Own | Reach::None => Some(caller.email.clone()),
        };
        let mut query = ListQuery {
            statuses: filter.statuses,
            owner,
            created_by: filter.user,
            lock: filter.lock,
            queue: filter.queue,
            job: filter.job,
            since: filter.since,
            until: filter.until,
            after: filter.after,
            limit: 0,
        };
        let wanted = filter.text.map(|text| text.to_lowercase());
        // No index knows a text: what is read is looked through, so many at once and no more.
        let at_once = if wanted.is_some() { READ_AT_ONCE } else { filter.limit };
        let mut page = ListPage::default();
        loop {
            // One more than looked at tells whether there is a next one.
            query.limit = at_once + 1;
            let mut read = self.ports.store.list(query.clone()).await?;
            let mut more = read.len() > at_once;
            read.truncate(at_once);
            let mut last = None;
            for execution in read {
                if page.executions.len() == filter.limit {
                    more = true;
                    break;
                }
                page.looked_at += 1;
                last = Some(execution.id);
                if wanted.as_ref().is_none_or(|text| holds(&execution, text)) {
                    page.executions.push(execution);
                }
            }
            page.next = last.filter(|_| more);
            if page.next.is_none() || page.executions.len() >= filter.limit || page.looked_at >= MOST_LOOKED_AT {
                return Ok(page);
            }
            query.after = last;
        }
    }

    /// Ends an execution: at once if it does not run yet, else through its worker.
    pub async fn kill(&self, caller: &Caller, id: &str, force: bool) -> Result<Execution, EngineError> {
        self.kill_in(self.user_step(caller, KILL), caller, id, force).await
    }

    /// The same, in a step that the caller was given.
    pub(crate) async fn kill_in(&self, step: Step, caller: &Caller, id: &str, force: bool) -> Result<Execution, EngineError> {
        let execution = self.reachable(caller, Action::Kill, id).await?;
        self.kill_one(step, &execution, force).await
    }

    /// Ends an execution in the name of whoever the step is of.
    pub(crate) async fn kill_one(&self, step: Step, execution: &Execution, force: bool) -> Result<Execution, EngineError> {
        let id = execution.id;
        if !execution.status.is_terminal() {
            self.note(id, &format!("{} asked to kill this execution", step.actor.name())).await;
        }
        let step = self.about(step, &Subject::of(&execution.spec, None)).await?;
        let execution = self.ports.store.kill(step, Kill { execution: id, force }).await?;
        if execution.status.is_terminal() {
            self.ended(&execution).await;
        } else {
            if let Some(slots) = self.slots.get() {
                slots.nudge(id);
            }
            if let Some(lease) = &execution.lease {
                self.hub.attention.call(lease.worker, id);
            }
        }
        self.hub.changed(id);
        Ok(execution)
    }

    /// Comes back when the execution has ended, or after `timeout`.
    pub async fn wait(&self, caller: &Caller, id: &str, timeout: Duration) -> Result<Execution, EngineError> {
        let deadline = tokio::time::Instant::now() + timeout;
        let id = self.execution(caller, id).await?.id;
        let mut watch = self.hub.watch(id);
        loop {
            let execution = self.ports.store.get(id).await?.ok_or_else(|| EngineError::no_execution(id))?;
            if execution.status.is_terminal() || tokio::time::Instant::now() >= deadline {
                return Ok(execution);
            }
            let next_look = deadline.min(tokio::time::Instant::now() + self.config.poll);
            tokio::select! {
                () = watch.changed() => {}
                () = tokio::time::sleep_until(next_look) => {}
            }
        }
    }

    /// A page of the events of an execution, in order, after a place.
    pub async fn execution_events(&self, caller: &Caller, id: &str, after: Option<u64>) -> Result<EventPage, EngineError> {
        let id = self.execution(caller, id).await?.id;
        self.task_events(caller, id, after).await
    }

    /// Every lock that is held, and who waits for it.
    pub async fn locks(&self, caller: &Caller) -> Result<Vec<LockLine>, EngineError> {
        caller.may(Action::ReadLocks)?;
        Ok(self.ports.store.locks().await?)
    }

    /// Takes a lock from its holder, who goes on without it; the first in line gets it.
    pub async fn release_lock(&self, caller: &Caller, name: &str) -> Result<Lock, EngineError> {
        caller.may(Action::ReleaseLock)?;
        let not_held = || EngineError::NotFound { what: format!("held lock {}", name.escape_default()) };
        let name = Name::new(name).map_err(|_| not_held())?;
        match self.ports.store.release_lock(self.user_step(caller, "locks.release"), name).await {
            Ok(lock) => {
                self.hub.work();
                Ok(lock)
            }
            Err(StoreError::Refused(Refusal::NotFound)) => Err(not_held()),
            Err(error) => Err(error.into()),
        }
    }

    /// What follows the end of an execution, all of it hints: the log may be packed, followers look, the next in line may start.
    pub(crate) async fn ended(&self, execution: &Execution) {
        if let Err(error) = self.seal(execution).await {
            tracing::warn!(execution = %execution.id, %error, "the log was not sealed");
        }
        let reason = execution.end_reason.as_ref().map_or("", |reason| reason.code.as_str());
        metrics::counter!("runvoy_executions_ended_total", "status" => execution.status.as_str(), "reason" => reason).increment(1);
        if let Some(ms) = execution.duration_ms(self.now()) {
            #[expect(clippy::cast_precision_loss, reason = "a duration in a histogram")]
            metrics::histogram!("runvoy_execution_duration_seconds").record(ms as f64 / 1000.0);
        }
        self.hub.changed(execution.id);
        if execution.dead {
            self.alerts.wake();
        }
        if execution.spec.task.is_some() {
            self.dispatcher.notify_one();
        }
        // Its place in a limited queue may be what others wait for.
        if execution.spec.task.is_some() || execution.spec.lock.is_some() || self.hub.lines.is_barred() {
            self.hub.work();
        }
    }
}

impl Engine {
    /// Closes the log of an execution that has ended, and that of its events.
    pub(crate) async fn seal(&self, execution: &Execution) -> Result<(), LogError> {
        let log_end = match execution.log_end {
            Some(log_end) => log_end,
            None => self.ports.logs.extent(execution.id).await?.next_line.saturating_sub(1),
        };
        self.ports.logs.seal(execution.id, log_end).await?;
        self.seal_events(execution).await
    }
}

/// Whether a text, in lower case, is in what people know an execution by.
fn holds(execution: &Execution, text: &str) -> bool {
    let has = |one: &str| one.to_lowercase().contains(text);
    let spec = &execution.spec;
    has(&spec.command)
        || spec.args.iter().flatten().any(|arg| has(arg))
        || spec.labels.iter().any(|(name, value)| has(&format!("{name}={value}")))
        || execution.end_reason.as_ref().is_some_and(|reason| has(&reason.message))
        || execution.id.to_string().contains(text)
}
