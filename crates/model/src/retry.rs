//! What an outcome means: whether another attempt could help, and when it may begin.

use serde::{Deserialize, Serialize};

use crate::command::Outcome;
use crate::id::ExecutionId;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// It took too long.
    Timeout,
    /// Something could not be reached.
    Network,
    /// Somebody beyond asks to come less often.
    RateLimit,
    /// Something beyond failed, or nobody can tell.
    ServerError,
    /// It may not.
    Auth,
    /// What it was given is wrong.
    Validation,
    /// What it read cannot be understood.
    Parse,
    /// Something is not there.
    NotFound,
    /// It is broken.
    Programming,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 9] = [
        Self::Timeout,
        Self::Network,
        Self::RateLimit,
        Self::ServerError,
        Self::Auth,
        Self::Validation,
        Self::Parse,
        Self::NotFound,
        Self::Programming,
    ];

    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::RateLimit => "rate-limit",
            Self::Parse => "parse",
            Self::ServerError => "server-error",
            Self::Auth => "auth",
            Self::Validation => "validation",
            Self::NotFound => "not-found",
            Self::Programming => "programming",
        }
    }

    /// Another attempt could help.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::Network | Self::RateLimit | Self::ServerError)
    }
}

/// Classifies a failure. Exit codes follow `sysexits`, 124 is that of `timeout`, and above 128 a shell tells the signal that ended its command; a code
/// that says nothing is taken for a passing failure, because only who asked for retries gets any.
pub fn classify(outcome: &Outcome) -> Category {
    match outcome {
        Outcome::TimedOut { .. } => Category::Timeout,
        Outcome::OutOfMemory | Outcome::OutOfDisk { .. } => Category::Programming,
        // As if a shell had looked for the program.
        Outcome::StartFailed { exit_code: Some(_), .. } => Category::NotFound,
        Outcome::StartFailed { .. } | Outcome::OutputFailed { .. } => Category::ServerError,
        Outcome::Refused { category, .. } | Outcome::ImageFailed { category, .. } | Outcome::GitFailed { category, .. } => *category,
        Outcome::WorkerStopped | Outcome::Lost { .. } => Category::Network,
        Outcome::Exited { code, .. } => match code {
            64 | 65 | 78 => Category::Validation,
            66 | 67 | 68 | 72 | 126 | 127 => Category::NotFound,
            69 | 76 => Category::Network,
            70 => Category::Programming,
            77 => Category::Auth,
            124 => Category::Timeout,
            129..=192 => of_signal(code - 128),
            _ => Category::ServerError,
        },
        Outcome::Signalled { signal, .. } => of_signal(*signal),
    }
}

const fn of_signal(signal: i32) -> Category {
    match signal {
        // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS: the program itself is broken.
        4 | 5 | 6 | 7 | 8 | 11 | 31 => Category::Programming,
        _ => Category::ServerError,
    }
}

/// So many attempts in a row may end together with the server that ran them. Then the execution is not retried: its command may be what ends the server.
pub const MAX_SERVER_DEATHS: u32 = 3;

const FIRST_BACKOFF_MS: u64 = 1_000;
/// No wait before an attempt is longer than this.
pub const LONGEST_BACKOFF_MS: u64 = 5 * 60 * 1_000;

/// How long to wait before the attempt after `attempt`: doubling from one second to five minutes, of which a random half to
/// whole is taken, so that what failed together does not come back together.
pub fn backoff_ms(execution: ExecutionId, attempt: u32) -> u64 {
    let longest = FIRST_BACKOFF_MS.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(LONGEST_BACKOFF_MS);
    // The id's tail is random already; mixing in the attempt gives each attempt its own jitter.
    let seed = execution.as_bytes()[8..]
        .iter()
        .fold(u64::from(attempt), |seed, byte| (seed ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    longest / 2 + (seed >> 16) % (longest / 2 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_failures_are_retried() {
        let exit = |code| classify(&Outcome::Exited { code, after_kill: false }).is_retryable();
        assert!(exit(1) && exit(75) && exit(69) && exit(255));
        assert!(!exit(127) && !exit(64) && !exit(77) && !exit(70));
        assert!(exit(124) && exit(137) && exit(143) && !exit(139) && !exit(134), "what a shell tells of its command");
        assert!(!classify(&Outcome::Signalled { signal: 11, after_kill: false }).is_retryable());
        assert!(classify(&Outcome::Signalled { signal: 9, after_kill: false }).is_retryable());
        assert!(classify(&Outcome::TimedOut { timeout_ms: 1, forced: false }).is_retryable());
        let git = |category| classify(&Outcome::GitFailed { message: String::new(), category }).is_retryable();
        assert!(git(Category::Network) && !git(Category::Auth) && !git(Category::NotFound) && !git(Category::Validation));
        assert!(!classify(&Outcome::Refused { message: String::new(), category: Category::Auth }).is_retryable());
    }

    #[test]
    fn the_words_are_those_of_the_events() {
        for category in Category::ALL {
            assert_eq!(serde_json::to_value(category).expect("a word"), category.as_str());
        }
        let retried: Vec<_> = Category::ALL.into_iter().filter(|category| category.is_retryable()).map(Category::as_str).collect();
        assert_eq!(retried, ["timeout", "network", "rate-limit", "server-error"]);
    }

    #[test]
    fn backoff_doubles_within_its_bounds() {
        for tail in 0..50u8 {
            let id = ExecutionId::from_bytes([tail; 16]);
            for attempt in 1..40 {
                let longest = (1_000u64 << (attempt - 1).min(20)).min(300_000);
                let ms = backoff_ms(id, attempt);
                assert!((longest / 2..=longest).contains(&ms), "{attempt}: {ms}");
            }
        }
    }
}
