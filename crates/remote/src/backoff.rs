//! How long to wait before something is tried again: longer each time, and never the same for two workers, so that a server that comes back
//! is not met by all of them at once.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);

/// The waits between the tries of one thing.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// It worked: the next wait is a short one.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// The next wait: between half and all of what it has grown to.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        longest.mul_f64(0.5 + 0.5 * chance())
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    let mut byte = [0; 2];
    // Without chance the waits are only less well spread.
    getrandom::fill(&mut byte).ok();
    f64::from(u16::from_le_bytes(byte)) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST / 2);
        assert!(waits.iter().skip(10).all(|wait| *wait >= LONGEST / 2 && *wait <= LONGEST), "{waits:?}");
        assert!(waits[10..].windows(2).any(|pair| pair[0] != pair[1]), "two workers do not come back together");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
