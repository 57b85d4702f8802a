//! Which places belong to which hour. Places rise with every row, but times come from callers whose clocks may step back, so a
//! question about a time cannot be asked of the places alone. Instead of an index on every row's time, one row is written when the hour of the
//! steps changes: all places between two such rows belong to one hour, whatever the clock did.

use runvoy_model::time::UnixMs;
use rusqlite::{Connection, OptionalExtension, params};

use crate::fault::Fault;

const HOUR_MS: i64 = 3_600_000;

/// What places are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Track {
    /// Places of executions.
    Executions,
    /// Places of events.
    Events,
}

/// Remembers the hour of the last step, so that most steps need not look.
#[derive(Debug, Default)]
pub(crate) struct Hour(Option<i64>);

impl Hour {
    /// Notes a change of hour, before the rows of the step are written.
    pub(crate) fn enter(&mut self, conn: &Connection, at: UnixMs) -> Result<(), Fault> {
        let hour = at.0.div_euclid(HOUR_MS);
        if self.0 == Some(hour) {
            return Ok(());
        }
        let mut last = conn.prepare_cached("SELECT hour FROM spans ORDER BY seq DESC LIMIT 1")?;
        if last.query_row([], |row| row.get::<_, i64>(0)).optional()? != Some(hour) {
            let mut statement = conn.prepare_cached(
                "INSERT INTO spans (hour, execution, event) VALUES \
                 (?1, (SELECT ifnull(max(seq), 0) FROM executions), (SELECT ifnull(max(seq), 0) FROM events))",
            )?;
            statement.execute([hour])?;
        }
        self.0 = Some(hour);
        Ok(())
    }

    /// Forgets, after what was noted may have been rolled back.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

/// The first and last place that a row with a time in `from..to` can have; `None` if there can be none.
pub(crate) fn places(conn: &Connection, track: Track, from: Option<UnixMs>, to: Option<UnixMs>) -> Result<Option<(i64, i64)>, Fault> {
    if from.is_none() && to.is_none() {
        return Ok(Some((1, i64::MAX)));
    }
    let first_hour = from.map_or(i64::MIN, |at| at.0.div_euclid(HOUR_MS));
    let last_hour = to.map_or(i64::MAX, |at| at.0.saturating_sub(1).div_euclid(HOUR_MS));
    let mut hours = conn.prepare_cached("SELECT min(seq), max(seq) FROM spans INDEXED BY spans_hour WHERE hour BETWEEN ?1 AND ?2")?;
    let spans =
        hours.query_row(params![first_hour, last_hour], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    let (Some(first), Some(last)) = spans else { return Ok(None) };
    let begin = start_of(conn, track, first)?.unwrap_or(0);
    let end = start_of(conn, track, last + 1)?.unwrap_or(i64::MAX);
    Ok(Some((begin.saturating_add(1), end)))
}

fn start_of(conn: &Connection, track: Track, span: i64) -> Result<Option<i64>, Fault> {
    let sql = match track {
        Track::Executions => "SELECT execution FROM spans WHERE seq = ?1",
        Track::Events => "SELECT event FROM spans WHERE seq = ?1",
    };
    Ok(conn.prepare_cached(sql)?.query_row([span], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Connection {
        let mut conn = Connection::open_in_memory().expect("a database in memory");
        crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
        conn
    }

    fn event(conn: &Connection, hour: &mut Hour, at: i64) {
        hour.enter(conn, UnixMs(at)).expect("a span can be written");
        conn.execute(
            "INSERT INTO events (entity_kind, entity, number, kind, at, id, context, properties) VALUES (0, 1, 1, 0, ?1, x'00', '', '')",
            [at],
        )
        .expect("an event can be written");
    }

    #[test]
    fn a_time_is_found_also_after_the_clock_stepped_back() {
        let (conn, mut hour) = (store(), Hour::default());
        let times = [0, 10, HOUR_MS, HOUR_MS + 5, 3 * HOUR_MS, 20, 30, 5 * HOUR_MS];
        for at in times {
            event(&conn, &mut hour, at);
        }
        let bounds = [-1, 0, 1, 15, 25, HOUR_MS, HOUR_MS + 6, 3 * HOUR_MS, 4 * HOUR_MS, 9 * HOUR_MS];
        for from in bounds {
            for to in bounds {
                let inside = times.iter().enumerate().filter(|(_, at)| (from..to).contains(*at)).map(|(i, _)| i as i64 + 1);
                let found = places(&conn, Track::Events, Some(UnixMs(from)), Some(UnixMs(to))).expect("spans can be read");
                for place in inside {
                    let (first, last) = found.expect("there is a place");
                    assert!((first..=last).contains(&place), "{from}..{to}: {place} not in {first}..={last}");
                }
            }
        }
        let narrow = places(&conn, Track::Events, Some(UnixMs(HOUR_MS)), Some(UnixMs(2 * HOUR_MS))).expect("spans can be read");
        assert_eq!(narrow, Some((3, 4)));
    }
}
