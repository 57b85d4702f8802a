//! The forms that turn bytes into another alphabet: base64 at each of its three alignments, once and twice, base32 at each of its five, hexadecimal, and UTF-16.

use super::{Variety, cut};

const STANDARD: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32: [&[u8]; 2] = [b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"abcdefghijklmnopqrstuvwxyz234567"];
/// How long the lines are of tools that print base64.
const LINES: [usize; 2] = [76, 64];

/// Such forms of a value; the usual ones are not escaped once more.
pub(super) fn forms(value: &[u8], variety: Variety) -> Vec<Vec<u8>> {
    let mut forms = vec![hex(value, b"0123456789abcdef"), hex(value, b"0123456789ABCDEF")];
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            let encoded = packed(value, offset, alphabet);
            if variety == Variety::All {
                forms.extend(escaped(&encoded));
            }
            forms.extend(encoded);
        }
    }
    forms
}

/// The rarer ones: base32, and base64 of base64.
pub(super) fn rare_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let inner = [STANDARD, URL_SAFE].into_iter().flat_map(|alphabet| (0..3).flat_map(move |offset| packed(value, offset, alphabet)));
    let twice = inner.flat_map(|inner| base64(&inner));
    let base32 = BASE32.into_iter().flat_map(|alphabet| (0..5).flat_map(move |offset| packed(value, offset, alphabet)));
    twice.chain(base32).collect()
}

/// A value in base64 that has line breaks, in base64 once more. Long, so in pieces.
pub(super) fn wrapped_twice(value: &[u8]) -> Vec<Vec<u8>> {
    let Some(inner) = packed(value, 0, STANDARD).pop() else { return Vec::new() };
    let lines = |columns: usize| inner.chunks(columns).collect::<Vec<_>>().join(&b'\n');
    let broken = LINES.into_iter().filter(|columns| inner.len() > *columns).map(lines);
    broken.flat_map(|inner| base64(&inner)).flat_map(|outer| cut(&outer)).collect()
}

/// A text in UTF-16, the lower byte first or last.
pub(super) fn utf16(text: &str) -> [Vec<u8>; 2] {
    [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| text.encode_utf16().flat_map(bytes).collect())
}

/// Bytes in base64 at every alignment.
pub(super) fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    (0..3).flat_map(|offset| packed(value, offset, STANDARD)).collect()
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    value.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

/// What base64, or base32 with an alphabet of 32, makes of a value that has `offset` bytes before it: what is the same whatever stands around it; and,
/// where its last bits share a character with what follows, the same with nothing following, with and without padding.
fn packed(value: &[u8], offset: usize, alphabet: &[u8]) -> Vec<Vec<u8>> {
    let (width, unit) = if alphabet.len() == 64 { (6, 4) } else { (5, 8) };
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(value.iter().copied()).collect();
    let bits = bytes.len() * 8;
    let digit = |index: usize| {
        let byte = |at: usize| bytes.get(at).map_or(0, |byte| usize::from(*byte));
        let pair = byte(index * width / 8) << 8 | byte(index * width / 8 + 1);
        alphabet[pair >> (16 - width - index * width % 8) & (alphabet.len() - 1)]
    };
    // The first characters hold bits of the bytes before.
    let first = (offset * 8).div_ceil(width);
    let own: Vec<u8> = (first..bits / width).map(digit).collect();
    if bits.is_multiple_of(width) {
        return vec![own];
    }
    let mut last = own.clone();
    last.push(digit(bits / width));
    let mut padded = last.clone();
    padded.resize(last.len() + bits.div_ceil(width).next_multiple_of(unit) - bits.div_ceil(width), b'=');
    vec![own, last, padded]
}

/// Base64 in a URL or in JSON, where that looks different.
fn escaped(encoded: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let rules: [&[(u8, &[u8])]; 3] =
        [&[(b'+', b"%2B"), (b'/', b"%2F"), (b'=', b"%3D")], &[(b'+', b"%2b"), (b'/', b"%2f"), (b'=', b"%3d")], &[(b'/', b"\\/")]];
    let mut forms = Vec::new();
    for form in encoded {
        for rule in rules.iter().filter(|rule| rule.iter().any(|(sign, _)| form.contains(sign))) {
            let mut escaped = Vec::with_capacity(form.len() + 16);
            for byte in form {
                match rule.iter().find(|(sign, _)| sign == byte) {
                    Some((_, instead)) => escaped.extend_from_slice(instead),
                    None => escaped.push(*byte),
                }
            }
            forms.push(escaped);
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_at_every_alignment() {
        let text =
            |offset| packed(b"secret-1", offset, STANDARD).into_iter().map(|form| String::from_utf8(form).unwrap()).collect::<Vec<_>>();
        // "secret-1", "?secret-1" and "??secret-1" as `base64` prints them: c2VjcmV0LTE=, P3NlY3JldC0x, Pz9zZWNyZXQtMQ==.
        assert_eq!(text(0), ["c2VjcmV0LT", "c2VjcmV0LTE", "c2VjcmV0LTE="]);
        assert_eq!(text(1), ["NlY3JldC0x"]);
        assert_eq!(text(2), ["zZWNyZXQtM", "zZWNyZXQtMQ", "zZWNyZXQtMQ=="]);
    }

    #[test]
    fn other_packings_are_what_tools_make_of_a_value() {
        let has = |forms: &[Vec<u8>], form: &str| assert!(forms.contains(&form.as_bytes().to_vec()), "{form}");
        // `printf secret-1 | base32`, the same after one byte, `| base64 | base64` and `| iconv -t utf-16le | base64`.
        let all = rare_forms(b"secret-1");
        for form in ["ONSWG4TFOQWTC===", "onswg4tfoqwtc", "ZWKY3SMV2C2M", "YzJWamNtVjBMVEU9"] {
            has(&all, form);
        }
        let [lower_first, upper_first] = utf16("s-1");
        assert_eq!((&lower_first[..], &upper_first[..]), (&b"s\0-\x001\0"[..], &b"\0s\0-\x001"[..]));
        has(&base64(&lower_first), "cwAtADEA");
    }

    #[test]
    fn base64_of_base64_in_lines_is_a_form() {
        let value = [b'x'; 60];
        let inner = packed(&value, 0, STANDARD).pop().expect("a form");
        let lines = [&inner[..76], b"\n", &inner[76..]].concat();
        assert!(wrapped_twice(&value).contains(&packed(&lines, 0, STANDARD)[0]));
        assert_eq!(wrapped_twice(b"short"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn base64_in_a_url_is_a_form_of_its_own() {
        let all = forms(&[0xfb, 0xef, 0xff, 0xfb, 0xef, 0xff, 0xfb], Variety::All);
        for form in ["++//++//+w==", "--__--__-w", "%2B%2B%2F%2F%2B%2B%2F%2F%2Bw%3D%3D", "++\\/\\/++\\/\\/+w==", "fbefff"] {
            assert!(all.iter().any(|known| known.windows(form.len()).any(|part| part == form.as_bytes())), "{form}");
        }
    }
}
