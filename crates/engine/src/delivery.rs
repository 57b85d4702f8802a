//! Tells people when what happened cannot be handed on to somebody outside, and when it can again. Whoever hands it on knows how that goes; of several servers one
//! does it at a time, and only that one says anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::Engine;

const EVERY: Duration = Duration::from_secs(60);
/// An earlier start, or another server, may have left an incident.
const UNKNOWN: u8 = 2;

/// How handing on goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Another server does it, or nothing was handed on yet.
    Elsewhere,
    /// It works.
    Works,
    /// It failed last time, and why.
    Fails(String),
}

/// The agent.
pub struct DeliveryWatch {
    engine: Arc<Engine>,
    part: &'static str,
    look: Box<dyn Fn() -> Delivery + Send + Sync>,
    /// Whether it failed when people were last to be told: 0, 1, or [`UNKNOWN`].
    was_failing: AtomicU8,
}

impl DeliveryWatch {
    /// A watch over one part of the platform, which `look` asks.
    pub fn new(engine: Arc<Engine>, part: &'static str, look: impl Fn() -> Delivery + Send + Sync + 'static) -> Self {
        Self { engine, part, look: Box::new(look), was_failing: AtomicU8::new(UNKNOWN) }
    }

    /// Looks every minute, until dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.turn().await;
        }
    }

    /// Looks once. That it fails is an incident, which is over when it works.
    pub async fn turn(&self) {
        let failed = match (self.look)() {
            Delivery::Elsewhere => {
                self.was_failing.store(UNKNOWN, Ordering::Relaxed);
                return;
            }
            Delivery::Works => None,
            Delivery::Fails(why) => Some(format!("events cannot be delivered to {}: {why}", self.part)),
        };
        let is_failing = u8::from(failed.is_some());
        if self.was_failing.swap(is_failing, Ordering::Relaxed) == is_failing {
            return;
        }
        if let Err(error) = self.engine.note_delivery(self.part, failed).await {
            self.was_failing.store(UNKNOWN, Ordering::Relaxed);
            tracing::warn!(%error, part = self.part, "an incident about event delivery cannot be recorded");
        }
    }
}
