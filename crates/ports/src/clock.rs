//! Time, ids and randomness come in at the edge, through these two.

use std::time::Duration;

use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;

/// Both kinds of time.
pub trait Clock: Send + Sync {
    /// The wall clock: for people, records and keys. It does not jump while a process runs; another process may see another time.
    fn now(&self) -> UnixMs;

    /// What the machine's wall clock shows now, also right after it was set: for the expiry of
    /// credentials, which other machines sign and people were told. Never for waits and durations.
    fn machine_now(&self) -> UnixMs {
        self.now()
    }

    /// Time since some fixed moment, which never jumps: for leases and timeouts.
    fn monotonic(&self) -> Duration;

    /// How long the machine has slept since some fixed moment: monotonic time stands still meanwhile, and a lease elsewhere does not. Zero where
    /// nobody can say.
    fn asleep(&self) -> Duration {
        Duration::ZERO
    }
}

/// Makes ids that sort by the time they were made, and randomness for keys.
pub trait IdSource: Send + Sync {
    /// A new id, greater than every one before it from this source.
    fn next_id(&self) -> Id;

    /// 256 bits that nobody can guess.
    fn random(&self) -> [u8; 32];
}
