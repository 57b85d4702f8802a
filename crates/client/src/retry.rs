//! How long a call is repeated, and how soon. Pure but for the jitter; the caller sleeps.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::error::ClientError;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// However long a server asks to wait, it is asked again after this.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// The time that a call may take with all its repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// While no connection was ever made: a server that is not there should be told soon.
    pub connect: Duration,
    /// Once the server was seen.
    pub total: Duration,
}

impl Retry {
    /// Never repeat.
    pub const NONE: Self = Self { connect: Duration::ZERO, total: Duration::ZERO };

    /// How long to sleep before the next attempt, or `None` to give up. `attempt` counts from 0.
    pub(crate) fn delay(&self, attempt: u32, elapsed: Duration, error: &ClientError) -> Option<Duration> {
        if !error.is_retryable() {
            return None;
        }
        let budget = if matches!(error, ClientError::Unreachable { connected: false, .. }) { self.connect } else { self.total };
        let delay = asked(error).unwrap_or_else(|| backoff(attempt));
        (elapsed.saturating_add(delay) < budget).then_some(delay)
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), total: Duration::from_secs(30) }
    }
}

/// How long the server asked to wait, within reason.
pub(crate) fn asked(error: &ClientError) -> Option<Duration> {
    error.refusal().and_then(|refusal| refusal.retry_after).map(|asked| asked.min(LONGEST_ASKED))
}

/// Exponential, between half and the whole of its step, so that many clients do not come back at once.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let step = FIRST.saturating_mul(1 << attempt.min(10)).min(LONGEST);
    let random = RandomState::new().hash_one(attempt) % 1000;
    step / 2 + step.mul_f64(random as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retry_after: Option<u64>) -> ClientError {
        ClientError::from_answer(status, b"", String::new(), retry_after.map(Duration::from_secs))
    }

    fn unreachable(connected: bool) -> ClientError {
        ClientError::Unreachable { endpoint: String::new(), connected, source: "gone".into() }
    }

    #[test]
    fn only_what_may_pass_is_repeated_and_only_in_its_time() {
        let retry = Retry::default();
        let (soon, late) = (Duration::from_secs(1), Duration::from_secs(10));
        for (name, error, elapsed, again) in [
            ("no connection yet", unreachable(false), soon, true),
            ("no connection at all", unreachable(false), late, false),
            ("connection lost", unreachable(true), late, true),
            ("overloaded", refused(503, None), late, true),
            ("too many", refused(429, Some(5)), late, true),
            ("too many, for too long", refused(429, Some(25)), late, false),
            ("a bug", refused(500, None), soon, false),
            ("bad input", refused(400, None), soon, false),
        ] {
            assert_eq!(retry.delay(0, elapsed, &error).is_some(), again, "{name}");
        }
        assert_eq!(retry.delay(3, soon, &refused(429, Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(Retry::NONE.delay(0, Duration::ZERO, &unreachable(true)), None);
    }

    #[test]
    fn an_absurd_wait_is_cut() {
        let absurd = refused(429, Some(u64::MAX));
        assert_eq!(asked(&absurd), Some(LONGEST_ASKED));
        assert_eq!(Retry::default().delay(0, Duration::from_secs(1), &absurd), None);
        assert_eq!(Retry::default().delay(0, Duration::MAX, &absurd), None);
        let patient = Retry { total: Duration::from_secs(300), ..Retry::default() };
        assert_eq!(patient.delay(0, Duration::from_secs(1), &absurd), Some(LONGEST_ASKED));
    }

    #[test]
    fn the_backoff_grows_to_its_limit() {
        for attempt in 0..40 {
            let delay = backoff(attempt);
            assert!(delay >= FIRST / 2 && delay <= LONGEST, "{attempt}: {delay:?}");
        }
        assert!(backoff(30) >= LONGEST / 2);
    }
}
