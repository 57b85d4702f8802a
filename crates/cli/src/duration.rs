//! Durations as people write and read them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Whole seconds, written `90`, `90s`, `10m`, `1h30m`, `2d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub u64);

/// A text that is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a duration: use seconds (90) or units (45s, 10m, 1h30m, 2d)")]
pub struct InvalidDuration;

impl FromStr for Seconds {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        if let Ok(seconds) = parse_digits(text) {
            return Ok(Self(seconds));
        }
        let (mut total, mut rest, mut last_unit) = (0u64, text, u64::MAX);
        while !rest.is_empty() {
            let at = rest.find(|c: char| !c.is_ascii_digit()).ok_or(InvalidDuration)?;
            let unit = match rest.as_bytes()[at] {
                b'd' => 86_400,
                b'h' => 3_600,
                b'm' => 60,
                b's' => 1,
                _ => return Err(InvalidDuration),
            };
            // Each unit once, from large to small: `5m5m` and `5s1h` are slips.
            if unit >= last_unit {
                return Err(InvalidDuration);
            }
            let amount = parse_digits(&rest[..at])?.checked_mul(unit).ok_or(InvalidDuration)?;
            total = total.checked_add(amount).ok_or(InvalidDuration)?;
            (rest, last_unit) = (&rest[at + 1..], unit);
        }
        if last_unit == u64::MAX { Err(InvalidDuration) } else { Ok(Self(total)) }
    }
}

fn parse_digits(text: &str) -> Result<u64, InvalidDuration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| InvalidDuration) } else { Err(InvalidDuration) }
}

impl From<Seconds> for Duration {
    fn from(seconds: Seconds) -> Self {
        Self::from_secs(seconds.0)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

/// A number is seconds; a text is read as on the command line.
struct SecondsVisitor;

impl Visitor<'_> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 90, 10m or 1h30m")
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Seconds, E> {
        Ok(Seconds(seconds))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Seconds, E> {
        u64::try_from(seconds).map(Seconds).map_err(|_| E::custom(InvalidDuration))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Seconds, E> {
        text.parse().map_err(E::custom)
    }
}

/// A duration for people: `5ms`, `1.2s`, `12s`, `3m 05s`, `2h 04m`, `3d 4h`.
pub(crate) struct Human(pub(crate) Duration);

impl Human {
    pub(crate) fn from_ms(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }
}

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let text = match seconds {
            0 => format!("{}ms", self.0.subsec_millis()),
            1..10 => format!("{}.{}s", seconds, self.0.subsec_millis() / 100),
            10..60 => format!("{seconds}s"),
            60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
            3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
            _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
        };
        f.pad(&text)
    }
}

/// How long ago something was, in its largest unit: `12s`, `5m`, `2h`, `3d`.
pub(crate) struct Age(u64);

impl Age {
    pub(crate) fn from_ms(ms: u64) -> Self {
        Self(ms / 1_000)
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            seconds @ 0..60 => format!("{seconds}s"),
            seconds @ 60..3_600 => format!("{}m", seconds / 60),
            seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
            seconds => format!("{}d", seconds / 86_400),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in
            [("0", 0), ("90", 90), ("45s", 45), ("10m", 600), ("1h30m", 5_400), ("1h30m5s", 5_405), ("2d", 172_800), ("1d1s", 86_401)]
        {
            assert_eq!(text.parse(), Ok(Seconds(seconds)), "{text}");
        }
        for text in ["", "m", "10x", "-5", "+5", "1.5h", "5m5m", "5s1h", "5m5", " 5m", "99999999999999999999", "18446744073709551615d"] {
            assert_eq!(text.parse::<Seconds>(), Err(InvalidDuration), "{text}");
        }
    }

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        for (ms, text) in [(900, "0s"), (59_999, "59s"), (60_000, "1m"), (7_199_000, "1h"), (90_000_000, "1d"), (900_000_000, "10d")] {
            assert_eq!(Age::from_ms(ms).to_string(), text);
        }
    }

    #[test]
    fn durations_are_shown_with_what_matters_at_their_size() {
        for (ms, text) in [
            (0, "0ms"),
            (5, "5ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (1_250, "1.2s"),
            (12_900, "12s"),
            (185_000, "3m 05s"),
            (7_440_000, "2h 04m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(Human::from_ms(ms).to_string(), text);
        }
    }
}
