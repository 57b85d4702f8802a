//! The log of events on an emulator: every test has tables of its own.

mod drain;
mod page;
mod publish;
mod trail;

use std::sync::Arc;

use runvoy_conformance::chance::Chance;
use runvoy_model::chain::ChainHead;
use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_model::id::{Id, StepId};
use runvoy_model::time::UnixMs;
use serde_json::json;

use super::EventLog;
use super::journal::{follow, journal_items};
use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::emulator::{Emulator, prefix};
use crate::setup::set_up;
use crate::table::Table;

const KEY: runvoy_model::chain::AuditKey = runvoy_model::chain::AuditKey::new([0x5a; 32]);

/// An installation of a test's own.
struct Stand {
    clients: Clients,
    config: Arc<Config>,
    dynamo: Dynamo,
}

impl Stand {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(&prefix());
        change(&mut config);
        let clients = Clients::new(&Emulator::ministack().settings().await);
        set_up(&clients, &config).await.expect("set up");
        let config = Arc::new(config);
        Self { dynamo: Dynamo::new(&clients, Arc::clone(&config)), clients, config }
    }

    /// The log as another process would open it.
    fn log(&self) -> EventLog {
        EventLog::new(self.dynamo.clone())
    }

    /// What the transaction of a step leaves.
    async fn commit(&self, step: StepId, events: &[Event], before: &[StepId]) {
        let mut items = journal_items(step, UnixMs(0), events);
        follow(&mut items, before);
        for item in items {
            self.dynamo.put(Table::Events, item).await.expect("a step");
        }
    }
}

/// Somebody whose chain grows.
struct Subject {
    entity: Entity,
    head: ChainHead,
}

impl Subject {
    fn new(kind: EntityType, id: impl Into<String>) -> Self {
        Self { entity: Entity { kind, id: id.into() }, head: ChainHead::default() }
    }

    /// The next event about it.
    fn event(&mut self, id: Id, kind: EventType, at: UnixMs, properties: serde_json::Value) -> Event {
        let context = json!({"origin": "test"});
        let mut event = Event { id, entity: self.entity.clone(), number: 0, kind, at, context, properties, mac: [0; 32] };
        if kind.is_chained() {
            self.head = KEY.link(&self.head, &event.canonical());
            event.mac = self.head.mac;
        }
        event.number = self.head.count;
        event
    }
}

/// An id that nobody else has; those of one series rise.
fn id(series: u32, number: u64) -> Id {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..12].copy_from_slice(&series.to_be_bytes());
    bytes[15] = u8::try_from(number % 251).expect("small");
    Id::from_bytes(bytes)
}

/// An id that sorts anywhere.
fn scattered(chance: &mut Chance) -> Id {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&chance.number().to_be_bytes());
    bytes[8..].copy_from_slice(&chance.number().to_be_bytes());
    Id::from_bytes(bytes)
}
