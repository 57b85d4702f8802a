//! Text frames of the WebSocket that are not log lines.

use serde::{Deserialize, Serialize};

use crate::status::StatusResponse;

/// The reason in the end marker after the last line.
pub const EXECUTION_COMPLETED: &str = "execution_completed";

/// A frame with a `type`; a log line has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Control {
    /// The status changed. Sent only to who asked with `events=status`.
    Status(Box<StatusResponse>),
    /// Nothing more comes; the connection is closed after it.
    Disconnect {
        /// [`EXECUTION_COMPLETED`] after the last line of an ended execution.
        reason: String,
    },
}

impl Control {
    /// The end marker.
    pub fn completed() -> Self {
        Self::Disconnect { reason: EXECUTION_COMPLETED.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_marker_is_the_contract_s_very_text() {
        let text = serde_json::to_string(&Control::completed()).expect("plain data");
        assert_eq!(text, r#"{"type":"disconnect","reason":"execution_completed"}"#);
    }

    #[test]
    fn a_log_line_is_not_a_control_frame() {
        let line = r#"{"event_id":"1","timestamp":5,"message":"{\"type\":\"disconnect\"}"}"#;
        assert!(serde_json::from_str::<Control>(line).is_err());
    }
}
