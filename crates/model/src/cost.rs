//! What a run costs: a rate per vCPU hour and per GB hour, in millionths of a dollar.

use serde::{Deserialize, Serialize};

/// Prices in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Per vCPU and hour.
    pub vcpu_hour_usd: f64,
    /// Per gigabyte of memory and hour.
    pub gb_hour_usd: f64,
}

impl Rates {
    /// The cost of `vcpus` and `gb` for a while, rounded to a millionth of a dollar.
    pub fn cost_micro_usd(&self, vcpus: f64, gb: f64, duration_ms: u64) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "a duration of 2^53 ms is 285,000 years")]
        let hours = duration_ms as f64 / 3_600_000.0;
        let usd = (vcpus * self.vcpu_hour_usd + gb * self.gb_hour_usd) * hours;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float to int saturates; a negative rate costs nothing"
        )]
        let micros = (usd * 1e6).round() as u64;
        micros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_of_a_quarter_vcpu_and_half_a_gigabyte() {
        let fargate_x86 = Rates { vcpu_hour_usd: 0.04048, gb_hour_usd: 0.004445 };
        assert_eq!(fargate_x86.cost_micro_usd(0.25, 0.5, 600_000), 2057);
        assert_eq!(Rates::default().cost_micro_usd(8.0, 64.0, 3_600_000), 0);
    }
}
