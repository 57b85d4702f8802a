//! How much may wait: of each user, and in each queue. Who submits without end is refused before the line is so long that it helps nobody.
//!
//! What waits is counted in the store, and then only what is submitted here is added: that is never less than what waits, for everything else only takes
//! away. The store counts again when a limit seems to be reached, once a second at most, and every
//! minute where other servers submit too. Such a store, of which each execution has to be read to
//! know its user, counts by queue alone while so little waits that no user can be near the limit.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::job::Node;
use runvoy_model::name::Name;
use runvoy_model::phrase::counted;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// A full queue is counted again after this.
const COUNT_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// What other servers submitted is seen after this.
const OTHERS_SEEN_AFTER: Duration = Duration::from_secs(60);

/// What waits, at most.
#[derive(Default)]
pub(crate) struct Backlogs {
    known: Mutex<Option<Known>>,
    /// Held by who counts: one at a time.
    counting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Known {
    counted_at: Duration,
    /// Waits in all, where it was not counted by user: no user had more.
    of_anyone: u64,
    of_users: HashMap<String, u64>,
    of_queues: HashMap<Name, u64>,
}

/// How much may wait; 0 is any number.
#[derive(Debug, Clone, Copy)]
struct Limits {
    of_user: u64,
    of_queue: u64,
}

impl Known {
    /// Adds these, if there is room for one: a job is not refused for its size.
    fn take(&mut self, limits: Limits, user: &str, queues: &[(Name, u64)]) -> Result<(), EngineError> {
        let is_full = |waiting: u64, limit: u64| limit > 0 && waiting >= limit;
        if is_full(self.of_anyone + self.of_users.get(user).copied().unwrap_or(0), limits.of_user) {
            return Err(full(format!("{user} has {} waiting, which is the limit for one user", counted(limits.of_user, "execution"))));
        }
        let in_queue = |queue: &Name| self.of_queues.get(queue).copied().unwrap_or(0);
        if let Some((queue, _)) = queues.iter().find(|(queue, _)| is_full(in_queue(queue), limits.of_queue)) {
            return Err(full(format!("queue {queue} has {} waiting, which is its limit", counted(limits.of_queue, "execution"))));
        }
        for (queue, count) in queues {
            add(&mut self.of_users, user, *count, str::to_owned);
            add(&mut self.of_queues, queue, *count, Name::clone);
        }
        Ok(())
    }

    /// With what was added while this was counted. Some of it may have been counted too, which does no harm.
    fn and_taken_meanwhile(mut self, before: &Self, now: Self) -> Self {
        for (user, count) in now.of_users {
            let taken = count.saturating_sub(before.of_users.get(&user).copied().unwrap_or(0));
            *self.of_users.entry(user).or_default() += taken;
        }
        for (queue, count) in now.of_queues {
            let taken = count.saturating_sub(before.of_queues.get(&queue).copied().unwrap_or(0));
            *self.of_queues.entry(queue).or_default() += taken;
        }
        self
    }
}

fn full(what: String) -> EngineError {
    EngineError::LimitReached { what, remedy: "nothing was queued; try again when some of them have started" }
}

fn add<K, Q>(counts: &mut HashMap<K, u64>, key: &Q, count: u64, owned: fn(&Q) -> K)
where
    K: std::borrow::Borrow<Q> + std::hash::Hash + Eq,
    Q: std::hash::Hash + Eq + ?Sized,
{
    match counts.get_mut(key) {
        Some(known) => *known += count,
        None => drop(counts.insert(owned(key), count)),
    }
}

impl Engine {
    /// Refuses what would wait where too much waits already; counts it else.
    pub(crate) async fn take_room(&self, caller: &Caller, queues: &[(Name, u64)]) -> Result<(), EngineError> {
        let limits = Limits { of_user: self.config.max_waiting_per_user, of_queue: self.config.max_waiting_per_queue };
        if limits.of_user == 0 && limits.of_queue == 0 {
            return Ok(());
        }
        let current = |known: &Known| {
            let stale_after = if self.config.shares_store() { OTHERS_SEEN_AFTER } else { Duration::MAX };
            self.ports.clock.monotonic().saturating_sub(known.counted_at) < stale_after
        };
        let take = |count_again_after: Duration| {
            let mut known = self.backlogs.known.lock();
            let known = known.as_mut().filter(|known| current(known))?;
            let decided = known.take(limits, &caller.email, queues);
            let age = self.ports.clock.monotonic().saturating_sub(known.counted_at);
            // Nobody is refused for what others have waiting.
            let is_final = decided.is_ok() || known.of_anyone == 0 && age < count_again_after;
            is_final.then_some(decided)
        };
        if let Some(decided) = take(COUNT_AGAIN_AFTER) {
            return decided;
        }
        let _alone = self.backlogs.counting.lock().await;
        // Another one may have counted meanwhile.
        if let Some(decided) = take(COUNT_AGAIN_AFTER) {
            return decided;
        }
        for by_user in [false, true] {
            self.count_again(limits, by_user).await?;
            if let Some(decided) = take(Duration::MAX) {
                return decided;
            }
        }
        Err(EngineError::Overloaded)
    }

    /// Counts, with what is submitted meanwhile.
    async fn count_again(&self, limits: Limits, by_user: bool) -> Result<(), EngineError> {
        let before = self.backlogs.known.lock().clone();
        let counted = match self.config.shares_store() && !by_user {
            true => self.count_queues(limits).await?,
            false => None,
        };
        let counted = match counted {
            Some(counted) => counted,
            None => self.count_backlogs().await?,
        };
        let mut known = self.backlogs.known.lock();
        *known = Some(match (before, known.take()) {
            (Some(before), Some(now)) => counted.and_taken_meanwhile(&before, now),
            _ => counted,
        });
        Ok(())
    }

    /// What waits by queue, if that is so little that it does not matter who has it: less than half
    /// of the limit of a user.
    async fn count_queues(&self, limits: Limits) -> Result<Option<Known>, EngineError> {
        let of_queues: HashMap<Name, u64> = self.ports.store.queues().await?.into_iter().map(|queue| (queue.queue, queue.depth)).collect();
        let of_anyone = if limits.of_user == 0 { 0 } else { of_queues.values().sum() };
        let counted_at = self.ports.clock.monotonic();
        let known = Known { counted_at, of_anyone, of_users: HashMap::new(), of_queues };
        Ok((limits.of_user == 0 || of_anyone < limits.of_user / 2).then_some(known))
    }

    async fn count_backlogs(&self) -> Result<Known, EngineError> {
        let backlogs = self.ports.store.backlogs().await?;
        // A count that took long is as good as one that did not.
        let counted_at = self.ports.clock.monotonic();
        let mut known = Known { counted_at, of_anyone: 0, of_users: HashMap::new(), of_queues: HashMap::new() };
        for backlog in backlogs {
            *known.of_users.entry(backlog.user).or_default() += backlog.count;
            *known.of_queues.entry(backlog.queue).or_default() += backlog.count;
        }
        Ok(known)
    }
}

/// The queues of the tasks that wait for no other, and how many go to each.
pub(crate) fn of_tasks(nodes: &[Node]) -> Vec<(Name, u64)> {
    let mut counts: HashMap<Name, u64> = HashMap::new();
    for node in nodes.iter().filter(|node| node.depends_on.is_empty()) {
        *counts.entry(node.spec.queue.clone()).or_default() += 1;
    }
    counts.into_iter().collect()
}
