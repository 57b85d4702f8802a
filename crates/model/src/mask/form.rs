//! The forms in which a secret may be written: as it is, and as the tools that print things encode and escape it. Pure.
//!
//! A value of several lines also counts line by line, and a long one is cut into overlapping pieces, so that no form is
//! longer than what a stream may hold back. Every byte of a form costs memory, so a large value has only the forms of [`Variety::Usual`].

mod escape;
mod pack;

use std::collections::BTreeSet;

/// The longest piece of a value, in bytes.
const PIECE: usize = 1_024;
/// How much neighbouring pieces share: more than any encoding lets its edges depend on what is around.
const OVERLAP: usize = 16;

/// Which forms a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variety {
    /// Every form there is.
    All,
    /// As it is, in JSON, in base64 and in hexadecimal; its single lines, and itself with returns before its line breaks, as they are and in JSON.
    Usual,
}

/// The forms of several values.
#[derive(Default)]
pub(super) struct Forms {
    /// Written as they are.
    pub(super) plain: Vec<Vec<u8>>,
    /// May be wrapped: a line break inside them means nothing.
    pub(super) wrapped: Vec<Vec<u8>>,
}

impl Forms {
    /// Adds a value, whole and line by line.
    pub(super) fn add(&mut self, value: &str, shortest: usize, variety: Variety) {
        let trimmed = value.trim();
        let mut whole: BTreeSet<&str> = pieces(trimmed).collect();
        if variety == Variety::All {
            whole.extend(pieces(value));
        }
        for piece in whole {
            self.escape(piece, variety);
            self.wrapped.extend(pack::forms(piece.as_bytes(), variety));
            if variety == Variety::All {
                self.wrapped.extend(pack::rare_forms(piece.as_bytes()));
                let both = pack::utf16(piece);
                self.wrapped.extend(pack::base64(&both[0]));
                self.plain.extend(both);
            }
        }
        if variety == Variety::All {
            self.wrapped.extend([trimmed, value].into_iter().flat_map(|value| pack::wrapped_twice(value.as_bytes())));
        }
        if !trimmed.contains(['\n', '\r']) {
            return;
        }
        let with_returns = value.replace("\r\n", "\n").replace('\n', "\r\n");
        let lines = trimmed.split(['\n', '\r']).map(str::trim).filter(|line| line.chars().count() >= shortest);
        let parts: BTreeSet<&str> = lines.flat_map(pieces).collect();
        for piece in pieces(&with_returns).filter(|_| with_returns != value).chain(parts) {
            self.escape(piece, variety);
            if variety == Variety::All {
                self.wrapped.extend(pack::forms(piece.as_bytes(), variety));
            }
        }
    }

    /// Adds a value as it is and in no other form.
    pub(super) fn add_plain(&mut self, value: &str) {
        self.plain.push(value.as_bytes().to_vec());
    }

    fn escape(&mut self, piece: &str, variety: Variety) {
        match variety {
            Variety::All => self.plain.extend(escape::forms(piece)),
            Variety::Usual => self.plain.extend(escape::usual_forms(piece)),
        }
    }
}

/// An encoded text in pieces that overlap.
fn cut(text: &[u8]) -> Vec<Vec<u8>> {
    let from = (0..text.len()).step_by(PIECE - OVERLAP).filter(|from| *from == 0 || from + OVERLAP < text.len());
    from.map(|from| text[from..text.len().min(from + PIECE)].to_vec()).collect()
}

/// A value in pieces that overlap.
fn pieces(value: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let from = next?;
        let end = value.ceil_char_boundary(from + PIECE);
        next = (end < value.len()).then(|| value.floor_char_boundary(end - OVERLAP));
        Some(&value[from..end])
    })
}
