//! Phrases that messages share: how an unknown word is refused, alternatives are listed, and things are counted.

use strsim::damerau_levenshtein;

/// More alternatives than this are not listed.
const MAX_LISTED: usize = 28;
/// Words up to this length may differ by one character from what was meant, longer ones by two.
const SHORT_CHARS: usize = 5;
/// A longer word is never a mistyped one.
const MAX_BYTES: usize = 64;

/// Refuses a word: `unknown parameter color; expected region or service`, or `…; did you mean …?` if one is near.
pub fn unknown(what: &str, given: &str, known: &[&str]) -> String {
    let given = given.escape_debug();
    match nearest(&given.to_string(), known) {
        Some(meant) => format!("unknown {what} {given}; did you mean {meant}?"),
        None if known.is_empty() => format!("unknown {what} {given}; none is expected"),
        None if known.len() > MAX_LISTED => format!("unknown {what} {given}"),
        None => format!("unknown {what} {given}; expected {}", one_of(known)),
    }
}

/// `a`, `a or b`, `a, b or c`.
pub fn one_of(known: &[impl AsRef<str>]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    match known.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// `1 task`, `2 tasks`.
pub fn counted(count: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// The known word that was probably meant. Case and what separates words do not count.
fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    if given.len() > MAX_BYTES {
        return None;
    }
    let plain = fold(given);
    let most = if plain.chars().count() <= SHORT_CHARS { 1 } else { 2 };
    let distances = known.iter().map(|known| (damerau_levenshtein(&plain, &fold(known)), *known));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn fold(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_refused_with_what_is_expected() {
        for (given, known, told) in [
            ("color", &["region", "service"][..], "unknown parameter color; expected region or service"),
            ("regoin", &["region", "service"], "unknown parameter regoin; did you mean region?"),
            ("Region", &["region"], "unknown parameter Region; did you mean region?"),
            ("color", &["a", "b", "c"], "unknown parameter color; expected a, b or c"),
            ("color", &["a"], "unknown parameter color; expected a"),
            ("color", &[], "unknown parameter color; none is expected"),
            ("a\nb", &["region"], "unknown parameter a\\nb; expected region"),
        ] {
            assert_eq!(unknown("parameter", given, known), told);
        }
        assert_eq!(unknown("word", "x1", &["long"; 40]), "unknown word x1");
    }

    #[test]
    fn one_thing_is_counted_in_the_singular() {
        for (count, noun, told) in [(0, "task", "0 tasks"), (1, "task", "1 task"), (2, "task", "2 tasks"), (2, "key", "2 keys")] {
            assert_eq!(counted(count, noun), told);
        }
        assert_eq!(counted(3, "entry"), "3 entries");
    }
}
