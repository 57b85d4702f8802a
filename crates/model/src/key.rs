//! API keys as text: `rv_`, 43 base64url characters of 256 random bits, 6 of checksum. Somebody may bring another text of their own making. Only a SHA-256
//! of the whole text is ever stored.

mod strength;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "rv_";
const RANDOM_CHARS: usize = 43;
const CHECK_CHARS: usize = 6;
/// How much of a key is shown to tell keys apart.
const SHOWN_CHARS: usize = 11;
/// A key of somebody's own making has so many characters.
const BROUGHT_CHARS: std::ops::RangeInclusive<usize> = 32..=256;

/// A text that nobody can have for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It begins as ours do, and is none.
    #[error("begins with {PREFIX}, but is not a key that a runvoy server created")]
    Damaged,
    /// It is too short, too long, or no plain text.
    #[error("must have {} to {} printable ASCII characters without spaces", BROUGHT_CHARS.start(), BROUGHT_CHARS.end())]
    Unfit,
    /// It could be guessed.
    #[error("is too easy to guess: use random characters, such as those of `openssl rand -hex 32`")]
    Guessable,
}

/// The text of a key, from 256 random bits.
pub fn key_text(random: &[u8; 32]) -> String {
    let body = base64url(random);
    let check = checksum(&body);
    format!("{PREFIX}{body}{check}")
}

/// Whether a text could be a key of ours; says nothing about whether it is a good one.
pub fn looks_like_key(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(PREFIX) else { return false };
    if rest.len() != RANDOM_CHARS + CHECK_CHARS || !rest.is_ascii() {
        return false;
    }
    let (body, check) = rest.split_at(RANDOM_CHARS);
    checksum(body).as_bytes().ct_eq(check.as_bytes()).into()
}

/// Whether a text could be somebody's key: ours, or one that they brought.
pub fn check_key(text: &str) -> Result<(), InvalidKey> {
    match text.starts_with(PREFIX) {
        true if looks_like_key(text) => Ok(()),
        true => Err(InvalidKey::Damaged),
        false if BROUGHT_CHARS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(()),
        false => Err(InvalidKey::Unfit),
    }
}

/// Whether a text may become somebody's key: as [`check_key`], and a key of their own making must look random. Keys that exist already are not judged so.
pub fn check_new_key(text: &str) -> Result<(), InvalidKey> {
    check_key(text)?;
    if text.starts_with(PREFIX) || strength::is_strong(text) { Ok(()) } else { Err(InvalidKey::Guessable) }
}

/// What is stored of a key.
pub fn key_hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The part of a key that may be shown: as much of what is secret in it, whoever made it.
pub fn key_prefix(text: &str) -> String {
    let shown = if text.starts_with(PREFIX) { SHOWN_CHARS } else { SHOWN_CHARS - PREFIX.len() };
    text.chars().take(shown).collect()
}

fn checksum(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    base64url(&digest)[..CHECK_CHARS].to_owned()
}

fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * i)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_checks_out_and_a_slip_does_not() {
        let key = key_text(&[0x5a; 32]);
        assert_eq!(key.len(), PREFIX.len() + RANDOM_CHARS + CHECK_CHARS);
        assert!(looks_like_key(&key));
        let mut slip = key.clone().into_bytes();
        slip[10] = if slip[10] == b'a' { b'b' } else { b'a' };
        assert!(!looks_like_key(std::str::from_utf8(&slip).expect("ASCII")));
        assert!(!looks_like_key("rv_"));
        assert!(!looks_like_key(""));
    }

    #[test]
    fn a_key_of_ones_own_making_is_a_text_of_some_length() {
        for good in ["x".repeat(32), "!~".repeat(128), key_text(&[1; 32])] {
            assert_eq!(check_key(&good), Ok(()), "{good}");
        }
        for unfit in [String::new(), "x".repeat(31), "x".repeat(257), "x y".repeat(20), "ä".repeat(20), format!("{}\n", "x".repeat(40))] {
            assert_eq!(check_key(&unfit), Err(InvalidKey::Unfit), "{unfit}");
        }
        assert_eq!(check_key(&format!("rv_{}", "x".repeat(49))), Err(InvalidKey::Damaged), "a slip in one of ours is told at once");
    }

    #[test]
    fn security_01_a_brought_key_must_not_be_easy_to_guess() {
        let guessable = [
            "x".repeat(32),
            "!~".repeat(128),
            "0123456789abcdef0123456789abcdef".into(),
            "abcdefghijklmnopqrstuvwxyz0123456789".into(),
            "password".repeat(4),
            "correct-horse-battery-staple-and-so".into(),
            "11111111111111111111111111111112".into(),
            "password1password2password3password4".into(),
            "Summer2024!Summer2025!Winter2024!".into(),
            "Passw0rd!Passw0rd?Passw0rd!!Passw0rd".into(),
            "qwertyuiopasdfghjklzxcvbnm123456".into(),
            "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,".into(),
            "1qaz2WSX3edc4RFV1qaz2WSX3edc4RFV".into(),
            "qazwsxedcrfvtgbyhnujmikolp123456".into(),
            "admin123admin456admin789admin000".into(),
            "LetMeInLetMeOutLetMeInLetMeOutLet".into(),
            "runvoy-server-prod-eu-west-1-key-01".into(),
            "my-company-production-api-key-2024".into(),
            "00112233445566778899aabbccddeeff".into(),
            "0a1b2c3d4e5f60718293a4b5c6d7e8f9".into(),
            "deadbeefcafebabedeadbeefcafebabe".into(),
            "20240101202402022024030320240404".into(),
            "27182818284590452353602874713526".into(),
        ];
        for key in guessable {
            assert_eq!(check_new_key(&key), Err(InvalidKey::Guessable), "{key}");
        }
        for n in 0..1_000_u32 {
            let random: [u8; 32] = Sha256::digest(n.to_be_bytes()).into();
            let hex: String = random[..16].iter().map(|byte| format!("{byte:02x}")).collect();
            let uuid = |hex: &str| format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
            let uuids = format!("{}{}", uuid(&hex), uuid(&hex.chars().rev().collect::<String>()));
            for good in [uuid(&hex), uuids, hex.to_uppercase(), hex, base64url(&random[..24]), base64url(&random)] {
                assert_eq!(check_new_key(&good), Ok(()), "{good}: {}", strength::estimated_bits(good.as_bytes()));
            }
        }
        assert_eq!(check_new_key(&key_text(&[1; 32])), Ok(()), "keys of ours are random");
    }

    #[test]
    fn no_more_is_shown_of_one_key_than_of_another() {
        assert_eq!(key_prefix(&key_text(&[0; 32])), "rv_AAAAAAAA");
        assert_eq!(key_prefix("0123456789abcdef0123456789abcdef"), "01234567");
    }

    #[test]
    fn base64url_matches_known_vectors() {
        for (plain, coded) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64url(plain.as_bytes()), coded);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }
}
