//! Days and shards: where an execution or job stands in the indexes by time. Both come from its id alone, so that whoever has the id knows
//! the place, and a clock is never asked.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;

const DAY_MS: i64 = 86_400_000;
/// 9999-12-30: the last whole day of the calendar. What is later counts as that day, which keeps the order.
const LAST: i64 = 2_932_895;

/// A day in UTC, counted from 1970-01-01, written `2026-01-03`. The text sorts as the day does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Day(i64);

impl Day {
    /// The day of a time; what is before 1970 counts as its first day.
    pub fn of(at: UnixMs) -> Self {
        Self(at.0.div_euclid(DAY_MS).clamp(0, LAST))
    }

    /// The day on which an id was made.
    pub fn of_id(id: Id) -> Self {
        Self::of(UnixMs(id.unix_ms()))
    }

    /// The first id that a day can have.
    pub fn first_id(self) -> Id {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&(self.0 * DAY_MS).to_be_bytes()[2..]);
        Id::from_bytes(bytes)
    }

    /// The last id that a day can have.
    pub fn last_id(self) -> Id {
        let mut bytes = [0xff; 16];
        if self.0 < LAST {
            bytes[..6].copy_from_slice(&((self.0 + 1) * DAY_MS - 1).to_be_bytes()[2..]);
        }
        Id::from_bytes(bytes)
    }

    /// How many days lie between two, whichever is first.
    pub const fn apart(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = Timestamp::from_millisecond(self.0 * DAY_MS).expect("a day of the calendar");
        write!(f, "{}", begin.strftime("%Y-%m-%d"))
    }
}

/// A text that is not a day.
#[derive(Debug, thiserror::Error)]
#[error("not a day such as 2026-01-03")]
pub(crate) struct InvalidDay;

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let begin: Timestamp = format!("{text}T00:00:00Z").parse().map_err(|_| InvalidDay)?;
        Ok(Self::of(UnixMs(begin.as_millisecond())))
    }
}

/// Which of a day's parts an id belongs to.
pub(crate) fn shard(id: Id, shards: u32) -> u32 {
    u32::from(id.as_bytes()[15]) % shards.max(1)
}

/// A time as other readers of the tables expect it: RFC 3339 with milliseconds. One outside the calendar is shown at its edge.
pub(crate) fn iso(at: UnixMs) -> String {
    let edge = if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    format!("{:.3}", Timestamp::from_millisecond(at.0).unwrap_or(edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_at(ms: i64, fill: u8) -> Id {
        let mut bytes = [fill; 16];
        bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
        Id::from_bytes(bytes)
    }

    #[test]
    fn the_day_of_an_id_is_its_own_in_utc() {
        let day = Day::of_id(id_at(1_767_450_139_640, 7));
        assert_eq!(day.to_string(), "2026-01-03");
        assert_eq!("2026-01-03".parse::<Day>().expect("a day"), day);
        assert!("2026-01-3x".parse::<Day>().is_err());
        assert_eq!(Day::of_id(day.first_id()), day);
        assert_eq!(Day::of_id(day.last_id()), day);
        assert!(Day::of_id(id_at(1_767_398_400_000 - 1, 0xff)) < day, "a millisecond before midnight");
        assert!(id_at(1_767_398_400_000 - 1, 0xff) < day.first_id());
    }

    #[test]
    fn days_sort_like_their_texts_and_ids_like_their_days() {
        let times = [i64::MIN, -1, 0, 1, DAY_MS, 1_767_450_139_640, 253_402_214_400_000, 281_474_976_710_655, i64::MAX];
        for pair in times.windows(2) {
            let (first, second) = (Day::of(UnixMs(pair[0])), Day::of(UnixMs(pair[1])));
            assert!(first <= second && first.to_string() <= second.to_string(), "{pair:?}");
        }
        let last = Day::of_id(Id::from_bytes([0xff; 16]));
        assert_eq!((last.to_string().as_str(), last.last_id()), ("9999-12-30", Id::from_bytes([0xff; 16])));
    }

    #[test]
    fn a_time_outside_the_calendar_is_shown_at_its_edge() {
        assert_eq!(iso(UnixMs(1_767_450_139_640)), "2026-01-03T14:22:19.640Z");
        assert!(iso(UnixMs(i64::MAX)).starts_with("9999-12-30"));
    }
}
