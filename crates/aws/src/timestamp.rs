//! Times as other readers of the tables expect them.

use runvoy_model::time::UnixMs;

/// ISO 8601, UTC, to the millisecond.
pub(crate) fn iso(at: UnixMs) -> String {
    let clamped = at.0.clamp(jiff::Timestamp::MIN.as_millisecond(), jiff::Timestamp::MAX.as_millisecond());
    jiff::Timestamp::from_millisecond(clamped).map_or_else(|_| at.0.to_string(), |time| format!("{time:.3}"))
}
