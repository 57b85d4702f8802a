//! The counters of costs as rows: one for each owner, dimension, day and name, and one with the place in the event log up to which they count.

use async_trait::async_trait;
use runvoy_model::cost::{Cost, Day};
use runvoy_ports::cost::{CostFold, CostQuery, CostStore};
use runvoy_ports::store::StoreError;
use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::port::mismatch;
use crate::store::SqliteStore;
use crate::writer::{Done, Work};

/// Adds to the counters if they count up to the place where the fold begins; the place up to which they count now.
pub(crate) fn count(conn: &Connection, fold: &CostFold) -> Result<u64, Fault> {
    let sql = "UPDATE costs_counted SET place = ?2 WHERE place = ?1";
    let moved = conn.prepare_cached(sql)?.execute(params![number(fold.after), number(fold.up_to)])?;
    if moved == 0 {
        return counted(conn);
    }
    let sql = "INSERT INTO costs (owner, dimension, day, name, executions, micro_usd) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE \
               SET executions = executions + excluded.executions, micro_usd = micro_usd + min(excluded.micro_usd, 9223372036854775807 - micro_usd)";
    let mut statement = conn.prepare_cached(sql)?;
    for (key, cost) in &fold.added {
        let owner = key.owner.as_deref().unwrap_or_default();
        let (executions, micro_usd) = (number(cost.executions), number(cost.micro_usd));
        statement.execute(params![owner, key.dimension.as_str(), key.day.0, key.name, executions, micro_usd])?;
    }
    Ok(fold.up_to)
}

fn counted(conn: &Connection) -> Result<u64, Fault> {
    let place = conn.prepare_cached("SELECT place FROM costs_counted")?.query_row([], |row| row.get(0))?;
    unsigned(place)
}

fn costs(conn: &Connection, query: &CostQuery) -> Result<Vec<(Day, String, Cost)>, Fault> {
    let sql = "SELECT day, name, executions, micro_usd FROM costs WHERE owner = ?1 AND dimension = ?2 AND day >= ?3 ORDER BY day, name";
    let mut statement = conn.prepare_cached(sql)?;
    let owner = query.owner.as_deref().unwrap_or_default();
    let mut rows = statement.query(params![owner, query.dimension.as_str(), query.since.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cost = Cost { executions: unsigned(row.get(2)?)?, micro_usd: unsigned(row.get(3)?)? };
        found.push((Day(row.get(0)?), row.get(1)?, cost));
    }
    Ok(found)
}

/// No amount comes near the largest number of a column, except with absurd rates: it is kept as that.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> Result<u64, Fault> {
    u64::try_from(value).map_err(|_| Fault::Damaged("a counter of costs is negative".into()))
}

#[async_trait]
impl CostStore for SqliteStore {
    async fn counted(&self) -> Result<u64, StoreError> {
        self.readers.peek(|conn, _| counted(conn))
    }

    async fn count(&self, fold: CostFold) -> Result<u64, StoreError> {
        match self.write(Work::Cost(Box::new(fold))).await? {
            Done::Counted(place) => Ok(place),
            other => Err(mismatch(&other)),
        }
    }

    async fn costs(&self, query: CostQuery) -> Result<Vec<(Day, String, Cost)>, StoreError> {
        self.readers.read(move |conn, _| costs(conn, &query)).await
    }
}
