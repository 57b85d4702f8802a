//! Incidents by where they stand.

use std::collections::BTreeMap;

use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::record::Record;
use runvoy_ports::record::{IncidentMark, IncidentQuery};

/// Those that are asked for.
pub(crate) fn marks<'a>(records: impl Iterator<Item = &'a Record>, query: IncidentQuery) -> Vec<IncidentMark> {
    let asked = |record: &'a Record| {
        let incident = record.incident()?;
        let (phase, since) = incident.phase();
        let is_asked = phase == query.phase && query.kind.is_none_or(|kind| kind == incident.kind);
        is_asked.then(|| IncidentMark { name: record.name.clone(), kind: incident.kind, began_at: incident.began_at, since })
    };
    let mut marks: Vec<_> = records.filter_map(asked).collect();
    marks.sort_by(|one, other| (one.kind, one.since, &one.name).cmp(&(other.kind, other.since, &other.name)));
    marks.truncate(query.limit);
    marks
}

/// How many stand how.
pub(crate) fn counts<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<(Phase, IncidentKind, u64)> {
    let mut counts = BTreeMap::<(Phase, IncidentKind), u64>::new();
    for incident in records.filter_map(Record::incident) {
        *counts.entry((incident.phase().0, incident.kind)).or_default() += 1;
    }
    counts.into_iter().map(|((phase, kind), count)| (phase, kind, count)).collect()
}
