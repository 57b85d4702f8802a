//! What is known of the events of an attempt: how far they go, which of the last are there, and how the lines stand that follow from them.

use std::collections::BTreeSet;

use runvoy_model::job_event::{JobEvent, Lines, Mark, Place};
use runvoy_model::mask::MaskStand;

use super::masks::Masks;

/// Of so many of the last places it is known whether they are there; others are looked for.
const RECENT: usize = 4_096;

/// The events of one attempt.
pub(super) struct Ledger {
    pub(super) attempt: u32,
    /// The number that the attempt's next record in the log of events will have.
    pub(super) next_record: u64,
    /// The line that it will have there, unless another attempt writes too.
    pub(super) next_line: u64,
    /// The furthest event of any attempt.
    pub(super) high: Option<(u32, Place)>,
    /// The furthest event of this one.
    pub(super) last: Option<Place>,
    /// Some came behind later ones.
    pub(super) straggled: bool,
    /// The number that the attempt's next line will have.
    pub(super) next_line_seq: u64,
    /// How the streams stand.
    pub(super) lines: Lines,
    /// The log of lines takes no more.
    pub(super) full: bool,
    pub(super) masks: Option<Masks>,
    /// How the masks stood behind the last event that was read.
    pub(super) mask_stands: [MaskStand; 2],
    recent: BTreeSet<Place>,
}

impl Ledger {
    /// The ledger of an attempt of which nothing is there.
    pub(super) fn new(attempt: u32) -> Self {
        Self {
            attempt,
            next_record: 1,
            next_line: 1,
            high: None,
            last: None,
            straggled: false,
            next_line_seq: 1,
            lines: Lines::default(),
            full: false,
            masks: None,
            mask_stands: Default::default(),
            recent: BTreeSet::new(),
        }
    }

    /// Takes an event into account that is there.
    pub(super) fn note(&mut self, place: Place) {
        self.straggled |= self.last.is_some_and(|last| place < last);
        self.high = self.high.max(Some((self.attempt, place)));
        self.last = self.last.max(Some(place));
        self.recent.insert(place);
        if self.recent.len() > RECENT {
            self.recent.pop_first();
        }
    }

    /// How an event is marked that is appended next, and has been masked.
    pub(super) fn mark(&self, event: &JobEvent) -> Mark {
        Mark {
            first_line_seq: self.next_line_seq,
            lines: self.lines,
            full: self.full,
            in_order: self.high < Some((self.attempt, event.place)),
            straggled: self.straggled || self.last.is_some_and(|last| event.place < last),
            masks: self.masks.as_ref().map_or(self.mask_stands, Masks::stands),
        }
    }

    /// Whether an event is there; `None` if that has to be looked for.
    pub(super) fn has(&self, place: Place) -> Option<bool> {
        match self.last {
            None => Some(false),
            Some(last) if place > last => Some(false),
            Some(_) if self.recent.contains(&place) => Some(true),
            // Between two recent ones everything that is there is recent; unless some stragglers were, which are forgotten first.
            Some(_) if !self.straggled && self.recent.first().is_some_and(|first| place > *first) => Some(false),
            Some(_) => None,
        }
    }

    /// Whether the attempt's events can be found by their places, up to the furthest.
    pub(super) fn is_in_order(&self) -> bool {
        !self.straggled && self.high.is_none_or(|(attempt, _)| attempt == self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sequence: u64) -> Place {
        Place { sequence, part: 0 }
    }

    #[test]
    fn what_is_there_is_known_for_the_last_ones_and_asked_for_the_others() {
        let mut ledger = Ledger::new(1);
        assert_eq!(ledger.has(place(0)), Some(false));
        (0..10_000).for_each(|number| ledger.note(place(2 * number)));
        assert_eq!(
            (ledger.has(place(20_000)), ledger.has(place(19_998)), ledger.has(place(19_997))),
            (Some(false), Some(true), Some(false))
        );
        assert_eq!((ledger.has(place(4)), ledger.is_in_order()), (None, true));
        ledger.note(place(19_997));
        assert!(ledger.straggled && !ledger.is_in_order());
        assert_eq!((ledger.has(place(19_997)), ledger.has(place(19_995))), (Some(true), None));
    }
}
