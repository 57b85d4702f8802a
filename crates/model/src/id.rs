//! Identifiers. Every id is made at the edge and comes in as an argument; this file only gives them types,
//! their text form and their order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected 32 hex digits")]
pub struct InvalidId;

/// 16 bytes that sort by the time they were made (`UUIDv7`), shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 16]);

impl Id {
    /// Wraps bytes that came from a generator or from a store.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, in sort order.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The Unix milliseconds that a `UUIDv7` carries in its first 48 bits.
    pub fn unix_ms(&self) -> i64 {
        self.0[..6].iter().fold(0, |ms, byte| (ms << 8) | i64::from(*byte))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 32];
        for (i, byte) in self.0.iter().enumerate() {
            text[2 * i] = DIGITS[usize::from(byte >> 4)];
            text[2 * i + 1] = DIGITS[usize::from(byte & 15)];
        }
        f.pad(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let text = text.as_bytes();
        if text.len() != 32 {
            return Err(InvalidId);
        }
        let mut bytes = [0u8; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = (hex_digit(pair[0])? << 4) | hex_digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, InvalidId> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(InvalidId),
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Id);

        impl $name {
            /// Wraps bytes that came from a generator or from a store.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Id::from_bytes(bytes))
            }

            /// The bytes, in sort order.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.parse().map(Self)
            }
        }
    };
}

id_type!(
    /// One command run for one user.
    ExecutionId
);
impl ExecutionId {
    /// The log that the job events of this execution are kept in, beside the log of its lines: the same id with another version, which no execution has.
    #[must_use]
    pub const fn event_log(&self) -> Self {
        let mut bytes = *self.as_bytes();
        bytes[6] = (bytes[6] & 0x0f) | EVENT_LOG_VERSION;
        Self::from_bytes(bytes)
    }

    /// Whether this is no execution, but the log of its job events.
    pub const fn is_event_log(&self) -> bool {
        self.as_bytes()[6] & 0xf0 == EVENT_LOG_VERSION
    }
}

/// The version of a UUID that is nobody else's; executions have 7.
const EVENT_LOG_VERSION: u8 = 0x80;

id_type!(
    /// A DAG of tasks.
    JobId
);
id_type!(
    /// The right of one worker to run one attempt; made anew for every lease.
    LeaseId
);
id_type!(
    /// One start of one worker. A worker that is started again is another one.
    WorkerId
);
id_type!(
    /// An account that workers show the key of.
    WorkerAccountId
);
id_type!(
    /// One state change, named by its caller so that a repeat is recognised.
    StepId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_its_text_form() {
        let id = Id::from_bytes(*b"\x01\x92\xab\x00\xff\x10 abcdefghi");
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse::<Id>(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse::<Id>(), Ok(id));
    }

    #[test]
    fn text_that_is_not_32_hex_digits_is_refused() {
        for text in ["", "12", "g1234567890123456789012345678901", "é123456789012345678901234567890"] {
            assert_eq!(text.parse::<Id>(), Err(InvalidId), "{text:?}");
        }
    }

    #[test]
    fn the_log_of_job_events_has_an_id_of_its_own_and_the_same_time() {
        let id: ExecutionId = "0192ab00ff107abc8def000102030405".parse().expect("an id");
        assert_eq!(id.event_log().to_string(), "0192ab00ff108abc8def000102030405");
        assert!(id.event_log().is_event_log() && !id.is_event_log());
        assert_eq!(id.event_log().0.unix_ms(), id.0.unix_ms());
    }

    #[test]
    fn the_time_inside_an_id_can_be_read() {
        let mut bytes = [0xff; 16];
        bytes[..6].copy_from_slice(&1_767_453_739_640_i64.to_be_bytes()[2..]);
        assert_eq!(Id::from_bytes(bytes).unix_ms(), 1_767_453_739_640);
    }
}
