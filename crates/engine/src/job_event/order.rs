//! Puts the events of an attempt in the order of their sequences while they come. Requests of one worker may overtake each other, so an event behind a gap waits until
//! the gap is filled; but not for long, for a worker may leave numbers out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use runvoy_model::job_event::{JobEvent, Kept, Place};
use tokio::time::Instant;

/// An event waits for those before it for so long.
const HELD_FOR: Duration = Duration::from_secs(1);
/// About this much waits at most.
const HELD_BYTES: usize = 4 << 20;

/// Tells which sequences an event stands for: a batch may stand for several.
pub type Covers = fn(&JobEvent) -> RangeInclusive<u64>;

/// An event that stands for its own sequence alone.
pub(super) fn itself(event: &JobEvent) -> RangeInclusive<u64> {
    event.place.sequence..=event.place.sequence
}

/// The events of an attempt that wait for those before them.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The sequence that comes next; whichever comes first where that is not known.
    next: Option<u64>,
    events: BTreeMap<Place, (Instant, Kept)>,
    bytes: usize,
}

impl Waiting {
    /// From this sequence on. Workers begin with 0 or with 1.
    pub(super) fn from(sequence: u64) -> Self {
        Self { next: Some(sequence.max(1)), ..Self::default() }
    }

    pub(super) fn push(&mut self, kept: Kept) {
        self.bytes += size(&kept);
        if let Some((_, before)) = self.events.insert(kept.event.place, (Instant::now(), kept)) {
            self.bytes -= size(&before);
        }
    }

    /// The first event, if nothing is missing before it or too much waits.
    pub(super) fn pop(&mut self, covers: Covers) -> Option<Kept> {
        let (_, first) = self.events.values().next()?;
        let is_next = self.next.is_none_or(|next| *covers(&first.event).start() <= next);
        if is_next || self.bytes > HELD_BYTES { self.take(covers) } else { None }
    }

    /// The first event, whatever is missing before it.
    pub(super) fn take(&mut self, covers: Covers) -> Option<Kept> {
        let (_, (_, kept)) = self.events.pop_first()?;
        self.bytes -= size(&kept);
        let behind = covers(&kept.event).end().saturating_add(1);
        self.next = Some(self.next.map_or(behind, |next| next.max(behind)));
        Some(kept)
    }

    /// When the first event has waited long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.events.values().next().map(|(since, _)| *since + HELD_FOR)
    }
}

/// About how many bytes an event takes.
fn size(kept: &Kept) -> usize {
    kept.event.output.iter().map(|piece| piece.bytes.len() + 32).sum::<usize>() + kept.event.envelope.len() + 128
}

#[cfg(test)]
mod tests {
    use runvoy_model::job_event::{Lines, Mark, Piece};
    use runvoy_model::log::Stream;
    use runvoy_model::time::UnixMs;

    use super::*;

    fn kept(sequence: u64, bytes: usize) -> Kept {
        let output = vec![Piece { stream: Stream::Stdout, at: UnixMs(0), bytes: vec![b'x'; bytes] }];
        let event =
            JobEvent { place: Place { sequence, part: 0 }, kind: 5, at: UnixMs(0), envelope: Vec::new(), output, texts: Vec::new() };
        let masks = Default::default();
        let mark = Mark { first_line_seq: 1, lines: Lines::default(), full: false, in_order: true, straggled: false, masks };
        Kept { attempt: 1, event, mark }
    }

    fn popped(waiting: &mut Waiting, covers: Covers) -> Vec<u64> {
        std::iter::from_fn(|| waiting.pop(covers)).map(|kept| kept.event.place.sequence).collect()
    }

    #[tokio::test]
    async fn an_event_behind_a_gap_waits_until_it_is_filled() {
        let mut waiting = Waiting::from(0);
        for (sequence, expected) in [(1, &[1][..]), (4, &[]), (3, &[]), (2, &[2, 3, 4]), (0, &[0]), (6, &[])] {
            waiting.push(kept(sequence, 1));
            assert_eq!(popped(&mut waiting, itself), expected, "{sequence}");
        }
        assert!(waiting.due().is_some());
        assert_eq!(waiting.take(itself).map(|kept| kept.event.place.sequence), Some(6), "whatever is missing");
        assert!(waiting.due().is_none());
    }

    #[tokio::test]
    async fn a_batch_fills_the_gap_that_it_stands_for() {
        let covers: Covers = |event| if event.place.sequence == 5 { 2..=7 } else { itself(event) };
        let mut waiting = Waiting::from(0);
        for (sequence, expected) in [(1, &[1][..]), (5, &[5]), (8, &[8])] {
            waiting.push(kept(sequence, 1));
            assert_eq!(popped(&mut waiting, covers), expected, "{sequence}");
        }
    }

    #[tokio::test]
    async fn no_more_waits_than_there_is_room_for() {
        let mut waiting = Waiting::from(0);
        (5..9).for_each(|sequence| waiting.push(kept(sequence, HELD_BYTES / 3)));
        assert_eq!(popped(&mut waiting, itself), [5, 6, 7, 8]);
        assert_eq!(waiting.bytes, 0);
    }
}
