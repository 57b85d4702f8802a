//! Encoders as other programs have them, and the chance that picks among them.

use std::ops::Range;

use super::super::{ALL_WITHIN, LONGEST_WITH_ALL};
use super::dump;

/// Reproducible chance (`SplitMix64`).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(limit).expect("it fits")).expect("below a usize")
    }

    fn char_of(&mut self, alphabet: &str) -> char {
        let at = self.below(alphabet.chars().count());
        alphabet.chars().nth(at).expect("within")
    }
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const SIGNS: &str = "aZ09 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const WIDE: &str = "aZ9éßüñ中文🦀€ \t'\"\\";

/// A secret of one of several kinds, of six letters at least.
pub(super) fn random_secret(chance: &mut Chance) -> String {
    let alphabet = [LETTERS, SIGNS, WIDE][chance.below(3)];
    let length = match chance.below(400) {
        0 => 1_000 + chance.below(1_500),
        1 => 4_000 + chance.below(4_000),
        _ => chance.below(60),
    };
    let line = |chance: &mut Chance, length: usize| {
        let core: String = (0..6).map(|_| chance.char_of(LETTERS)).collect();
        let rest: String = (0..length).map(|_| chance.char_of(alphabet)).collect();
        format!("{core}{rest}")
    };
    if chance.below(5) > 0 {
        return line(chance, length);
    }
    (0..2 + chance.below(3)).map(|_| line(chance, 10)).collect::<Vec<_>>().join("\n")
}

/// The ways of writing that are masked however long a secret is.
const OF_LONG_ONES: [usize; 12] = [0, 3, 4, 5, 11, 19, 20, 21, 28, 29, 30, 31];

/// A secret as some program wrote it.
pub(super) struct Written {
    pub(super) how: &'static str,
    pub(super) bytes: Vec<u8>,
    /// The part that tells the secret.
    pub(super) secret: Range<usize>,
    /// The parts of which nothing may be seen, where that part is not one of a kind.
    pub(super) tells: Vec<Range<usize>>,
    /// How many bytes of them in a row tell something.
    pub(super) telling: usize,
    /// That part is all that may be masked.
    pub(super) exact: bool,
}

impl Written {
    pub(super) fn random(chance: &mut Chance, secrets: &[String]) -> Self {
        let secret = &secrets[chance.below(secrets.len())];
        let is_long = secret.len() > LONGEST_WITH_ALL || secrets.iter().map(String::len).sum::<usize>() > ALL_WITHIN;
        let pick = if is_long { OF_LONG_ONES[chance.below(OF_LONG_ONES.len())] } else { chance.below(34) };
        let whole = |how, text: String| Self::bytes(how, text.into_bytes());
        match pick {
            0 => whole("raw", secret.clone()),
            1 => whole("upper", secret.to_uppercase()),
            2 => whole("lower", secret.to_lowercase()),
            3 => whole("one line", lines(secret)[chance.below(lines(secret).len())].to_owned()),
            4 => whole("hex", wrap(chance, secret.bytes().map(|byte| format!("{byte:02x}")).collect())),
            5 => whole("HEX", wrap(chance, secret.bytes().map(|byte| format!("{byte:02X}")).collect())),
            6 => whole("url", percent(secret, "-_.~", true, false)),
            7 => whole("url, lower", percent(secret, "-_.~", false, false)),
            8 => whole("form", percent(secret, "*-._", true, true)),
            9 => whole("url component", percent(secret, "-_.!~*'()", true, false)),
            10 => whole("url path", percent(secret, "-_.~/", true, false)),
            11 => whole("json", json(secret, false, false)),
            12 => whole("json, ascii", json(secret, true, false)),
            13 => whole("json, slashes", json(secret, false, true)),
            14 => whole("json, numbers", secret.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()),
            15 => whole("single quotes", secret.split('\'').collect::<Vec<_>>().join("'\\''")),
            16 => whole("backslashes", secret.chars().map(|c| backslash(c, " \t!\"$&'()*,;<>?[\\]^`{|}")).collect()),
            17 => whole("double quotes", secret.chars().map(|c| backslash(c, "\"\\$`")).collect()),
            18 => whole("$''", dollar_quotes(secret)),
            19 => whole("base64", wrap(chance, base64(secret.as_bytes(), false, true))),
            20 => whole("base64url", base64(secret.as_bytes(), true, false)),
            21 => base64_within(chance, secret),
            22 => whole("base32", wrap(chance, base32(secret.as_bytes()))),
            23 => whole("base32, lower", base32(secret.as_bytes()).to_lowercase()),
            24 => Self::bytes("utf-16le", secret.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            25 => Self::bytes("utf-16be", secret.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            26 => {
                let inner = base64(secret.as_bytes(), false, true);
                let lines: Vec<&str> = inner.as_bytes().chunks(76).map(|line| str::from_utf8(line).expect("ASCII")).collect();
                whole("base64 of base64", base64(lines.join("\n").as_bytes(), false, true))
            }
            27 => {
                let bytes: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
                whole("base64 of utf-16le", base64(&bytes, false, true))
            }
            28 => styled(chance, "raw with colours", secret.trim()),
            29 => styled(chance, "base64 with colours", &base64(secret.trim().as_bytes(), false, true)),
            _ => dump::random(chance, secret.trim().as_bytes()),
        }
    }

    fn bytes(how: &'static str, bytes: Vec<u8>) -> Self {
        let secret = 0..bytes.len();
        Self { how, tells: vec![secret.clone()], secret, bytes, exact: true, telling: 6 }
    }
}

fn lines(secret: &str) -> Vec<&str> {
    secret.lines().map(str::trim).filter(|line| line.chars().count() >= 6).collect()
}

/// Sometimes in lines, as tools write what is long.
fn wrap(chance: &mut Chance, text: String) -> String {
    let (columns, end) = ([40, 60, 64, 76][chance.below(4)], ["\n", "\r\n"][chance.below(2)]);
    match chance.below(3) {
        0 => text.as_bytes().chunks(columns).map(|line| std::str::from_utf8(line).expect("ASCII")).collect::<Vec<_>>().join(end),
        _ => text,
    }
}

fn percent(secret: &str, safe: &str, upper: bool, plus: bool) -> String {
    let mut text = String::new();
    for byte in secret.bytes() {
        match byte {
            b' ' if plus => text.push('+'),
            byte if byte.is_ascii_alphanumeric() || safe.as_bytes().contains(&byte) => text.push(char::from(byte)),
            byte if upper => text.push_str(&format!("%{byte:02X}")),
            byte => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

fn json(secret: &str, ascii: bool, slashes: bool) -> String {
    let mut text = String::new();
    for unit in secret.encode_utf16() {
        match char::from_u32(unit.into()) {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\n') => text.push_str("\\n"),
            Some('\t') => text.push_str("\\t"),
            Some('/') if slashes => text.push_str("\\/"),
            Some(c) if c.is_ascii() => text.push(c),
            _ => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    if ascii {
        return text;
    }
    // The same with everything beyond ASCII as it is.
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '/' if slashes => "\\/".into(),
        c => c.to_string(),
    };
    secret.chars().map(escape).collect()
}

fn backslash(c: char, special: &str) -> String {
    if special.contains(c) { format!("\\{c}") } else { c.to_string() }
}

fn dollar_quotes(secret: &str) -> String {
    secret.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\t', "\\t")
}

fn base64(bytes: &[u8], url_safe: bool, pad: bool) -> String {
    let signs = if url_safe { "-_" } else { "+/" };
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(signs.chars()).collect();
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            if at <= group.len() {
                text.push(alphabet[number >> (18 - 6 * at) & 63]);
            } else if pad {
                text.push('=');
            }
        }
    }
    text
}

/// Base64 of something that has the secret in its middle: only the characters that depend on nothing else tell it.
fn base64_within(chance: &mut Chance, secret: &str) -> Written {
    let around = |chance: &mut Chance| (0..chance.below(5)).map(|_| u8::try_from(chance.below(256)).expect("a byte")).collect::<Vec<u8>>();
    let (before, after) = (around(chance), around(chance));
    let url_safe = chance.below(2) == 0;
    let bytes = base64(&[&before, secret.as_bytes(), &after].concat(), url_safe, chance.below(2) == 0).into_bytes();
    let (first, end) = ((before.len() * 8).div_ceil(6), (before.len() + secret.len()) * 8 / 6);
    Written { how: "base64 within", bytes, secret: first..end, tells: std::iter::once(first..end).collect(), exact: false, telling: 6 }
}

fn base32(bytes: &[u8]) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('2'..='7').collect();
    let bits: Vec<usize> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| usize::from(byte >> bit & 1))).collect();
    let mut text: String = bits.chunks(5).map(|five| alphabet[(0..5).fold(0, |sum, at| sum << 1 | five.get(at).unwrap_or(&0))]).collect();
    while !text.len().is_multiple_of(8) {
        text.push('=');
    }
    text
}

/// A text with escape sequences of terminals inside.
fn styled(chance: &mut Chance, how: &'static str, text: &str) -> Written {
    let (mut bytes, mut tells, mut from) = (Vec::new(), Vec::new(), 0);
    for _ in 0..=chance.below(3) {
        let at = text.ceil_char_boundary((from + 1 + chance.below(8)).min(text.len() - 1));
        if at <= from || at >= text.len() {
            break;
        }
        tells.push(bytes.len()..bytes.len() + at - from);
        bytes.extend_from_slice(&text.as_bytes()[from..at]);
        bytes.extend_from_slice(["\u{1b}[31m", "\u{1b}[m", "\u{1b}[01;31m\u{1b}[K", "\u{1b}(B\u{1b}[m"][chance.below(4)].as_bytes());
        from = at;
    }
    tells.push(bytes.len()..bytes.len() + text.len() - from);
    bytes.extend_from_slice(&text.as_bytes()[from..]);
    tells.retain(|part| part.len() >= 6);
    Written { how, secret: 0..bytes.len(), bytes, tells, exact: true, telling: 6 }
}
