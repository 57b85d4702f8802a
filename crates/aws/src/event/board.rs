//! In which order events of the journal are placed: pure. An entry comes after the pieces of its step before it, after the steps that it names, and
//! after whatever has an earlier number among the events of the same entity; else steps come as they were named. All of that is the order in which
//! they were committed, as far as it can be known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use runvoy_model::event::Entity;
use runvoy_model::id::StepId;

use super::journal::{Entry, Key, Look};

/// What is known to have been placed. It may know less than the log, never more.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The last number of an entity.
    numbers: HashMap<Entity, u64>,
    keys: HashSet<Key>,
}

/// So much is remembered; then everything is forgotten, which only costs a second look.
const MOST_KNOWN: usize = 50_000;

impl Known {
    /// These were placed.
    pub fn note(&mut self, entry: &Entry) {
        if self.numbers.len() > MOST_KNOWN || self.keys.len() > MOST_KNOWN {
            *self = Self::default();
        }
        self.keys.insert(entry.key);
        for event in &entry.events {
            let known = self.numbers.entry(event.entity.clone()).or_default();
            *known = event.number.max(*known);
        }
    }

    fn has(&self, cause: &Cause) -> bool {
        match cause {
            Cause::Piece(key) => self.keys.contains(key),
            Cause::Step(step) => self.keys.contains(&Key { step: *step, piece: 0 }),
            Cause::Event(entity, number) => self.numbers.get(entity).is_some_and(|known| known >= number),
        }
    }
}

/// Something that is placed before an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Cause {
    /// The piece before it of the same step.
    Piece(Key),
    /// All of a step that it names.
    Step(StepId),
    /// A number of an entity.
    Event(Entity, u64),
}

fn causes(entry: &Entry) -> impl Iterator<Item = Cause> + '_ {
    let piece = entry.key.piece.checked_sub(1).map(|piece| Cause::Piece(Key { piece, ..entry.key }));
    let steps = entry.after.iter().filter(|step| **step != entry.key.step).map(|step| Cause::Step(*step));
    let mut seen: HashMap<&Entity, u64> = HashMap::new();
    let mut numbers = Vec::new();
    for event in &entry.events {
        let before = event.number.saturating_sub(u64::from(event.kind.is_chained()));
        if seen.insert(&event.entity, event.number).is_none_or(|last| last < before) && before > 0 {
            numbers.push(Cause::Event(event.entity.clone(), before));
        }
    }
    piece.into_iter().chain(steps).chain(numbers)
}

/// Everything that entries stand for, to find causes among them.
struct Index<'e> {
    entries: &'e [Entry],
    keys: BTreeMap<Key, usize>,
    events: HashMap<(&'e Entity, u64), usize>,
}

impl<'e> Index<'e> {
    fn of(entries: &'e [Entry]) -> Self {
        let keys = entries.iter().enumerate().map(|(at, entry)| (entry.key, at)).collect();
        let chained = |(at, entry): (usize, &'e Entry)| {
            entry.events.iter().filter(|event| event.kind.is_chained()).map(move |event| ((&event.entity, event.number), at))
        };
        Self { entries, keys, events: entries.iter().enumerate().flat_map(chained).collect() }
    }

    /// Which entries a cause stands for.
    fn find(&self, cause: &Cause) -> Vec<usize> {
        match cause {
            Cause::Piece(key) => self.keys.get(key).copied().into_iter().collect(),
            Cause::Step(step) => {
                let pieces = Key { step: *step, piece: 0 }..=Key { step: *step, piece: u16::MAX };
                self.keys.range(pieces).map(|(_, at)| *at).collect()
            }
            Cause::Event(entity, number) => self.events.get(&(entity, *number)).copied().into_iter().collect(),
        }
    }
}

/// Whether every cause of these entries is among them or known to be placed: then one look was enough.
pub(super) fn is_closed(look: &Look, known: &Known) -> bool {
    let index = Index::of(&look.entries);
    look.entries.iter().all(|entry| causes(entry).all(|cause| known.has(&cause) || !index.find(&cause).is_empty()))
}

/// Which entries can be placed after a second look. Whatever was seen by the first was committed before the second began, and so were all its causes:
/// those that the second does not see are placed already. What only the second saw may have causes that it missed; it waits, unless it is itself
/// such a cause.
pub(super) fn settled(first: &Look, second: Look, known: &Known) -> Vec<Entry> {
    let seen: HashSet<Key> = first.entries.iter().map(|entry| entry.key).collect();
    let index = Index::of(&second.entries);
    // An entry whose causes may lie where the second look did not reach waits too.
    let is_proven = |cause: &Cause| match cause {
        _ if second.is_complete() || known.has(cause) => true,
        Cause::Piece(key) => second.reaches(*key),
        Cause::Step(step) => second.reaches(Key { step: *step, piece: u16::MAX }),
        Cause::Event(..) => !index.find(cause).is_empty(),
    };
    let mut taken = BTreeSet::new();
    let mut open: Vec<usize> = (0..second.entries.len()).filter(|at| seen.contains(&second.entries[*at].key)).collect();
    while let Some(at) = open.pop() {
        if taken.insert(at) {
            open.extend(causes(&index.entries[at]).flat_map(|cause| index.find(&cause)).filter(|cause| !taken.contains(cause)));
        }
    }
    // Whoever waits makes those wait that come after it.
    loop {
        let waits = |at: &usize| {
            causes(&index.entries[*at]).any(|cause| !is_proven(&cause) || index.find(&cause).iter().any(|at| !taken.contains(at)))
        };
        let waiting: Vec<usize> = taken.iter().filter(|at| waits(at)).copied().collect();
        if waiting.is_empty() {
            break;
        }
        taken.retain(|at| !waiting.contains(at));
    }
    let mut entries: Vec<Option<Entry>> = second.entries.into_iter().map(Some).collect();
    taken.into_iter().filter_map(|at| entries[at].take()).collect()
}

/// Puts entries in order.
pub(super) fn order(entries: Vec<Entry>) -> Vec<Entry> {
    let index = Index::of(&entries);
    let mut before: Vec<BTreeSet<usize>> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| causes(entry).flat_map(|cause| index.find(&cause)).filter(|cause| *cause != at).collect())
        .collect();
    // A heartbeat was there before the next number of its entity.
    for (at, entry) in entries.iter().enumerate() {
        for event in entry.events.iter().filter(|event| !event.kind.is_chained()) {
            let next = index.events.get(&(&event.entity, event.number + 1)).filter(|next| **next != at);
            next.map(|next| before[*next].insert(at));
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (at, causes) in before.iter().enumerate() {
        causes.iter().for_each(|cause| after[*cause].push(at));
    }
    let mut waiting: BTreeMap<Key, usize> = entries.iter().enumerate().map(|(at, entry)| (entry.key, at)).collect();
    let mut ready: BTreeMap<Key, usize> = waiting.iter().filter(|(_, at)| before[**at].is_empty()).map(|(key, at)| (*key, *at)).collect();
    let mut ordered = Vec::with_capacity(entries.len());
    // Entries that wait for each other are no work of ours: the first goes first, and the proof of the log tells of it.
    while let Some((key, at)) = ready.pop_first().or_else(|| waiting.first_key_value().map(|(key, at)| (*key, *at))) {
        waiting.remove(&key);
        ordered.push(at);
        for next in &after[at] {
            before[*next].remove(&at);
            let next_key = entries[*next].key;
            if before[*next].is_empty() && waiting.contains_key(&next_key) {
                ready.insert(next_key, *next);
            }
        }
    }
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    ordered.into_iter().filter_map(|at| entries[at].take()).collect()
}

#[cfg(test)]
mod tests {
    use runvoy_model::event::{EntityType, Event, EventType};
    use runvoy_model::id::Id;
    use runvoy_model::time::UnixMs;
    use serde_json::json;

    use super::*;

    fn step(named: u8) -> StepId {
        StepId::from_bytes([named; 16])
    }

    fn event(about: &str, number: u64, kind: EventType) -> Event {
        Event {
            id: Id::from_bytes([0; 16]),
            entity: Entity { kind: EntityType::Task, id: about.into() },
            number,
            kind,
            at: UnixMs(0),
            context: json!({}),
            properties: json!({}),
            mac: [0; 32],
        }
    }

    fn entry(named: u8, events: &[(&str, u64)], after: &[u8]) -> Entry {
        let events = events.iter().map(|(about, number)| event(about, *number, EventType::TaskPending)).collect();
        let after = after.iter().map(|named| step(*named)).collect();
        Entry { key: Key { step: step(named), piece: 0 }, events, after, bytes: 1 }
    }

    fn look(entries: &[Entry]) -> Look {
        Look::complete(entries.to_vec())
    }

    fn named(entries: &[Entry]) -> Vec<u8> {
        entries.iter().map(|entry| entry.key.step.as_bytes()[0]).collect()
    }

    #[test]
    fn steps_come_as_they_were_named_unless_something_says_otherwise() {
        assert_eq!(named(&order(vec![entry(3, &[("a", 1)], &[]), entry(1, &[("b", 1)], &[]), entry(2, &[("c", 1)], &[])])), [1, 2, 3]);
        // Another clock named the later step: the number knows better, and so does the step itself.
        assert_eq!(named(&order(vec![entry(1, &[("a", 2)], &[]), entry(2, &[("a", 1)], &[])])), [2, 1]);
        assert_eq!(named(&order(vec![entry(1, &[("a", 1)], &[2]), entry(2, &[("b", 1)], &[])])), [2, 1]);
    }

    #[test]
    fn a_heartbeat_stands_between_the_numbers_that_it_was_between() {
        let mut beat = entry(9, &[], &[]);
        beat.events.push(event("a", 1, EventType::TaskHeartbeat));
        assert_eq!(named(&order(vec![beat, entry(2, &[("a", 2)], &[]), entry(3, &[("a", 1)], &[])])), [3, 9, 2]);
    }

    #[test]
    fn pieces_of_a_step_stay_in_order() {
        let piece = |piece| Entry { key: Key { step: step(1), piece }, ..entry(1, &[], &[]) };
        let ordered = order(vec![piece(2), piece(0), entry(0, &[("a", 1)], &[1]), piece(1)]);
        assert_eq!(ordered.iter().map(|entry| entry.key.piece).collect::<Vec<_>>(), [0, 1, 2, 0]);
    }

    #[test]
    fn what_waits_for_each_other_is_placed_all_the_same() {
        assert_eq!(named(&order(vec![entry(1, &[("a", 1)], &[2]), entry(2, &[("b", 1)], &[1])])), [1, 2]);
    }

    #[test]
    fn one_look_is_enough_where_every_cause_is_seen_or_known() {
        let mut known = Known::default();
        let first = look(&[entry(2, &[("a", 2)], &[])]);
        assert!(!is_closed(&first, &known));
        known.note(&entry(1, &[("a", 1)], &[]));
        assert!(is_closed(&first, &known));
        assert!(is_closed(&look(&[entry(2, &[("a", 2)], &[]), entry(1, &[("a", 1)], &[])]), &Known::default()));
        let named_step = look(&[entry(5, &[("b", 1)], &[1])]);
        assert!(is_closed(&named_step, &known) && !is_closed(&named_step, &Known::default()));
    }

    #[test]
    fn after_a_second_look_causes_go_along_and_what_is_newer_waits() {
        let effect = entry(2, &[("a", 2)], &[]);
        let (cause, newer) = (entry(1, &[("a", 1)], &[]), entry(3, &[("b", 5)], &[]));
        let second = look(&[effect.clone(), cause.clone(), newer]);
        assert_eq!(named(&order(settled(&look(std::slice::from_ref(&effect)), second, &Known::default()))), [1, 2]);
        // The cause was placed between the looks.
        assert_eq!(named(&settled(&look(std::slice::from_ref(&effect)), look(std::slice::from_ref(&effect)), &Known::default())), [2]);
        // Everything was, by somebody else.
        assert!(settled(&look(&[effect]), look(&[]), &Known::default()).is_empty());
    }

    #[test]
    fn what_may_have_causes_beyond_the_look_waits() {
        let effect = entry(2, &[("a", 2)], &[]);
        let free = entry(3, &[("b", 1)], &[]);
        let both = [effect.clone(), free.clone(), entry(4, &[("c", 1)], &[2])];
        let second = Look::cut_after(both.to_vec(), Key { step: step(4), piece: 0 });
        assert_eq!(named(&settled(&look(&both), second, &Known::default())), [3]);
    }
}
