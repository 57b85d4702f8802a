//! What an installation on AWS is called and how it is laid out.

use std::time::Duration;

use runvoy_model::event::EventScope;

/// One installation: everything it owns carries its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Before the name of every table, and of what else is made where nothing else is said.
    pub prefix: String,
    /// Before the name of every queue: `airunner-{env}-` in the seed's pattern.
    pub queue_prefix: String,
    /// A message that was received so often and never removed goes to the dead-letter queue: a net under our own attempts, which count by
    /// themselves. 1,000 at most.
    pub max_receives: u16,
    /// An execution whose record cannot be read is given up when leases have met it several times and for so long.
    pub give_up_after: Duration,
    /// The bucket for large specs, sealed logs and blobs.
    pub bucket: String,
    /// The bus that events are published to.
    pub event_bus: String,
    /// The parts of event keys that come from configuration.
    pub scope: EventScope,
    /// How events are laid out.
    pub layout: EventLayout,
    /// Every index by time is cut into so many parts a day, so that no part takes all writes.
    pub shards: u32,
    /// The log group of the mirror; `None` mirrors nothing.
    pub log_group: Option<String>,
    /// Before the name of every stream of the mirror.
    pub log_stream_prefix: String,
    /// How long events are kept where that is limited, in days.
    pub events_ttl_days: Option<u32>,
    /// The table of executions, where it is not named after the prefix.
    pub executions_table: Option<String>,
    /// The table of events, where it is not named after the prefix.
    pub events_table: Option<String>,
}

impl Config {
    /// An installation under this prefix, with everything named after it.
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            queue_prefix: format!("{prefix}-"),
            max_receives: 1000,
            give_up_after: Duration::from_secs(60),
            bucket: format!("{prefix}-data"),
            event_bus: format!("{prefix}-events"),
            scope: EventScope::default(),
            layout: EventLayout::Seed,
            shards: 4,
            log_group: Some("/runvoy/executions".to_owned()),
            log_stream_prefix: "exec/".to_owned(),
            events_ttl_days: None,
            executions_table: None,
            events_table: None,
        }
    }
}

/// How the table of events serves other readers than this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLayout {
    /// Also one item an event under the tenant, with the seven indexes: what readers of the event contract expect. A tenant's events share a
    /// partition, which takes a few hundred a second.
    Seed,
    /// Only by entity and by place: cheaper by far, and no partition takes all.
    Sharded,
}
