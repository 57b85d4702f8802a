//! The engine's settings. Defaults here are the defaults of the program; the edge only overrides them.

use std::time::Duration;

use runvoy_model::cost::{Rates, Size};
use runvoy_model::event::EventScope;
use runvoy_model::health::Thresholds;
use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::spec::{ContainerSpec, DEFAULT_QUEUE};

/// The CPU units that an attempt is charged for where its image sets none.
const ONE_VCPU: u32 = 1024;

/// What the engine can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the page of an execution is: its base address. Empty is the server's own address, as whoever asks has reached it.
    pub web_url: String,
    /// The server's own address, for those who are told of a page without having asked. Empty where there is none that others could use.
    pub own_url: String,
    /// The address under which others know the server, where that is another one. Empty where it is not.
    pub public_url: String,
    /// The queues that the in-process worker serves.
    pub queues: Vec<Name>,
    /// Tokens that workers sign for themselves must be for one of these, or for an address of the server.
    pub worker_audience: Vec<String>,
    /// How many executions the in-process worker runs at once; 0 without one.
    pub concurrency: usize,
    /// How long a lease of the in-process worker lasts.
    pub lease_ttl_ms: u64,
    /// How long the reaper watches a lease beyond its length.
    pub reap_margin_ms: u64,
    /// How long a kill may stay unconfirmed.
    pub kill_confirm_ms: u64,
    /// Whoever waits for a wake-up also looks this often: what another process writes is seen no sooner.
    pub poll: Duration,
    /// Which in-process workers are known to be gone.
    pub predecessors: Predecessors,
    /// More submits than this at once are turned away.
    pub max_submits_at_once: usize,
    /// No user may have more executions waiting than this; 0 is any number.
    pub max_waiting_per_user: u64,
    /// No more executions may wait in a queue; 0 is any number.
    pub max_waiting_per_queue: u64,
    /// So many refusals of one user are kept as events in a minute; beyond that they are turned away. 0 is any number.
    pub denials_per_minute: u32,
    /// How what runs is looked at.
    pub health: HealthConfig,
    /// People get no more than one message in this time.
    pub alert_every: Duration,
    /// What may be forgotten, and when.
    pub retention: RetentionConfig,
    /// Days after which another key signs task tokens; 0 is never.
    pub token_key_days: u32,
    /// What local runs cost.
    pub rates: Rates,
    /// What the in-process worker holds a run to.
    pub limits: RunLimits,
    /// The parts of event keys that come from configuration.
    pub events: EventScope,
    /// Commands would run as the server's own user.
    pub shares_uid: bool,
    /// Every execution runs as a user of its own.
    pub uid_per_execution: bool,
    /// That is accepted although there is more than one user.
    pub allow_shared_uid: bool,
    /// Repositories may be cloned from literal addresses of this machine and of private networks.
    pub git_private: bool,
}

/// The in-process workers whose leases a start may end at once, because their commands are known to be gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Predecessors {
    /// The store is this server's alone: all but its own.
    #[default]
    All,
    /// Other servers work on the same store: only those of this server's earlier starts. Whoever else has not been heard of is judged by the
    /// reaper's watch, like any worker elsewhere.
    These(Vec<WorkerId>),
}

impl Predecessors {
    /// Whether this in-process worker, which is not that of this very start, is known to be gone.
    pub(crate) fn contains(&self, worker: WorkerId) -> bool {
        match self {
            Self::All => true,
            Self::These(gone) => gone.contains(&worker),
        }
    }
}

/// What a run is held to, for whoever wants to know before it runs. What is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunLimits {
    /// CPU units: 1024 are one vCPU.
    pub cpu_units: Option<u32>,
    /// MiB of memory.
    pub memory_mib: Option<u32>,
    /// Processes at once.
    pub processes: Option<u64>,
    /// Bytes of log.
    pub log_bytes: Option<u64>,
}

/// How what runs is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthConfig {
    /// How often.
    pub every: Duration,
    /// From when on something is worth a look.
    pub thresholds: Thresholds,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self { every: Duration::from_secs(5 * 60), thresholds: Thresholds::default() }
    }
}

/// What may be forgotten, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Days that logs are kept.
    pub log_days: u32,
    /// Days that heartbeats are kept.
    pub heartbeat_days: u32,
}

impl Config {
    /// Whether other servers work on the same store.
    pub(crate) const fn shares_store(&self) -> bool {
        matches!(self.predecessors, Predecessors::These(_))
    }

    /// The base address of pages, for those who have not asked.
    pub(crate) fn pages(&self) -> &str {
        [&self.web_url, &self.public_url].into_iter().find(|url| !url.is_empty()).unwrap_or(&self.own_url)
    }

    /// The resources that an attempt is charged for: those of its image. Where the image sets none: one vCPU, and the memory that a run may use.
    pub(crate) fn size(&self, container: Option<&ContainerSpec>) -> Size {
        let (cpu, memory) = container.map_or((None, None), |container| (container.cpu, container.memory));
        Size { cpu_units: cpu.unwrap_or(ONE_VCPU), memory_mib: memory.or(self.limits.memory_mib).unwrap_or(0) }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            web_url: String::new(),
            own_url: String::new(),
            public_url: String::new(),
            queues: vec![Name::new(DEFAULT_QUEUE).expect("a constant name")],
            worker_audience: vec!["runvoy".to_owned()],
            concurrency: 8,
            lease_ttl_ms: 30_000,
            reap_margin_ms: 10_000,
            kill_confirm_ms: 60_000,
            poll: Duration::from_secs(1),
            predecessors: Predecessors::All,
            max_submits_at_once: 2_048,
            max_waiting_per_user: 100_000,
            max_waiting_per_queue: 1_000_000,
            denials_per_minute: 60,
            health: HealthConfig::default(),
            alert_every: Duration::from_secs(60),
            retention: RetentionConfig { log_days: 30, heartbeat_days: 7 },
            token_key_days: 30,
            rates: Rates::default(),
            limits: RunLimits::default(),
            events: EventScope::default(),
            shares_uid: true,
            uid_per_execution: false,
            allow_shared_uid: false,
            git_private: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_charged_for_its_image_else_for_its_limits() {
        let size = |cpu_units, memory_mib| Size { cpu_units, memory_mib };
        let limits = RunLimits { memory_mib: Some(2_048), ..RunLimits::default() };
        let config = Config { limits, ..Config::default() };
        assert_eq!(config.size(None), size(1_024, 2_048));
        let container = ContainerSpec { cpu: Some(256), memory: Some(512), ..ContainerSpec::default() };
        assert_eq!(config.size(Some(&container)), size(256, 512));
        assert_eq!(config.size(Some(&ContainerSpec::default())), size(1_024, 2_048));
        assert_eq!(Config::default().size(None), size(1_024, 0));
    }
}
