//! One way to read a stream in which some bytes say nothing: an automaton over those that do, and where in the stream each of them is.

use std::collections::VecDeque;

use super::automaton::{Automaton, REST, State};

/// Where an automaton stands in a text that is spread over a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) state: State,
    /// The places, counted from the beginning of the stream, of the last bytes that could still become a form.
    places: VecDeque<u64>,
}

impl Reading {
    /// A reading that goes on from a state, with the places of the bytes that led there.
    pub(super) fn at(state: State, places: impl Iterator<Item = u64>) -> Self {
        Self { state, places: places.collect() }
    }

    /// Takes one more byte of the text. The place where the longest form that ends with it begins.
    pub(super) fn step(&mut self, automaton: &Automaton, byte: u8, place: u64) -> Option<u64> {
        self.state = automaton.step(self.state, byte);
        self.places.push_back(place);
        let excess = self.places.len().saturating_sub(automaton.depth(self.state));
        self.places.drain(..excess);
        self.back(automaton.found(self.state))
    }

    /// Where what could still become a form begins.
    pub(super) fn begins(&self) -> Option<u64> {
        self.places.front().copied()
    }

    /// Where the telling part of a form begins that a stream which ends here would cut off.
    pub(super) fn cut_off(&self, automaton: &Automaton) -> Option<u64> {
        self.back(automaton.cut_off(self.state))
    }

    pub(super) fn forget(&mut self) {
        self.state = REST;
        self.places.clear();
    }

    /// Where the last `count` bytes begin.
    fn back(&self, count: usize) -> Option<u64> {
        if count == 0 { None } else { self.places.get(self.places.len().checked_sub(count)?).copied() }
    }
}
