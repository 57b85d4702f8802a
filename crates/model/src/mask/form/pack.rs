//! The forms that turn bytes into another alphabet: base64 at each of its three alignments, and hexadecimal.

use super::Variety;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Such forms of a value; the usual ones are not escaped once more.
pub(super) fn forms(value: &[u8], variety: Variety) -> Vec<Vec<u8>> {
    let mut forms = vec![hex(value, b"0123456789abcdef"), hex(value, b"0123456789ABCDEF")];
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            let encoded = base64(value, offset, alphabet);
            if variety == Variety::All {
                forms.extend(escaped(&encoded));
            }
            forms.extend(encoded);
        }
    }
    forms
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    value.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

/// What base64 makes of a value that has `offset` bytes before it: what is the same whatever stands around it; and, where its last
/// bits share a character with what follows, the same with nothing following, with and without padding.
fn base64(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(value.iter().copied()).collect();
    let bits = bytes.len() * 8;
    let sextet = |index: usize| {
        let byte = |at: usize| bytes.get(at).map_or(0, |byte| usize::from(*byte));
        let pair = byte(index * 6 / 8) << 8 | byte(index * 6 / 8 + 1);
        alphabet[pair >> (10 - index * 6 % 8) & 63]
    };
    // The first characters hold bits of the bytes before.
    let first = (offset * 8).div_ceil(6);
    let own: Vec<u8> = (first..bits / 6).map(sextet).collect();
    if bits.is_multiple_of(6) {
        return vec![own];
    }
    let mut last = own.clone();
    last.push(sextet(bits / 6));
    let padding = if bits % 6 == 2 { "==" } else { "=" };
    let padded = [&last, padding.as_bytes()].concat();
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
            |offset| base64(b"secret-1", offset, STANDARD).into_iter().map(|form| String::from_utf8(form).unwrap()).collect::<Vec<_>>();
        // "secret-1", "?secret-1" and "??secret-1" as `base64` prints them: c2VjcmV0LTE=, P3NlY3JldC0x, Pz9zZWNyZXQtMQ==.
        assert_eq!(text(0), ["c2VjcmV0LT", "c2VjcmV0LTE", "c2VjcmV0LTE="]);
        assert_eq!(text(1), ["NlY3JldC0x"]);
        assert_eq!(text(2), ["zZWNyZXQtM", "zZWNyZXQtMQ", "zZWNyZXQtMQ=="]);
    }

    #[test]
    fn base64_in_a_url_is_a_form_of_its_own() {
        let all = forms(&[0xfb, 0xef, 0xff, 0xfb, 0xef, 0xff, 0xfb], Variety::All);
        for form in ["++//++//+w==", "--__--__-w", "%2B%2B%2F%2F%2B%2B%2F%2F%2Bw%3D%3D", "++\\/\\/++\\/\\/+w==", "fbefff"] {
            assert!(all.iter().any(|known| known.windows(form.len()).any(|part| part == form.as_bytes())), "{form}");
        }
    }
}
