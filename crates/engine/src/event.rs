//! The event log as callers see it: pages of it by the seven shapes of the event contract, the events of a task, and a stream of what comes.
//!
//! Who sees what: whoever reads every execution sees every event; whoever reads their own sees the events of their own executions and jobs. Events
//! that tell of calls are for who may read the trail, on this way too. A cursor is a place in the log, never a time: clocks differ.

mod overflow;
mod stream;

use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};
use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::role::{Action, Reach};
use runvoy_model::time::UnixMs;
use runvoy_ports::process;
use runvoy_ports::store::{EventPage, EventQuery, ListQuery, Sight, StoredEvent};
use serde_json::Value;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

pub use self::overflow::ShownEvent;
pub use self::stream::EventFollower;

/// So many events are looked at for one page. Whoever sees few of many asks several times, and nobody's question holds up the others.
const MOST_LOOKED_AT: usize = 20_000;
/// A page is about this large at most, however many events were asked for.
const PAGE_BYTES: usize = 1 << 20;
/// How many executions or events are read at once.
const PAGE: usize = 500;
/// So many starts whose process a page does not tell are looked up at the same time.
const LOOKS: usize = 8;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// Which events. What is absent is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only of this type.
    pub kind: Option<EventType>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this app.
    pub app: Option<String>,
    /// Only about this. Executions and jobs may be named by a part of their id.
    pub entity: Option<Entity>,
    /// Only at this time or later.
    pub from: Option<UnixMs>,
    /// Only before this time.
    pub to: Option<UnixMs>,
    /// Newest first.
    pub descending: bool,
    /// Go on after this place.
    pub after: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

impl EventFilter {
    /// An index begins with the entity, the app, or the type; a tenant is part of those that begin with the type, and of the table itself.
    fn check(&self) -> Result<(), EngineError> {
        if self.tenant.is_some() && self.kind.is_none() && (self.app.is_some() || self.entity.is_some()) {
            let message = "no index has a tenant with an app or an entity alone: leave it out, or give a type too";
            return Err(EngineError::invalid("tenant", message));
        }
        Ok(())
    }
}

impl Engine {
    /// A page of events. It may be empty and not the last.
    pub async fn events(&self, caller: &Caller, filter: &EventFilter) -> Result<EventPage, EngineError> {
        match self.scoped(caller, filter).await? {
            Some((query, sight)) => self.with_processes(self.ports.store.seen_events(query, sight).await?).await,
            None => Ok(EventPage::default()),
        }
    }

    /// What a filter comes to for a caller; `None` where it asks for another tenant's or app's, of which there are none here.
    async fn scoped(&self, caller: &Caller, filter: &EventFilter) -> Result<Option<(EventQuery, Sight)>, EngineError> {
        filter.check()?;
        let (reach, trail) = (caller.may(Action::Read)?, caller.may(Action::ReadAudit).is_ok());
        let forbidden = || EngineError::Forbidden { role: caller.role.as_str() };
        match filter.kind {
            Some(kind) if kind.is_trail() && !trail => return Err(forbidden()),
            Some(EventType::TaskHealthCheck) if reach == Reach::Own => return Err(forbidden()),
            _ => {}
        }
        let scope = &self.config.events;
        let foreign = |asked: &Option<String>, own: &String| asked.as_ref().is_some_and(|asked| asked != own);
        if foreign(&filter.tenant, &scope.tenant) || foreign(&filter.app, &scope.app) {
            return Ok(None);
        }
        let entity = match &filter.entity {
            None => None,
            Some(Entity { kind: EntityType::Task, id }) => Some(Entity::task(self.execution(caller, id).await?.id)),
            Some(Entity { kind: EntityType::Job, id }) => Some(Entity::job(self.job(caller, id).await?.id)),
            // A look at what runs tells of everybody's, and everything else has only events of calls.
            Some(Entity { kind: EntityType::Health, .. }) if reach == Reach::Own => return Err(forbidden()),
            Some(Entity { kind: EntityType::Health, .. }) => filter.entity.clone(),
            Some(_) if !trail => return Err(forbidden()),
            Some(_) => filter.entity.clone(),
        };
        let owner = (reach == Reach::Own && entity.is_none()).then(|| caller.email.clone());
        let query = EventQuery {
            entity,
            kind: filter.kind,
            from: filter.from,
            to: filter.to,
            descending: filter.descending,
            after: filter.after,
            limit: filter.limit,
        };
        Ok(Some((query, Sight { owner, ..sight(trail) })))
    }

    /// The executions that a task of a job has been, oldest first.
    pub async fn task_executions(&self, caller: &Caller, job: &str, task: &str) -> Result<Vec<ExecutionId>, EngineError> {
        let job = self.job(caller, job).await?;
        let node = self.job_task(&job, task).await?;
        if node.generation <= 1 {
            return Ok(node.execution.into_iter().collect());
        }
        // A resumed task has been several. They are found among those of the whole job, which is read through for it.
        let is_its = |execution: &Execution| execution.spec.task.as_ref().is_some_and(|own| own.task == node.task);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let query = ListQuery { job: Some(job.id), after, limit: PAGE, ..ListQuery::default() };
            let page = self.ports.store.list(query).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            found.extend(page.iter().filter(|execution| is_its(execution)).map(|execution| execution.id));
        }
        found.reverse();
        Ok(found)
    }

    /// The events of one of those, in order, after a place. The caller may see the job that it is a task of.
    pub async fn task_events(&self, caller: &Caller, execution: ExecutionId, after: Option<u64>) -> Result<EventPage, EngineError> {
        let query = EventQuery { entity: Some(Entity::task(execution)), after, limit: PAGE, ..EventQuery::default() };
        self.with_processes(self.ports.store.seen_events(query, sight(caller.may(Action::ReadAudit).is_ok())).await?).await
    }

    async fn with_processes(&self, mut page: EventPage) -> Result<EventPage, EngineError> {
        self.name_processes(&mut page.events).await?;
        Ok(page)
    }

    /// Names the processes of all starts in a page. The place of the first start whose process may be told soon.
    async fn name_processes(&self, events: &mut [StoredEvent]) -> Result<Option<u64>, EngineError> {
        let open = process::name_within(events);
        let looks: Vec<_> = open.iter().map(|index| self.ports.store.events(process::question(&events[*index]))).collect();
        let answers: Vec<Vec<StoredEvent>> = iter(looks).buffered(LOOKS).try_collect().await?;
        let (now, mut soon) = (self.now(), None);
        for (index, later) in open.into_iter().zip(answers) {
            let start = &mut events[index];
            if process::answer(start, &later, now) {
                soon = Some(soon.map_or(start.place, |soon: u64| soon.min(start.place)));
            }
        }
        Ok(soon)
    }

    /// An event as it goes over the wire. What is forgotten after a while says when: heartbeats, and nothing else.
    pub fn event_wire(&self, event: &Event) -> Value {
        let mut wire = event.to_wire(&self.config.events);
        if !event.kind.is_chained() {
            wire["ttl"] = event.at.plus_ms(i64::from(self.config.retention.heartbeat_days) * DAY_MS).seconds().into();
        }
        wire
    }
}

/// As far as anybody sees at once.
const fn sight(trail: bool) -> Sight {
    Sight { owner: None, trail, most_looked_at: MOST_LOOKED_AT, most_bytes: PAGE_BYTES }
}
