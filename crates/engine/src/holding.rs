//! Who holds what, as the open leases of the store said when they were last looked at. A worker that says nothing of itself is known by them: while it works it may
//! say nothing for hours, and another server may have given it what it holds. The reaper looks at them every second anyway; nothing is decided by what is kept here.

use std::collections::HashMap;

use runvoy_model::id::WorkerId;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::store::OpenLease;

use crate::overrun::FOREIGN_RUNNER;

/// What was looked at longer ago is looked at again by whoever wants to know.
const FRESH_MS: i64 = 5_000;

/// What workers elsewhere hold.
#[derive(Default)]
pub(crate) struct Holdings {
    /// `None` until somebody looked.
    looked_at: Option<UnixMs>,
    /// When each lease of a worker ends.
    deadlines: HashMap<WorkerId, Vec<UnixMs>>,
}

impl Holdings {
    /// What is held by these leases. One that was not begun has not reached its worker.
    pub(crate) fn of(leases: &[OpenLease], now: UnixMs) -> Self {
        let mut deadlines: HashMap<WorkerId, Vec<UnixMs>> = HashMap::new();
        for lease in leases.iter().map(|open| &open.lease).filter(|lease| lease.begun && !lease.in_process) {
            deadlines.entry(lease.worker).or_default().push(lease.deadline);
        }
        Self { looked_at: Some(now), deadlines }
    }

    /// Whether they were looked at just before.
    pub(crate) fn are_fresh(&self, now: UnixMs) -> bool {
        self.looked_at.is_some_and(|at| now.ms_since(at) < FRESH_MS)
    }

    /// Says of a worker that says nothing of itself what it holds. A lease that has lapsed is held by nobody.
    pub(crate) fn tell(&self, presence: &mut Presence, now: UnixMs) {
        if presence.runner != FOREIGN_RUNNER || self.looked_at.is_none() {
            return;
        }
        let held = || self.deadlines.get(&presence.worker).into_iter().flatten().filter(|deadline| now < **deadline);
        let (running, busy_until) = (held().count(), held().max().copied());
        presence.running = u32::try_from(running).unwrap_or(u32::MAX);
        presence.busy_until = busy_until;
    }
}
