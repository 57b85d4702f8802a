//! Queues as callers see them: what waits, what runs, what was given up; and running that again. Whoever may run and reaches an execution may have it
//! run again: what its owner may, and what rules forbid the caller, is judged as for a new one, and it stays its owner's.

use runvoy_model::change::Made;
use runvoy_model::command::{Refusal, SubmitKey};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::redrive::{Fate, Letter, MOST_REDRIVEN, Redrive, Redriven};
use runvoy_model::role::{Action, Reach};
use runvoy_model::rule::Decision;
use runvoy_model::spec::Spec;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;
use crate::subject::Subject;

/// A request that names none looks no further after so many that may not run again: each is named in its answer.
const MOST_REFUSED: usize = 100;
/// Those that are left are counted up to so many.
pub const MOST_COUNTED: usize = 10_000;
/// The word of a redrive in the trail.
const REDRIVE: &str = "queues.redrive";

/// A place in a list of dead letters.
pub type DeadPlace = (UnixMs, ExecutionId);

/// Which dead letters a redrive is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'r> {
    /// These.
    Named(&'r [String]),
    /// The oldest of all that the caller reaches, as many as one step takes; after the place at which an earlier redrive stopped.
    Oldest(Option<RedrivePlace>),
}

/// How far a redrive of all has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedrivePlace {
    /// The last one that was looked at.
    pub after: DeadPlace,
    /// When it began: what is given up later, perhaps of what it had run again, is not part of it.
    pub until: UnixMs,
}

/// What a redrive came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedriveReport {
    /// What became of each dead letter that was looked at.
    pub letters: Vec<Redriven>,
    /// Where to go on, if some were not looked at.
    pub next: Option<RedrivePlace>,
    /// How many those are; [`MOST_COUNTED`] stands for so many or more.
    pub left: u64,
}

impl Engine {
    /// Every queue that holds something or that the worker of this server serves, by name.
    pub async fn queues(&self, caller: &Caller) -> Result<Vec<QueueCounts>, EngineError> {
        caller.may(Action::ReadQueues)?;
        let mut queues = self.ports.store.queues().await?;
        for name in &self.config.queues {
            if !queues.iter().any(|known| known.queue == *name) {
                queues.push(QueueCounts::empty(name.clone()));
            }
        }
        queues.sort_by(|one, other| one.queue.cmp(&other.queue));
        Ok(queues)
    }

    /// A page of a queue's dead letters that the caller may see, newest first.
    pub async fn dead_letters(
        &self,
        caller: &Caller,
        queue: &str,
        after: Option<DeadPlace>,
        limit: usize,
    ) -> Result<Vec<Execution>, EngineError> {
        let owner = self.owner_seen(caller, caller.may(Action::Read)?);
        let query = DeadQuery { queue: queue_name(queue)?, owner, oldest_first: false, after, until: None, limit };
        Ok(self.ports.store.dead(query).await?)
    }

    /// Has dead letters of a queue run again.
    pub async fn redrive(
        &self,
        caller: &Caller,
        queue: &str,
        wanted: Wanted<'_>,
        key: Option<String>,
    ) -> Result<RedriveReport, EngineError> {
        let asked = match wanted {
            Wanted::Named(ids) => json!({"queue": queue, "execution_ids": ids}),
            Wanted::Oldest(None) => json!({"queue": queue}),
            Wanted::Oldest(Some(RedrivePlace { after: (since, id), until })) => json!({"queue": queue, "after": [since, id, until]}),
        };
        let key = submit_key(caller, key.as_deref(), REDRIVE, &asked)?;
        let owner = self.owner_seen(caller, caller.may(Action::Redrive)?);
        let mut rest = DeadQuery { queue: queue_name(queue)?, owner, oldest_first: true, after: None, until: Some(self.now()), limit: 0 };
        if let Wanted::Oldest(Some(place)) = wanted {
            (rest.after, rest.until) = (Some(place.after), Some(place.until));
        }
        if let Some(letters) = self.redriven_before(key.as_ref()).await? {
            return self.report(wanted, rest, letters).await;
        }
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        let round = match wanted {
            Wanted::Named(ids) => self.named(caller, &rest.queue, ids).await?,
            Wanted::Oldest(_) => self.oldest(caller, rest.clone()).await?,
        };
        if let Some((id, why)) = &round.denied {
            let subject = Subject { target: Some(id.to_string()), ..Subject::default() };
            self.note_denied(caller, REDRIVE, why, &subject).await?;
        }
        self.take_room(caller, &[(rest.queue.clone(), round.letters.len() as u64)]).await?;
        let letters = self.run_again(caller, round, key).await?;
        self.report(wanted, rest, letters).await
    }

    /// Has the letters of a request run again, in as many steps as the store needs. The last one keeps the key, with what became of all: a request that
    /// was broken off finds those of its first steps run again, and goes on with the others.
    async fn run_again(&self, caller: &Caller, round: Round, key: Option<SubmitKey>) -> Result<Vec<Redriven>, EngineError> {
        let most = self.ports.store.step_limits().letters;
        let (mut letters, mut settled) = (round.letters, Vec::new());
        while letters.len() > most {
            let rest = letters.split_off(most);
            let redrive = Redrive { letters: std::mem::replace(&mut letters, rest), settled: Vec::new(), key: None };
            let (some, _) = self.ports.store.redrive(self.user_step(caller, REDRIVE), redrive).await?;
            self.went_on(&some).await?;
            settled.extend(some);
        }
        settled.extend(round.refused);
        let before = settled.len();
        let redrive = Redrive { letters, settled, key };
        let (all, repeated) = self.ports.store.redrive(self.user_step(caller, REDRIVE), redrive).await?;
        if !repeated {
            self.went_on(&all[..all.len() - before]).await?;
        }
        Ok(all)
    }

    /// Whose executions a caller reaches, where it is not everybody's.
    fn owner_seen(&self, caller: &Caller, reach: Reach) -> Option<String> {
        (reach != Reach::All).then(|| caller.email.clone())
    }

    /// What an earlier request with this key came to.
    async fn redriven_before(&self, key: Option<&SubmitKey>) -> Result<Option<Vec<Redriven>>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        match self.ports.store.made_by(&key.user, &key.key).await? {
            None => Ok(None),
            Some((Made::Redrive(letters), fingerprint)) if fingerprint == key.fingerprint => Ok(Some(letters)),
            Some((made, _)) => Err(Refusal::KeyReused(made).into()),
        }
    }

    async fn named(&self, caller: &Caller, queue: &Name, ids: &[String]) -> Result<Round, EngineError> {
        if ids.is_empty() || ids.len() > MOST_REDRIVEN {
            return Err(EngineError::invalid("execution_ids", format!("must list 1 to {MOST_REDRIVEN} ids; leave it out for all")));
        }
        let mut round = Round::default();
        for id in ids {
            let execution = self.reachable(caller, Action::Kill, id).await?;
            if execution.spec.queue != *queue {
                round.refuse(execution.id, format!("it is of queue {}", execution.spec.queue));
            } else if !round.letters.iter().any(|letter| letter.execution == execution.id) {
                self.judge(caller, &execution, &mut round).await?;
            }
        }
        Ok(round)
    }

    async fn oldest(&self, caller: &Caller, mut query: DeadQuery) -> Result<Round, EngineError> {
        let mut round = Round::default();
        while round.letters.len() < MOST_REDRIVEN && round.refused.len() < MOST_REFUSED {
            query.limit = MOST_REDRIVEN - round.letters.len();
            let page = self.ports.store.dead(query.clone()).await?;
            let Some(last) = page.last() else { break };
            query.after = last.dead_since().map(|since| (since, last.id));
            for execution in &page {
                self.judge(caller, execution, &mut round).await?;
            }
        }
        Ok(round)
    }

    /// Whether the caller may have it run again. What has run again already is answered with what it became.
    async fn judge(&self, caller: &Caller, execution: &Execution, round: &mut Round) -> Result<(), EngineError> {
        let letter = Letter { execution: execution.id, again: ExecutionId(self.ports.ids.next_id()) };
        if !execution.dead {
            round.letters.push(letter);
            return Ok(());
        }
        let Some(spec) = self.spec_again(execution).await? else {
            // Nobody knows what would run: the step drops it.
            round.letters.push(letter);
            return Ok(());
        };
        match self.plan_again(caller, spec).await {
            Ok(plan) if plan.verdict.allowed => round.letters.push(letter),
            Ok(plan) => {
                let why = match plan.verdict.decisions.into_iter().next() {
                    None => "no rule allows it".to_owned(),
                    Some(Decision { rule: Some(rule), why, .. }) => format!("rule {rule}: {why}"),
                    Some(decision) => decision.why,
                };
                round.denied.get_or_insert_with(|| (execution.id, format!("execution {}: {why}", execution.id)));
                round.refuse(execution.id, why);
            }
            Err(
                error @ (EngineError::Invalid { .. }
                | EngineError::NotFound { .. }
                | EngineError::Conflict { .. }
                | EngineError::Denied { .. }
                | EngineError::Forbidden { .. }),
            ) => round.refuse(execution.id, error.to_string()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What would run: where the execution does not know it any more, what its job knows of the task.
    async fn spec_again(&self, execution: &Execution) -> Result<Option<Spec>, EngineError> {
        if !execution.spec.is_lost() {
            return Ok(Some(execution.spec.clone()));
        }
        let Some(task) = &execution.spec.task else { return Ok(None) };
        let node = self.ports.jobs.node(task.job, task.task.as_str()).await?;
        Ok(node.map(|node| node.runs().clone()).filter(|spec| !spec.is_lost()))
    }

    /// What follows a redrive, all of it hints: logs begin, workers and the dispatcher look.
    async fn went_on(&self, letters: &[Redriven]) -> Result<(), EngineError> {
        for letter in letters {
            match letter.fate {
                Fate::Execution(id) => {
                    if let Some(execution) = self.ports.store.get(id).await? {
                        metrics::counter!("runvoy_executions_submitted_total", "queue" => execution.spec.queue.to_string()).increment(1);
                        self.note(id, &format!("this execution runs dead letter {} again", letter.execution)).await;
                        self.note_queued(&execution).await;
                    }
                }
                Fate::Job(_) => self.dispatcher.notify_one(),
                Fate::Dropped(_) | Fate::Refused(_) => {}
            }
            self.hub.changed(letter.execution);
        }
        self.hub.work();
        Ok(())
    }

    /// With what is left behind those that were looked at; of a request that named some, nothing.
    async fn report(&self, wanted: Wanted<'_>, mut rest: DeadQuery, letters: Vec<Redriven>) -> Result<RedriveReport, EngineError> {
        let nothing_left = |letters| RedriveReport { letters, next: None, left: 0 };
        if matches!(wanted, Wanted::Named(_)) {
            return Ok(nothing_left(letters));
        }
        for letter in &letters {
            // Its place among dead letters is the same when it is none any more.
            let execution = self.ports.store.get(letter.execution).await?;
            let place = execution.and_then(|execution| execution.completed_at.map(|since| (since, execution.id)));
            rest.after = rest.after.max(place);
        }
        let (Some(after), Some(until)) = (rest.after, rest.until) else { return Ok(nothing_left(letters)) };
        let left = self.ports.store.dead_count(DeadQuery { limit: MOST_COUNTED, ..rest }).await?;
        Ok(RedriveReport { letters, next: (left > 0).then_some(RedrivePlace { after, until }), left })
    }
}

/// The dead letters of one request.
#[derive(Default)]
struct Round {
    letters: Vec<Letter>,
    refused: Vec<Redriven>,
    /// The first that a rule forbids.
    denied: Option<(ExecutionId, String)>,
}

impl Round {
    fn refuse(&mut self, execution: ExecutionId, why: String) {
        self.refused.push(Redriven { execution, fate: Fate::Refused(why) });
    }
}

fn queue_name(text: &str) -> Result<Name, EngineError> {
    Name::new(text).map_err(|error| EngineError::invalid("queue", error.to_string()))
}
