//! The one line that a followed execution ends with, and the exit code that it means.

use runvoy_wire::{Status, StatusResponse};

use crate::duration::Human;
use crate::failure::PLATFORM;
use crate::reason;
use crate::sanitize::one_line;
use crate::terminal::{Tone, paint};

/// `✓ succeeded · exit code 0 · 1.2s · ID`, with the reason where the exit code alone does not tell it.
pub(crate) fn line(status: &StatusResponse, id: &str, colour: bool) -> String {
    let (mark, tone) = match status.status {
        Status::Succeeded => ("✓", Tone::Good),
        Status::Stopped => ("■", Tone::Warning),
        Status::Failed => ("✗", Tone::Bad),
        Status::Pending | Status::Starting | Status::Running | Status::Terminating => ("…", Tone::Busy),
    };
    let mut parts = vec![paint(&format!("{mark} {}", status.status.as_str().to_ascii_lowercase()), tone, colour)];
    if let Some(code) = status.exit_code {
        parts.push(format!("exit code {code}"));
    }
    if let Some(ended) = status.completed_at {
        parts.push(Human::from_ms(ended.ms_since(status.started_at)).to_string());
    }
    if let Some(reason) = status.end_reason.as_ref().filter(|reason| reason.code != "exit") {
        parts.push(reason::told(reason));
    }
    parts.push(paint(&one_line(id), Tone::Dim, colour));
    parts.join(" · ")
}

/// The command's own exit code; where the server knows none, that of a platform failure.
pub(crate) fn exit_code(status: &StatusResponse) -> u8 {
    status.exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(PLATFORM)
}

#[cfg(test)]
mod tests {
    use runvoy_wire::{Reason, Rfc3339};

    use super::*;

    fn ended(status: Status, exit_code: Option<i32>, reason: &str) -> StatusResponse {
        StatusResponse {
            execution_id: "0192ab".into(),
            status,
            command: String::new(),
            image_id: String::new(),
            started_at: Rfc3339(1_000),
            exit_code,
            completed_at: Some(Rfc3339(2_250)),
            submitted_at: None,
            end_reason: Some(Reason { code: reason.into(), message: "because".into() }),
            waiting_for: None,
            duration_seconds: Some(1),
            cost_usd: None,
            attempt: 1,
            worker_unreachable: false,
            message: None,
        }
    }

    #[test]
    fn the_end_is_told_in_one_line() {
        let told = |status: &StatusResponse| line(status, &status.execution_id, false);
        assert_eq!(told(&ended(Status::Succeeded, Some(0), "exit")), "✓ succeeded · exit code 0 · 1.2s · 0192ab");
        assert_eq!(told(&ended(Status::Failed, Some(124), "timeout")), "✗ failed · exit code 124 · 1.2s · timeout: because · 0192ab");
        assert_eq!(told(&ended(Status::Stopped, Some(130), "killed")), "■ stopped · exit code 130 · 1.2s · killed: because · 0192ab");
    }

    #[test]
    fn the_exit_code_passes_unchanged() {
        for code in [0, 1, 42, 124, 125, 130, 137, 143, 255] {
            assert_eq!(i32::from(exit_code(&ended(Status::Failed, Some(code), "exit"))), code);
        }
        for odd in [None, Some(-1), Some(256)] {
            assert_eq!(exit_code(&ended(Status::Failed, odd, "exit")), PLATFORM);
        }
    }
}
