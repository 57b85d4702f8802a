//! The forms in which a secret may be written: as it is, and as the tools that print things encode and escape it. Pure.
//!
//! A value of several lines also counts line by line, and a long one is cut into overlapping pieces, so that no form is
//! longer than what a stream may hold back.

mod escape;
mod pack;

/// The longest piece of a value, in bytes.
const PIECE: usize = 1_024;
/// How much neighbouring pieces share: more than any encoding lets its edges depend on what is around.
const OVERLAP: usize = 16;

/// The forms of several values.
#[derive(Default)]
pub(super) struct Forms {
    /// Written as they are.
    pub(super) plain: Vec<Vec<u8>>,
    /// May be wrapped: a line break inside them means nothing.
    pub(super) wrapped: Vec<Vec<u8>>,
}

impl Forms {
    /// Adds a value in all its forms, whole and line by line.
    pub(super) fn add(&mut self, value: &str, shortest: usize) {
        self.add_pieces(value);
        self.add_pieces(value.trim());
        if value.trim().contains(['\n', '\r']) {
            self.add_pieces(&value.replace("\r\n", "\n").replace('\n', "\r\n"));
            for line in value.split(['\n', '\r']).map(str::trim).filter(|line| line.chars().count() >= shortest) {
                self.add_pieces(line);
            }
        }
    }

    /// Adds a value as it is and in no other form.
    pub(super) fn add_plain(&mut self, value: &str) {
        self.plain.push(value.as_bytes().to_vec());
    }

    fn add_pieces(&mut self, value: &str) {
        let mut from = 0;
        loop {
            let end = value.ceil_char_boundary(from + PIECE);
            let piece = &value[from..end];
            self.plain.extend(escape::forms(piece));
            self.wrapped.extend(pack::forms(piece.as_bytes()));
            if end == value.len() {
                return;
            }
            from = value.floor_char_boundary(end - OVERLAP);
        }
    }
}
