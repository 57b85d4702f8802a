//! Where the entries of one log begin in one journal. A server that runs many short commands has tens of thousands of
//! these, so the usual handful of entries costs no allocation.

const INLINE: usize = 6;

/// Offsets in a journal, rising.
#[derive(Debug, Clone)]
pub(crate) enum Spots {
    Few { len: u8, at: [u32; INLINE] },
    Many(Vec<u32>),
}

impl Default for Spots {
    fn default() -> Self {
        Self::Few { len: 0, at: [0; INLINE] }
    }
}

impl Spots {
    pub(crate) fn push(&mut self, spot: u32) {
        match self {
            Self::Few { len, at } if usize::from(*len) < INLINE => {
                at[usize::from(*len)] = spot;
                *len += 1;
            }
            Self::Few { at, .. } => {
                let mut many = at.to_vec();
                many.push(spot);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.push(spot),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        match self {
            Self::Few { len, at } => &at[..usize::from(*len)],
            Self::Many(many) => many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_keep_their_order_beyond_the_inline_ones() {
        let mut spots = Spots::default();
        for spot in 0..20 {
            spots.push(spot);
            assert_eq!(spots.as_slice(), (0..=spot).collect::<Vec<_>>());
        }
        assert!(size_of::<Spots>() <= 32);
    }
}
