//! Masks secrets in what a command writes, before anything else sees it: every occurrence of a value, plain or in one of its encoded forms, becomes
//! `***`, however the bytes are cut into chunks.
//!
//! Two automata run over each stream, one over the forms that are written as they are, one over those that tools wrap (base64, hex),
//! which looks past line breaks. What either of them could still complete is held back, through silences too, so half a
//! secret is never shown; that is never more than the longest form. Overlapping occurrences are masked together.
//! Beside them `styled` looks past escape sequences of terminals, and `dump` reads the layouts of `xxd`, `hexdump` and `od`. Both cost next to
//! nothing where there are none.

mod automaton;
mod dump;
mod form;
mod reading;
mod stand;
mod styled;

use std::sync::Arc;

use self::automaton::{Automaton, REST, State};
use self::dump::{Dump, Window};
use self::form::{Forms, Variety};
use self::reading::Reading;
pub use self::stand::MaskStand;
use self::styled::{ESCAPE, Styled};

/// What stands for a secret.
const STARS: &[u8] = b"***";
/// A value of fewer characters has no encoded forms: they would be found in ordinary text.
const SHORTEST_ENCODED: usize = 6;
/// A value of fewer characters is not masked: every second line would hold it.
const SHORTEST: usize = 3;
/// So much of a wrapped form before a line break is no coincidence.
const BRIDGE_DEPTH: usize = 8;
/// Tools that wrap write lines at least this long.
const BRIDGE_RUN: usize = 40;

/// A value of more bytes has only its usual forms: all of them would take thousands of times its size.
const LONGEST_WITH_ALL: usize = 4 * 1024;
/// So many bytes of an attempt's secrets have all forms, the smallest first.
const ALL_WITHIN: usize = 12 * 1024;
/// More bytes of secrets than this cannot be masked at all: each takes about 300 bytes of memory.
const MOST_BYTES: usize = 256 * 1024;

/// How well a value can be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// In all its forms: beside those below escaped, in base32, in base64 twice, in UTF-16.
    Full,
    /// As it is, in JSON, in base64 and in hexadecimal, and in the dumps of `xxd`, `hexdump` and `od`.
    Usual,
    /// Only as it is, and in dumps.
    PlainOnly,
    /// Not at all.
    None,
}

/// The secrets are too much to look for; how many bytes they have.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch(pub usize);

/// How well each of these values can be masked together with the others.
pub fn strengths(values: &[&str]) -> Result<Vec<Strength>, TooMuch> {
    let total = values.iter().map(|value| value.len()).sum();
    if total > MOST_BYTES {
        return Err(TooMuch(total));
    }
    let mut smallest_first: Vec<usize> = (0..values.len()).collect();
    smallest_first.sort_by_key(|at| values[*at].len());
    let (mut strengths, mut with_all) = (vec![Strength::Usual; values.len()], 0);
    for at in smallest_first {
        let value = values[at];
        strengths[at] = match value.trim().chars().count() {
            0..SHORTEST => Strength::None,
            SHORTEST..SHORTEST_ENCODED => Strength::PlainOnly,
            _ if value.len() > LONGEST_WITH_ALL || with_all + value.len() > ALL_WITHIN => Strength::Usual,
            _ => {
                with_all += value.len();
                Strength::Full
            }
        };
    }
    Ok(strengths)
}

/// The secrets of one attempt, ready to be looked for.
pub struct Mask {
    plain: Automaton,
    wrapped: Automaton,
    /// Whether each byte begins a form.
    begins: [bool; 256],
}

impl Mask {
    /// A mask of these values; `None` if there is nothing to mask. Takes up to a second where they are large.
    pub fn new(values: &[&str]) -> Result<Option<Arc<Self>>, TooMuch> {
        let mut forms = Forms::default();
        for (value, strength) in values.iter().zip(strengths(values)?) {
            match strength {
                Strength::Full => forms.add(value, SHORTEST_ENCODED, Variety::All),
                Strength::Usual => forms.add(value, SHORTEST_ENCODED, Variety::Usual),
                Strength::PlainOnly => forms.add_plain(value.trim()),
                Strength::None => {}
            }
        }
        let (plain, wrapped) = (Automaton::new(forms.plain), Automaton::new(forms.wrapped));
        if plain.is_empty() {
            return Ok(None);
        }
        let mut begins = [false; 256];
        for byte in 0..=u8::MAX {
            begins[usize::from(byte)] = plain.begins_with(byte) || wrapped.begins_with(byte);
        }
        Ok(Some(Arc::new(Self { plain, wrapped, begins })))
    }

    /// Masks a text that is whole.
    pub fn text(self: &Arc<Self>, text: &str) -> String {
        let (mut masker, mut masked) = (Masker::new(Arc::clone(self)), Vec::with_capacity(text.len()));
        masker.push(text.as_bytes(), &mut masked);
        masker.finish(&mut masked);
        String::from_utf8_lossy(&masked).into_owned()
    }
}

/// Masks one stream.
pub struct Masker {
    mask: Arc<Mask>,
    plain: State,
    wrapped: State,
    /// Looks past escapes, while that makes a difference.
    styled: Option<Styled>,
    dump: Dump,
    /// What is not decided yet.
    held: Vec<u8>,
    /// How many bytes of the stream came before it.
    given: u64,
    /// Where `held` is masked: apart, in order.
    spans: Vec<Span>,
    /// The last that was given out stands for a secret that ends where `held` begins.
    masking: bool,
    /// How many bytes of an encoded form's alphabet were given out last, at most [`BRIDGE_RUN`].
    run: usize,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl Masker {
    /// A masker at the beginning of a stream.
    pub fn new(mask: Arc<Mask>) -> Self {
        let (held, spans) = (Vec::new(), Vec::new());
        Self { mask, plain: REST, wrapped: REST, styled: None, dump: Dump::default(), held, given: 0, spans, masking: false, run: 0 }
    }

    /// A masker of a stream that goes on where another one [cut](Self::cut) it. One whose secrets are others by now may begin anew.
    pub fn at(mask: Arc<Mask>, stand: MaskStand) -> Self {
        if !mask.plain.has(stand.plain) || !mask.wrapped.has(stand.wrapped) {
            return Self::new(mask);
        }
        let MaskStand { plain, wrapped, masking, run } = stand;
        Self { plain, wrapped, masking, run: usize::from(run), ..Self::new(mask) }
    }

    /// Where it stands after a [cut](Self::cut).
    pub fn stand(&self) -> MaskStand {
        debug_assert!(self.held.is_empty(), "what is held back is not in the numbers");
        let run = u8::try_from(self.run).expect("at most BRIDGE_RUN");
        MaskStand { plain: self.plain, wrapped: self.wrapped, masking: self.masking, run }
    }

    /// Takes bytes of the stream and gives out, masked, what is decided by now.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let from = self.held.len();
        self.held.extend_from_slice(bytes);
        self.scan(from);
        self.with_dump(|dump, automaton, window, cover| dump.scan(automaton, window, from, cover));
        let plain_from = self.held.len().saturating_sub(self.mask.plain.depth(self.plain));
        let wrapped_from = letters_back(&self.held, self.mask.wrapped.depth(self.wrapped));
        let styled_from = self.styled.as_ref().and_then(Styled::begins);
        let dump_from = self.dump.begins(self.given + self.held.len() as u64);
        let others = styled_from.into_iter().chain(dump_from).min().map_or(usize::MAX, |place| self.index(place));
        self.give_out(plain_from.min(wrapped_from).min(others), out);
    }

    /// The stream has ended: gives out the rest. What looks like the better part of a secret is masked too.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.cover_cut_off();
        self.give_out(self.held.len(), out);
        (self.plain, self.wrapped, self.masking, self.run) = (REST, REST, false, 0);
    }

    /// What was written so far goes out whole, and the stream goes on: what looks like the better part of a secret is masked, and so is whatever completes one
    /// that began before. Nothing is held back, at the price that the first few bytes of a secret that is cut here are seen.
    /// Dumps and what looks past escapes begin anew.
    pub fn cut(&mut self, out: &mut Vec<u8>) {
        self.cover_cut_off();
        self.give_out(self.held.len(), out);
    }

    fn cover_cut_off(&mut self) {
        let plain = self.held.len() - self.mask.plain.cut_off(self.plain).min(self.held.len());
        let wrapped = letters_back(&self.held, self.mask.wrapped.cut_off(self.wrapped));
        let styled = self.styled.take().and_then(|styled| styled.cut_off(&self.mask)).map_or(usize::MAX, |place| self.index(place));
        let start = plain.min(wrapped).min(styled);
        if start < self.held.len() {
            self.cover(start, self.held.len());
        }
        self.with_dump(Dump::finish);
    }

    /// Lets the dump look at what is held, and covers what it finds.
    fn with_dump(&mut self, look: impl FnOnce(&mut Dump, &Automaton, Window<'_>, &mut dyn FnMut(usize, usize))) {
        let (mask, held, mut dump) = (Arc::clone(&self.mask), std::mem::take(&mut self.held), std::mem::take(&mut self.dump));
        look(&mut dump, &mask.plain, Window { held: &held, given: self.given }, &mut |start, end| self.cover(start, end));
        (self.held, self.dump) = (held, dump);
    }

    /// Where in what is held a place of the stream is.
    fn index(&self, place: u64) -> usize {
        usize::try_from(place.saturating_sub(self.given)).unwrap_or(usize::MAX)
    }

    /// Moves both automata over the bytes from `from` on.
    fn scan(&mut self, from: usize) {
        let mask = Arc::clone(&self.mask);
        // Out of `self` while nothing happens, which is most of the time.
        let held = std::mem::take(&mut self.held);
        let (mut plain, mut wrapped, mut at) = (self.plain, self.wrapped, from);
        let mut styled = self.styled.take();
        while at < held.len() {
            let byte = held[at];
            if plain == REST && wrapped == REST && !mask.begins[usize::from(byte)] && styled.is_none() {
                at += 1;
                continue;
            }
            if byte == ESCAPE {
                let begun = self.look_past_escapes(&held[..at], plain, wrapped);
                match &mut styled {
                    Some(text) => text.deepen(&mask, begun),
                    None => styled = Some(begun),
                }
            }
            plain = mask.plain.step(plain, byte);
            let length = mask.plain.found(plain);
            if length > 0 {
                self.cover((at + 1).saturating_sub(length), at + 1);
            }
            if !is_break(byte) {
                wrapped = mask.wrapped.step(wrapped, byte);
                let length = mask.wrapped.found(wrapped);
                if length > 0 {
                    self.cover(letters_back(&held[..=at], length), at + 1);
                }
            } else if wrapped != REST && !self.bridges(&held[..at], wrapped) {
                wrapped = REST;
            }
            if let Some(text) = &mut styled {
                let place = self.given + at as u64;
                if let Some(start) = text.step(&mask, byte, place, |state| self.bridges(&held[..at], state)) {
                    self.cover(self.index(start), at + 1);
                }
                if text.is_over(plain, wrapped) {
                    styled = None;
                }
            }
            at += 1;
        }
        (self.held, self.plain, self.wrapped, self.styled) = (held, plain, wrapped, styled);
    }

    /// A look past escapes that goes on from where both automata are, after these bytes.
    fn look_past_escapes(&self, before: &[u8], plain: State, wrapped: State) -> Styled {
        let place = |at: usize| self.given + at as u64;
        let plain_from = before.len().saturating_sub(self.mask.plain.depth(plain));
        let letters = letters_back(before, self.mask.wrapped.depth(wrapped))..before.len();
        let of_letters = letters.filter(|at| !is_break(before[*at])).map(place);
        Styled::new(Reading::at(plain, (plain_from..before.len()).map(place)), Reading::at(wrapped, of_letters))
    }

    /// Whether a wrapped form may go on after a line break here. Otherwise the last letter of many an ordinary line would be held
    /// back until the next.
    fn bridges(&self, before: &[u8], wrapped: State) -> bool {
        let line = before.strip_suffix(b"\r").unwrap_or(before);
        if line.last().is_some_and(|byte| is_break(*byte)) {
            // An empty line ends it.
            return false;
        }
        let run = line.iter().rev().take(BRIDGE_RUN).take_while(|byte| is_encoded(**byte)).count();
        let run = if run == line.len() { run + self.run } else { run };
        run >= BRIDGE_RUN || self.mask.wrapped.depth(wrapped) >= BRIDGE_DEPTH
    }

    /// Masks a part of `held`, together with what it touches.
    fn cover(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let first = self.spans.partition_point(|span| span.end < start);
        let after = self.spans.partition_point(|span| span.start <= end).max(first);
        let join = |whole: Span, span: &Span| Span { start: whole.start.min(span.start), end: whole.end.max(span.end) };
        let whole = self.spans[first..after].iter().fold(Span { start, end }, join);
        self.spans.splice(first..after, [whole]);
    }

    /// Gives out the first `upto` bytes, masked.
    fn give_out(&mut self, upto: usize, out: &mut Vec<u8>) {
        if upto == 0 {
            return;
        }
        let mut at = 0;
        let mut masking = self.masking;
        for span in self.spans.iter().take_while(|span| span.start < upto) {
            out.extend_from_slice(&self.held[at..span.start]);
            // A span from the very beginning goes on with what was masked before.
            if span.start > 0 || !masking {
                out.extend_from_slice(STARS);
            }
            at = span.end.min(upto);
            masking = true;
        }
        out.extend_from_slice(&self.held[at..upto]);
        self.masking = masking && at == upto;
        let run = self.held[..upto].iter().rev().take(BRIDGE_RUN).take_while(|byte| is_encoded(**byte)).count();
        self.run = if run == upto { (self.run + run).min(BRIDGE_RUN) } else { run };
        self.held.drain(..upto);
        self.given += upto as u64;
        self.spans.retain_mut(|span| {
            (span.start, span.end) = (span.start.saturating_sub(upto), span.end.saturating_sub(upto));
            span.end > 0
        });
    }
}

/// Where the last `count` bytes that are no line breaks begin.
fn letters_back(bytes: &[u8], count: usize) -> usize {
    let mut letters = (0..bytes.len()).rev().filter(|at| !is_break(bytes[*at]));
    match count {
        0 => bytes.len(),
        count => letters.nth(count - 1).unwrap_or(0),
    }
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte)
}

#[cfg(test)]
mod tests;
