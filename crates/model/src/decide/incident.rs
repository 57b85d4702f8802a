//! Looks at what runs, and the incidents that people are told of. Every move may be repeated: what has happened already is no change, and an
//! incident that was told once is not told again because of a repeat.

use super::Decision;
use crate::command::Answer;
use crate::event::EventType;
use crate::health::Check;
use crate::incident::{Incident, Move, Over, Told};
use crate::record::{Body, Kind, ONLY, Record};
use crate::step::Step;
use crate::view::{View, Writes};

/// Writes down a look at what runs.
pub(super) fn note_health<V: View>(view: &mut V, step: &Step, check: &Check) -> Decision<V::Error> {
    let mut record = view.record(Kind::Health, ONLY)?.unwrap_or_else(|| Record::new(Kind::Health, ONLY));
    let count = match record.body {
        Some(Body::Health(count)) => count + 1,
        _ => 1,
    };
    record.body = Some(Body::Health(count));
    let mut writes = Writes::default();
    let entity = record.entity().expect("looks at what runs have events");
    writes.event_about(step, entity, EventType::TaskHealthCheck, check.properties());
    let record = writes.put_record(record);
    Ok((writes, Answer::Record { record, repeated: false }))
}

/// Moves incidents.
pub(super) fn move_all<V: View>(view: &mut V, step: &Step, moves: &[Move]) -> Decision<V::Error> {
    let mut writes = Writes::default();
    for one in moves {
        match one {
            Move::Begin(incident) => begin(view, incident, &mut writes)?,
            Move::End { name, why } => end(view, step, name, why, &mut writes)?,
            Move::Tell { name, began_at, teller } => {
                let may = |incident: &Incident| incident.told_by(step.at).is_none_or(|other| other == teller.name);
                change(view, name, &mut writes, |incident| {
                    let is_theirs = incident.began_at == *began_at && incident.is_to_be_told() && may(incident);
                    if is_theirs {
                        incident.teller = Some(teller.clone());
                    }
                    is_theirs
                })?;
            }
            Move::Told { name, began_at, what } => {
                change(view, name, &mut writes, |incident| incident.began_at == *began_at && tell(incident, step, *what))?;
            }
            Move::Forget { name, began_at } => forget(view, name, &mut writes, |incident| incident.began_at == *began_at)?,
        }
    }
    Ok((writes, Answer::Unchanged))
}

/// Begins an incident in a step that does something else too, unless it goes on already.
pub(super) fn begin<V: View>(view: &mut V, new: &Incident, writes: &mut Writes) -> Result<(), V::Error> {
    let mut record = look(view, &new.name(), writes)?;
    record.body = Some(Body::Incident(match record.body {
        Some(Body::Incident(known)) => match &known.over {
            None => return Ok(()),
            // Nobody has heard that it was over: for them it goes on.
            Some(over) if known.told_at.is_some() && over.told_at.is_none() => Incident { over: None, ..known },
            Some(_) => new.clone(),
        },
        _ => new.clone(),
    }));
    put(record, writes);
    Ok(())
}

/// Ends an incident in a step that does something else too, if there is one.
pub(super) fn end<V: View>(view: &mut V, step: &Step, name: &str, why: &str, writes: &mut Writes) -> Result<(), V::Error> {
    change(view, name, writes, |incident| {
        let was_open = incident.is_open();
        incident.over.get_or_insert_with(|| Over { at: step.at, why: why.to_owned(), told_at: None });
        was_open
    })
}

fn tell(incident: &mut Incident, step: &Step, what: Told) -> bool {
    incident.teller = None;
    let slot = match (what, &mut incident.over) {
        (Told::Begin, _) => &mut incident.told_at,
        (Told::Over, Some(over)) => &mut over.told_at,
        // It came back while they were told that it was over: they are to be told again.
        (Told::Over, None) => return incident.told_at.take().is_some(),
    };
    let is_news = slot.is_none();
    slot.get_or_insert(step.at);
    is_news
}

fn change<V: View>(view: &mut V, name: &str, writes: &mut Writes, change: impl FnOnce(&mut Incident) -> bool) -> Result<(), V::Error> {
    let mut record = look(view, name, writes)?;
    if let Some(Body::Incident(incident)) = &mut record.body
        && change(incident)
    {
        put(record, writes);
    }
    Ok(())
}

fn forget<V: View>(view: &mut V, name: &str, writes: &mut Writes, is_it: impl FnOnce(&Incident) -> bool) -> Result<(), V::Error> {
    let mut record = look(view, name, writes)?;
    if let Some(Body::Incident(incident)) = &record.body
        && is_it(incident)
    {
        record.body = None;
        put(record, writes);
    }
    Ok(())
}

/// The record as this step would leave it: one step may move an incident twice.
fn look<V: View>(view: &mut V, name: &str, writes: &Writes) -> Result<Record, V::Error> {
    let is_it = |record: &&Record| record.kind == Kind::Incident && record.name == name;
    if let Some(record) = writes.records.iter().find(is_it) {
        return Ok(record.clone());
    }
    Ok(view.record(Kind::Incident, name)?.unwrap_or_else(|| Record::new(Kind::Incident, name)))
}

fn put(record: Record, writes: &mut Writes) {
    let is_it = |other: &&mut Record| other.kind == record.kind && other.name == record.name;
    match writes.records.iter_mut().find(is_it) {
        Some(written) => written.body = record.body,
        None => drop(writes.put_record(record)),
    }
}
