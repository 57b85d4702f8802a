//! How an execution stands in its queue: it can be leased, waits for its lock, is with a worker, or is a dead letter; one of these or
//! none. The standing index is written from here and read from here, so that nobody else knows the form of its keys.

use std::cmp::Ordering;

use runvoy_model::execution::{Execution, LockClaim, Place};
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;

/// A line of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Line {
    /// Can be leased, now or after a backoff, by who serves this.
    Ready(Needs),
    /// Waits for its lock.
    Waiting,
    /// Is with a worker.
    Active,
    /// Was given up.
    Dead,
}

impl Line {
    /// Everything that has not ended.
    pub const OPEN: [Self; 4] = [Self::Ready(Needs::Process), Self::Ready(Needs::Image), Self::Waiting, Self::Active];

    /// The partition of this line of a queue.
    pub fn partition(self, queue: &Name, shard: u32) -> String {
        match self {
            Self::Ready(Needs::Process) => format!("ready#{queue}#process#{shard}"),
            Self::Ready(Needs::Image) => format!("ready#{queue}#image#{shard}"),
            Self::Waiting => format!("waiting#{queue}#{shard}"),
            Self::Active => format!("active#{queue}#{shard}"),
            Self::Dead => format!("dead#{queue}#{shard}"),
        }
    }
}

impl Line {
    /// The line and the queue of a partition.
    pub fn of_partition(partition: &str) -> Option<(Self, Name)> {
        let mut parts = partition.split('#');
        let (line, queue) = (parts.next()?, Name::new(parts.next()?).ok()?);
        let line = match (line, parts.next()?) {
            ("ready", "process") => Self::Ready(Needs::Process),
            ("ready", "image") => Self::Ready(Needs::Image),
            ("waiting", _) => Self::Waiting,
            ("active", _) => Self::Active,
            ("dead", _) => Self::Dead,
            _ => return None,
        };
        Some((line, queue))
    }
}

/// Where an execution stands: its queue's line and the place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stand {
    pub line: Line,
    pub queue: Name,
    /// Sorts within the line; ends with the id.
    pub sort: String,
}

impl Stand {
    /// Where an execution stands, if it does.
    pub fn of(execution: &Execution) -> Option<Self> {
        let id = execution.id;
        let (line, sort) = match (execution.status, execution.lock) {
            (Status::Pending, LockClaim::Waiting { until }) => {
                (Line::Waiting, format!("{}#{}#{id}", sortable(until), sortable(execution.submitted_at)))
            }
            (Status::Pending, _) => (Line::Ready(execution.spec.needs()), ready_sort(execution.spec.priority, execution.ready_at, id)),
            (Status::Starting | Status::Running | Status::Terminating, _) => (Line::Active, id.to_string()),
            (Status::Succeeded | Status::Failed | Status::Stopped, _) => (Line::Dead, dead_sort(execution.dead_since()?, id)),
        };
        Some(Self { line, queue: execution.spec.queue.clone(), sort })
    }

    /// Which execution stands there.
    pub fn id(&self) -> Option<ExecutionId> {
        self.sort.rsplit('#').next()?.parse().ok()
    }

    /// Since when one that waits could run, or was submitted where it waits for its lock.
    pub fn waits_since(&self) -> Option<UnixMs> {
        match self.line {
            Line::Ready(_) | Line::Waiting => self.sort.split('#').nth(1).and_then(unsorted),
            Line::Active | Line::Dead => None,
        }
    }
}

/// The place of one that can be leased: the smallest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadyPlace {
    pub priority: u8,
    pub ready_at: UnixMs,
    pub id: ExecutionId,
}

impl ReadyPlace {
    fn in_line(self) -> (Place, u8) {
        (Place::new(self.priority, self.ready_at, self.id), self.priority)
    }
}

impl Ord for ReadyPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.in_line().cmp(&other.in_line())
    }
}

impl PartialOrd for ReadyPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn ready_sort(priority: u8, ready_at: UnixMs, id: ExecutionId) -> String {
    format!("{priority:03}#{}#{id}", sortable(ready_at))
}

/// The place that a sort key of a ready line names.
pub(crate) fn ready_place(sort: &str) -> Option<ReadyPlace> {
    let mut parts = sort.split('#');
    let priority = parts.next()?.parse().ok()?;
    let ready_at = unsorted(parts.next()?)?;
    Some(ReadyPlace { priority, ready_at, id: parts.next()?.parse().ok()? })
}

/// Before everything of lower priority than this, and after everything of this one.
pub(crate) fn after_priority(priority: u8) -> String {
    format!("{:03}", u16::from(priority) + 1)
}

/// The place of a dead letter.
pub(crate) fn dead_sort(since: UnixMs, id: ExecutionId) -> String {
    format!("{}#{id}", sortable(since))
}

/// After everything in a line by time that is of this time.
pub(crate) fn end_of(at: UnixMs) -> String {
    format!("{}#~", sortable(at))
}

/// A time as twenty digits that sort as it does, also before 1970.
fn sortable(at: UnixMs) -> String {
    format!("{:020}", at.0.cast_unsigned() ^ (1 << 63))
}

fn unsorted(digits: &str) -> Option<UnixMs> {
    digits.parse::<u64>().ok().map(|number| UnixMs((number ^ (1 << 63)).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_names_its_line_and_queue() {
        let queue = Name::new("team/x.y").expect("a name");
        for line in Line::OPEN.into_iter().chain([Line::Dead]) {
            assert_eq!(Line::of_partition(&line.partition(&queue, 3)), Some((line, queue.clone())));
        }
        for other in ["", "ready", "ready#a", "ready#a#b#0", "gone#a#0"] {
            assert_eq!(Line::of_partition(other), None, "{other}");
        }
    }

    #[test]
    fn every_time_sorts_as_text_and_comes_back() {
        let times = [i64::MIN, -5, -1, 0, 1, 1_800_000_000_000, i64::MAX - 1, i64::MAX];
        for pair in times.windows(2) {
            assert!(sortable(UnixMs(pair[0])) < sortable(UnixMs(pair[1])), "{pair:?}");
            assert_eq!(unsorted(&sortable(UnixMs(pair[0]))), Some(UnixMs(pair[0])));
        }
    }

    #[test]
    fn sort_keys_go_by_priority_then_time_then_id() {
        let place = |priority, at, byte| ReadyPlace { priority, ready_at: UnixMs(at), id: ExecutionId::from_bytes([byte; 16]) };
        let places = [place(1, i64::MAX, 9), place(2, -3, 8), place(2, 5, 1), place(2, 5, 2), place(10, 0, 0)];
        let texts: Vec<String> = places.iter().map(|place| ready_sort(place.priority, place.ready_at, place.id)).collect();
        assert!(texts.is_sorted());
        assert!(places[1..4].is_sorted(), "those of one priority stand in line as they are sorted");
        assert!(place(2, 0, 1) < place(1, 600_001, 1) && place(1, 599_999, 1) < place(2, 0, 1), "age makes up for priority");
        for (place, text) in places.iter().zip(&texts) {
            assert_eq!(ready_place(text), Some(*place));
            assert!(*text < after_priority(place.priority));
        }
        assert!(after_priority(1) <= texts[1]);
    }
}
