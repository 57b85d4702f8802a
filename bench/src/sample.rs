//! Durations of repeated rounds, and what they say.

use std::time::Duration;

/// Durations in the order they were taken.
#[derive(Debug, Default)]
pub struct Sample(Vec<Duration>);

impl Sample {
    /// Adds a duration.
    pub fn push(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    /// The duration, in milliseconds, that `percent` of the rounds did not exceed.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(rank).map_or(f64::NAN, |duration| duration.as_secs_f64() * 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_sample() {
        let mut sample = Sample::default();
        (1..=100).rev().for_each(|ms| sample.push(Duration::from_millis(ms)));
        assert_eq!((sample.percentile_ms(50), sample.percentile_ms(99), sample.percentile_ms(100)), (50.0, 99.0, 100.0));
        assert!(Sample::default().percentile_ms(50).is_nan());
    }
}
