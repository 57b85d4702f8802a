//! Short ids: the last digits of an id, as many as tell the ids on the screen apart. Every command
//! takes them in place of the whole id.

use crate::failure::Failure;

/// The fewest digits that a server takes.
pub(crate) const MIN_DIGITS: usize = 6;
const ID_DIGITS: usize = 32;

/// How ids are shown: whole, or by their last digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortIds {
    digits: usize,
}

impl ShortIds {
    /// Short where `compact` is set: with as many digits as these ids need.
    pub(crate) fn of<'a>(compact: bool, ids: impl IntoIterator<Item = &'a str>) -> Self {
        if !compact {
            return Self { digits: ID_DIGITS };
        }
        let mut ids: Vec<&str> = ids.into_iter().filter(|id| is_whole(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let is_enough = |digits: &usize| {
            let mut ends: Vec<&str> = ids.iter().map(|id| end(id, *digits)).collect();
            ends.sort_unstable();
            ends.windows(2).all(|pair| pair[0] != pair[1])
        };
        Self { digits: (MIN_DIGITS..ID_DIGITS).find(is_enough).unwrap_or(ID_DIGITS) }
    }

    /// The id as it is shown. A text that is not a whole id stays as it is.
    pub(crate) fn show(self, id: &str) -> &str {
        if is_whole(id) { end(id, self.digits) } else { id }
    }

    /// A text with each whole id in it shortened: `JOB:0192…`.
    pub(crate) fn shorten(self, text: &str) -> String {
        let mut short = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
            let run = rest[at..].find(|c: char| !c.is_ascii_hexdigit()).map_or(rest.len(), |end| at + end);
            short.push_str(&rest[..at]);
            short.push_str(self.show(&rest[at..run]));
            rest = &rest[run..];
        }
        short + rest
    }
}

/// Whether a text is a whole id.
pub(crate) fn is_whole(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The failure where fewer digits were typed than a server takes.
pub(crate) fn too_short(typed: &str) -> Failure {
    Failure::usage(format!("`{typed}` is too short for an id")).why(format!("give at least {MIN_DIGITS} digits of its beginning or end"))
}

fn end(id: &str, digits: usize) -> &str {
    &id[id.len() - digits..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0192ab00000070008000000000123456";
    const B: &str = "0192ab00000070008000000001123456";

    #[test]
    fn ids_are_as_short_as_they_can_be_told_apart() {
        assert_eq!(ShortIds::of(true, [A]).show(A), "123456");
        let both = ShortIds::of(true, [A, B, A]);
        assert_eq!((both.show(A), both.show(B)), ("0123456", "1123456"));
        assert_eq!(ShortIds::of(false, [A]).show(A), A);
        assert_eq!(ShortIds::of(true, [A]).show("local"), "local");
    }

    #[test]
    fn ids_within_a_text_are_shortened() {
        let ids = ShortIds::of(true, [A]);
        assert_eq!(ids.shorten(&format!("JOB:{A}")), "JOB:123456");
        assert_eq!(ids.shorten("USER:ana@example.com deadbeef é"), "USER:ana@example.com deadbeef é");
    }
}
