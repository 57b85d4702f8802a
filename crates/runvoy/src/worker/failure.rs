//! Why a worker or a server ends, and the exit code that says so: 4 where a worker's key is not taken, 2 where it was told something that cannot be,
//! 1 otherwise.

use runvoy_remote::Fault;

/// Why a worker or a server ends.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// In words.
    pub error: anyhow::Error,
}

impl Failure {
    /// It was told something that cannot be.
    pub fn usage(error: anyhow::Error) -> Self {
        Self { code: 2, error }
    }

    /// It has no key, or a wrong one.
    pub fn key(error: anyhow::Error) -> Self {
        Self { code: 4, error }
    }

    /// The server does not let it work.
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Key(_) => Self::key(anyhow::anyhow!("{fault}; an admin creates one with `runvoy workers create NAME`")),
            Fault::Refused(_) => Self::usage(anyhow::anyhow!("{fault}; `runvoy workers accounts` lists the queues of each key")),
            Fault::Away(_) | Fault::Lost(_) | Fault::Damaged(_) => Self { code: 1, error: fault.into() },
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { code: 1, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_others_is_told_with_where_its_own_are_listed() {
        let failure = Failure::of(Fault::Refused("queue gpu is not this key's".into()));
        assert!(failure.code == 2 && failure.error.to_string().contains("`runvoy workers accounts`"), "{}", failure.error);
    }
}
