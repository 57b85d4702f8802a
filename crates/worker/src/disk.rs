//! Watches what commands write. A command over its limit is stopped, and where the disk is nearly full the one that wrote most: its files are what makes room
//! again. What to stop is decided by [`plan`] alone.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use runvoy_model::id::ExecutionId;
use runvoy_ports::runner::DiskSpace;

use crate::worker::Worker;

/// How often the free space is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Walking through files takes at most one part in so many of the time.
const WALK_PAUSE: u32 = 10;
/// On a small disk no more than this part of it is kept free.
const MOST_KEPT_FREE: u64 = 8;
/// Stopping a command that wrote less than this part of what is kept free would make no room.
const WORTH_STOPPING: u64 = 4;
/// How long an execution that was told to end may take to free its space before another one is
/// stopped.
const FREES_WITHIN: Duration = Duration::from_secs(30);

/// How much of the disk commands may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskLimits {
    /// What one execution may write; `None` is without a limit.
    pub limit_bytes: Option<u64>,
    /// With less than this free, the execution that wrote most is stopped, and none is started.
    pub keep_free_bytes: u64,
}

impl DiskLimits {
    /// What is kept free of this disk, beside what is set aside on it.
    fn kept_free(&self, space: DiskSpace) -> u64 {
        self.keep_free_bytes.saturating_sub(space.set_aside_bytes).min(space.total_bytes / MOST_KEPT_FREE)
    }

    /// Nearly full: new commands would only fail.
    pub(crate) fn is_short(&self, space: DiskSpace) -> bool {
        space.free_bytes < self.kept_free(space)
    }
}

/// What an execution that runs has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    execution: ExecutionId,
    bytes: u64,
    /// How long ago it was told to end, which it has not yet.
    stopped_for: Option<Duration>,
}

/// An execution to stop, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stop {
    execution: ExecutionId,
    message: String,
}

/// Whom to stop. One at a time for the space: what the first one frees may be enough.
fn plan(limits: &DiskLimits, space: DiskSpace, written: &[Written]) -> Vec<Stop> {
    let open = written.iter().filter(|one| one.stopped_for.is_none());
    let over = |one: &&Written| limits.limit_bytes.is_some_and(|limit| one.bytes > limit);
    let mut stops: Vec<Stop> =
        open.clone().filter(over).map(|one| Stop { execution: one.execution, message: over_limit(limits, one.bytes) }).collect();
    let worth = limits.kept_free(space) / WORTH_STOPPING;
    // One that hangs, or has nothing left to free, must not keep the next one from being stopped.
    let will_free = |one: &Written| one.bytes >= worth && one.stopped_for.is_some_and(|time| time < FREES_WITHIN);
    if limits.is_short(space) && stops.is_empty() && !written.iter().any(will_free) {
        let most = open.max_by_key(|one| one.bytes).filter(|one| one.bytes >= worth);
        stops.extend(most.map(|one| Stop { execution: one.execution, message: nearly_full(limits.kept_free(space), space, one.bytes) }));
    }
    stops
}

fn over_limit(limits: &DiskLimits, bytes: u64) -> String {
    let limit = limits.limit_bytes.unwrap_or_default();
    format!("killed: it wrote {} to disk, and its limit is {} (limit_disk_bytes)", size(bytes), size(limit))
}

fn nearly_full(kept_free: u64, space: DiskSpace, bytes: u64) -> String {
    format!(
        "killed: disk full: it wrote {}, more than any other execution, and the disk of its worker has {} left of the {} that are kept free \
         (disk_reserve_bytes); write less, or give the worker a larger disk",
        size(bytes),
        size(space.free_bytes),
        size(kept_free)
    )
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    let tenths = (u128::from(bytes) * 10) >> (10 * unit);
    match unit {
        _ if bytes == u64::MAX => "more than can be measured".to_owned(),
        0 => format!("{bytes} bytes"),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit as usize]),
    }
}

/// Looks until the worker is gone.
pub(crate) async fn watch(worker: Weak<Worker>) {
    let mut walk_at = Instant::now();
    while let Some(here) = worker.upgrade() {
        walk_at = look(&here, walk_at).await;
        drop(here);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Looks once, and walks through files only where that can matter and not before `walk_at`; says when to walk again.
async fn look(worker: &Arc<Worker>, walk_at: Instant) -> Instant {
    let limits = &worker.config.disk;
    let Some(is_short) = note_space(worker).await.map(|space| limits.is_short(space)) else { return walk_at };
    let began = Instant::now();
    if began < walk_at || (!is_short && limits.limit_bytes.is_none()) {
        return walk_at;
    }
    let mut written = Vec::new();
    for (execution, attempt, stopped_for) in worker.attempts() {
        let bytes = worker.runner.disk_usage(execution, attempt).await;
        written.push(Written { execution, bytes, stopped_for });
    }
    let walked = began.elapsed();
    // There may be space again since the walk began.
    let Some(space) = note_space(worker).await else { return walk_at };
    for stop in plan(limits, space, &written) {
        tracing::warn!(execution = %stop.execution, why = stop.message, "an execution is stopped for what it wrote");
        worker.stop_for_disk(stop.execution, stop.message);
    }
    Instant::now() + walked * WALK_PAUSE
}

/// How much space there is, which the worker remembers.
async fn note_space(worker: &Worker) -> Option<DiskSpace> {
    let space = worker.runner.disk_space().await?;
    worker.note_disk(worker.config.disk.is_short(space));
    Some(space)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn written(sizes: &[(u8, u64, bool)]) -> Vec<Written> {
        let one = |&(id, bytes, stopped): &(u8, u64, bool)| {
            let execution = ExecutionId::from_bytes([id; 16]);
            Written { execution, bytes, stopped_for: stopped.then_some(Duration::ZERO) }
        };
        sizes.iter().map(one).collect()
    }

    /// The first byte of every id that is stopped.
    fn stopped(limits: DiskLimits, free_bytes: u64, sizes: &[(u8, u64, bool)]) -> Vec<u8> {
        let stops = plan(&limits, DiskSpace { free_bytes, total_bytes: 10_000 * MIB, set_aside_bytes: 0 }, &written(sizes));
        stops.iter().map(|stop| stop.execution.as_bytes()[0]).collect()
    }

    #[test]
    fn the_one_that_wrote_most_is_stopped_where_that_makes_room() {
        let limits = DiskLimits { limit_bytes: None, keep_free_bytes: 64 * MIB };
        let sizes = [(1, 20 * MIB, false), (2, 90 * MIB, false), (3, 0, false)];
        assert_eq!(stopped(limits, 63 * MIB, &sizes), [2]);
        assert_eq!(stopped(limits, 64 * MIB, &sizes), [0_u8; 0], "there is room");
        assert_eq!(stopped(limits, 0, &[(1, 20 * MIB, false), (2, 90 * MIB, true)]), [0_u8; 0], "what it frees may be enough");
        assert_eq!(stopped(limits, 0, &[(1, 15 * MIB, false)]), [0_u8; 0], "it is not what fills the disk");
        assert_eq!(stopped(limits, 0, &[]), [0_u8; 0]);
        assert_eq!(stopped(DiskLimits::default(), 0, &sizes), [0_u8; 0], "nothing is kept free");
    }

    #[test]
    fn one_that_frees_nothing_does_not_keep_the_next_from_being_stopped() {
        let limits = DiskLimits { limit_bytes: None, keep_free_bytes: 64 * MIB };
        assert_eq!(stopped(limits, 0, &[(1, 20 * MIB, false), (2, 15 * MIB, true)]), [1], "it has little left");
        let space = DiskSpace { free_bytes: 0, total_bytes: 10_000 * MIB, set_aside_bytes: 0 };
        let mut hanging = written(&[(1, 20 * MIB, false), (2, 90 * MIB, true)]);
        hanging[1].stopped_for = Some(FREES_WITHIN);
        assert_eq!(plan(&limits, space, &hanging).len(), 1, "it hangs");
        hanging[1].stopped_for = Some(FREES_WITHIN - Duration::from_millis(1));
        assert_eq!(plan(&limits, space, &hanging), []);
    }

    #[test]
    fn everyone_over_the_limit_is_stopped() {
        let limits = DiskLimits { limit_bytes: Some(10 * MIB), keep_free_bytes: 64 * MIB };
        let sizes = [(1, 10 * MIB, false), (2, 11 * MIB, false), (3, 12 * MIB, false), (4, 99 * MIB, true)];
        assert_eq!(stopped(limits, 1_000 * MIB, &sizes), [2, 3]);
        assert_eq!(stopped(limits, 0, &sizes), [2, 3], "nobody else has to go meanwhile");
    }

    #[test]
    fn a_small_disk_is_not_always_short() {
        let limits = DiskLimits { limit_bytes: None, keep_free_bytes: 64 * MIB };
        assert!(!limits.is_short(DiskSpace { free_bytes: 30 * MIB, total_bytes: 32 * MIB, set_aside_bytes: 0 }));
        assert!(limits.is_short(DiskSpace { free_bytes: 3 * MIB, total_bytes: 32 * MIB, set_aside_bytes: 0 }));
    }

    #[test]
    fn a_file_that_is_set_aside_counts_as_kept_free() {
        let limits = DiskLimits { limit_bytes: None, keep_free_bytes: 64 * MIB };
        let space = |free_bytes| DiskSpace { free_bytes, total_bytes: 10_000 * MIB, set_aside_bytes: 32 * MIB };
        assert!(!limits.is_short(space(32 * MIB)) && limits.is_short(space(32 * MIB - 1)));
    }

    #[test]
    fn sizes_are_as_people_read_them() {
        let sizes = [0, 1023, 1536, 10 * MIB, (12 << 30) + (300 << 20), u64::MAX].map(size);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.5 KiB", "10.0 MiB", "12.2 GiB", "more than can be measured"]);
    }
}
