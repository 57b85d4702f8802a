//! Base 58, the alphabet without look-alikes, as fingerprints of public keys are written.

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Longer texts are not read: the work grows with the square of the length.
const MOST_CHARS: usize = 4_096;

/// The text of some bytes. A zero byte at the front is a `1`.
pub fn encode(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut digits: Vec<u8> = Vec::with_capacity(bytes.len() * 138 / 100 + 1);
    for byte in &bytes[zeros..] {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = u8::try_from(carry % 58).expect("less than 58");
            carry /= 58;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 58).expect("less than 58"));
            carry /= 58;
        }
    }
    let ones = std::iter::repeat_n('1', zeros);
    ones.chain(digits.iter().rev().map(|digit| char::from(ALPHABET[usize::from(*digit)]))).collect()
}

/// The bytes of a text; `None` where it is none, or too long.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if text.len() > MOST_CHARS {
        return None;
    }
    let ones = text.bytes().take_while(|byte| *byte == b'1').count();
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for sign in text.bytes().skip(ones) {
        let mut carry = u32::try_from(ALPHABET.iter().position(|known| *known == sign)?).expect("less than 58");
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = u8::try_from(carry & 0xff).expect("one byte");
            carry >>= 8;
        }
        while carry > 0 {
            bytes.push(u8::try_from(carry & 0xff).expect("one byte"));
            carry >>= 8;
        }
    }
    bytes.extend(std::iter::repeat_n(0, ones));
    bytes.reverse();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base58_matches_known_vectors() {
        for (plain, coded) in [
            (&b""[..], ""),
            (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
            (b"The quick brown fox jumps over the lazy dog.", "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z"),
            (&[0, 0, 0x28, 0x7f, 0xb4, 0xcd], "11233QC4"),
        ] {
            assert_eq!(encode(plain), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain));
        }
    }

    #[test]
    fn what_is_no_base58_is_refused() {
        for bad in ["0", "O", "I", "l", "+", "é", "a b"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
        assert_eq!(decode(&"z".repeat(MOST_CHARS + 1)), None);
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
