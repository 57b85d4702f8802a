//! Incidents by where they stand, read from an index of what is to be told and what is to be forgotten. Nothing is decided here.

use runvoy_model::incident::{Incident, IncidentKind, Phase};
use runvoy_model::record::{Body, Record};
use runvoy_model::time::UnixMs;
use runvoy_ports::record::{IncidentMark, IncidentQuery};
use rusqlite::{Connection, params};

use crate::fault::Fault;

/// Where a record stands, if it is an incident: its phase, its kind, and since when it is in that phase.
pub(crate) fn standing(record: &Record) -> Option<(i64, i64, i64)> {
    let incident = record.incident()?;
    let (phase, since) = incident.phase();
    Some((phase_code(phase), kind_code(incident.kind), since.0))
}

/// Those that are asked for. Each is read, and only little of it kept.
pub(crate) fn marks(conn: &Connection, query: IncidentQuery) -> Result<Vec<IncidentMark>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT name, since, body FROM records INDEXED BY records_standing \
         WHERE phase = ?1 AND severity BETWEEN ?2 AND ?3 ORDER BY severity, since, name LIMIT ?4",
    )?;
    let (first, last) = query.kind.map_or((0, i64::MAX), |kind| (kind_code(kind), kind_code(kind)));
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![phase_code(query.phase), first, last, limit])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, since): (String, i64) = (row.get(0)?, row.get(1)?);
        let Incident { kind, began_at, .. } = match serde_json::from_str(row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?) {
            Ok(Body::Incident(incident)) => incident,
            _ => return Err(Fault::Damaged(format!("the body of incident {name} cannot be read"))),
        };
        marks.push(IncidentMark { name, kind, began_at, since: UnixMs(since) });
    }
    Ok(marks)
}

/// How many stand how.
pub(crate) fn counts(conn: &Connection) -> Result<Vec<(Phase, IncidentKind, u64)>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT phase, severity, count(*) FROM records INDEXED BY records_standing WHERE phase IS NOT NULL GROUP BY phase, severity",
    )?;
    let mut rows = statement.query([])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let (phase, kind, count): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let phase = Phase::ALL.into_iter().find(|known| phase_code(*known) == phase);
        let kind = IncidentKind::ALL.into_iter().find(|known| kind_code(*known) == kind);
        let (Some(phase), Some(kind), Ok(count)) = (phase, kind, u64::try_from(count)) else {
            return Err(Fault::Damaged("an incident stands as none can".to_owned()));
        };
        counts.push((phase, kind, count));
    }
    Ok(counts)
}

/// The number of a phase in the store. Part of the format.
const fn phase_code(phase: Phase) -> i64 {
    match phase {
        Phase::Begun => 0,
        Phase::Told => 1,
        Phase::Over => 2,
        Phase::Closed => 3,
    }
}

/// The number of a kind in the store, the worst first. Part of the format.
const fn kind_code(kind: IncidentKind) -> i64 {
    match kind {
        IncidentKind::Critical => 0,
        IncidentKind::Delivery => 1,
        IncidentKind::Dead => 2,
        IncidentKind::Overtime => 3,
    }
}
