//! What the program does: executions, locks, logs, keys, and the agents that keep all of it true. Knows ports, never adapters.

mod access;
mod admission;
mod alerts;
mod attendance;
mod attention;
mod audit;
mod auditor;
mod backlog;
mod claim;
mod config;
mod cost;
mod delivery;
mod denial;
mod directory;
mod dispatcher;
mod drain;
mod error;
mod event;
mod execution;
mod explain;
mod follow;
mod group;
mod health;
mod holding;
mod hub;
mod image;
mod incident;
mod job;
mod job_event;
mod key;
mod keymaker;
mod lease;
mod line;
mod log;
mod material;
mod notice;
mod overrun;
mod people;
mod plan;
mod platform;
mod playbook;
mod pruner;
mod queue;
mod reaper;
mod reconcile;
mod recovery;
mod repeat;
mod request;
mod rule;
mod search;
mod secret;
mod signing;
mod subject;
mod terms;
mod token;
mod trace;
mod uid_guard;
mod wait;
mod worker;

use std::sync::{Arc, OnceLock};

use runvoy_model::id::{LeaseId, StepId};
use runvoy_model::key::key_hash;
use runvoy_model::step::{Actor, Audit, Authority, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::cost::CostStore;
use runvoy_ports::job::JobStore;
use runvoy_ports::lease::Slots;
use runvoy_ports::log::LogStore;
use runvoy_ports::memory::MemoryBudget;
use runvoy_ports::record::RecordStore;
use runvoy_ports::roster::Roster;
use runvoy_ports::seal::SealKeys;
use runvoy_ports::signing::SigningKeys;
use runvoy_ports::store::ExecutionStore;
use runvoy_ports::trail::AuditTrail;

pub use crate::access::{Caller, Credential, Origin};
pub use crate::alerts::{AlertStanding, Alerts};
pub use crate::attendance::RollCall;
pub use crate::attention::Ear;
pub use crate::audit::{AuditFilter, AuditPage};
pub use crate::auditor::Auditor;
pub use crate::claim::ClaimedKey;
pub use crate::config::{Config, HealthConfig, Predecessors, RetentionConfig, RunLimits};
pub use crate::cost::{CostBy, CostCounter, CostReport, CostRow};
pub use crate::delivery::{Delivery, DeliveryWatch};
pub use crate::directory::Seen;
pub use crate::dispatcher::Dispatcher;
pub use crate::drain::DrainedWorker;
pub use crate::error::EngineError;
pub use crate::event::{EventFilter, EventFollower, ShownEvent};
pub use crate::execution::{ListFilter, ListPage};
pub use crate::explain::{ACTIONS, ExplainQuery, Explained, Say, action_word};
pub use crate::follow::{Followed, Follower};
pub use crate::health::HealthWatch;
pub use crate::image::{ImageRequest, KnownImage, RegisteredImage};
pub use crate::job::{JobFilter, JobRequest, SubmittedJob, TaskChange, TaskRequest};
pub use crate::job_event::{Covers, Derived, DerivedEvent, Effect, JobEventFilter, JobEventFollower, PublishedEvent, StreamedEvent};
pub use crate::key::{KeyRequest, MadeKey};
pub use crate::keymaker::Keymaker;
pub use crate::lease::{Holder, LeaseAsk, LocalLeases};
pub use crate::line::{Line, LineKey, Turn};
pub use crate::overrun::FOREIGN_RUNNER;
pub use crate::people::{Account, InviteRequest, Invited, RevokedUser};
pub use crate::plan::{DryRun, Plan};
pub use crate::platform::platform_line;
pub use crate::playbook::PlaybookRun;
pub use crate::pruner::Pruner;
pub use crate::queue::{DeadPlace, MOST_COUNTED, RedrivePlace, RedriveReport, Wanted};
pub use crate::reaper::Reaper;
pub use crate::reconcile::{Area, Finding, Reconciliation, Remedy};
pub use crate::repeat::DigestKey;
pub use crate::request::RunRequest;
pub use crate::secret::{Rotation, SecretChange, SecretRequest};
pub use crate::subject::{Subject, command_line};
pub use crate::terms::{Bars, QueueState};
pub use crate::token::token_fingerprint;
pub use crate::trace::Trace;
pub use crate::worker::{KnownWorker, MAY_SUBMIT, MadeWorker, WorkerRequest};

/// Everything the engine needs from the world.
#[derive(Clone)]
pub struct Ports {
    /// Executions, locks, events.
    pub store: Arc<dyn ExecutionStore>,
    /// Jobs.
    pub jobs: Arc<dyn JobStore>,
    /// What is too large for the store.
    pub blobs: Arc<dyn BlobStore>,
    /// What people manage.
    pub records: Arc<dyn RecordStore>,
    /// Who works here.
    pub roster: Arc<dyn Roster>,
    /// The counters of costs.
    pub costs: Arc<dyn CostStore>,
    /// The trail of events, to be proved.
    pub trail: Arc<dyn AuditTrail>,
    /// The keys of secrets.
    pub seal_keys: Arc<dyn SealKeys>,
    /// The keys of task tokens.
    pub signing_keys: Arc<dyn SigningKeys>,
    /// What digests of values are made with.
    pub digest_key: DigestKey,
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
    directory: directory::Directory,
    key_uses: access::KeyUses,
    keyring: signing::Keyring,
    attendance: attendance::Attendance,
    drains: drain::Drains,
    denials: denial::Denials,
    searches: search::Searches,
    backlogs: backlog::Backlogs,
    alerts: alerts::AlertDesk,
    desk: job_event::Desk,
    /// Held while events are added to the counters of costs.
    counting: tokio::sync::Mutex<()>,
    /// Something moved in a job.
    dispatcher: tokio::sync::Notify,
    /// Held by whoever changes a secret or the keys that secrets are sealed with.
    secret_writes: tokio::sync::Mutex<()>,
    /// What inputs of tasks take on their way to workers, and outputs on their way from the worker inside the server.
    memory: MemoryBudget,
    slots: OnceLock<Arc<dyn Slots>>,
    worker: runvoy_model::command::Worker,
}

impl Engine {
    /// An engine over these ports. `worker` is the in-process worker's identity for this start.
    pub fn new(ports: Ports, config: Config, worker: runvoy_model::command::Worker) -> Arc<Self> {
        let admission = admission::Admission::new(config.max_submits_at_once);
        let denials = denial::Denials::new(config.denials_per_minute);
        let desk = job_event::Desk::new(ports.clock.now());
        Arc::new(Self {
            ports,
            config,
            hub: hub::Hub::default(),
            admission,
            directory: directory::Directory::default(),
            key_uses: access::KeyUses::default(),
            keyring: signing::Keyring::default(),
            attendance: attendance::Attendance::default(),
            drains: drain::Drains::default(),
            denials,
            searches: search::Searches::default(),
            backlogs: backlog::Backlogs::default(),
            alerts: alerts::AlertDesk::default(),
            desk,
            counting: tokio::sync::Mutex::default(),
            dispatcher: tokio::sync::Notify::new(),
            secret_writes: tokio::sync::Mutex::default(),
            memory: MemoryBudget::default(),
            slots: OnceLock::new(),
            worker,
        })
    }

    /// Tells the engine of the worker that lives in the same process, so that a submit can go to it at once.
    pub fn attach_worker(&self, slots: Arc<dyn Slots>) {
        let attached = self.slots.set(slots);
        debug_assert!(attached.is_ok(), "one worker lives in a server");
    }

    /// The memory budget of inputs and outputs, for the worker that lives in the same process.
    pub const fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Another process may have left work: a hint, like every wake-up.
    pub fn wake_worker(&self) {
        self.hub.work();
    }

    /// The settings it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The wall clock, as the engine sees it.
    pub fn now(&self) -> UnixMs {
        self.ports.clock.now()
    }

    /// The machine's wall clock, by which credentials expire.
    pub fn machine_now(&self) -> UnixMs {
        self.ports.clock.machine_now()
    }

    /// The later of both, from which credentials are given their time: neither the machine's clock
    /// nor the time of a step ends them early.
    pub(crate) fn latest_now(&self) -> UnixMs {
        self.now().max(self.machine_now())
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

    /// A step that the same agent of another server on the same store may be about to make too: there its name is its id, so that whoever comes
    /// second writes nothing.
    fn agent_step(&self, part: &'static str, name: &str) -> Step {
        let step = self.system_step(part);
        if !self.config.shares_store() {
            return step;
        }
        let digest = key_hash(&format!("{part}: {name}"));
        Step { id: StepId::from_bytes(*digest.first_chunk().expect("a digest is longer")), ..step }
    }

    /// A step of whoever calls. The store looks at their right to it once more: it may have ended since they were admitted.
    fn user_step(&self, caller: &Caller, action: &str) -> Step {
        Step {
            id: self.step_id(),
            at: self.now(),
            actor: Actor::User { email: caller.email.clone() },
            request_id: caller.request_id.clone(),
            audit: Some(Audit { action: action.to_owned(), from: caller.from.clone(), ..Audit::default() }),
            authority: Some(Authority {
                email: caller.email.clone(),
                key_hash: caller.key_hash,
                role: caller.role,
                may_submit: caller.may_submit,
            }),
        }
    }
}
