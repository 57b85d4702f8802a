//! Looks at what runs: on demand, and on a schedule that leaves an event and begins and ends incidents.
//!
//! What counts is in the record of each execution, so that a look costs what runs now, whatever ran before. A start begins the schedule anew: whoever
//! could not reach a server that was away has a whole interval to be heard of again. A system at rest leaves no event.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::change::Change;
use runvoy_model::execution::Execution;
use runvoy_model::health::{Check, TaskHealth};
use runvoy_model::id::ExecutionId;
use runvoy_model::incident::{Incident, IncidentKind, Move, Phase, name_for};
use runvoy_model::role::{Action, Reach};
use runvoy_model::status::Status;
use runvoy_ports::record::IncidentMark;
use runvoy_ports::store::ListQuery;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// How many executions are read at once.
const PAGE: usize = 500;
/// How often those that an incident is about are looked at between two checks.
const FOLLOW_UP: Duration = Duration::from_secs(5);
/// The kinds of incident that are about what runs.
const ABOUT_RUNS: [IncidentKind; 2] = [IncidentKind::Critical, IncidentKind::Overtime];

impl Engine {
    /// How what the caller may see is, now.
    pub async fn task_health(&self, caller: &Caller) -> Result<Check, EngineError> {
        let owner = match caller.may(Action::Read)? {
            Reach::All => None,
            Reach::Own | Reach::None => Some(caller.email.clone()),
        };
        let mut tasks = Vec::new();
        self.look_at_running(owner, |_, health| tasks.push(health)).await?;
        Ok(Check::of(tasks))
    }

    /// How one execution is, now.
    pub async fn health_of(&self, caller: &Caller, id: &str) -> Result<TaskHealth, EngineError> {
        let execution = self.execution(caller, id).await?;
        TaskHealth::of(&execution, self.now(), self.config.health.thresholds).ok_or_else(|| {
            let message = format!("execution {} does not run: it is {}", execution.id, execution.status.as_str());
            EngineError::conflict(message, "only a running execution has a health; its status and log say how it finished")
        })
    }

    /// Shows each one that runs, and how it is. Only a page of them is in memory at a time.
    async fn look_at_running(&self, owner: Option<String>, mut look: impl FnMut(&Execution, TaskHealth)) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let statuses = vec![Status::Running, Status::Terminating];
            let query = ListQuery { statuses, owner: owner.clone(), after, limit: PAGE, ..ListQuery::default() };
            let page = self.ports.store.list(query).await?;
            after = page.last().map(|last| last.id);
            let is_last = page.len() < PAGE;
            let now = self.now();
            for execution in &page {
                if let Some(health) = TaskHealth::of(execution, now, self.config.health.thresholds) {
                    look(execution, health);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The agent.
pub struct HealthWatch {
    engine: Arc<Engine>,
    /// The incidents about what runs that go on, by the name of their record.
    open: HashMap<String, ExecutionId>,
}

impl HealthWatch {
    /// A watch that has looked at nothing yet.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, open: HashMap::new() }
    }

    /// Checks on schedule, and looks in between whether what an incident is about has ended, until dropped.
    pub async fn run(mut self) {
        let every = self.engine.config.health.every;
        if let Err(error) = self.recall().await {
            tracing::warn!(%error, "incidents of an earlier start could not be read: the next check does");
        }
        let mut next_check = tokio::time::Instant::now() + every;
        loop {
            tokio::time::sleep_until(next_check.min(tokio::time::Instant::now() + FOLLOW_UP)).await;
            let looked = if tokio::time::Instant::now() < next_check {
                self.follow_up().await
            } else {
                next_check = tokio::time::Instant::now() + every;
                self.check().await.map(|_| ())
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "the health of running executions could not be checked");
            }
        }
    }

    /// Looks at everything that runs, leaves an event of it if there is anything, and moves incidents.
    pub async fn check(&mut self) -> Result<Check, EngineError> {
        self.recall().await?;
        let (mut tasks, mut moves) = (Vec::new(), Vec::new());
        let begun = |execution: &Execution, health: TaskHealth| {
            moves.extend(self.begun(execution, &health));
            tasks.push(health);
        };
        self.engine.look_at_running(None, begun).await?;
        let check = Check::of(tasks);
        if !check.tasks.is_empty() {
            let note = Change::NoteHealth(Box::new(check.clone()));
            // Of several servers that look, one says so in each interval.
            let every_ms = i64::try_from(self.engine.config.health.every.as_millis()).unwrap_or(i64::MAX).max(1);
            let step = self.engine.agent_step("health", &format!("interval {}", self.engine.now().0 / every_ms));
            self.engine.ports.store.change(step, note, None).await?;
        }
        let summary = check.summary;
        for (health, count) in
            [("healthy", summary.healthy), ("warning", summary.warning), ("critical", summary.critical), ("overtime", summary.overtime)]
        {
            #[expect(clippy::cast_precision_loss, reason = "a number of executions in a gauge")]
            metrics::gauge!("runvoy_running_executions", "health" => health).set(count as f64);
        }
        let wrong: HashSet<String> = check.tasks.iter().flat_map(wrong).map(|(name, _, _)| name).collect();
        for (name, id) in self.open.iter().filter(|(name, _)| !wrong.contains(*name)) {
            let execution = self.engine.ports.store.get(*id).await?;
            let why = execution.as_ref().and_then(how_it_ended).unwrap_or_else(|| "it is healthy again".to_owned());
            moves.push(Move::End { name: name.clone(), why });
        }
        self.apply(moves).await?;
        self.engine.prune_incidents().await?;
        Ok(check)
    }

    /// Looks whether what an incident is about has ended: one look at what runs, and one at each that does not.
    pub async fn follow_up(&mut self) -> Result<(), EngineError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let leases = self.engine.ports.store.open_leases().await?;
        let runs: HashSet<ExecutionId> =
            leases.into_iter().filter(|open| open.status != Status::Starting).map(|open| open.execution).collect();
        let mut moves = Vec::new();
        for (name, id) in self.open.iter().filter(|(_, id)| !runs.contains(id)) {
            let execution = self.engine.ports.store.get(*id).await?;
            if let Some(why) = execution.as_ref().map_or_else(|| Some("it is gone".to_owned()), how_it_ended) {
                moves.push(Move::End { name: name.clone(), why });
            }
        }
        self.apply(moves).await
    }

    /// What an earlier start, or this one, has begun and not ended.
    async fn recall(&mut self) -> Result<(), EngineError> {
        let mut open = HashMap::new();
        for (phase, kind) in [Phase::Begun, Phase::Told].into_iter().flat_map(|phase| ABOUT_RUNS.map(|kind| (phase, kind))) {
            // No more than run: each is about one that does.
            for IncidentMark { name, .. } in self.engine.incidents(phase, Some(kind), usize::MAX).await? {
                if let Some(id) = name.split_once(':').and_then(|(_, about)| about.parse().ok()) {
                    open.insert(name, id);
                }
            }
        }
        self.open = open;
        Ok(())
    }

    fn begun(&self, execution: &Execution, health: &TaskHealth) -> Vec<Move> {
        let now = self.engine.now();
        let new = wrong(health).into_iter().filter(|(name, _, _)| !self.open.contains_key(name));
        new.map(|(_, kind, message)| Move::Begin(Box::new(Incident::of(execution, kind, message, now)))).collect()
    }

    async fn apply(&mut self, moves: Vec<Move>) -> Result<(), EngineError> {
        for one in &moves {
            match one {
                Move::Begin(incident) => drop(incident.about.parse().map(|id| self.open.insert(incident.name(), id))),
                Move::End { name, .. } => drop(self.open.remove(name)),
                Move::Tell { .. } | Move::Told { .. } | Move::Forget { .. } => {}
            }
        }
        let moved = self.engine.move_incidents("health", &moves).await;
        if moved.is_err() {
            // What was written and what was not is read at the next look.
            self.open.clear();
        }
        moved
    }
}

/// What is wrong with an execution: the name of the incident, its kind and the words for it.
fn wrong(health: &TaskHealth) -> Vec<(String, IncidentKind, String)> {
    let mut wrong = Vec::new();
    if health.is_silent {
        let message = format!("its worker has been silent for {}; it may be lost", elapsed(health.silent_ms));
        wrong.push((name_for(IncidentKind::Critical, health.execution), IncidentKind::Critical, message));
    }
    if health.is_overtime {
        let message = format!("it has run for {}", elapsed(health.elapsed_ms));
        wrong.push((name_for(IncidentKind::Overtime, health.execution), IncidentKind::Overtime, message));
    }
    wrong
}

/// Why an execution is no longer one that runs, if it is not.
fn how_it_ended(execution: &Execution) -> Option<String> {
    let reason = || execution.end_reason.as_ref().map_or(String::new(), |reason| format!(": {}", reason.message));
    match execution.status {
        Status::Running | Status::Terminating => None,
        Status::Pending | Status::Starting => Some(format!("it waits for attempt {}", execution.attempt + 1)),
        ended => Some(format!("it finished as {}{}", ended.as_str(), reason())),
    }
}

/// A length of time as people say it.
pub(crate) fn elapsed(ms: i64) -> String {
    let seconds = ms / 1000;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_said_as_people_say_them() {
        let said: Vec<String> = [999, 59_999, 60_000, 3_599_999, 3_600_000, 9_000_000].map(elapsed).into();
        assert_eq!(said, ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "2 h 30 min"]);
    }
}
