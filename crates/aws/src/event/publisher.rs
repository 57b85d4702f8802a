//! Tells the bus of every event, from the front of the log, at least once. A mark says how far: it moves behind what the bus has taken, so that a crash
//! repeats a little and loses nothing. Several servers may run it; a lease lets one work at a time and spares the bus most repeats. The start of an attempt
//! waits a moment for the process that it names, and what is behind it too.

pub(in crate::event) mod bus;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::process;
use runvoy_ports::store::{EventQuery, StoredEvent};

use self::bus::{Bus, EventBridge, Letter};
use super::{EventLog, contract, mark, overflow, row};
use crate::clients::Clients;
use crate::config::{Config, EventLayout};
use crate::dynamo::{Dynamo, pause};
use crate::fault::Fault;

/// So often the log is looked at where nothing happens.
const EVERY: Duration = Duration::from_secs(1);
/// The turn to publish is kept so long.
const TURN_MS: i64 = 10_000;
/// So many events are published in one go, and then the mark moves.
const AT_ONCE: usize = 100;
/// So many items are put at the same time.
const PUTS: usize = 8;
/// How many starts are looked up at the same time.
const LOOKS: usize = 8;
/// So many calls to the bus are under way at the same time; it keeps no order among events anyway.
const CALLS: usize = 4;
/// What the bus did not take is given to it again so often, before the next go.
const ROUNDS: u32 = 5;

/// The agent.
pub struct Publisher {
    log: EventLog,
    bus: Box<dyn Bus>,
    s3: aws_sdk_s3::Client,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    /// Who it is among the servers.
    name: String,
    last_error: Mutex<Option<String>>,
    /// How its last turn went, if it had the last one.
    handed_on: Mutex<Option<Result<(), String>>>,
}

impl Publisher {
    /// The publisher of an installation; `name` tells it from those of other servers.
    pub fn new(clients: &Clients, config: Arc<Config>, clock: Arc<dyn Clock>, name: String) -> Self {
        let bus = EventBridge::new(clients.events.clone(), &config);
        Self::with_bus(clients, config, clock, name, Box::new(bus))
    }

    pub(super) fn with_bus(clients: &Clients, config: Arc<Config>, clock: Arc<dyn Clock>, name: String, bus: Box<dyn Bus>) -> Self {
        let log = EventLog::new(Dynamo::new(clients, Arc::clone(&config)));
        Self { log, bus, s3: clients.s3.clone(), config, clock, name, last_error: Mutex::new(None), handed_on: Mutex::new(None) }
    }

    /// Publishes for ever.
    pub async fn run(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            let turn = self.turn().await;
            *self.last_error.lock() = turn.as_ref().err().map(ToString::to_string);
            match turn {
                Ok(published) => {
                    failures = 0;
                    if published == 0 {
                        tokio::time::sleep(EVERY).await;
                    }
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, failures, "events cannot be published now; nothing is lost, and it is tried again");
                    tokio::time::sleep(EVERY * 2_u32.pow(failures.min(5))).await;
                }
            }
        }
    }

    /// Why the last turn failed, if it did.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }

    /// How handing on went last; `None` where somebody else has the turn.
    pub fn handed_on(&self) -> Option<Result<(), String>> {
        self.handed_on.lock().clone()
    }

    /// Publishes some of what was not published yet; tells how many. None where somebody else has the turn.
    pub async fn turn(&self) -> Result<usize, Fault> {
        let now = self.clock.now();
        let has_turn = mark::take_turn(&self.log.dynamo, &self.name, now, now.plus_ms(TURN_MS)).await;
        if !matches!(has_turn, Ok(true)) {
            *self.handed_on.lock() = None;
            return has_turn.map(|_| 0);
        }
        let published = self.publish().await;
        *self.handed_on.lock() = Some(published.as_ref().map(|_| ()).map_err(ToString::to_string));
        published
    }

    /// Publishes some of what was not published yet, under its turn.
    async fn publish(&self) -> Result<usize, Fault> {
        let published = mark::published(&self.log.dynamo).await?;
        let (mut events, reached) = self.log.further(published, AT_ONCE).await?;
        if reached == published {
            return Ok(0);
        }
        let reached = self.name_processes(&mut events).await?.unwrap_or(reached);
        let letters = self.prepare(&events).await?;
        let (taken, failed) = self.send(&letters).await;
        // Whatever is before the first that was not taken is done.
        let done = letters.iter().zip(&taken).find(|(_, taken)| !**taken).map_or(reached, |(letter, _)| letter.place.saturating_sub(1));
        if done > published {
            mark::publish(&self.log.dynamo, done).await?;
        }
        failed.map_or(Ok(letters.len()), Err)
    }

    /// Names the processes of starts. A start whose process may be told soon is left for a later turn, with everything behind it; then the place before it.
    async fn name_processes(&self, events: &mut Vec<StoredEvent>) -> Result<Option<u64>, Fault> {
        let open = process::name_within(events);
        let looks: Vec<_> = open.iter().map(|index| self.log.later(process::question(&events[*index]))).collect();
        let (mut answers, now) = (stream::iter(looks).buffered(LOOKS), self.clock.now());
        for index in open {
            let Some(later) = answers.try_next().await? else { break };
            if process::answer(&mut events[index], &later, now) {
                let place = events[index].place;
                events.truncate(index);
                return Ok(Some(place.saturating_sub(1)));
            }
        }
        Ok(None)
    }

    /// Puts what readers of the table find before they hear of it, and gives back what the bus is told.
    async fn prepare(&self, events: &[StoredEvent]) -> Result<Vec<Letter>, Fault> {
        let received = self.clock.now();
        // Made before they are polled: a closure over borrowed events would not be general enough for an agent.
        let letters: Vec<_> = events.iter().map(|stored| self.letter(stored, received)).collect();
        stream::iter(letters).buffered(PUTS).try_collect().await
    }

    async fn letter(&self, StoredEvent { place, event }: &StoredEvent, received: UnixMs) -> Result<Letter, Fault> {
        let carried = overflow::carried(&self.config, event);
        if let Some((key, text)) = carried.overflow {
            overflow::put(&self.s3, &self.config, &key, text).await?;
        }
        if self.config.layout == EventLayout::Seed {
            contract::save(&self.log.dynamo, &self.config, &carried.detail, received).await?;
        }
        Ok(Letter { place: *place, at: event.at, detail: carried.detail.to_string() })
    }

    async fn call<'b>(&self, letters: &[Letter], batch: &'b [usize]) -> (&'b [usize], Result<Vec<Option<String>>, Fault>) {
        let asked: Vec<&Letter> = batch.iter().map(|at| &letters[*at]).collect();
        (batch, self.bus.put(&asked).await)
    }

    /// Which of these the bus took, and why it did not take the others.
    async fn send(&self, letters: &[Letter]) -> (Vec<bool>, Option<Fault>) {
        let mut taken = vec![false; letters.len()];
        for round in 0..=ROUNDS {
            if round > 0 {
                pause(round).await;
            }
            let left: Vec<usize> = (0..letters.len()).filter(|at| !taken[*at]).collect();
            let calls: Vec<_> = bus::batches(letters, &left).map(|batch| self.call(letters, batch)).collect();
            let (mut failed, mut is_away) = (None, false);
            for (batch, answer) in stream::iter(calls).buffered(CALLS).collect::<Vec<_>>().await {
                match answer {
                    Ok(errors) => {
                        for (at, error) in batch.iter().zip(errors) {
                            taken[*at] = error.is_none();
                            failed = failed.or_else(|| error.map(bus::refused));
                        }
                    }
                    Err(fault) => (failed, is_away) = (Some(fault), true),
                }
            }
            if failed.is_none() || is_away || round == ROUNDS {
                return (taken, failed);
            }
        }
        (taken, None)
    }
}

impl EventLog {
    /// Events after a place, in order, and up to where there are no others.
    async fn further(&self, after: u64, max: usize) -> Result<(Vec<StoredEvent>, u64), Fault> {
        let query = EventQuery { after: Some(after), limit: max, ..EventQuery::default() };
        let mut walk = self.walk(query).await?;
        let mut found = Vec::new();
        while let Some(events) = walk.next(max - found.len()).await? {
            found.extend(events);
            if found.len() >= max {
                found.truncate(max);
                let reached = found.last().map_or(after, |stored: &StoredEvent| stored.place);
                return Ok((found, reached));
            }
        }
        let end = walk.end.max(after);
        Ok((found, end))
    }

    /// Events of an entity after a place. Those that have no place yet are not looked for: a later turn finds them.
    async fn later(&self, query: EventQuery) -> Result<Vec<StoredEvent>, Fault> {
        let Some(entity) = &query.entity else { return Ok(Vec::new()) };
        let places = (query.after.unwrap_or(0).saturating_add(1), u64::MAX);
        let rows = self.rows_of(entity, places, false, query.limit).await?;
        rows.iter().map(row::decode).collect()
    }
}
