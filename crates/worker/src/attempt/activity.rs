//! What a command says it does while it runs, read at each extend. A file that is just being written is not JSON for a moment, so that only
//! what stays wrong is told, once.

use std::sync::Arc;

use runvoy_ports::runner::Unread;
use serde_json::Value;

use crate::exchange;
use crate::mask::Mask;

/// Wrong so often in a row, it is told.
const PATIENCE: u32 = 3;

/// What was last understood.
#[derive(Debug, Default)]
pub(super) struct Activity {
    last: Option<Value>,
    wrong: u32,
}

/// What reading the file gave.
pub(super) type Read = Result<Option<Value>, String>;

/// What the bytes of the file mean.
pub(super) fn understood(read: Result<Vec<u8>, Unread>, mask: Option<&Arc<Mask>>) -> Read {
    match read {
        Ok(bytes) => exchange::value(&bytes, mask).map(Some),
        Err(Unread::Missing) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

impl Activity {
    /// What was last understood.
    pub(super) fn last(&self) -> Option<Value> {
        self.last.clone()
    }

    /// Takes over what was read; gives what the log should say of it.
    pub(super) fn take(&mut self, read: Read) -> Option<String> {
        match read {
            Ok(value) => {
                (self.last, self.wrong) = (value, 0);
                None
            }
            Err(why) => {
                self.wrong = self.wrong.saturating_add(1);
                (self.wrong == PATIENCE).then(|| format!("RUNVOY_ACTIVITY was ignored: {why}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_written_file_keeps_what_was_said_and_what_stays_wrong_is_told_once() {
        let mut activity = Activity::default();
        assert_eq!(activity.take(understood(Ok(br#"{"type":"waiting"}"#.to_vec()), None)), None);
        assert_eq!(activity.take(understood(Ok(br#"{"ty"#.to_vec()), None)), None);
        assert_eq!(activity.last(), Some(serde_json::json!({"type": "waiting"})));
        let told: Vec<_> = (0..5).filter_map(|_| activity.take(understood(Err(Unread::TooLarge { limit: 4 }), None))).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(activity.take(understood(Err(Unread::Missing), None)), None);
        assert_eq!(activity.last(), None);
    }
}
