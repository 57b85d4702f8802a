//! What people manage: users and keys, groups, rules, images, secrets, playbooks. They change by steps of the same store as executions do; this
//! port reads them.

use async_trait::async_trait;
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::record::{Kind, Record};
use runvoy_model::time::UnixMs;

use crate::store::StoreError;

/// Which incidents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncidentQuery {
    /// Those that stand like this.
    pub phase: Phase,
    /// Of this kind only.
    pub kind: Option<IncidentKind>,
    /// No more than so many: the worst, and of these the oldest.
    pub limit: usize,
}

/// What is known of an incident without reading it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentMark {
    /// The name of its record.
    pub name: String,
    /// What is wrong.
    pub kind: IncidentKind,
    /// Since when.
    pub began_at: UnixMs,
    /// Since when it stands as it does.
    pub since: UnixMs,
}

/// The records of the transactional store.
#[async_trait]
pub trait RecordStore: Send + Sync {
    /// One record; `None` if it is not there or was removed.
    async fn record(&self, kind: Kind, name: &str) -> Result<Option<Record>, StoreError>;

    /// Every record of a kind that was not removed, by name.
    async fn records(&self, kind: Kind) -> Result<Vec<Record>, StoreError>;

    /// Incidents, the worst first, the oldest of a kind first.
    async fn incidents(&self, query: IncidentQuery) -> Result<Vec<IncidentMark>, StoreError>;

    /// How many incidents stand how, without those of which there are none.
    async fn incident_counts(&self) -> Result<Vec<(Phase, IncidentKind, u64)>, StoreError>;

    /// A number that is another one after every change of what any record says, before that change is acknowledged: what was read while it
    /// stood is still true. Notes ([`runvoy_model::change::Change::is_note`]) leave it. `None` where others change the records too; then nothing may be remembered.
    fn authority(&self) -> Option<u64>;

    /// Remembers that a key was used, to the minute. A hint: it may be lost.
    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError>;

    /// When these keys were last used, as far as is known.
    async fn key_uses(&self, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, StoreError>;
}
