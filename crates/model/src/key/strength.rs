//! About how many bits it takes to guess a key of somebody's own making. Whatever a guesser tries first counts little: what was there before, also in another
//! case, counts once; words, runs on the keyboard and sequences count nearly nothing. The estimate of a random text is low: 128 random bits come to 60 to 120.

/// A key of hexadecimal digits alone has four bits a character, and no words to speak of.
const MIN_HEX_BITS: f64 = 46.0;
const MIN_BITS: f64 = 60.0;
/// So many decimal digits have 128 bits.
const MIN_DECIMAL_DIGITS: usize = 39;
/// What a part costs that was there before, and a word.
const KNOWN_BITS: f64 = 8.0;
/// A shorter part that was there before is a coincidence.
const SHORTEST_REPEAT: usize = 4;
/// One word of a longer run of letters.
const WORD_LETTERS: usize = 6;

/// Neighbours on a keyboard, by row and by column.
const KEY_RUNS: [&str; 15] = [
    "1234567890-=",
    "qwertyuiop[]",
    "asdfghjkl;'",
    "zxcvbnm,./",
    "!@#$%^&*()_+",
    "1qaz",
    "2wsx",
    "3edc",
    "4rfv",
    "5tgb",
    "6yhn",
    "7ujm",
    "8ik,",
    "9ol.",
    "0p;/",
];

/// The pairs of letters that three quarters of an English text is made of, and a sixth of a random one.
const COMMON_PAIRS: &str = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra \
     ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul \
     ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp bl ab gh ty op wo sa ay ke oo ap qu rd";

/// Whether a text looks as random as a key must be.
pub(super) fn is_strong(text: &str) -> bool {
    let plain: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if plain.iter().all(u8::is_ascii_digit) && plain.len() < MIN_DECIMAL_DIGITS {
        return false;
    }
    let is_hex = plain.iter().all(u8::is_ascii_hexdigit);
    !is_wordy(text.as_bytes()) && estimated_bits(text.as_bytes()) >= if is_hex { MIN_HEX_BITS } else { MIN_BITS }
}

/// Bits by the characters that nothing before them tells.
pub(super) fn estimated_bits(text: &[u8]) -> f64 {
    let lower = text.to_ascii_lowercase();
    let mut fresh = vec![true; text.len()];
    let repeats = mark_repeats(&lower, &mut fresh);
    let words = mark_words(text, &lower, &mut fresh);
    let unrepeated: Vec<u8> = text.iter().zip(&fresh).filter(|(_, fresh)| **fresh).map(|(byte, _)| *byte).collect();
    let steps = steps(&lower);
    let surprising = fresh.iter().zip(&steps).filter(|(fresh, step)| **fresh && !**step).count();
    surprising as f64 * shannon_bits(&unrepeated) + KNOWN_BITS * (repeats + words) as f64
}

/// Marks what was there before, and counts its parts.
fn mark_repeats(lower: &[u8], fresh: &mut [bool]) -> usize {
    let (mut at, mut parts) = (0, 0);
    while at < lower.len() {
        let length = |from: &usize| lower[at..].iter().zip(&lower[*from..]).take_while(|(later, earlier)| later == earlier).count();
        let longest = (0..at).map(|from| length(&from)).max().unwrap_or(0);
        if longest < SHORTEST_REPEAT {
            at += 1;
            continue;
        }
        fresh[at..at + longest].fill(false);
        (at, parts) = (at + longest, parts + 1);
    }
    parts
}

/// Marks letters that are words, and counts about how many.
fn mark_words(text: &[u8], lower: &[u8], fresh: &mut [bool]) -> usize {
    let mut words = 0;
    let mut take = |from: usize, end: usize, percent: usize| {
        let is_word = end - from >= 4 && common_pairs(&lower[from..end]) * 100 >= (end - from - 1) * percent;
        if is_word {
            words += fresh[from..end].iter().filter(|fresh| **fresh).count().div_ceil(WORD_LETTERS);
            fresh[from..end].fill(false);
        }
        is_word
    };
    let mut at = 0;
    while at < text.len() {
        let end = at + text[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // Words without blanks, as in `LetMeIn`; else the parts of one case, a capital before it.
        if end - at < 2 * WORD_LETTERS || !take(at, end, 55) {
            while at < end {
                let of_case = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
                let rest = text[at + 1..end].iter().take_while(|byte| byte.is_ascii_lowercase() == of_case).count();
                take(at, at + 1 + rest, if rest >= 9 { 45 } else { 60 });
                at += 1 + rest;
            }
        }
        at = end.max(at + 1);
    }
    words
}

fn common_pairs(lower: &[u8]) -> usize {
    let is_common = |pair: &[u8]| COMMON_PAIRS.as_bytes().split(|byte| *byte == b' ').any(|common| common == pair);
    lower.windows(2).filter(|pair| is_common(pair)).count()
}

/// Which characters follow from those before: the same, the next in the alphabet or on the keyboard, or the next but one of two sequences in turn.
fn steps(lower: &[u8]) -> Vec<bool> {
    let on_keyboard = |one: u8, other: u8| {
        let next_to = |pair: &[u8]| pair == [one, other] || pair == [other, one];
        KEY_RUNS.iter().any(|run| run.as_bytes().windows(2).any(next_to))
    };
    let mut steps: Vec<bool> =
        (0..lower.len()).map(|at| at > 0 && (lower[at].abs_diff(lower[at - 1]) <= 1 || on_keyboard(lower[at], lower[at - 1]))).collect();
    let mut chain = 0;
    for at in 2..lower.len() {
        // From `9` to `a` is a step too.
        chain = if matches!(lower[at].abs_diff(lower[at - 2]), 1 | 40) { chain + 1 } else { 0 };
        if chain >= 3 {
            steps[at - 2..=at].fill(true);
        }
    }
    steps
}

/// Bits a character, by how often each occurs.
fn shannon_bits(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

/// Whether it is made of words of one case: mostly letters, in pairs as words have them.
fn is_wordy(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let letters = text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let upper = text.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let pairs = lower.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic)).count();
    upper.min(letters - upper) * 5 <= letters && letters * 10 >= text.len() * 7 && common_pairs(&lower) * 100 >= pairs * 45
}
