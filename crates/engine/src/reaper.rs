//! Acts on leases that nobody extends, kills that nobody confirms, timeouts that nobody keeps, waits that took too long and what nobody could run.
//!
//! A lease is judged by this process's own watch: only one that was seen unchanged for its length plus a margin,
//! by monotonic time, is reaped. A start begins the watch anew (it lives in memory), and so do a pause of this
//! process and a step of the wall clock, because in both a worker may have been unable to reach us through no fault of its own.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::Reap;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::record::{Kind, Record};
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::OpenLease;

use crate::Engine;
use crate::error::EngineError;
use crate::overrun::Overruns;

/// The agent.
pub struct Reaper {
    engine: Arc<Engine>,
    watch: Watch,
    overruns: Overruns,
    /// Kills that the workers that are at this server were reminded of.
    reminded: HashSet<ExecutionId>,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Due {
    Reap(Reap),
    ConfirmKill(ExecutionId),
}

const TICK: Duration = Duration::from_secs(1);
const KEY_ENDED: &str = "the key of its worker is no longer valid; the command may have run in part or in full";

impl Reaper {
    /// A reaper that has watched nothing yet.
    pub fn new(engine: Arc<Engine>) -> Self {
        let watch = Watch::new(engine.config.reap_margin_ms, engine.config.kill_confirm_ms);
        let overruns = Overruns::new(engine.config.kill_confirm_ms);
        Self { engine, watch, overruns, reminded: HashSet::new() }
    }

    /// Looks once a second until dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the reaper could not read the leases");
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Looks once and acts on what is due.
    pub async fn look(&mut self) -> Result<(), EngineError> {
        let engine = Arc::clone(&self.engine);
        let mut leases = match engine.ports.store.open_leases().await {
            Ok(leases) => leases,
            Err(error) => {
                // Whoever could not be seen could not be heard either.
                self.watch.forget();
                self.overruns.forget();
                return Err(error.into());
            }
        };
        engine.attendance.hold(&leases, engine.now());
        if engine.config.shares_store() {
            self.remind(&leases);
        }
        // A worker in this very process cannot be cut off from it: what it runs is alive, whatever the store could be told.
        leases.retain(|open| open.status == Status::Terminating || !engine.runs_here(open));
        let (monotonic, now) = (engine.ports.clock.monotonic(), engine.now());
        if self.watch.disturbed(monotonic, now) {
            self.overruns.forget();
        }
        let refused = engine.of_ended_accounts(self.watch.waited_for(monotonic, &leases)).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the workers of expired leases could not be checked");
            HashSet::new()
        });
        for open in leases.iter_mut().filter(|open| refused.contains(&open.execution)) {
            open.lease.lost_after_ms = None;
        }
        let due = self.watch.look(monotonic, now, &leases);
        let mut first_error = None;
        for due in due {
            let done = match due {
                Due::Reap(reap) if refused.contains(&reap.execution) => engine.reap(Reap { message: KEY_ENDED.into(), ..reap }).await,
                Due::Reap(reap) => engine.reap(reap).await,
                Due::ConfirmKill(id) => engine.confirm_kill(id).await,
            };
            // One that cannot be acted on must not keep the others from their due.
            if let Err(error) = done {
                self.watch.forget();
                first_error.get_or_insert(error);
            }
        }
        if let Err(error) = self.overruns.act(&engine, monotonic, &leases).await {
            first_error.get_or_insert(error);
        }
        for done in [engine.expire_waits().await, engine.give_up_unreadable().await] {
            if let Err(error) = done {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// A kill that another server took is known to nobody here: the worker would hear of it with its next report or extend only.
    fn remind(&mut self, leases: &[OpenLease]) {
        let killed = leases.iter().filter(|open| open.status == Status::Terminating);
        let told = killed.filter(|open| self.reminded.contains(&open.execution) || self.engine.remind(open));
        self.reminded = told.map(|open| open.execution).collect();
    }
}

impl Engine {
    /// Tells the worker of a lease to look at it; whether that one is at this server.
    fn remind(&self, open: &OpenLease) -> bool {
        match self.slots.get().filter(|_| self.runs_here(open)) {
            Some(slots) => {
                slots.nudge(open.execution);
                true
            }
            None => self.hub.attention.call(open.lease.worker, open.execution),
        }
    }

    fn runs_here(&self, open: &OpenLease) -> bool {
        open.lease.worker == self.worker.id && self.slots.get().is_some_and(|slots| slots.runs(open.execution))
    }

    /// Those of these whose worker cannot come back: the key that it showed last was revoked or replaced since.
    async fn of_ended_accounts(&self, waited_for: Vec<&OpenLease>) -> Result<HashSet<ExecutionId>, EngineError> {
        let (mut accounts, mut ended) = (HashMap::new(), HashSet::new());
        for open in waited_for {
            let Some(name) = &open.lease.account else { continue };
            let record = match accounts.entry(name) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.ports.records.record(Kind::Worker, name.as_str()).await?),
            };
            let account = record.as_ref().and_then(Record::worker);
            let last_shown = open.lease.deadline.plus_ms(-i64::try_from(open.lease.ttl_ms).unwrap_or(i64::MAX));
            if account.is_none_or(|account| !account.stands_since(last_shown)) {
                ended.insert(open.execution);
            }
        }
        Ok(ended)
    }

    /// Acts on a lapsed lease. The log says why before the record does; that a log cannot be written or read is no reason to let a status lie.
    pub(crate) async fn reap(&self, mut reap: Reap) -> Result<(), EngineError> {
        self.note(reap.execution, &format!("worker lost: {}", reap.message)).await;
        self.settle_events(reap.execution).await;
        reap.log_end = self.synced_end(reap.execution).await;
        reap.cost_micro_usd = self.cost_until_last_heard(reap.execution).await?;
        if let Some(execution) = self.ports.store.reap(self.system_step("reaper"), reap).await? {
            tracing::warn!(execution = %execution.id, status = execution.status.as_str(), "a lease expired");
            metrics::counter!("runvoy_leases_reaped_total").increment(1);
            if execution.status.is_terminal() {
                self.ended(&execution).await;
            } else {
                self.note_queued(&execution).await;
                self.hub.work();
            }
        }
        Ok(())
    }

    /// The last record that is on stable storage, as far as it can be told.
    async fn synced_end(&self, id: ExecutionId) -> u64 {
        let extent = match self.ports.logs.sync(id).await {
            Ok(extent) => Ok(extent),
            Err(error) => {
                tracing::warn!(execution = %id, %error, "a log was not synced");
                self.ports.logs.extent(id).await
            }
        };
        extent.map_or(0, |extent| extent.next_line.saturating_sub(1))
    }

    async fn confirm_kill(&self, id: ExecutionId) -> Result<(), EngineError> {
        self.note(id, "the worker did not confirm the kill").await;
        let cost_micro_usd = self.cost_until_last_heard(id).await?;
        if let Some(execution) = self.ports.store.confirm_kill(self.system_step("reaper"), id, cost_micro_usd).await? {
            self.ended(&execution).await;
        }
        Ok(())
    }
}

/// What the reaper has seen, and since when.
struct Watch {
    margin: Duration,
    kill_confirm: Duration,
    seen: HashMap<ExecutionId, Seen>,
    last_look: Option<(Duration, UnixMs)>,
}

struct Seen {
    lease: LeaseId,
    extensions: u64,
    since: Duration,
    terminating_since: Option<Duration>,
}

/// Longer than this between two looks, or this much difference between the clocks, is a pause or a step.
const DISTURBANCE: Duration = Duration::from_secs(5);

impl Watch {
    fn new(margin_ms: u64, kill_confirm_ms: u64) -> Self {
        Self {
            margin: Duration::from_millis(margin_ms),
            kill_confirm: Duration::from_millis(kill_confirm_ms),
            seen: HashMap::new(),
            last_look: None,
        }
    }

    /// Begins every watch anew.
    fn forget(&mut self) {
        self.seen.clear();
    }

    fn look(&mut self, monotonic: Duration, wall: UnixMs, leases: &[OpenLease]) -> Vec<Due> {
        if self.disturbed(monotonic, wall) {
            self.forget();
        }
        self.last_look = Some((monotonic, wall));
        let mut due = Vec::new();
        let mut seen_now = HashMap::with_capacity(leases.len());
        for open in leases {
            let seen = self.seen.remove(&open.execution).filter(|seen| seen.lease == open.lease.id);
            let mut seen = seen.unwrap_or(Seen { lease: open.lease.id, extensions: u64::MAX, since: monotonic, terminating_since: None });
            if seen.extensions != open.lease.extensions {
                (seen.extensions, seen.since) = (open.lease.extensions, monotonic);
            }
            if open.status == Status::Terminating {
                seen.terminating_since.get_or_insert(monotonic);
            }
            due.extend(self.due(monotonic, open, &seen));
            seen_now.insert(open.execution, seen);
        }
        self.seen = seen_now;
        due
    }

    /// Those that have lapsed, as far as was seen, and are kept because their worker may come back.
    fn waited_for<'l>(&self, monotonic: Duration, leases: &'l [OpenLease]) -> Vec<&'l OpenLease> {
        let is_waited_for = |open: &&OpenLease| {
            let seen =
                self.seen.get(&open.execution).filter(|seen| seen.lease == open.lease.id && seen.extensions == open.lease.extensions);
            let has_lapsed = seen.is_some_and(|seen| monotonic.saturating_sub(seen.since) > self.lapses(open));
            has_lapsed && open.lease.lost_after_ms.is_some()
        };
        leases.iter().filter(is_waited_for).collect()
    }

    fn lapses(&self, open: &OpenLease) -> Duration {
        Duration::from_millis(open.lease.ttl_ms) + self.margin
    }

    fn disturbed(&self, monotonic: Duration, wall: UnixMs) -> bool {
        let Some((last_monotonic, last_wall)) = self.last_look else { return false };
        let by_monotonic = monotonic.saturating_sub(last_monotonic);
        let by_wall_ms = i128::from(wall.0) - i128::from(last_wall.0);
        let apart_ms = (by_wall_ms - i128::try_from(by_monotonic.as_millis()).unwrap_or(i128::MAX)).unsigned_abs();
        by_monotonic > DISTURBANCE || apart_ms > DISTURBANCE.as_millis()
    }

    fn due(&self, monotonic: Duration, open: &OpenLease, seen: &Seen) -> Option<Due> {
        let lapses = self.lapses(open);
        // Whoever keeps what it could not tell may come back; what was not begun has nothing to tell, and a kill is waited for no longer than ever.
        let may_come_back = open.lease.begun && open.status != Status::Terminating;
        let patience = open.lease.lost_after_ms.filter(|_| may_come_back).map_or(Duration::ZERO, Duration::from_millis);
        if monotonic.saturating_sub(seen.since) > lapses.max(patience) {
            return Some(Due::Reap(Reap {
                execution: open.execution,
                lease: seen.lease,
                extensions: seen.extensions,
                message: "its worker stopped responding; the command may have run in part or in full".into(),
                log_end: 0,
                with_server: false,
                cost_micro_usd: 0,
            }));
        }
        let unconfirmed = seen.terminating_since.is_some_and(|since| monotonic.saturating_sub(since) > self.kill_confirm);
        unconfirmed.then_some(Due::ConfirmKill(open.execution))
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::execution::Lease;
    use runvoy_model::id::WorkerId;

    use super::*;

    fn open(extensions: u64, status: Status) -> OpenLease {
        OpenLease {
            execution: ExecutionId::from_bytes([1; 16]),
            status,
            lease: Lease {
                id: LeaseId::from_bytes([2; 16]),
                attempt: 1,
                worker: WorkerId::from_bytes([3; 16]),
                in_process: false,
                ttl_ms: 30_000,
                deadline: UnixMs(0),
                begun: true,
                at_once: false,
                extensions,
                heartbeat_at: None,
                heartbeats: 0,
                permit: false,
                account: None,
                lost_after_ms: None,
                preparing: None,
            },
        }
    }

    /// Looks every second from `from` to `to`; returns when something was due.
    fn look_through(watch: &mut Watch, seconds: std::ops::Range<u64>, open: &OpenLease) -> Option<u64> {
        seconds.into_iter().find(|&s| {
            let wall = UnixMs(1_000_000 + i64::try_from(s).expect("small") * 1000);
            !watch.look(Duration::from_secs(s), wall, std::slice::from_ref(open)).is_empty()
        })
    }

    #[test]
    fn a_lease_is_reaped_after_its_length_and_the_margin() {
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..100, &open(0, Status::Running)), Some(41));
    }

    #[test]
    fn a_worker_that_may_come_back_is_waited_for() {
        let patient = |status| {
            let mut open = open(0, status);
            open.lease.lost_after_ms = Some(3_600_000);
            open
        };
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..4_000, &patient(Status::Running)), Some(3_601));
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..100, &patient(Status::Terminating)), Some(41), "somebody wants its end");
        let mut unbegun = patient(Status::Starting);
        unbegun.lease.begun = false;
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..100, &unbegun), Some(41), "it runs nothing");
        let mut short = open(0, Status::Running);
        short.lease.lost_after_ms = Some(1_000);
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..100, &short), Some(41), "never before its lease has lapsed");
    }

    #[test]
    fn an_extension_begins_the_watch_anew() {
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..40, &open(0, Status::Running)), None);
        assert_eq!(look_through(&mut watch, 40..81, &open(1, Status::Running)), None);
        assert_eq!(look_through(&mut watch, 81..90, &open(1, Status::Running)), Some(81));
    }

    #[test]
    fn a_pause_begins_the_watch_anew() {
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..30, &open(0, Status::Running)), None);
        assert_eq!(look_through(&mut watch, 300..340, &open(0, Status::Running)), None);
    }

    #[test]
    fn a_clock_step_begins_the_watch_anew_and_reaps_nothing() {
        let mut watch = Watch::new(10_000, 60_000);
        assert_eq!(look_through(&mut watch, 0..40, &open(0, Status::Running)), None);
        let day = UnixMs(1_000_000 + 86_400_000);
        assert!(watch.look(Duration::from_secs(41), day, &[open(0, Status::Running)]).is_empty());
    }

    #[test]
    fn a_kill_that_nobody_confirms_ends_after_a_minute() {
        let mut watch = Watch::new(10_000, 60_000);
        for s in 0..200 {
            // The worker goes on extending, so only the kill is overdue.
            let due = watch.look(Duration::from_secs(s), UnixMs(i64::try_from(s).expect("small") * 1000), &[open(s, Status::Terminating)]);
            if !due.is_empty() {
                assert_eq!((s, due), (61, vec![Due::ConfirmKill(ExecutionId::from_bytes([1; 16]))]));
                return;
            }
        }
        panic!("the kill was never confirmed");
    }
}
