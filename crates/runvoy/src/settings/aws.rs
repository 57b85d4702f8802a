//! What a server is told about AWS: names, mostly. Credentials are none of its settings; the SDK finds them.

use anyhow::{Result, bail};
use runvoy_model::name::Name;

/// What everything is called on AWS. What is absent is named after the prefix.
#[derive(Debug, Clone, Default)]
pub struct AwsSettings {
    /// Before every name.
    pub prefix: String,
    /// The region, where the SDK shall not look for it.
    pub region: Option<String>,
    /// An emulator.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: Option<String>,
    /// The bus.
    pub event_bus: Option<String>,
    /// Before the name of every queue.
    pub queue_prefix: Option<String>,
    /// Where these queues must be.
    pub queue_urls: Vec<(Name, String)>,
    /// The table of executions.
    pub executions_table: Option<String>,
    /// The table of events.
    pub events_table: Option<String>,
    /// How events are laid out.
    pub event_layout: EventLayout,
    /// Days that copies of events are kept; 0 is for ever.
    pub events_ttl_days: u32,
    /// The group that logs are mirrored to.
    pub log_group: Option<String>,
    /// Before the name of every stream.
    pub log_stream_prefix: String,
    /// Parts of each day.
    pub shards: u32,
    /// What is missing is made at the start.
    pub set_up: bool,
}

/// How events are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventLayout {
    /// With the seven indexes of the event contract.
    #[default]
    Seed,
    /// By entity only.
    Sharded,
}

const LONGEST_PREFIX: usize = 40;
const MOST_SHARDS: u32 = 64;

impl AwsSettings {
    /// Refuses what AWS would refuse later, and with worse words.
    pub fn check(&self) -> Result<()> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let prefix = &self.prefix;
        if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.chars().all(is_word) {
            bail!("aws.prefix: up to {LONGEST_PREFIX} lower-case letters, digits and dashes, not `{prefix}`");
        }
        if ["aws", "ssm"].iter().any(|taken| prefix.starts_with(taken)) {
            bail!("aws.prefix: names that begin with aws or ssm are reserved by AWS");
        }
        if !(1..=MOST_SHARDS).contains(&self.shards) {
            bail!("aws.shards: from 1 to {MOST_SHARDS}");
        }
        Ok(())
    }
}
