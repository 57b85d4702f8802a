//! A point in time on the command line: so long ago, or by the calendar.

use std::str::FromStr;

use runvoy_wire::Rfc3339;

use crate::duration::Seconds;
use crate::session::Session;

/// `10m` is ten minutes ago; `2026-01-03T14:22:19Z` is that very moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Ago(Seconds),
    At(Rfc3339),
}

/// A text that is no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time: use how long ago (10m, 1h30m, 2d) or a time such as 2026-01-03T14:22:19Z")]
pub(crate) struct InvalidMoment;

impl FromStr for Moment {
    type Err = InvalidMoment;

    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        let by_calendar = || text.parse().map(Self::At).map_err(|_| InvalidMoment);
        text.parse().map(Self::Ago).or_else(|_| by_calendar())
    }
}

impl Moment {
    /// As queries write it.
    pub(crate) fn text(self, session: &Session) -> String {
        match self {
            Self::Ago(since) => session.ago(since),
            Self::At(at) => at.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_so_long_ago_or_by_the_calendar() {
        assert_eq!("10m".parse(), Ok(Moment::Ago(Seconds(600))));
        assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(Moment::At(Rfc3339(1_000))));
        for text in ["", "yesterday", "2026-01-03", "-5m"] {
            assert_eq!(text.parse::<Moment>(), Err(InvalidMoment), "{text}");
        }
    }
}
