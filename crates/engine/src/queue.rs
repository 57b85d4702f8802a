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
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::{DeadQuery, QueueCounts};
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

/// So many dead letters are looked at for one request that names none: those that may not run again are passed over.
const MOST_LOOKED_AT: usize = 500;
/// So many of those are named in the answer.
const MOST_REFUSED: usize = 100;
/// The word of a redrive in the trail.
const REDRIVE: &str = "queues.redrive";

/// A place in a list of dead letters.
pub type DeadPlace = (UnixMs, ExecutionId);

/// What a redrive came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedriveReport {
    /// What became of each dead letter that was looked at.
    pub letters: Vec<Redriven>,
    /// How many dead letters of the caller were not looked at.
    pub left: u64,
}

impl Engine {
    /// Every queue that holds something or that the worker of this server serves, by name.
    pub async fn queues(&self, caller: &Caller) -> Result<Vec<QueueCounts>, EngineError> {
        caller.may(Action::Read)?;
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
        let query = DeadQuery { queue: queue_name(queue)?, owner, oldest_first: false, after, limit };
        Ok(self.ports.store.dead(query).await?)
    }

    /// Has dead letters of a queue run again: these, or the oldest of all that the caller reaches, as many as one step takes.
    pub async fn redrive(
        &self,
        caller: &Caller,
        queue: &str,
        ids: Option<&[String]>,
        key: Option<String>,
    ) -> Result<RedriveReport, EngineError> {
        let (name, owner) = (queue_name(queue)?, self.owner_seen(caller, caller.may(Action::Redrive)?));
        let key = submit_key(caller, key.as_deref(), REDRIVE, &json!({"queue": queue, "execution_ids": ids}))?;
        if let Some(letters) = self.redriven_before(key.as_ref()).await? {
            return self.report(&name, owner.as_deref(), ids.is_some(), letters).await;
        }
        let _admitted = self.admission.enter()?;
        self.refuse_shared_uid().await?;
        let round = match ids {
            Some(ids) => self.named(caller, &name, ids).await?,
            None => self.oldest(caller, &name, owner.clone()).await?,
        };
        if let Some(why) = &round.denied {
            self.note_denied(caller, REDRIVE, why).await?;
        }
        let redrive = Redrive { letters: round.letters, refused: round.refused, key };
        let (letters, repeated) = self.ports.store.redrive(self.user_step(caller, REDRIVE), redrive).await?;
        if !repeated {
            self.went_on(&letters).await?;
        }
        self.report(&name, owner.as_deref(), ids.is_some(), letters).await
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
            return Err(EngineError::invalid("execution_ids", format!("1 to {MOST_REDRIVEN} of them, or leave it out for all")));
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

    async fn oldest(&self, caller: &Caller, queue: &Name, owner: Option<String>) -> Result<Round, EngineError> {
        let (mut round, mut after, mut looked_at) = (Round::default(), None, 0);
        while round.letters.len() < MOST_REDRIVEN && looked_at < MOST_LOOKED_AT && round.refused.len() < MOST_REFUSED {
            let limit = MOST_REDRIVEN - round.letters.len();
            let query = DeadQuery { queue: queue.clone(), owner: owner.clone(), oldest_first: true, after, limit };
            let page = self.ports.store.dead(query).await?;
            let Some(last) = page.last() else { break };
            after = last.dead_since().map(|since| (since, last.id));
            looked_at += page.len();
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
        match self.plan_again(caller, execution.spec.clone()).await {
            Ok(plan) if plan.verdict.allowed => round.letters.push(letter),
            Ok(plan) => {
                let why = match plan.verdict.decisions.into_iter().next() {
                    None => "no rule allows it".to_owned(),
                    Some(Decision { rule: Some(rule), why, .. }) => format!("rule {rule}: {why}"),
                    Some(decision) => decision.why,
                };
                round.denied.get_or_insert_with(|| format!("execution {}: {why}", execution.id));
                round.refuse(execution.id, why);
            }
            Err(
                error @ (EngineError::Invalid { .. }
                | EngineError::NotFound { .. }
                | EngineError::Conflict(_)
                | EngineError::Denied { .. }
                | EngineError::Forbidden { .. }),
            ) => round.refuse(execution.id, error.to_string()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What follows a redrive, all of it hints: logs begin, workers and the dispatcher look.
    async fn went_on(&self, letters: &[Redriven]) -> Result<(), EngineError> {
        for letter in letters {
            match letter.fate {
                Fate::Execution(id) => {
                    if let Some(execution) = self.ports.store.get(id).await? {
                        metrics::counter!("runvoy_executions_submitted_total", "queue" => execution.spec.queue.to_string()).increment(1);
                        self.note(id, &format!("execution {} was given up and runs again", letter.execution)).await;
                        self.note_queued(&execution).await;
                    }
                }
                Fate::Job(_) => self.dispatcher.notify_one(),
                Fate::Refused(_) => {}
            }
            self.hub.changed(letter.execution);
        }
        self.hub.work();
        Ok(())
    }

    /// With how many dead letters are left; of a request that named some, none.
    async fn report(&self, queue: &Name, owner: Option<&str>, named: bool, letters: Vec<Redriven>) -> Result<RedriveReport, EngineError> {
        if named {
            return Ok(RedriveReport { letters, left: 0 });
        }
        let mut refused = 0;
        for letter in letters.iter().filter(|letter| matches!(letter.fate, Fate::Refused(_))) {
            let execution = self.ports.store.get(letter.execution).await?;
            refused += u64::from(execution.is_some_and(|execution| execution.dead && execution.spec.queue == *queue));
        }
        let left = self.ports.store.dead_count(queue, owner).await?.saturating_sub(refused);
        Ok(RedriveReport { letters, left })
    }
}

/// The dead letters of one request.
#[derive(Default)]
struct Round {
    letters: Vec<Letter>,
    refused: Vec<Redriven>,
    /// The first that a rule forbids.
    denied: Option<String>,
}

impl Round {
    fn refuse(&mut self, execution: ExecutionId, why: String) {
        self.refused.push(Redriven { execution, fate: Fate::Refused(why) });
    }
}

fn queue_name(text: &str) -> Result<Name, EngineError> {
    Name::new(text).map_err(|error| EngineError::invalid("queue", error.to_string()))
}
