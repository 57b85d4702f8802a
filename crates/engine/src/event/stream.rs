//! Following the event log: what is there from a place on, then what comes, without gap or duplicate. A follower holds a place and reads the store at
//! its own pace; a hint wakes it, and it looks every second all the same. The start of an attempt waits a moment for the process that it names, and what is behind it too.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::time::UnixMs;
use runvoy_ports::process::NAMED_WITHIN_MS;
use runvoy_ports::store::{EventPage, EventQuery, Sight, StoredEvent};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{EventFilter, sight};
use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;

/// How many events are read at once.
const PAGE: usize = 200;
/// Where much is written, a follower looks no more often than this.
const GATHER: Duration = Duration::from_millis(20);

/// One follower of the event log.
pub struct EventFollower {
    engine: Arc<Engine>,
    hints: watch::Receiver<u64>,
    /// What is asked for; nothing of another tenant ever comes.
    asked: Option<(EventQuery, Sight)>,
    place: u64,
    /// The last look came to the end.
    caught_up: bool,
    /// Since when a start waits for its process.
    waits_since: Option<Instant>,
    /// Up to this place no start is waited for any more.
    waited_to: u64,
}

impl Engine {
    /// Follows events: after `filter.after`, else from the first at `filter.from` or later on, else from now on.
    pub async fn follow_events(self: &Arc<Self>, caller: &Caller, filter: &EventFilter) -> Result<EventFollower, EngineError> {
        if filter.to.is_some() {
            return Err(EngineError::invalid("to", "cannot be given for a stream of events"));
        }
        if filter.descending {
            return Err(EngineError::invalid("order", "must be asc for a stream of events, or left out"));
        }
        let asked = self.scoped(caller, &EventFilter { from: None, after: None, limit: PAGE, ..filter.clone() }).await?;
        let hints = self.hub.events();
        let place = self.first_place(filter.after, filter.from).await?;
        Ok(EventFollower { engine: Arc::clone(self), hints, asked, place, caught_up: false, waits_since: None, waited_to: 0 })
    }

    /// The place before the first event of a stream. From there on places alone count: an event that a clock set back has dated earlier is not left out.
    async fn first_place(&self, after: Option<u64>, from: Option<UnixMs>) -> Result<u64, EngineError> {
        let newest = EventQuery { descending: true, limit: 1, ..EventQuery::default() };
        let end = self.ports.store.seen_events(newest, sight(true)).await?.looked;
        match (after, from) {
            (Some(after), _) if after > end => {
                Err(EngineError::invalid("cursor", "lies beyond the end of the events, as after a restore: start without it"))
            }
            (Some(after), _) => Ok(after),
            (None, None) => Ok(end),
            (None, Some(_)) => {
                let first = EventQuery { from, limit: 1, ..EventQuery::default() };
                let found = self.ports.store.events(first).await?;
                Ok(found.first().map_or(end, |first| first.place - 1))
            }
        }
    }
}

impl EventFollower {
    /// Everything up to this place was handed over: another follower may go on after it.
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// What comes next. It may be nothing: then about a second has passed, or much was looked at. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<StoredEvent>, EngineError> {
        if self.caught_up {
            tokio::select! {
                Ok(()) = self.hints.changed() => sleep(GATHER).await,
                () = sleep(self.engine.config.poll) => {}
            }
        }
        // Whatever is written from here on wakes the next wait.
        self.hints.borrow_and_update();
        let Some((query, sight)) = &self.asked else {
            self.caught_up = true;
            return Ok(Vec::new());
        };
        let query = EventQuery { after: Some(self.place), ..query.clone() };
        let mut page = self.engine.ports.store.seen_events(query, sight.clone()).await?;
        let soon = self.engine.name_processes(&mut page.events).await?;
        self.hold_back(soon, &mut page);
        (self.place, self.caught_up) = (self.place.max(page.looked), !page.more);
        Ok(page.events)
    }

    /// Leaves out what is at and behind a start whose process may be told soon, unless that was waited for.
    fn hold_back(&mut self, soon: Option<u64>, page: &mut EventPage) {
        let Some(start) = soon.filter(|start| *start > self.waited_to) else {
            self.waits_since = None;
            return;
        };
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= Duration::from_millis(NAMED_WITHIN_MS.unsigned_abs()) {
            (self.waited_to, self.waits_since) = (page.looked, None);
            return;
        }
        page.events.retain(|stored| stored.place < start);
        (page.looked, page.more) = (start - 1, false);
    }
}
