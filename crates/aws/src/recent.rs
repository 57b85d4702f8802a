//! What this process wrote in the last seconds. Indexes may lag behind their table; whoever has just written something must find it all
//! the same. Nothing here is shown to anybody: it only names what is to be read.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::Job;

/// An index that lags by more than this is out of order.
const KEEP: Duration = Duration::from_secs(60);
/// No more than this are remembered of a kind.
const MOST: usize = 16_384;

/// Executions and jobs that this process has just written.
#[derive(Debug)]
pub(crate) struct Recent {
    executions: Mutex<Written<ExecutionId, Execution>>,
    jobs: Mutex<Written<JobId, Job>>,
}

impl Recent {
    pub fn new() -> Self {
        Self::bounded(KEEP, MOST)
    }

    /// For so long, and so many of a kind.
    pub fn bounded(keep: Duration, most: usize) -> Self {
        Self { executions: Mutex::new(Written::new(keep, most)), jobs: Mutex::new(Written::new(keep, most)) }
    }

    /// Remembers an execution as it was written.
    pub fn wrote(&self, execution: &Execution) {
        self.executions.lock().add(Instant::now(), execution.id, execution.version, slim(execution));
    }

    /// Remembers a job as it was written.
    pub fn wrote_job(&self, job: &Job) {
        self.jobs.lock().add(Instant::now(), job.id, job.version, job.clone());
    }

    /// A job that is gone.
    pub fn forget_job(&self, id: JobId) {
        self.jobs.lock().by_id.remove(&id);
    }

    /// What becomes of each execution that was written last; `None` leaves it out. Its spec holds only what decides where it stands.
    pub fn executions<T>(&self, pick: impl FnMut(&Execution) -> Option<T>) -> Vec<T> {
        self.executions.lock().all(Instant::now()).map(|entry| &entry.value).filter_map(pick).collect()
    }

    /// Executions that are as new as that.
    pub fn new_executions(&self) -> Vec<ExecutionId> {
        self.executions.lock().all(Instant::now()).filter(|entry| entry.is_new).map(|entry| entry.value.id).collect()
    }

    /// What becomes of each job that was written last; `None` leaves it out.
    pub fn jobs<T>(&self, pick: impl FnMut(&Job) -> Option<T>) -> Vec<T> {
        self.jobs.lock().all(Instant::now()).map(|entry| &entry.value).filter_map(pick).collect()
    }
}

/// Without what may be large: commands and environments of thousands of executions are not held for the sake of where they stand.
fn slim(execution: &Execution) -> Execution {
    let mut slim = execution.clone();
    slim.spec.command.clear();
    slim.spec.args = None;
    slim.spec.env.clear();
    slim.spec.labels.clear();
    slim.spec.rpc = None;
    slim.end_reason = None;
    slim
}

/// Values by id, each with when it was written last.
#[derive(Debug)]
struct Written<I, T> {
    keep: Duration,
    most: usize,
    by_id: HashMap<I, Entry<T>>,
    /// Every write in order, also those that were followed by another of the same.
    order: VecDeque<(Instant, I, u64)>,
}

#[derive(Debug)]
struct Entry<T> {
    version: u64,
    /// Its first version is among what is remembered.
    is_new: bool,
    value: T,
}

impl<I: Copy + Eq + Hash, T> Written<I, T> {
    fn new(keep: Duration, most: usize) -> Self {
        Self { keep, most, by_id: HashMap::new(), order: VecDeque::new() }
    }

    /// Commits of one process can come back out of order: the highest version counts.
    fn add(&mut self, now: Instant, id: I, version: u64, value: T) {
        self.tidy(now);
        let is_new = version == 1 || self.by_id.get(&id).is_some_and(|known| known.is_new);
        match self.by_id.get_mut(&id) {
            Some(later) if later.version > version => later.is_new = is_new,
            _ => {
                self.by_id.insert(id, Entry { version, is_new, value });
                self.order.push_back((now, id, version));
            }
        }
    }

    fn all(&mut self, now: Instant) -> impl Iterator<Item = &Entry<T>> {
        self.tidy(now);
        self.by_id.values()
    }

    fn tidy(&mut self, now: Instant) {
        while let Some((at, id, version)) = self.order.front().copied() {
            if now.duration_since(at) < self.keep && self.order.len() <= self.most {
                break;
            }
            self.order.pop_front();
            if self.by_id.get(&id).is_some_and(|entry| entry.version == version) {
                self.by_id.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_for_a_while_and_by_its_last_version() {
        let mut written = Written::new(Duration::from_secs(10), 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let values = |written: &mut Written<u8, &'static str>, now| {
            let mut values: Vec<_> = written.all(now).map(|entry| (entry.value, entry.is_new)).collect();
            values.sort_unstable();
            values
        };
        written.add(at(0), 1, 2, "a2");
        written.add(at(0), 1, 1, "a1");
        written.add(at(5), 2, 7, "b7");
        assert_eq!(values(&mut written, at(9)), [("a2", true), ("b7", false)], "an earlier version changes nothing but that it is new");
        written.add(at(9), 1, 3, "a3");
        assert_eq!(values(&mut written, at(14)), [("a3", true), ("b7", false)]);
        assert_eq!(values(&mut written, at(18)), [("a3", true)]);
        assert_eq!(values(&mut written, at(19)), []);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let mut written = Written::new(Duration::from_secs(10), 3);
        let now = Instant::now();
        for id in 0..9u8 {
            written.add(now, id, 1, id);
        }
        let mut left: Vec<_> = written.all(now).map(|entry| entry.value).collect();
        left.sort_unstable();
        assert_eq!(left, [6, 7, 8]);
    }
}
