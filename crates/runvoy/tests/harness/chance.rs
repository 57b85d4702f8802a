//! Numbers by which a test spreads what it does over time.

use std::time::Duration;

/// A seed gives the same numbers for ever (`SplitMix64`).
pub struct Chance(pub u64);

impl Chance {
    /// Other numbers in every run; the seed is named where it fails.
    pub fn new() -> Self {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let seed = since_1970.as_millis() as u64;
        println!("seed {seed}");
        Self(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % limit
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time between these, in milliseconds.
    pub fn time(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    /// Numbers of somebody else's own.
    pub fn split(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}
