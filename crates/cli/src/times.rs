//! Times in tables: on a terminal how long ago they were, in a pipe as they are.

use runvoy_wire::Rfc3339;

use crate::duration::Age;

/// The present, and how times are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now: Rfc3339,
    pub(crate) is_compact: bool,
}

impl Times {
    pub(crate) fn show(self, at: Rfc3339) -> String {
        match self.is_compact {
            true => format!("{} ago", Age::from_ms(self.now.ms_since(at))),
            false => at.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_ages_and_a_pipe_times() {
        let times = |is_compact| Times { now: Rfc3339(3 * 3_600_000), is_compact };
        assert_eq!(times(true).show(Rfc3339(3_600_000)), "2h ago");
        assert_eq!(times(false).show(Rfc3339(0)), "1970-01-01T00:00:00.000Z");
    }
}
