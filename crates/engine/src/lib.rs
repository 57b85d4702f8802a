//! What the program does: executions, locks, logs, keys, and the agents that keep all of it true. Knows ports, never adapters.

mod access;
mod admission;
mod config;
mod error;
mod execution;
mod follow;
mod hub;
mod lease;
mod log;
mod platform;
mod pruner;
mod reaper;
mod recovery;
mod request;
mod wait;

use std::sync::{Arc, OnceLock};

use runvoy_model::id::{LeaseId, StepId};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::identity::IdentityStore;
use runvoy_ports::lease::Slots;
use runvoy_ports::log::LogStore;
use runvoy_ports::store::ExecutionStore;

pub use crate::access::{Caller, Credential};
pub use crate::config::{Config, RetentionConfig};
pub use crate::error::EngineError;
pub use crate::execution::ListFilter;
pub use crate::follow::{Followed, Follower};
pub use crate::lease::LocalLeases;
pub use crate::platform::platform_line;
pub use crate::pruner::Pruner;
pub use crate::reaper::Reaper;
pub use crate::request::RunRequest;

/// Everything the engine needs from the world.
#[derive(Clone)]
pub struct Ports {
    /// Executions, locks, events.
    pub store: Arc<dyn ExecutionStore>,
    /// Users and keys.
    pub identity: Arc<dyn IdentityStore>,
    /// Logs.
    pub logs: Arc<dyn LogStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
}

/// The program, without its edges.
pub struct Engine {
    ports: Ports,
    config: Config,
    hub: hub::Hub,
    admission: admission::Admission,
    keys: access::KeyCache,
    slots: OnceLock<Arc<dyn Slots>>,
    worker: runvoy_model::command::Worker,
}

impl Engine {
    /// An engine over these ports. `worker` is the in-process worker's identity for this start.
    pub fn new(ports: Ports, config: Config, worker: runvoy_model::command::Worker) -> Arc<Self> {
        let admission = admission::Admission::new(config.max_submits_at_once);
        let (hub, keys) = (hub::Hub::default(), access::KeyCache::default());
        Arc::new(Self { ports, config, hub, admission, keys, slots: OnceLock::new(), worker })
    }

    /// Tells the engine of the worker that lives in the same process, so that a submit can go to it at once.
    pub fn attach_worker(&self, slots: Arc<dyn Slots>) {
        let attached = self.slots.set(slots);
        debug_assert!(attached.is_ok(), "one worker lives in a server");
    }

    /// The settings it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The wall clock, as the engine sees it.
    pub fn now(&self) -> UnixMs {
        self.ports.clock.now()
    }

    /// The ports, for what only looks: readiness, metrics, doctor.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    fn step_id(&self) -> StepId {
        StepId(self.ports.ids.next_id())
    }

    fn lease_id(&self) -> LeaseId {
        LeaseId(self.ports.ids.next_id())
    }

    fn system_step(&self, part: &'static str) -> Step {
        Step::system(self.step_id(), self.now(), part)
    }

    fn worker_step(&self) -> Step {
        Step::worker(self.step_id(), self.now(), self.worker.id)
    }

    fn user_step(&self, caller: &Caller, action: &str) -> Step {
        Step {
            id: self.step_id(),
            at: self.now(),
            actor: Actor::User { email: caller.email.clone() },
            request_id: caller.request_id.clone(),
            audit: Some(Audit { action: action.to_owned(), from: caller.from.clone() }),
        }
    }
}
