//! Log records as events of CloudWatch Logs, cut into what one call takes. Pure.

use runvoy_model::log::Block;
use runvoy_model::time::UnixMs;

/// What one call takes at most.
const MOST_EVENTS: usize = 10_000;
const MOST_BYTES: usize = 1 << 20;
/// What an event counts beside its text.
pub(super) const EVENT_BYTES: usize = 26;
/// What one event takes at most, with what it counts.
const MOST_EVENT_BYTES: usize = 256 << 10;
/// The events of one call are less than a day apart.
const MOST_SPAN_MS: i64 = 24 * 60 * 60 * 1000 - 1;
/// At the end of an event whose line goes on in the next one.
pub(super) const GOES_ON: &str = " [goes on]";

/// A line for the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub at: UnixMs,
    pub text: String,
}

impl Event {
    fn size(&self) -> usize {
        self.text.len() + EVENT_BYTES
    }
}

/// The records of a block as events: what is no UTF-8 is shown as such, and a line that is too long becomes several.
pub(super) fn events(block: &Block) -> Vec<Event> {
    let mut events = Vec::with_capacity(block.count as usize);
    for record in block.records().map_while(Result::ok) {
        // No event is empty, and none is from before 1970.
        let at = record.at.max(UnixMs(0));
        let text = if record.bytes.is_empty() { " ".into() } else { String::from_utf8_lossy(record.bytes) };
        let mut rest = &*text;
        while rest.len() + EVENT_BYTES > MOST_EVENT_BYTES {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(MOST_EVENT_BYTES - EVENT_BYTES - GOES_ON.len()));
            events.push(Event { at, text: format!("{piece}{GOES_ON}") });
            rest = more;
        }
        events.push(Event { at, text: rest.to_owned() });
    }
    events
}

/// Events in the order of their times, in batches that one call takes each.
pub(super) fn batches(mut events: Vec<Event>) -> Vec<Vec<Event>> {
    events.sort_by_key(|event| event.at);
    let (mut batches, mut bytes): (Vec<Vec<Event>>, usize) = (Vec::new(), 0);
    for event in events {
        let fits = batches.last().is_some_and(|batch| {
            let span = batch.first().map_or(0, |first| event.at.0 - first.at.0);
            batch.len() < MOST_EVENTS && bytes + event.size() <= MOST_BYTES && span <= MOST_SPAN_MS
        });
        match batches.last_mut().filter(|_| fits) {
            Some(batch) => {
                bytes += event.size();
                batch.push(event);
            }
            None => {
                bytes = event.size();
                batches.push(vec![event]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};

    use super::*;

    fn event(at: i64, len: usize) -> Event {
        Event { at: UnixMs(at), text: "x".repeat(len) }
    }

    fn block(lines: &[(i64, &[u8])]) -> Block {
        let mut builder = BlockBuilder::default();
        for (at, bytes) in lines {
            builder.push(Record { at: UnixMs(*at), stream: Stream::Stdout, cont: false, eol: true, bytes });
        }
        builder.take()
    }

    #[test]
    fn batches_keep_every_limit_and_the_order() {
        let mut many: Vec<Event> = (0..25_000).map(|number| event((number * 7919) % 1_000, 1)).collect();
        many.extend((0..40).map(|number| event(500 + number, 100_000)));
        many.push(event(2 * MOST_SPAN_MS, 3));
        let cut = batches(many.clone());
        assert_eq!(cut.iter().map(Vec::len).sum::<usize>(), many.len());
        for batch in &cut {
            assert!(batch.len() <= MOST_EVENTS);
            assert!(batch.iter().map(Event::size).sum::<usize>() <= MOST_BYTES);
            assert!(batch.is_sorted_by_key(|event| event.at));
            assert!(batch[batch.len() - 1].at.0 - batch[0].at.0 <= MOST_SPAN_MS);
        }
        assert!(cut.concat().is_sorted_by_key(|event| event.at));
        assert!(batches(Vec::new()).is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_says_that_it_goes_on() {
        let long = "é".repeat(200_000);
        let events = events(&block(&[(7, long.as_bytes())]));
        assert!(events.len() > 1);
        assert!(events.iter().all(|event| event.size() <= MOST_EVENT_BYTES && event.at == UnixMs(7)));
        let (last, others) = events.split_last().expect("events");
        let whole: String = others.iter().map(|event| event.text.strip_suffix(GOES_ON).expect("it goes on")).collect();
        assert_eq!(whole + &last.text, long);
    }

    #[test]
    fn whatever_is_written_can_be_shown() {
        let events = events(&block(&[(-5, b""), (3, b"\xff\0x")]));
        assert_eq!(events, [Event { at: UnixMs(0), text: " ".into() }, Event { at: UnixMs(3), text: "\u{fffd}\0x".into() }]);
    }
}
