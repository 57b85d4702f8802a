//! The cost of attempts, in millionths of a dollar, and the counters that sum it up by day.

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::time::{UnixMs, civil};

/// Prices in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Per vCPU and hour.
    pub vcpu_hour_usd: f64,
    /// Per gigabyte of memory and hour.
    pub gb_hour_usd: f64,
}

/// The resources that an attempt is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// CPU units: 1024 are one vCPU.
    pub cpu_units: u32,
    /// MiB of memory: 1024 are one gigabyte.
    pub memory_mib: u32,
}

const NANOS: f64 = 1e9;
const MS_PER_HOUR: u128 = 3_600_000;
/// Units of a vCPU, and MiB of a gigabyte.
const UNITS: u128 = 1024;
const NANOS_PER_MICRO: u128 = 1000;

impl Rates {
    /// Whether nothing is charged.
    pub fn is_zero(&self) -> bool {
        nanos(self.vcpu_hour_usd) == 0 && nanos(self.gb_hour_usd) == 0
    }

    /// The cost of `size` for a while, rounded to the nearest millionth of a dollar. Rates count in billionths; from there on the arithmetic is exact.
    pub fn cost_micro_usd(&self, size: Size, duration_ms: u64) -> u64 {
        let per_hour = u128::from(size.cpu_units) * nanos(self.vcpu_hour_usd) + u128::from(size.memory_mib) * nanos(self.gb_hour_usd);
        let divisor = UNITS * MS_PER_HOUR * NANOS_PER_MICRO;
        let micros = per_hour.saturating_mul(u128::from(duration_ms)).saturating_add(divisor / 2) / divisor;
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}

/// A rate in billionths of a dollar.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to int saturates; a negative rate costs nothing")]
fn nanos(usd: f64) -> u128 {
    u128::from((usd * NANOS).round() as u64)
}

/// What costs are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Everything: its counters have no name.
    Total,
    /// The user who submitted the execution.
    User,
    /// The image that it ran in.
    Image,
    /// Its queue.
    Queue,
    /// Its job. An execution without one is in no counter of this dimension.
    Job,
}

impl Dimension {
    /// Every dimension.
    pub const ALL: [Self; 5] = [Self::Total, Self::User, Self::Image, Self::Queue, Self::Job];

    /// The word in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::User => "user",
            Self::Image => "image",
            Self::Queue => "queue",
            Self::Job => "job",
        }
    }
}

/// A day in UTC, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Day(pub u32);

const DAY_MS: i64 = 86_400_000;

impl Day {
    /// The day of a time; what is before 1970 counts as its first day.
    pub fn of(at: UnixMs) -> Self {
        Self(u32::try_from(at.0.max(0) / DAY_MS).unwrap_or(u32::MAX))
    }

    /// When it begins.
    pub fn begin(self) -> UnixMs {
        UnixMs(i64::from(self.0) * DAY_MS)
    }

    /// Its month: `2026-01`.
    pub fn month(self) -> String {
        let (year, month, _) = civil(i64::from(self.0));
        format!("{year:04}-{month:02}")
    }

    /// The first day of its month.
    #[must_use]
    pub fn first_of_month(self) -> Self {
        let (_, _, day) = civil(i64::from(self.0));
        Self(self.0.saturating_sub(u32::try_from(day - 1).unwrap_or(0)))
    }
}

/// Which counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CostKey {
    /// Only the executions that this user submitted; `None` counts those of all users.
    pub owner: Option<String>,
    /// What it sums up by.
    pub dimension: Dimension,
    /// The day on which the executions ended.
    pub day: Day,
    /// The user, image, queue or job.
    pub name: String,
}

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// How many executions ended.
    pub executions: u64,
    /// What they cost, in millionths of a dollar.
    pub micro_usd: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { executions: self.executions.saturating_add(other.executions), micro_usd: self.micro_usd.saturating_add(other.micro_usd) }
    }
}

/// The counters that an execution is added to at its end, and what is added to each.
pub fn charges(execution: &Execution) -> (Vec<CostKey>, Cost) {
    let day = Day::of(execution.completed_at.unwrap_or(execution.submitted_at));
    let job = execution.spec.task.as_ref().map(|task| task.job.to_string());
    let names = |dimension| match dimension {
        Dimension::Total => Some(String::new()),
        Dimension::User => Some(execution.created_by.clone()),
        Dimension::Image => Some(execution.spec.image.clone()),
        Dimension::Queue => Some(execution.spec.queue.to_string()),
        Dimension::Job => job.clone(),
    };
    let mut keys = Vec::new();
    for owner in [None, Some(execution.created_by.clone())] {
        for dimension in Dimension::ALL {
            // The image of an execution whose spec is lost is not known.
            let name = names(dimension).filter(|name| dimension == Dimension::Total || !name.is_empty());
            keys.extend(name.map(|name| CostKey { owner: owner.clone(), dimension, day, name }));
        }
    }
    (keys, Cost { executions: 1, micro_usd: execution.cost_micro_usd.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_minutes_of_a_quarter_vcpu_and_half_a_gigabyte() {
        let fargate_x86 = Rates { vcpu_hour_usd: 0.04048, gb_hour_usd: 0.004445 };
        assert_eq!(fargate_x86.cost_micro_usd(Size { cpu_units: 256, memory_mib: 512 }, 600_000), 2057);
        assert_eq!(Rates::default().cost_micro_usd(Size { cpu_units: 8192, memory_mib: 65_536 }, 3_600_000), 0);
        assert!(Rates::default().is_zero() && !fargate_x86.is_zero());
    }

    #[test]
    fn a_day_begins_at_midnight_utc() {
        assert_eq!(Day::of(UnixMs(1_767_225_599_999)), Day(20_453));
        assert_eq!(Day::of(UnixMs(1_767_225_600_000)), Day(20_454));
        assert_eq!(Day(20_454).begin(), UnixMs(1_767_225_600_000));
        assert_eq!(Day::of(UnixMs(-1)), Day(0));
        assert_eq!((Day(20_453).month(), Day(20_454).month()), ("2025-12".into(), "2026-01".into()));
        assert_eq!((Day(20_453).first_of_month(), Day(20_454).first_of_month()), (Day(20_423), Day(20_454)));
    }

    proptest! {
        /// A rate of whole billionths is charged exactly: never further off than half a millionth, whatever the sizes.
        #[test]
        fn cost_is_the_exact_value_rounded_to_a_millionth(
            vcpu_nano in 0_u64..2_000_000_000,
            gb_nano in 0_u64..2_000_000_000,
            cpu_units in 64_u32..=262_144,
            memory_mib in 0_u32..=4_194_304,
            duration_ms in 0_u64..40_000_000_000,
        ) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let rates = Rates { vcpu_hour_usd: vcpu_nano as f64 / 1e9, gb_hour_usd: gb_nano as f64 / 1e9 };
            let micros = u128::from(rates.cost_micro_usd(Size { cpu_units, memory_mib }, duration_ms));
            // Both sides in nano-dollars x 1024 x milliseconds: whole numbers.
            let scale = 1024 * 3_600_000;
            let exact = (u128::from(cpu_units) * u128::from(vcpu_nano) + u128::from(memory_mib) * u128::from(gb_nano)) * u128::from(duration_ms);
            prop_assert!((micros * 1000 * scale).abs_diff(exact) <= 500 * scale, "{micros} for {exact}");
        }
    }
}
