//! What people manage: users and keys, groups, rules, images, secrets, playbooks. They change by steps of the same store as executions do; this
//! port reads them.

use std::collections::BTreeMap;

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

impl IncidentQuery {
    /// Those of these records that are asked for, for a store that has them all at hand.
    pub fn marks<'a>(&self, records: impl IntoIterator<Item = &'a Record>) -> Vec<IncidentMark> {
        let asked = |record: &'a Record| {
            let incident = record.incident()?;
            let (phase, since) = incident.phase();
            let is_asked = phase == self.phase && self.kind.is_none_or(|kind| kind == incident.kind);
            is_asked.then(|| IncidentMark { name: record.name.clone(), kind: incident.kind, began_at: incident.began_at, since })
        };
        let mut marks: Vec<_> = records.into_iter().filter_map(asked).collect();
        marks.sort_by(|one, other| (one.kind, one.since, &one.name).cmp(&(other.kind, other.since, &other.name)));
        marks.truncate(self.limit);
        marks
    }
}

/// How many of these records are incidents that stand how.
pub fn incident_counts<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(Phase, IncidentKind, u64)> {
    let mut counts = BTreeMap::<(Phase, IncidentKind), u64>::new();
    for incident in records.into_iter().filter_map(Record::incident) {
        *counts.entry((incident.phase().0, incident.kind)).or_default() += 1;
    }
    counts.into_iter().map(|((phase, kind), count)| (phase, kind, count)).collect()
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
