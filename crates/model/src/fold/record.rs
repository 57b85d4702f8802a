//! Records: what people manage, and what was written beside it. Each is what the last event says that wrote it; what no event wrote was put
//! there by another hand, and what an event wrote is still there.

use std::collections::BTreeMap;

use super::mismatch::Mismatch;
use crate::chain::ChainHead;
use crate::digest;
use crate::event::Event;
use crate::id::Id;
use crate::record::{Kind, Record};
use crate::verify::{BadEvent, Problem};

/// How much of a name that is a hash is shown.
const SHOWN_DIGITS: usize = 12;

/// The records of a store being compared. It is fed with all events that are about records, in any order, and then with all records.
#[derive(Debug, Default)]
pub struct RecordCheck {
    /// The newest event that wrote a record, by [`digest::key`].
    written: BTreeMap<String, Written>,
}

#[derive(Debug)]
struct Written {
    place: u64,
    number: u64,
    event: Id,
    digest: String,
}

impl RecordCheck {
    /// The next event and its place in the log.
    pub fn event(&mut self, place: u64, event: &Event) {
        for (key, digest) in digest::bodies(&event.properties) {
            let is_newer = self.written.get(key).is_none_or(|known| known.place < place);
            if is_newer {
                let written = Written { place, number: event.number, event: event.id, digest: digest.to_owned() };
                self.written.insert(key.to_owned(), written);
            }
        }
    }

    /// The next record, also one that was removed.
    pub fn record(&mut self, record: &Record) -> Result<(), Box<BadEvent>> {
        if !record.kind.is_bound() {
            return Ok(());
        }
        let key = digest::key(record);
        let Some(written) = self.written.remove(&key) else {
            let message = "no event wrote it: it was not added by the server".to_owned();
            return Err(Box::new(bad(&key, None, Problem::Altered, message)));
        };
        let has_own_events = record.entity().is_some();
        if written.digest == digest::of_record(record) && (has_own_events || record.chain == ChainHead::default()) {
            return Ok(());
        }
        let message = format!("its record is not what event {} wrote: it was altered", written.number);
        Err(Box::new(bad(&key, Some(&written), Problem::Altered, message)))
    }

    /// Says nothing of a record that did not hold still while it was looked at.
    pub fn forget(&mut self, record: &Record) {
        self.written.remove(&digest::key(record));
    }

    /// Says nothing of records of this kind that are gone: they go by themselves.
    pub fn forget_gone(&mut self, kind: Kind) {
        self.written.retain(|key, _| key.split_once(':').is_none_or(|(of, _)| of != kind.as_str()));
    }

    /// All records were seen: the first that an event wrote and that is gone.
    pub fn finish(self) -> Option<BadEvent> {
        let (key, written) = self.written.iter().filter(|(key, _)| is_record(key)).min_by_key(|(_, written)| written.place)?;
        Some(bad(key, Some(written), Problem::Removed, format!("event {} wrote it, and it is gone", written.number)))
    }
}

/// The same finding where kept state is compared with the events.
impl From<BadEvent> for Mismatch {
    fn from(bad: BadEvent) -> Self {
        Self { entity: bad.entity, field: "record".to_owned(), message: format!("is {}: {}", bad.problem.as_str(), bad.message) }
    }
}

fn is_record(key: &str) -> bool {
    Kind::ALL.into_iter().any(|kind| key.strip_prefix(kind.as_str()).is_some_and(|rest| rest.starts_with(':')))
}

fn bad(key: &str, written: Option<&Written>, problem: Problem, message: String) -> BadEvent {
    let (kind, name) = key.split_once(':').unwrap_or((key, ""));
    let is_hash = kind == Kind::Key.as_str() || kind == Kind::Claim.as_str();
    let shown = if is_hash { name.get(..SHOWN_DIGITS).unwrap_or(name) } else { name };
    BadEvent {
        place: written.map_or(u64::MAX, |written| written.place),
        entity: format!("{}:{shown}", kind.to_uppercase()),
        number: written.map_or(0, |written| written.number),
        event_id: written.map(|written| written.event),
        problem,
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{Entity, EntityType, EventType};
    use crate::time::UnixMs;

    #[test]
    fn a_record_that_no_event_wrote_is_bad_whatever_other_events_lack() {
        let mut check = RecordCheck::default();
        check.event(
            1,
            &Event {
                id: Id::from_bytes([1; 16]),
                entity: Entity { kind: EntityType::User, id: "ana@x".into() },
                number: 1,
                kind: EventType::Audit,
                at: UnixMs(1),
                context: json!({}),
                properties: json!({"action": "users.create"}),
                mac: [0; 32],
            },
        );
        let bad = check.record(&Record::new(Kind::User, "eve@x")).expect_err("no event wrote it");
        assert_eq!((bad.entity.as_str(), bad.problem), ("USER:eve@x", Problem::Altered));
    }
}
