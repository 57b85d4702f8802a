//! The small glob that rules are written in: `*` stands for any characters, also none and also blanks, `?` for exactly one, everything else for
//! itself. A pattern must fit the whole text and letters count as they are written. There is no way to escape: rules have no use for it.

/// A pattern has at most this many bytes.
pub const MOST_PATTERN_BYTES: usize = 512;

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to {MOST_PATTERN_BYTES} bytes, no control characters and no blanks around it")]
pub struct InvalidPattern;

/// Whether a text can be a pattern.
pub fn check(pattern: &str) -> Result<(), InvalidPattern> {
    let has_fair_length = (1..=MOST_PATTERN_BYTES).contains(&pattern.len());
    let can_match = pattern.trim() == pattern && !pattern.chars().any(char::is_control);
    if has_fair_length && can_match { Ok(()) } else { Err(InvalidPattern) }
}

/// Whether the pattern fits the whole text.
///
/// Only the last `*` is ever tried again, because what an earlier one could give back the last one can take as well. So the work is at most the
/// length of the text times that of the pattern, which is bounded, and never exponential.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    let (mut i, mut j) = (0, 0);
    let mut star = None;
    while j < t.len() {
        match p.get(i) {
            Some(b'*') => {
                i += 1;
                if i == p.len() {
                    return true;
                }
                star = Some((i, j));
            }
            Some(b'?') => {
                i += 1;
                j += width(t[j]);
            }
            Some(byte) if *byte == t[j] => {
                i += 1;
                j += 1;
            }
            _ => {
                let Some((after, taken)) = star else { return false };
                i = after;
                j = taken + width(t[taken]);
                star = Some((i, j));
            }
        }
    }
    p[i..].iter().all(|byte| *byte == b'*')
}

/// A regular expression that fits the whole text or not at all. Its matching time is linear in the text.
pub fn whole_regex(pattern: &str) -> Result<regex::Regex, String> {
    check(pattern).map_err(|error| error.to_string())?;
    let build = |text: &str| regex::RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build();
    // On its own first: `a)|(b` is none, but would be one inside the group.
    build(pattern).and_then(|_| build(&format!(r"\A(?:{pattern})\z"))).map_err(|error| format!("is not a regular expression: {error}"))
}

/// What a compiled regular expression takes at most.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Bytes of the character that begins with this byte.
const fn width(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a pattern means, said as plainly as possible.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|taken| naive(rest, &text[taken..])),
            (['?', rest @ ..], [_, text @ ..]) => naive(rest, text),
            ([p, rest @ ..], [t, text @ ..]) => p == t && naive(rest, text),
            _ => false,
        }
    }

    #[test]
    fn a_pattern_fits_the_whole_text_or_not_at_all() {
        let fits = [
            ("a", "a"),
            ("*", ""),
            ("*", "a b\nc"),
            ("a*", "a"),
            ("a?c", "aüc"),
            ("*.prod", "db.prod"),
            ("a*b*c", "aXbYbZc"),
            ("[a]", "[a]"),
        ];
        for (pattern, text) in fits {
            assert!(matches(pattern, text), "{pattern:?} {text:?}");
        }
        for (pattern, text) in [
            ("a", "A"),
            ("a", "ab"),
            ("a", "ba"),
            ("?", ""),
            ("??", "ü"),
            ("", "a"),
            ("a*b", "abc"),
            ("[a]", "a"),
            ("kubectl get *", "kubectl get"),
        ] {
            assert!(!matches(pattern, text), "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn what_can_never_match_is_no_pattern() {
        for good in ["*", "kubectl get *", "ü", &"a".repeat(512)] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in ["", " a", "a ", "a\nb", "a\0", &"a".repeat(513)] {
            assert_eq!(check(bad), Err(InvalidPattern), "{bad:?}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = "a*".repeat(250) + "b";
        assert!(!matches(&pattern, &"a".repeat(20_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn matching_is_what_it_means(pattern in "[abü*?]{0,8}", text in "[abü*?]{0,10}") {
            let (p, t): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(matches(&pattern, &text), naive(&p, &t));
        }

        #[test]
        fn a_text_opened_up_is_still_fitted(text in "[a-d ü]{0,12}", opened in proptest::collection::vec(0..3u8, 12)) {
            let pattern: String = text.chars().zip(opened).map(|(c, how)| match how { 0 => c, 1 => '?', _ => '*' }).collect();
            prop_assert!(matches(&pattern, &text));
        }
    }
}
