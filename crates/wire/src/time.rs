//! Times as JSON has them: RFC 3339, UTC, milliseconds. An absent time is an absent field, never an empty string.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use runvoy_model::time::UnixMs;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970, written `2026-01-03T14:22:19.640Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, format = DateTime))]
pub struct Rfc3339(pub i64);

/// A text that is not an RFC 3339 time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time such as 2026-01-03T14:22:19.640Z")]
pub struct InvalidTime;

impl Rfc3339 {
    /// Milliseconds from `earlier` to this time; zero where they are in the other order.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        let ms = self.0.saturating_sub(earlier.0);
        if ms < 0 { 0 } else { ms.cast_unsigned() }
    }
}

impl From<UnixMs> for Rfc3339 {
    fn from(at: UnixMs) -> Self {
        Self(at.0)
    }
}

impl From<Rfc3339> for UnixMs {
    fn from(at: Rfc3339) -> Self {
        Self(at.0)
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only a corrupt record lies outside the years -9999 to 9999; it is shown at the edge rather than refused.
        let edge = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let at = Timestamp::from_millisecond(self.0).unwrap_or(edge);
        write!(f, "{at:.3}")
    }
}

impl FromStr for Rfc3339 {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        text.parse::<Timestamp>().map(|at| Self(at.as_millisecond())).map_err(|_| InvalidTime)
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rfc3339 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_milliseconds_and_read_with_any_precision() {
        let at = Rfc3339(1_767_450_139_640);
        assert_eq!(at.to_string(), "2026-01-03T14:22:19.640Z");
        for (text, ms) in [
            ("2026-01-03T14:22:19.640Z", 1_767_450_139_640),
            ("2026-01-03T14:22:19Z", 1_767_450_139_000),
            ("2026-01-03T14:22:19.640123456Z", 1_767_450_139_640),
            ("2026-01-03T16:22:19.64+02:00", 1_767_450_139_640),
        ] {
            assert_eq!(text.parse(), Ok(Rfc3339(ms)), "{text}");
        }
        assert_eq!("yesterday".parse::<Rfc3339>(), Err(InvalidTime));
    }

    #[test]
    fn no_number_of_milliseconds_panics() {
        for ms in [i64::MIN, -1, 0, i64::MAX] {
            assert!(Rfc3339(ms).to_string().ends_with('Z'));
        }
    }
}
