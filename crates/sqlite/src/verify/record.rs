//! Every record against the event that wrote it, in one snapshot: records are few beside executions.

use runvoy_model::fold::RecordCheck;
use runvoy_model::verify::{BadEvent, Problem};
use rusqlite::Connection;

use crate::event::{columns, decode};
use crate::fault::{Fault, Meaning};
use crate::registry;

/// The events that write records: not those of executions, jobs, checkpoints and health checks.
const EVENTS: &str =
    concat!("SELECT ", columns!(), " FROM events INDEXED BY events_entity WHERE entity_kind IN (1, 2, 3, 4, 5, 6, 10, 11, 12)");

/// Compares every record; gives how many there are, and what is wrong with some of them.
pub(super) fn check(conn: &Connection) -> Result<(u64, Vec<BadEvent>), Fault> {
    let snapshot = conn.unchecked_transaction()?;
    let mut check = RecordCheck::default();
    let mut statement = snapshot.prepare_cached(EVENTS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(stored) => check.event(stored.place, &stored.event),
            // The look at the chains names an event that cannot be read.
            Err(fault) if fault.meaning() == Meaning::Damaged => {}
            Err(fault) => return Err(fault),
        }
    }
    drop(rows);
    let (mut compared, mut found) = (0, Vec::new());
    registry::each(&snapshot, |record| {
        compared += 1;
        match record {
            Ok(record) => found.extend(check.record(&record).err().map(|bad| *bad)),
            Err(fault) => found.push(unreadable(&fault)),
        }
    })?;
    found.extend(check.finish());
    Ok((compared, found))
}

fn unreadable(fault: &Fault) -> BadEvent {
    BadEvent {
        place: u64::MAX,
        entity: "RECORD".to_owned(),
        number: 0,
        event_id: None,
        problem: Problem::Unreadable,
        message: fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::record::Kind;

    use super::*;
    use crate::event::entity_code;

    #[test]
    fn the_events_of_every_bound_kind_are_read() {
        let (_, after) = EVENTS.split_once("entity_kind IN (").expect("it names kinds");
        let mut expected: Vec<i64> =
            Kind::ALL.into_iter().filter(|kind| kind.is_bound()).filter_map(Kind::entity).map(entity_code).collect();
        expected.sort_unstable();
        assert_eq!(after.trim_end_matches(')'), expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
}
