//! Costs: of attempts, and summed up. The counters follow the event log: what ended since the last look is added to them, together with the place up
//! to which the log was read, so that a crash counts nothing twice and misses nothing. Whoever asks for a sum has the rest counted first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use runvoy_model::cost::{Cost, CostKey, Day, Dimension, charges};
use runvoy_model::event::{EntityType, Event, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::role::{Action, Reach};
use runvoy_model::time::UnixMs;
use runvoy_ports::cost::{CostFold, CostQuery, MAX_COUNTERS};
use runvoy_ports::store::{EventPage, EventQuery, Sight, StoreError};
use tokio::time::timeout;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

const EVERY: Duration = Duration::from_secs(60);
/// Leaves room for other writers while a store with a long past is counted for the first time.
const PAUSE: Duration = Duration::from_millis(10);
/// How many events a page has at most.
const PAGE: usize = 500;
const PAGE_BYTES: usize = 4 << 20;
/// How many executions are read at once.
const READ_AT_ONCE: usize = 16;
/// How many pages a request counts before it answers without the rest.
const PAGES_OF_REQUEST: usize = 20;
/// How long it counts, or waits until another one has counted.
const REQUEST_COUNTS_FOR: Duration = Duration::from_secs(2);
const DAY_MS: i64 = 24 * 3600 * 1000;
/// How far back a sum goes unless it is asked for another time.
const DEFAULT_DAYS: i64 = 30;
const DEFAULT_DAYS_OF_MONTHS: i64 = 365;

/// What a report has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostBy {
    /// Each user who submitted executions.
    User,
    /// Each image.
    Image,
    /// Each queue.
    Queue,
    /// Each job.
    Job,
    /// Each month.
    Month,
}

impl CostBy {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::User, Self::Image, Self::Queue, Self::Job, Self::Month];

    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Month => "month",
            by => by.dimension().as_str(),
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == text)
    }

    const fn dimension(self) -> Dimension {
        match self {
            Self::User => Dimension::User,
            Self::Image => Dimension::Image,
            Self::Queue => Dimension::Queue,
            Self::Job => Dimension::Job,
            Self::Month => Dimension::Total,
        }
    }
}

/// One row of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// The user, image, queue, job or month.
    pub name: String,
    /// Its cost.
    pub cost: Cost,
}

/// What executions cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostReport {
    /// When the first day of the report begins.
    pub since: UnixMs,
    /// The cost of all executions, also of those that are in no row.
    pub total: Cost,
    /// The most expensive first; months: the latest first.
    pub rows: Vec<CostRow>,
    /// How many more rows there are.
    pub more: u64,
    /// Whether everything that has ended is counted.
    pub is_complete: bool,
    /// Whether the server charges anything at all.
    pub has_rates: bool,
}

/// The agent.
pub struct CostCounter {
    engine: Arc<Engine>,
}

impl CostCounter {
    /// A counter for this engine.
    pub const fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Counts every minute, until dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            loop {
                match self.engine.count_costs(1).await {
                    Ok(true) => break,
                    Ok(false) => tokio::time::sleep(PAUSE).await,
                    Err(error) => {
                        tracing::warn!(%error, "costs cannot be counted now");
                        break;
                    }
                }
            }
        }
    }
}

impl Engine {
    /// What an attempt of this length costs. A worker may report any length: no attempt is charged for longer than the server knows of it.
    pub(crate) async fn attempt_cost(&self, id: ExecutionId, duration_ms: u64) -> Result<u64, StoreError> {
        let now = self.now();
        let known_for_ms = |execution: &Execution| execution.attempt_started_at.map_or(0, |started| now.ms_since(started).unsigned_abs());
        self.cost_of(id, |execution| duration_ms.min(known_for_ms(execution))).await
    }

    /// What an attempt cost whose worker does not report its end: until the worker was last heard of.
    pub(crate) async fn cost_until_last_heard(&self, id: ExecutionId) -> Result<u64, StoreError> {
        self.cost_of(id, heard_for_ms).await
    }

    async fn cost_of(&self, id: ExecutionId, duration_ms: impl Fn(&Execution) -> u64) -> Result<u64, StoreError> {
        if self.config.rates.is_zero() {
            return Ok(0);
        }
        let execution = self.ports.store.get(id).await?;
        Ok(execution.map_or(0, |execution| {
            let size = self.config.size(execution.spec.container.as_deref());
            self.config.rates.cost_micro_usd(size, duration_ms(&execution))
        }))
    }

    /// What executions cost, of all users or of the caller, as their role says.
    pub async fn costs(&self, caller: &Caller, by: CostBy, since: Option<UnixMs>, limit: usize) -> Result<CostReport, EngineError> {
        let owner = match caller.may(Action::Read)? {
            Reach::All => None,
            Reach::Own | Reach::None => Some(caller.email.clone()),
        };
        // Cut off in between, it has counted some pages and no half of one.
        let is_complete = match timeout(REQUEST_COUNTS_FOR, self.count_costs(PAGES_OF_REQUEST)).await {
            Ok(Ok(is_complete)) => is_complete,
            Ok(Err(error)) => {
                tracing::warn!(%error, "costs cannot be counted now");
                false
            }
            Err(_) => false,
        };
        let days = if by == CostBy::Month { DEFAULT_DAYS_OF_MONTHS } else { DEFAULT_DAYS };
        let since = Day::of(since.unwrap_or_else(|| self.now().plus_ms(-days * DAY_MS)));
        // The total of a month is that of the whole month.
        let since = if by == CostBy::Month { since.first_of_month() } else { since };
        let total = self.ports.costs.costs(CostQuery { owner: owner.clone(), dimension: Dimension::Total, since }).await?;
        let counters = match by.dimension() {
            Dimension::Total => total.iter().map(|(day, _, cost)| (*day, day.month(), *cost)).collect(),
            dimension => self.ports.costs.costs(CostQuery { owner, dimension, since }).await?,
        };
        let total = total.into_iter().fold(Cost::default(), |sum, (_, _, cost)| sum.plus(cost));
        let mut sums: BTreeMap<String, Cost> = BTreeMap::new();
        for (_, name, cost) in counters {
            let sum = sums.entry(name).or_default();
            *sum = sum.plus(cost);
        }
        let mut rows: Vec<CostRow> = sums.into_iter().map(|(name, cost)| CostRow { name, cost }).collect();
        match by {
            CostBy::Month => rows.reverse(),
            _ => rows.sort_by_key(|row| Reverse((row.cost.micro_usd, row.cost.executions))),
        }
        let more = rows.len().saturating_sub(limit) as u64;
        rows.truncate(limit);
        let has_rates = !self.config.rates.is_zero();
        Ok(CostReport { since: since.begin(), total, rows, more, is_complete, has_rates })
    }

    /// Adds what ended since the last look to the counters, so many pages of events at most; whether that was all.
    pub async fn count_costs(&self, pages: usize) -> Result<bool, EngineError> {
        let _alone = self.counting.lock().await;
        let mut place = self.ports.costs.counted().await?;
        for _ in 0..pages {
            let page = self.events_to_count(place).await?;
            let ends: Vec<_> = page.events.iter().filter_map(|stored| Some((stored.place, ended(&stored.event)?))).collect();
            // The end of the log is read again rather than written down for nothing.
            if !ends.is_empty() || page.more {
                place = self.count_ends(place, page.looked, ends).await?;
            }
            if !page.more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The events after a place. One that cannot be read ends nothing that is known, and must not keep the others from being counted.
    async fn events_to_count(&self, after: u64) -> Result<EventPage, StoreError> {
        for limit in [PAGE, 1] {
            let query = EventQuery { after: Some(after), limit, ..EventQuery::default() };
            let sight = Sight { owner: None, trail: false, most_looked_at: limit, most_bytes: PAGE_BYTES };
            match self.ports.store.seen_events(query, sight).await {
                Err(StoreError::Damaged(why)) if limit == 1 => {
                    tracing::warn!(place = after + 1, why, "the cost of what a damaged event ended is not counted");
                }
                Err(StoreError::Damaged(_)) => {}
                page => return page,
            }
        }
        Ok(EventPage { events: Vec::new(), looked: after + 1, more: true })
    }

    /// Counts the executions that ended between two places; the place up to which they are counted, by this server or by another one.
    async fn count_ends(&self, after: u64, up_to: u64, ends: Vec<(u64, ExecutionId)>) -> Result<u64, StoreError> {
        let mut fold = CostFold { after, up_to: after, added: BTreeMap::new() };
        let read = stream::iter(ends).map(async |(place, id)| (place, self.ended_execution(id).await)).buffered(READ_AT_ONCE);
        let mut read = std::pin::pin!(read);
        while let Some((place, execution)) = read.next().await {
            let Some(execution) = execution? else { continue };
            let (keys, cost) = charges(&execution);
            if fold.added.len() + new_keys(&fold, &keys) > MAX_COUNTERS {
                let (next, counted) = (fold.up_to, self.ports.costs.count(fold).await?);
                if counted != next {
                    return Ok(counted);
                }
                fold = CostFold { after: counted, up_to: counted, added: BTreeMap::new() };
            }
            for key in keys {
                let sum = fold.added.entry(key).or_default();
                *sum = sum.plus(cost);
            }
            fold.up_to = place;
        }
        fold.up_to = up_to.max(fold.up_to);
        if fold.up_to == fold.after { Ok(fold.after) } else { self.ports.costs.count(fold).await }
    }

    /// An execution that has ended. One that cannot be read has no known cost, and must not keep the others from being counted.
    async fn ended_execution(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        match self.ports.store.get(id).await {
            Err(StoreError::Damaged(why)) => {
                tracing::warn!(execution = %id, why, "the cost of a damaged execution is not counted");
                Ok(None)
            }
            found => found,
        }
    }
}

fn new_keys(fold: &CostFold, keys: &[CostKey]) -> usize {
    keys.iter().filter(|key| !fold.added.contains_key(key)).count()
}

/// The execution that ended with this event. What a lost worker reports later is kept as an event, too, and ends nothing.
fn ended(event: &Event) -> Option<ExecutionId> {
    let ends = matches!(event.kind, EventType::TaskCompleted | EventType::TaskFailed | EventType::TaskTimeout | EventType::TaskStopped);
    let is_late = event.properties.get("late").is_some();
    (ends && event.entity.kind == EntityType::Task && !is_late).then(|| event.entity.id.parse().ok())?
}

/// How long the present attempt was heard of: from its start to the last extension of its lease.
fn heard_for_ms(execution: &Execution) -> u64 {
    let (Some(started), Some(lease)) = (execution.attempt_started_at, &execution.lease) else { return 0 };
    if !lease.begun {
        return 0;
    }
    let last_heard = lease.deadline.plus_ms(-i64::try_from(lease.ttl_ms).unwrap_or(i64::MAX));
    last_heard.ms_since(started).unsigned_abs()
}
