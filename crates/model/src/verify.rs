//! Whether the log of events is as it was written: every entity's chain link by link, and the whole log against its checkpoints. Fed event
//! by event in constant memory by whoever reads a store; never reads one itself.

use crate::chain::{AuditKey, ChainHead};
use crate::event::{Entity, Event};
use crate::id::Id;
use crate::merkle::Tree;
use crate::time::UnixMs;
use crate::witness::Witness;

/// What is wrong with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It is not what was written, or nobody wrote it.
    Altered,
    /// It is gone.
    Removed,
    /// It stands in another's place.
    Reordered,
    /// It cannot be read.
    Unreadable,
}

impl Problem {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Removed => "removed",
            Self::Reordered => "reordered",
            Self::Unreadable => "unreadable",
        }
    }
}

/// An event that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEvent {
    /// Where in the log it was noticed: the smallest is the first.
    pub place: u64,
    /// What it is about: `USER:ana@example.com`.
    pub entity: String,
    /// Its number among the events of that entity; 0 where the whole entity is concerned.
    pub number: u64,
    /// Its id, where it is still known.
    pub event_id: Option<Id>,
    /// What is wrong.
    pub problem: Problem,
    /// What was found, for a person.
    pub message: String,
}

/// What a look at everything came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// How many events were looked at.
    pub checked: u64,
    /// The first that is not as it was written.
    pub first_bad: Option<BadEvent>,
    /// When the newest checkpoint was made that fits the log.
    pub checkpoint_at: Option<UnixMs>,
    /// The first of the newest checkpoints that were not exported, where more than one was not. Exporting fails, or its file was cut at its end.
    pub unexported_from: Option<u64>,
    /// How many executions and jobs were written before events held digests: what they run, and
    /// whose they are, cannot be compared.
    pub unverifiable: u64,
}

impl Verdict {
    /// Nothing was altered, removed or reordered.
    pub const fn is_whole(&self) -> bool {
        self.first_bad.is_none()
    }

    /// Keeps what was found if nothing before it was.
    pub fn note(&mut self, bad: BadEvent) {
        if self.first_bad.as_ref().is_none_or(|first| bad.place < first.place) {
            self.first_bad = Some(bad);
        }
    }
}

/// The name of an entity on every surface.
pub fn label(entity: &Entity) -> String {
    format!("{}:{}", entity.kind.as_str(), entity.id)
}

/// The chain of one entity, fed with its events by place.
#[derive(Debug)]
pub struct ChainCheck {
    label: String,
    head: ChainHead,
    last_place: u64,
    broken: Option<BadEvent>,
}

impl ChainCheck {
    /// Begins with an entity.
    pub fn new(entity: &Entity) -> Self {
        Self { label: label(entity), head: ChainHead::default(), last_place: 0, broken: None }
    }

    /// The next event.
    pub fn next(&mut self, key: &AuditKey, place: u64, event: &Event) {
        if !event.kind.is_chained() {
            return;
        }
        let link = key.link(&self.head, &event.canonical());
        let fits = event.mac == link.mac;
        self.last_place = place;
        if let Some(broken) = &mut self.broken {
            // What was missed there stands here: nothing is gone, only out of order.
            if fits && broken.problem != Problem::Reordered {
                (broken.problem, broken.number, broken.event_id) = (Problem::Reordered, link.count, Some(event.id));
                broken.message = format!("event {} is stored after a later one", link.count);
            }
            return;
        }
        if fits && event.number == link.count {
            self.head = link;
            return;
        }
        let (number, event_id, problem, message) = if fits {
            (link.count, Some(event.id), Problem::Altered, format!("event {} has the number {}", link.count, event.number))
        } else if event.number > link.count {
            let message = format!("event {} is gone: the next one has the number {}", link.count, event.number);
            (link.count, None, Problem::Removed, message)
        } else {
            let message = "its link does not match: it was altered, or added without the audit key".to_owned();
            (event.number, Some(event.id), Problem::Altered, message)
        };
        self.broken = Some(BadEvent { place, entity: self.label.clone(), number, event_id, problem, message });
    }

    /// All events were seen: whether they end where the entity's record says, which is `None` where there is no such record.
    pub fn finish(self, head: Option<ChainHead>) -> Option<BadEvent> {
        if self.broken.is_some() {
            return self.broken;
        }
        let bad = |number, problem, message: String| {
            Some(BadEvent {
                place: self.last_place.saturating_add(1),
                entity: self.label.clone(),
                number,
                event_id: None,
                problem,
                message,
            })
        };
        let seen = self.head;
        match head {
            Some(head) if head == seen => None,
            None => bad(0, Problem::Removed, "the record of these events was removed".to_owned()),
            Some(head) if head.count > seen.count => {
                bad(seen.count + 1, Problem::Removed, format!("the last {} of {} events are gone", head.count - seen.count, head.count))
            }
            Some(head) if head.count < seen.count => {
                let message = format!("its record knows of {} events, but there are {}: its head was set back", head.count, seen.count);
                bad(head.count + 1, Problem::Altered, message)
            }
            Some(_) => bad(seen.count, Problem::Altered, "the head of its chain was rewritten in its record".to_owned()),
        }
    }
}

/// The whole log, fed with its chained events by place, against the checkpoints in it.
#[derive(Debug, Default)]
pub struct TreeCheck {
    tree: Tree,
    last: Option<Witness>,
}

impl TreeCheck {
    /// The next event.
    pub fn append(&mut self, event: Id, mac: &[u8; 32]) {
        self.tree.append(event, mac);
    }

    /// Compares what was fed so far, which is everything up to the place that the checkpoint names, with that checkpoint.
    pub fn compare(&mut self, checkpoint: Id, witness: &Witness) -> Result<(), Box<BadEvent>> {
        let (found, known) = (self.tree.leaves(), witness.leaves);
        if (found, self.tree.root()) == (known, witness.root) {
            self.last = Some(witness.clone());
            return Ok(());
        }
        let since = self.last.as_ref().map_or_else(|| "from the beginning".to_owned(), |last| format!("since checkpoint {}", last.number));
        let (problem, what) = if found < known {
            (Problem::Removed, format!("{} of {known} events are gone", known - found))
        } else if found > known {
            (Problem::Altered, format!("{} events were added to {known}", found - known))
        } else {
            (Problem::Reordered, "events have other ids or another order".to_owned())
        };
        let message = format!("{what}, {since}, up to place {}: checkpoint {} says so", witness.up_to, witness.number);
        Err(Box::new(BadEvent { event_id: Some(checkpoint), ..ledger(witness, problem, message) }))
    }

    /// The newest checkpoint that fits.
    pub fn last(&self) -> Option<&Witness> {
        self.last.as_ref()
    }
}

/// Compares an exported checkpoint with the store's own of the same number.
pub fn compare_export(exported: &Witness, stored: &Witness) -> Result<(), Box<BadEvent>> {
    if exported == stored {
        return Ok(());
    }
    let message = format!("checkpoint {} differs from its export: the store was put back to an earlier state", exported.number);
    Err(Box::new(ledger(exported, Problem::Altered, message)))
}

/// An exported checkpoint that the store has no more.
pub fn missing_checkpoint(exported: &Witness) -> BadEvent {
    let message = format!(
        "checkpoint {} was exported, and the store does not have it: events up to place {} were removed, or the store was put back to an \
         earlier state",
        exported.number, exported.up_to
    );
    ledger(exported, Problem::Removed, message)
}

/// A checkpoint of the store that is missing among the exported ones.
pub fn missing_export(stored: &Witness) -> BadEvent {
    let message = format!("checkpoint {} is missing among the exported ones: their file was cut or removed", stored.number);
    ledger(stored, Problem::Removed, message)
}

fn ledger(witness: &Witness, problem: Problem, message: String) -> BadEvent {
    let entity = format!("{}:{}", crate::event::EntityType::Ledger.as_str(), crate::record::ONLY);
    BadEvent { place: witness.up_to, entity, number: witness.number, event_id: None, problem, message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{EntityType, EventType};

    const KEY: AuditKey = AuditKey::new([7; 32]);

    fn entity() -> Entity {
        Entity { kind: EntityType::User, id: "ana@example.com".into() }
    }

    /// A chain of `count` events and its head.
    fn chain(count: u8) -> (Vec<Event>, ChainHead) {
        let mut head = ChainHead::default();
        let event = |n: u8| Event {
            id: Id::from_bytes([n; 16]),
            entity: entity(),
            number: u64::from(n),
            kind: EventType::Audit,
            at: UnixMs(i64::from(n)),
            context: json!({"origin": "api"}),
            properties: json!({"n": n}),
            mac: [0; 32],
        };
        let mut events: Vec<Event> = (1..=count).map(event).collect();
        for event in &mut events {
            head = KEY.link(&head, &event.canonical());
            event.mac = head.mac;
        }
        (events, head)
    }

    fn check(events: &[Event], head: Option<ChainHead>) -> Option<(u64, Option<Id>, Problem)> {
        let mut check = ChainCheck::new(&entity());
        for (place, event) in events.iter().enumerate() {
            check.next(&KEY, place as u64 + 1, event);
        }
        check.finish(head).map(|bad| {
            assert_eq!(bad.entity, "USER:ana@example.com");
            (bad.number, bad.event_id, bad.problem)
        })
    }

    fn id(n: u8) -> Option<Id> {
        Some(Id::from_bytes([n; 16]))
    }

    #[test]
    fn a_whole_chain_is_whole() {
        let (events, head) = chain(5);
        assert_eq!(check(&events, Some(head)), None);
        assert_eq!(check(&[], Some(ChainHead::default())), None);
    }

    #[test]
    fn whatever_is_altered_is_named() {
        let changes: [fn(&mut Event); 5] = [
            |event| event.properties = json!({"n": 99}),
            |event| event.at = UnixMs(99),
            |event| event.context = json!({}),
            |event| event.mac[0] ^= 1,
            |event| event.kind = EventType::TaskFailed,
        ];
        for change in changes {
            let (mut events, head) = chain(5);
            change(&mut events[2]);
            assert_eq!(check(&events, Some(head)), Some((3, id(3), Problem::Altered)));
        }
        let (mut events, head) = chain(5);
        events[2].number = 9;
        assert_eq!(check(&events, Some(head)), Some((3, id(3), Problem::Altered)));
    }

    #[test]
    fn what_is_gone_is_named_also_at_the_end() {
        let (mut events, head) = chain(5);
        events.remove(2);
        assert_eq!(check(&events, Some(head)), Some((3, None, Problem::Removed)));
        let (events, head) = chain(5);
        assert_eq!(check(&events[..3], Some(head)), Some((4, None, Problem::Removed)));
        assert_eq!(check(&[], Some(head)), Some((1, None, Problem::Removed)));
        assert_eq!(check(&events, None), Some((0, None, Problem::Removed)));
    }

    #[test]
    fn what_stands_in_anothers_place_is_told_from_what_is_gone() {
        let (mut events, head) = chain(5);
        events.swap(1, 2);
        assert_eq!(check(&events, Some(head)), Some((2, id(2), Problem::Reordered)));
        // The same with the numbers put right.
        (events[1].number, events[2].number) = (2, 3);
        assert_eq!(check(&events, Some(head)), Some((2, id(2), Problem::Reordered)));
    }

    #[test]
    fn what_was_put_there_and_a_head_that_was_rewritten_are_found() {
        let (mut events, head) = chain(3);
        let mut forged = events[2].clone();
        (forged.number, forged.id) = (4, Id::from_bytes([4; 16]));
        events.push(forged);
        assert_eq!(check(&events, Some(head)), Some((4, id(4), Problem::Altered)));
        let (events, head) = chain(3);
        assert_eq!(check(&events, Some(ChainHead { mac: [0; 32], ..head })), Some((3, None, Problem::Altered)));
        assert_eq!(check(&events, Some(ChainHead { count: 2, mac: events[1].mac })), Some((3, None, Problem::Altered)));
    }

    #[test]
    fn heartbeats_are_no_part_of_it() {
        let (mut events, head) = chain(3);
        let mut heartbeat = events[1].clone();
        (heartbeat.kind, heartbeat.mac) = (EventType::TaskHeartbeat, [0; 32]);
        events.insert(2, heartbeat);
        assert_eq!(check(&events, Some(head)), None);
    }

    #[test]
    fn the_first_finding_is_the_one_with_the_smallest_place() {
        let bad = |place| BadEvent { place, ..missing_export(&Witness { number: 1, time: UnixMs(0), up_to: 0, leaves: 0, root: [0; 32] }) };
        let mut verdict = Verdict::default();
        for place in [7, 3, 5] {
            verdict.note(bad(place));
        }
        assert_eq!(verdict.first_bad.map(|bad| bad.place), Some(3));
    }
}
