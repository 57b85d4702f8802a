//! How long the server has refused work, one request after the other. A refusal may be that of something in front of it, and pass.

use std::time::Duration;

use tokio::time::Instant;

/// Whoever was refused so often,
const MOST: u32 = 5;
/// and for so long, is refused for good.
const LONGEST: Duration = Duration::from_secs(60);

/// Refusals in a row.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    times: u32,
    since: Option<Instant>,
}

impl Refusals {
    /// There is one more; whether it is for good.
    pub(crate) fn again(&mut self) -> bool {
        self.times = self.times.saturating_add(1);
        self.since.get_or_insert_with(Instant::now).elapsed() >= LONGEST && self.times >= MOST
    }

    /// Something else was answered.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_for_good_only_after_many_and_a_minute() {
        let mut refusals = Refusals::default();
        assert!((0..100).all(|_| !refusals.again()), "they came at once");
        advance(Duration::from_secs(59)).await;
        assert!(!refusals.again());
        advance(Duration::from_secs(1)).await;
        assert!(refusals.again());
        refusals.reset();
        for _ in 1..MOST {
            assert!(!refusals.again(), "they are few");
            advance(Duration::from_secs(600)).await;
        }
        assert!(refusals.again());
    }
}
