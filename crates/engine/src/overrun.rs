//! Ends attempts that a foreign worker lets run beyond their timeout. Our own workers end theirs; one that says nothing of itself may not, and nobody
//! else would. As with leases only what this process has itself watched counts: a start, a pause or a step of the clock begins the watch anew.

use std::collections::HashMap;
use std::time::Duration;

use runvoy_model::command::{EndAttempt, Fence, Outcome};
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::status::Status;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::store::OpenLease;

use crate::Engine;
use crate::error::EngineError;
use crate::lease::Holder;

/// The runner of a worker that says nothing of itself.
pub const FOREIGN_RUNNER: &str = "rpc";

/// What has run for less is not worth a look at its record.
const ASKED_AFTER: Duration = Duration::from_secs(5);
/// So many records are looked at in one round.
const ASKED_AT_ONCE: usize = 100;

/// What is told beside such an end.
const LEFT_RUNNING: &str = "its worker did not stop it at its timeout; the command may still run there";

/// Attempts elsewhere, and since when this process has seen them run.
pub(crate) struct Overruns {
    grace: Duration,
    watched: HashMap<LeaseId, Watched>,
}

struct Watched {
    execution: ExecutionId,
    since: Duration,
    bound: Bound,
}

/// How long an attempt may run.
enum Bound {
    /// Nobody looked yet.
    Unknown,
    /// As long as its worker lets it.
    None,
    After(Duration),
}

impl Overruns {
    /// A watch that has seen nothing; `grace_ms` is what a worker has to tell of an end by itself.
    pub(crate) fn new(grace_ms: u64) -> Self {
        Self { grace: Duration::from_millis(grace_ms), watched: HashMap::new() }
    }

    /// Begins every watch anew.
    pub(crate) fn forget(&mut self) {
        self.watched.clear();
    }

    /// Takes in what runs elsewhere; those whose bound is not known yet and matters by now. A kill has its own end.
    fn look(&mut self, monotonic: Duration, leases: &[OpenLease]) -> Vec<(ExecutionId, LeaseId)> {
        let mut watched = HashMap::with_capacity(self.watched.len());
        for open in leases.iter().filter(|open| open.lease.begun && !open.lease.in_process && open.status != Status::Terminating) {
            let known = self.watched.remove(&open.lease.id);
            let known = known.unwrap_or(Watched { execution: open.execution, since: monotonic, bound: Bound::Unknown });
            watched.insert(open.lease.id, known);
        }
        self.watched = watched;
        let is_asked = |known: &Watched| matches!(known.bound, Bound::Unknown) && monotonic.saturating_sub(known.since) >= ASKED_AFTER;
        let asked = self.watched.iter().filter(|(_, known)| is_asked(known));
        asked.map(|(lease, known)| (known.execution, *lease)).take(ASKED_AT_ONCE).collect()
    }

    fn bound(&mut self, lease: LeaseId, timeout: Option<Duration>) {
        if let Some(known) = self.watched.get_mut(&lease) {
            known.bound = timeout.map_or(Bound::None, Bound::After);
        }
    }

    /// Those that have run for too long.
    fn due(&self, monotonic: Duration) -> Vec<(ExecutionId, LeaseId)> {
        let is_due = |known: &Watched| {
            let ran = monotonic.saturating_sub(known.since);
            matches!(known.bound, Bound::After(timeout) if ran > timeout.saturating_add(self.grace))
        };
        self.watched.iter().filter(|(_, known)| is_due(known)).map(|(lease, known)| (known.execution, *lease)).collect()
    }

    /// Looks once, and ends what is due. One that cannot be acted on does not keep the others from their due.
    pub(crate) async fn act(&mut self, engine: &Engine, monotonic: Duration, leases: &[OpenLease]) -> Result<(), EngineError> {
        let mut first_error = None;
        for (execution, lease) in self.look(monotonic, leases) {
            match engine.foreign_timeout(execution).await {
                Ok(timeout) => self.bound(lease, timeout),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        for (execution, lease) in self.due(monotonic) {
            if let Err(error) = engine.time_out(execution, lease).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Engine {
    /// How long an execution may run that only the server bounds; `None` where its worker does.
    async fn foreign_timeout(&self, id: ExecutionId) -> Result<Option<Duration>, EngineError> {
        let execution = self.ports.store.get(id).await?;
        if execution.as_ref().is_some_and(|execution| execution.spec.is_lost()) {
            return Err(EngineError::Unavailable(format!("what execution {id} runs cannot be read now").into()));
        }
        let foreign = execution.filter(|execution| execution.ran_on.as_ref().is_some_and(|ran_on| ran_on.runner == FOREIGN_RUNNER));
        Ok(foreign.and_then(|execution| execution.spec.timeout_ms).map(Duration::from_millis))
    }

    /// Ends an attempt that ran for too long, in its worker's place.
    async fn time_out(&self, id: ExecutionId, lease: LeaseId) -> Result<(), EngineError> {
        let Some(execution) = self.ports.store.get(id).await? else { return Ok(()) };
        let held = execution.lease.as_ref().filter(|held| held.id == lease);
        let (Some(held), Some(timeout_ms)) = (held, execution.spec.timeout_ms) else { return Ok(()) };
        let now = self.now();
        let duration_ms = u64::try_from(now.ms_since(execution.attempt_started_at.unwrap_or(now))).unwrap_or(0);
        let fence = Fence { execution: id, attempt: held.attempt, lease };
        let ended = EndAttempt {
            duration_ms,
            remark: Some(LEFT_RUNNING.to_owned()),
            ..EndAttempt::of(fence, Outcome::TimedOut { timeout_ms, forced: false })
        };
        match self.finish(&Holder::trusted(held.worker), ended).await {
            // Its worker was quicker.
            Ok(_) | Err(LeaseError::Lost(_)) => Ok(()),
            Err(error) => Err(EngineError::Unavailable(Box::new(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::execution::Lease;
    use runvoy_model::id::WorkerId;
    use runvoy_model::time::UnixMs;

    use super::*;

    fn open(status: Status, in_process: bool) -> OpenLease {
        OpenLease {
            execution: ExecutionId::from_bytes([1; 16]),
            status,
            lease: Lease {
                id: LeaseId::from_bytes([2; 16]),
                attempt: 1,
                worker: WorkerId::from_bytes([3; 16]),
                in_process,
                ttl_ms: 30_000,
                deadline: UnixMs(0),
                begun: true,
                at_once: false,
                extensions: 1,
                heartbeat_at: None,
                heartbeats: 0,
                permit: false,
                account: None,
                lost_after_ms: None,
                preparing: None,
            },
        }
    }

    /// Looks every second; returns when it was due.
    fn due_at(overruns: &mut Overruns, seconds: std::ops::Range<u64>, open: &OpenLease, timeout: Option<Duration>) -> Option<u64> {
        seconds.into_iter().find(|&s| {
            let monotonic = Duration::from_secs(s);
            for (_, lease) in overruns.look(monotonic, std::slice::from_ref(open)) {
                overruns.bound(lease, timeout);
            }
            !overruns.due(monotonic).is_empty()
        })
    }

    #[test]
    fn an_attempt_is_due_after_its_timeout_and_the_grace() {
        let timeout = Some(Duration::from_secs(20));
        assert_eq!(due_at(&mut Overruns::new(10_000), 0..100, &open(Status::Running, false), timeout), Some(31));
        assert_eq!(due_at(&mut Overruns::new(10_000), 0..100, &open(Status::Running, false), None), None, "its worker bounds it");
        assert_eq!(due_at(&mut Overruns::new(10_000), 0..100, &open(Status::Running, true), timeout), None, "ours does so too");
        assert_eq!(due_at(&mut Overruns::new(10_000), 0..100, &open(Status::Terminating, false), timeout), None, "it ends already");
    }

    #[test]
    fn what_was_not_watched_does_not_count() {
        let (mut overruns, timeout) = (Overruns::new(10_000), Some(Duration::from_secs(20)));
        assert_eq!(due_at(&mut overruns, 0..30, &open(Status::Running, false), timeout), None);
        overruns.forget();
        assert_eq!(due_at(&mut overruns, 30..60, &open(Status::Running, false), timeout), None);
        assert_eq!(due_at(&mut overruns, 60..70, &open(Status::Running, false), timeout), Some(61));
    }
}
