//! A checkpoint as it is told to the world outside the store: a signed line of JSON. Whoever holds a line can prove later what the log of
//! events came to at that time, even if the whole store was put back to an earlier state. How lines are kept is an adapter's matter.

use serde::{Deserialize, Serialize};

use crate::chain::{AuditKey, canonical_json};
use crate::change::Checkpoint;
use crate::event::{Event, EventType};
use crate::time::UnixMs;

/// What a checkpoint says, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Its number among the checkpoints.
    pub number: u64,
    /// When it was made.
    pub time: UnixMs,
    /// The place of the last event that it covers.
    pub up_to: u64,
    /// How many chained events it covers.
    pub leaves: u64,
    /// The root of the tree over them.
    #[serde(with = "crate::hex")]
    pub root: [u8; 32],
}

/// A line: what it says, and the proof that the server said it.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    witness: Witness,
    #[serde(with = "crate::hex")]
    mac: [u8; 32],
}

impl Witness {
    /// What the event of a checkpoint says; `None` where it is none, or cannot be read.
    pub fn of(event: &Event) -> Option<(Self, Checkpoint)> {
        if event.kind != EventType::AuditCheckpoint {
            return None;
        }
        let checkpoint: Checkpoint = serde_json::from_value(event.properties.clone()).ok()?;
        let Checkpoint { up_to, leaves, root, .. } = checkpoint;
        Some((Self { number: event.number, time: event.at, up_to, leaves, root }, checkpoint))
    }

    /// The signed line, without a line break.
    pub fn to_line(&self, key: &AuditKey) -> String {
        let line = Line { witness: self.clone(), mac: self.mac(key) };
        serde_json::to_string(&line).expect("plain fields can be written as JSON")
    }

    /// Reads a line; `None` where it is not as this key signed it.
    pub fn from_line(line: &[u8], key: &AuditKey) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        bool::from(subtle::ConstantTimeEq::ct_eq(&line.mac[..], &line.witness.mac(key)[..])).then_some(line.witness)
    }

    fn mac(&self, key: &AuditKey) -> [u8; 32] {
        let value = serde_json::to_value(self).expect("plain fields can be written as JSON");
        let mut canonical = Vec::with_capacity(256);
        canonical_json(&value, &mut canonical);
        key.sign("checkpoint", &canonical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_believed_only_as_it_was_signed() {
        let key = AuditKey::new([7; 32]);
        let witness = Witness { number: 3, time: UnixMs(1_767_453_739_640), up_to: 40, leaves: 38, root: [9; 32] };
        let line = witness.to_line(&key);
        assert_eq!(Witness::from_line(line.as_bytes(), &key), Some(witness));
        assert_eq!(Witness::from_line(line.as_bytes(), &AuditKey::new([8; 32])), None);
        for i in 0..line.len() {
            let mut changed = line.clone().into_bytes();
            changed[i] ^= 1;
            assert_eq!(Witness::from_line(&changed, &key), None, "byte {i}");
        }
        assert_eq!(Witness::from_line(b"", &key), None);
    }
}
