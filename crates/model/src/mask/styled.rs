//! Looks past the escape sequences of terminals: colours that `grep` and others put into the middle of what they print. It is needed only from an
//! escape in something that may become a secret to the end of that, beside the plain look, so that a form may have escapes in it too.

use super::Mask;
use super::automaton::{REST, State};
use super::reading::Reading;

pub(super) const ESCAPE: u8 = 0x1b;
/// A longer sequence is none.
const LONGEST_SEQUENCE: u8 = 32;

/// Where a look past escapes stands.
pub(super) struct Styled {
    pub(super) plain: Reading,
    pub(super) wrapped: Reading,
    escape: Escape,
}

/// Which part of an escape sequence was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// None: this is text.
    Text,
    /// The escape character.
    Begun,
    /// What chooses a character set, but for its last byte.
    Charset,
    /// `ESC [` and so many bytes.
    Sequence(u8),
    /// It is no sequence that is known here.
    Unknown,
}

impl Styled {
    /// A look that begins at an escape.
    pub(super) const fn new(plain: Reading, wrapped: Reading) -> Self {
        Self { plain, wrapped, escape: Escape::Text }
    }

    /// Goes on from these where they have seen more of a form: what looked like a sequence had the beginning of one in it.
    pub(super) fn deepen(&mut self, mask: &Mask, other: Self) {
        if mask.plain.depth(other.plain.state) > mask.plain.depth(self.plain.state) {
            self.plain = other.plain;
        }
        if mask.wrapped.depth(other.wrapped.state) > mask.wrapped.depth(self.wrapped.state) {
            self.wrapped = other.wrapped;
        }
    }

    /// Takes one byte. The place where the longest form that ends with it begins.
    pub(super) fn step(&mut self, mask: &Mask, byte: u8, place: u64, bridges: impl Fn(State) -> bool) -> Option<u64> {
        let was = self.escape;
        self.escape = was.after(byte);
        if was != Escape::Text || byte == ESCAPE {
            return None;
        }
        let plain = self.plain.step(&mask.plain, byte, place);
        let wrapped = if !super::is_break(byte) {
            self.wrapped.step(&mask.wrapped, byte, place)
        } else {
            if self.wrapped.state != REST && !bridges(self.wrapped.state) {
                self.wrapped.forget();
            }
            None
        };
        plain.into_iter().chain(wrapped).min()
    }

    /// Whether the plain look sees all that this one does.
    pub(super) fn is_over(&self, plain: State, wrapped: State) -> bool {
        let has = |reading: &Reading, state| reading.state == REST || reading.state == state;
        match self.escape {
            Escape::Text => has(&self.plain, plain) && has(&self.wrapped, wrapped),
            Escape::Unknown => true,
            _ => self.plain.state == REST && self.wrapped.state == REST,
        }
    }

    /// Where what could still become a form begins.
    pub(super) fn begins(&self) -> Option<u64> {
        self.plain.begins().into_iter().chain(self.wrapped.begins()).min()
    }

    /// Where the telling part of a form begins that is cut off here.
    pub(super) fn cut_off(&self, mask: &Mask) -> Option<u64> {
        self.plain.cut_off(&mask.plain).into_iter().chain(self.wrapped.cut_off(&mask.wrapped)).min()
    }
}

impl Escape {
    const fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, ESCAPE) => Self::Begun,
            (Self::Begun, b'[') => Self::Sequence(0),
            (Self::Begun, b'(' | b')') => Self::Charset,
            (Self::Sequence(seen), 0x20..=0x3f) if seen < LONGEST_SEQUENCE => Self::Sequence(seen + 1),
            (Self::Sequence(_), 0x40..=0x7e) | (Self::Charset, 0x20..=0x7e) | (Self::Text, _) => Self::Text,
            _ => Self::Unknown,
        }
    }
}
