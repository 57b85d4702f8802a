//! Where a masker stands between two parts of a stream that each went out whole, as numbers that can be kept: places in the automata of its mask. They say how
//! much of a secret was seen, and to whoever does not have the secrets nothing of what it was.

use super::automaton::State;

/// Where a masker stands; the default is the beginning of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaskStand {
    pub(super) plain: State,
    pub(super) wrapped: State,
    pub(super) masking: bool,
    pub(super) run: u8,
}

impl MaskStand {
    /// How many numbers it is.
    pub const NUMBERS: usize = 3;

    /// It as numbers.
    pub fn to_numbers(self) -> [u64; Self::NUMBERS] {
        [self.plain.into(), self.wrapped.into(), (u64::from(self.run) << 1) | u64::from(self.masking)]
    }

    /// From its numbers; what cannot be is the beginning of a stream.
    pub fn of_numbers([plain, wrapped, last]: [u64; Self::NUMBERS]) -> Self {
        match (State::try_from(plain), State::try_from(wrapped), u8::try_from(last >> 1)) {
            (Ok(plain), Ok(wrapped), Ok(run)) => Self { plain, wrapped, masking: last & 1 == 1, run },
            _ => Self::default(),
        }
    }
}
