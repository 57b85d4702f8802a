//! Pages of executions, newest first by id. The narrowest index that serves one of the filters names the candidates, day by day from the
//! newest; all filters are then applied to what is read. A lock and, of what has ended, a queue have no index: those of others are read past.

use std::collections::BTreeMap;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_ports::store::{ListQuery, StoreError};

use crate::day::Day;
use crate::execution::{status_part, user_part};
use crate::known::{self, Days};
use crate::lists::Lists;
use crate::stand::Line;
use crate::walk::{Bounds, Part, Walk};

/// So many parts of an index are asked in one round: when nothing is found, the next round goes over more days.
const MOST_PARTS: usize = 64;
/// A user has no longer name: an index would refuse it.
pub(crate) const MOST_USER: usize = 1024;
/// Up to so many executions that have not ended are all looked at, rather than days.
const MOST_OPEN: usize = 500;
/// At least so many candidates are read at once, and at most.
const READ: std::ops::RangeInclusive<usize> = 16..=800;

pub(crate) const FIRST_ID: ExecutionId = ExecutionId::from_bytes([0; 16]);
pub(crate) const LAST_ID: ExecutionId = ExecutionId::from_bytes([0xff; 16]);

/// Where candidates come from.
enum Source<'q> {
    User(&'q str),
    Statuses(Vec<Status>),
    Everybody,
}

impl Lists {
    /// A page of executions, newest first.
    pub async fn list(&self, query: &ListQuery) -> Result<Vec<Execution>, StoreError> {
        self.page(query, MOST_OPEN).await
    }

    /// The same, where up to so many executions that have not ended are all looked at.
    pub async fn page(&self, query: &ListQuery, most_open: usize) -> Result<Vec<Execution>, StoreError> {
        let mut page = Page { lists: self, query, found: Vec::new() };
        // Nobody can be made a co-owner yet: whoever owns an execution has submitted it, and is found by the index of users.
        let user = query.created_by.as_deref().or(query.owner.as_deref());
        if query.limit == 0 || user.is_some_and(|user| user.len() > MOST_USER) {
            return Ok(Vec::new());
        }
        if let Some(job) = query.job {
            let part = Part::by_id("job-index", "job_id", job.to_string());
            page.walk(vec![part], FIRST_ID, LAST_ID).await?;
            return Ok(page.found);
        }
        let mut statuses = query.statuses.clone();
        statuses.sort_unstable();
        statuses.dedup();
        let only_open = !statuses.is_empty() && statuses.iter().all(|status| !status.is_terminal());
        if only_open && let Some(open) = self.open(&statuses, query.queue.as_ref(), most_open).await? {
            page.pick(open).await?;
            return Ok(page.found);
        }
        let source = match user {
            Some(user) => Source::User(user),
            None if !statuses.is_empty() => Source::Statuses(statuses),
            None => Source::Everybody,
        };
        page.days(&source).await?;
        Ok(page.found)
    }

    /// Candidates for these statuses, all of which are open; `None` where there are too many to look at all.
    async fn open(&self, statuses: &[Status], queue: Option<&Name>, most: usize) -> Result<Option<Vec<ExecutionId>>, StoreError> {
        let pending = statuses.contains(&Status::Pending);
        let active = statuses.iter().any(|status| *status != Status::Pending);
        let wanted = |line: &Line| if *line == Line::Active { active } else { pending };
        let lines: Vec<Line> = Line::OPEN.into_iter().filter(wanted).collect();
        let queues = match queue {
            Some(queue) => vec![queue.clone()],
            None => known::queues(&self.dynamo).await?,
        };
        let found = self.first_of(&lines, &queues, most).await?;
        Ok((found.len() <= most).then_some(found))
    }
}

/// The page as far as it is found.
struct Page<'q> {
    lists: &'q Lists,
    query: &'q ListQuery,
    found: Vec<Execution>,
}

impl Page<'_> {
    /// Goes through the days that there are.
    async fn days(&mut self, source: &Source<'_>) -> Result<(), StoreError> {
        let mark = match source {
            Source::User(user) => known::user_days(user),
            Source::Statuses(_) | Source::Everybody => known::ALL_DAYS.to_owned(),
        };
        let days = known::days(&self.lists.dynamo, &mark).await?;
        let mut left: Vec<Day> = days.days.iter().copied().filter(|day| self.wants(*day, &days)).collect();
        let (mut together, parts_a_day) = (1, self.parts(source, Day::of_id(FIRST_ID.0)).len());
        while !left.is_empty() && !self.is_full() {
            let group = left.split_off(left.len().saturating_sub(together));
            let parts = group.iter().flat_map(|day| self.parts(source, *day)).collect();
            let (first, last) = (group[0].first_id(), group[group.len() - 1].last_id());
            self.walk(parts, ExecutionId(first), ExecutionId(last)).await?;
            together = (together * 2).min((MOST_PARTS / parts_a_day).max(1));
        }
        Ok(())
    }

    /// Whether a day can have something that is asked for. The time in an id and the time of its submit come from one clock, or from two
    /// that are less than a day apart; where they are not, the day is known as odd.
    fn wants(&self, day: Day, days: &Days) -> bool {
        if self.query.after.is_some_and(|after| Day::of_id(after.0) < day) {
            return false;
        }
        let too_early = self.query.since.is_some_and(|since| day < Day::of(since) && day.apart(Day::of(since)) > 1);
        let too_late = self.query.until.is_some_and(|until| day > Day::of(until) && day.apart(Day::of(until)) > 1);
        days.odd.contains(&day) || !(too_early || too_late)
    }

    fn parts(&self, source: &Source<'_>, day: Day) -> Vec<Part> {
        let shards = self.lists.shards();
        match source {
            Source::User(user) => shards.map(|shard| Part::by_id("user-index", "user_day_shard", user_part(user, day, shard))).collect(),
            Source::Statuses(statuses) => {
                let part =
                    |status: &Status, shard| Part::by_id("status-index", "status_day_shard", status_part(status.as_str(), day, shard));
                statuses.iter().flat_map(|status| shards.clone().map(move |shard| part(status, shard))).collect()
            }
            Source::Everybody => shards.map(|shard| Part::by_id("day-index", "day_shard", format!("{day}#{shard}"))).collect(),
        }
    }

    /// Goes through parts that hold ids from the first to the last.
    async fn walk(&mut self, parts: Vec<Part>, first: ExecutionId, last: ExecutionId) -> Result<(), StoreError> {
        let after = self.query.after.map(|after| after.to_string());
        let bounds = Bounds { low: first.to_string(), high: last.to_string(), after, descending: true };
        let written = self.lists.recent.executions(|execution| listed(self.query, execution).then_some(execution.id));
        let extra: BTreeMap<_, _> = written.into_iter().map(|id| (id.to_string(), id)).collect();
        let mut walk = Walk::new(&self.lists.dynamo, parts, bounds, extra);
        while !self.is_full() {
            let Some(stretch) = walk.next(self.room().max(*READ.start())).await? else { break };
            self.judge(stretch.into_iter().map(|(_, id)| id).collect()).await?;
        }
        Ok(())
    }

    /// Takes from candidates that are all there are.
    async fn pick(&mut self, mut candidates: Vec<ExecutionId>) -> Result<(), StoreError> {
        candidates.extend(self.lists.recent.executions(|execution| listed(self.query, execution).then_some(execution.id)));
        candidates.retain(|id| self.query.after.is_none_or(|after| *id < after));
        candidates.sort_unstable();
        candidates.dedup();
        candidates.reverse();
        self.judge(candidates).await
    }

    /// Reads candidates in their order and takes those that are asked for, until there is no more room.
    async fn judge(&mut self, candidates: Vec<ExecutionId>) -> Result<(), StoreError> {
        let mut left = &candidates[..];
        while !left.is_empty() && !self.is_full() {
            let (now, later) = left.split_at(left.len().min(self.room().clamp(*READ.start(), *READ.end())));
            left = later;
            let room = self.room();
            let read = self.lists.read(now).await?;
            self.found.extend(read.into_iter().filter(|execution| listed(self.query, execution)).take(room));
        }
        Ok(())
    }

    fn room(&self) -> usize {
        self.query.limit - self.found.len()
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }
}

/// Whether an execution is asked for.
pub(crate) fn listed(query: &ListQuery, execution: &Execution) -> bool {
    let owned = |owner: &String| execution.created_by == *owner || execution.owned_by.contains(owner);
    (query.statuses.is_empty() || query.statuses.contains(&execution.status))
        && query.owner.as_ref().is_none_or(owned)
        && query.created_by.as_ref().is_none_or(|user| execution.created_by == *user)
        && query.lock.as_ref().is_none_or(|lock| execution.spec.lock.as_ref() == Some(lock))
        && query.queue.as_ref().is_none_or(|queue| execution.spec.queue == *queue)
        && query.job.is_none_or(|job| execution.spec.task.as_ref().is_some_and(|task| task.job == job))
        && query.since.is_none_or(|since| execution.submitted_at >= since)
        && query.until.is_none_or(|until| execution.submitted_at < until)
}
