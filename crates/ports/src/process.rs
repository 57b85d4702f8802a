//! The process of an attempt in the event of its start. An attempt is recorded before its process is there, so what is stored of its start names none; the first later
//! event of the attempt that names one tells. Readers are given the start with that process, and those who follow wait a moment for it.

use runvoy_model::event::{Event, EventType};
use runvoy_model::time::UnixMs;
use serde_json::Value;

use crate::store::{EventQuery, StoredEvent};

/// Workers name the process a second after its start at the latest, or with its end: those who follow wait for it so long.
pub const NAMED_WITHIN_MS: i64 = 3_000;
/// So many later events are looked at: the first heartbeat and the end name it.
const LOOKED_AT: usize = 16;

const ATTEMPT: &str = "attempt";
const PROCESS: &str = "processId";

/// What later events tell of the process of an attempt.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Process(Value),
    /// The attempt is over, and had none.
    None,
    /// Nothing yet.
    NotYet,
}

/// Names the processes of starts in a page by the later events of the page. The starts, by their index, of which it does not tell.
pub fn name_within(page: &mut [StoredEvent]) -> Vec<usize> {
    let (mut named, mut open) = (Vec::new(), Vec::new());
    for (index, start) in page.iter().enumerate().filter(|(_, stored)| is_open(&stored.event)) {
        let mut later: Vec<&StoredEvent> =
            page.iter().filter(|stored| stored.place > start.place && stored.event.entity == start.event.entity).collect();
        later.sort_by_key(|stored| stored.place);
        match told(&start.event, later) {
            Told::Process(process) => named.push((index, process)),
            Told::None => {}
            Told::NotYet => open.push(index),
        }
    }
    for (index, process) in named {
        page[index].event.properties[PROCESS] = process;
    }
    open
}

/// What tells of a start that a page does not tell of.
pub fn question(start: &StoredEvent) -> EventQuery {
    EventQuery { entity: Some(start.event.entity.clone()), after: Some(start.place), limit: LOOKED_AT, ..EventQuery::default() }
}

/// Names the process of a start by what the store answered. Whether it may be told soon: then those who follow wait for it.
pub fn answer(start: &mut StoredEvent, later: &[StoredEvent], now: UnixMs) -> bool {
    match told(&start.event, later) {
        Told::Process(process) => {
            start.event.properties[PROCESS] = process;
            false
        }
        Told::None => false,
        Told::NotYet => now.0.saturating_sub(start.event.at.0).abs() < NAMED_WITHIN_MS,
    }
}

fn is_open(event: &Event) -> bool {
    event.kind == EventType::TaskProcessingStarted && event.properties.get(PROCESS).is_none()
}

fn told<'e>(start: &Event, later: impl IntoIterator<Item = &'e StoredEvent>) -> Told {
    let is_late = |event: &Event| event.properties.get("late").is_some_and(|late| late == true);
    for event in later.into_iter().map(|stored| &stored.event).filter(|event| !is_late(event)) {
        if event.properties.get(ATTEMPT) == start.properties.get(ATTEMPT)
            && let Some(process) = event.properties.get(PROCESS)
        {
            return Told::Process(process.clone());
        }
        let is_over = matches!(
            event.kind,
            EventType::TaskPending
                | EventType::TaskProcessingStarted
                | EventType::TaskCompleted
                | EventType::TaskFailed
                | EventType::TaskTimeout
                | EventType::TaskStopped
        );
        if is_over {
            return Told::None;
        }
    }
    Told::NotYet
}

#[cfg(test)]
mod tests {
    use runvoy_model::event::Entity;
    use runvoy_model::id::{ExecutionId, Id};
    use serde_json::json;

    use super::*;

    const BEGAN: UnixMs = UnixMs(1_000_000);

    fn stored(place: u64, task: u8, kind: EventType, properties: Value) -> StoredEvent {
        let entity = Entity::task(ExecutionId::from_bytes([task; 16]));
        let event = Event {
            id: Id::from_bytes([place.to_be_bytes()[7]; 16]),
            entity,
            number: place,
            kind,
            at: BEGAN,
            context: json!({}),
            properties,
            mac: [0; 32],
        };
        StoredEvent { place, event }
    }

    fn start(place: u64, task: u8, attempt: u32) -> StoredEvent {
        stored(place, task, EventType::TaskProcessingStarted, json!({"attempt": attempt}))
    }

    fn beat(place: u64, task: u8, attempt: u32, process: u32) -> StoredEvent {
        stored(place, task, EventType::TaskHeartbeat, json!({"attempt": attempt, "processId": process}))
    }

    fn processes(page: &[StoredEvent]) -> Vec<Option<u64>> {
        let starts = page.iter().filter(|stored| stored.event.kind == EventType::TaskProcessingStarted);
        starts.map(|stored| stored.event.properties.get(PROCESS).and_then(Value::as_u64)).collect()
    }

    #[test]
    fn a_page_names_what_it_tells_in_either_order() {
        let mut page = vec![
            start(1, 1, 1),
            start(2, 2, 1),
            stored(3, 1, EventType::TaskHeartbeat, json!({"attempt": 1})),
            beat(4, 1, 1, 41),
            beat(5, 1, 1, 42),
            stored(6, 1, EventType::TaskPending, json!({"attempt": 2})),
            start(7, 1, 2),
            stored(8, 1, EventType::TaskFailed, json!({"attempt": 2})),
            start(9, 3, 1),
            beat(10, 3, 1, 43),
        ];
        let mut reversed: Vec<StoredEvent> = page.iter().rev().cloned().collect();
        assert_eq!(name_within(&mut page), [1], "of the second task nothing is told yet");
        assert_eq!(processes(&page), [Some(41), None, None, Some(43)], "the first that is named; an attempt that never had one has none");
        assert_eq!(name_within(&mut reversed), [8]);
        reversed.reverse();
        assert_eq!(reversed, page);
    }

    #[test]
    fn what_the_store_answers_names_it_and_what_may_come_is_waited_for() {
        let later = |now: i64, events: &[StoredEvent]| {
            let mut start = start(1, 1, 1);
            let waits = answer(&mut start, events, UnixMs(BEGAN.0 + now));
            (start.event.properties.get(PROCESS).and_then(Value::as_u64), waits)
        };
        assert_eq!(later(0, &[]), (None, true));
        assert_eq!(later(NAMED_WITHIN_MS, &[]), (None, false), "it is not waited for any longer");
        assert_eq!(later(-86_400_000, &[]), (None, false), "not even by a clock that was set back");
        assert_eq!(later(0, &[beat(2, 1, 1, 9)]), (Some(9), false));
        let late = stored(2, 1, EventType::TaskFailed, json!({"attempt": 1, "late": true}));
        assert_eq!(later(0, std::slice::from_ref(&late)), (None, true), "a late end ends nothing");
        assert_eq!(later(0, &[stored(2, 1, EventType::TaskFailed, json!({"attempt": 1}))]), (None, false));
        assert_eq!(later(0, &[start(2, 1, 2), beat(3, 1, 2, 9)]), (None, false), "that is the next attempt's");
    }
}
