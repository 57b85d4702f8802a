//! The line that says what is being waited for, on a terminal's stderr, once it lasts. Pure: it makes the bytes, others write them.

use std::time::Duration;

use runvoy_wire::{Status, StatusResponse};

use crate::duration::Human;
use crate::sanitize::one_line;

/// What takes less needs no spinner.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often it turns.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ERASE: &str = "\r\x1b[K";

/// A spinner that may be on the screen.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    phase: String,
    turns: usize,
    drawn: bool,
}

impl Spinner {
    pub(crate) fn new() -> Self {
        Self { phase: "submitted".to_owned(), ..Self::default() }
    }

    /// Takes over the phase of a status.
    pub(crate) fn status(&mut self, status: &StatusResponse) {
        self.phase = phase(status);
    }

    pub(crate) fn phase(&mut self, phase: &str) {
        self.phase = one_line(phase);
    }

    /// The next frame, `elapsed` after the beginning; nothing yet while that is short.
    pub(crate) fn turn(&mut self, elapsed: Duration, width: Option<usize>) -> Option<String> {
        if elapsed < PATIENCE {
            return None;
        }
        self.turns += 1;
        self.drawn = true;
        let text = format!("{} {} {}", FRAMES[self.turns % FRAMES.len()], self.phase, Human(elapsed));
        let shown: String = text.chars().take(width.unwrap_or(80).saturating_sub(1)).collect();
        Some(format!("{ERASE}{shown}"))
    }

    /// What takes it off the screen.
    pub(crate) fn clear(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.drawn).then_some(ERASE)
    }
}

fn phase(status: &StatusResponse) -> String {
    match (status.status, &status.waiting_for) {
        (Status::Pending, Some(reason)) => format!("queued, waiting for {}", one_line(&reason.message)),
        (Status::Pending, None) => "queued".to_owned(),
        (Status::Starting, Some(reason)) => format!("starting: {}", one_line(&reason.message)),
        (other, _) => other.as_str().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use runvoy_wire::{Reason, Rfc3339};

    use super::*;

    #[test]
    fn it_appears_late_names_the_phase_and_leaves_nothing() {
        let mut spinner = Spinner::new();
        assert_eq!(spinner.turn(Duration::from_millis(299), None), None);
        assert_eq!(spinner.clear(), None, "what was never drawn is not erased");
        let mut status = StatusResponse {
            execution_id: String::new(),
            status: Status::Pending,
            command: String::new(),
            image_id: String::new(),
            started_at: Rfc3339(0),
            exit_code: None,
            completed_at: None,
            submitted_at: None,
            end_reason: None,
            waiting_for: Some(Reason { code: "lock".into(), message: "lock prod\x1b[2J".into() }),
            duration_seconds: None,
            cost_usd: None,
            attempt: 0,
            worker_unreachable: false,
            message: None,
        };
        spinner.status(&status);
        assert_eq!(spinner.turn(Duration::from_millis(1_200), None).as_deref(), Some("\r\x1b[K⠙ queued, waiting for lock prod 1.2s"));
        status.status = Status::Running;
        spinner.status(&status);
        assert_eq!(spinner.turn(Duration::from_secs(12), Some(12)).as_deref(), Some("\r\x1b[K⠹ running 1"));
        assert_eq!(spinner.clear(), Some("\r\x1b[K"));
        assert_eq!(spinner.clear(), None);
    }
}
