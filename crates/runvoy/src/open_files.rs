//! How many files this process may have open: as many as it is allowed to ask for. What it starts gets back what was there before, because
//! old programs walk through every number up to their limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit that most systems begin with, where none is set.
const USUAL: u64 = 1_024;
/// So many logs are kept open at most.
const MOST_LOGS: u64 = 1_024;

/// The limit before and after it was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// What commands get.
    pub before: u64,
    /// What this process has.
    pub now: u64,
}

impl OpenFiles {
    /// Raises the limit of this process as far as it may.
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let before = limit.current.unwrap_or(USUAL);
        match set(limit.maximum) {
            Ok(()) => Self { before, now: limit.maximum.unwrap_or(u64::MAX) },
            Err(error) => {
                tracing::warn!(%error, before, "the limit of open files could not be raised");
                Self { before, now: before }
            }
        }
    }

    /// How many logs may be open at once: a quarter, because connections, commands and the store need files too.
    pub fn logs(self) -> usize {
        usize::try_from((self.now / 4).min(MOST_LOGS)).expect("a small number")
    }
}

/// Puts the limit of this process back to what its parent had; what is no number changes nothing.
pub fn put_back(before: Option<&str>) {
    if let Some(before) = before.and_then(|before| before.parse().ok()) {
        // A spawner with too high a limit is better than none.
        set(Some(before)).ok();
    }
}

fn set(soft: Option<u64>) -> rustix::io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: soft, maximum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_take_a_quarter_and_never_more_than_a_thousand() {
        assert_eq!(OpenFiles { before: 1_024, now: 1_024 }.logs(), 256);
        assert_eq!(OpenFiles { before: 1_024, now: 524_288 }.logs(), 1_024);
        assert_eq!(OpenFiles { before: 1_024, now: u64::MAX }.logs(), 1_024);
    }
}
