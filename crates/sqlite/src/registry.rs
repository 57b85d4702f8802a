//! What people manage as rows: one table for all kinds, read by name or by kind. Nothing is decided here.

use runvoy_model::chain::ChainHead;
use runvoy_model::record::{Kind, Record};
use runvoy_model::time::UnixMs;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::fault::Fault;
use crate::incident;

const MINUTE_MS: i64 = 60_000;

/// One record, also after it was removed, with its place.
pub(crate) fn find(conn: &Connection, kind: Kind, name: &str) -> Result<Option<(i64, Record)>, Fault> {
    let mut statement =
        conn.prepare_cached("SELECT seq, kind, name, version, chain_count, chain_mac, body FROM records WHERE kind = ?1 AND name = ?2")?;
    statement.query_row(params![kind_code(kind), name], |row| Ok(decode(row))).optional()?.transpose()
}

/// Every record of a kind that was not removed, by name.
pub(crate) fn all(conn: &Connection, kind: Kind) -> Result<Vec<Record>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, kind, name, version, chain_count, chain_mac, body FROM records WHERE kind = ?1 AND body IS NOT NULL ORDER BY name",
    )?;
    let mut rows = statement.query([kind_code(kind)])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(decode(row)?.1);
    }
    Ok(records)
}

/// Every record there is, also those that were removed.
pub(crate) fn each(conn: &Connection, mut see: impl FnMut(Result<Record, Fault>)) -> Result<(), Fault> {
    let mut statement =
        conn.prepare_cached("SELECT seq, kind, name, version, chain_count, chain_mac, body FROM records NOT INDEXED ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        see(decode(row).map(|(_, record)| record));
    }
    Ok(())
}

/// Writes a record as it is from now on; returns its place. One that leaves no tombstone is gone when it was removed.
pub(crate) fn put(conn: &Connection, record: &Record) -> Result<i64, Fault> {
    if record.body.is_none() && !record.kind.leaves_tombstone() {
        let mut statement = conn.prepare_cached("DELETE FROM records WHERE kind = ?1 AND name = ?2")?;
        statement.execute(params![kind_code(record.kind), record.name])?;
        return Ok(0);
    }
    let mut statement = conn.prepare_cached(
        "INSERT INTO records (kind, name, version, chain_count, chain_mac, body, phase, severity, since) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
         ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, chain_count = excluded.chain_count, \
         chain_mac = excluded.chain_mac, body = excluded.body, phase = excluded.phase, severity = excluded.severity, \
         since = excluded.since WHERE version = excluded.version - 1 RETURNING seq",
    )?;
    let body = record.body.as_ref().map(|body| serde_json::to_string(body).expect("a record can be written as JSON"));
    let number = |number: u64| i64::try_from(number).map_err(|_| Fault::Damaged(format!("record {} has number {number}", record.name)));
    let (version, count) = (number(record.version)?, number(record.chain.count)?);
    let (phase, severity, since) =
        incident::standing(record).map_or((None, None, None), |(phase, kind, since)| (Some(phase), Some(kind), Some(since)));
    let values = params![kind_code(record.kind), record.name, version, count, record.chain.mac, body, phase, severity, since];
    let seq = statement.query_row(values, |row| row.get(0)).optional()?;
    seq.ok_or_else(|| Fault::Damaged(format!("{} {} was changed without being read first", record.kind.as_str(), record.name)))
}

/// Remembers when a key was used, to the minute.
pub(crate) fn touch_key(conn: &Connection, hash: [u8; 32], at: UnixMs) -> Result<(), Fault> {
    let minute = at.0 - at.0.rem_euclid(MINUTE_MS);
    let sql = "INSERT INTO key_uses (hash, at) VALUES (?1, ?2) ON CONFLICT (hash) DO UPDATE SET at = max(at, excluded.at)";
    conn.prepare_cached(sql)?.execute(params![hash, minute])?;
    Ok(())
}

/// When these keys were last used.
pub(crate) fn key_uses(conn: &Connection, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, Fault> {
    let mut statement = conn.prepare_cached("SELECT at FROM key_uses WHERE hash = ?1")?;
    let mut uses = Vec::with_capacity(hashes.len());
    for hash in hashes {
        uses.push(statement.query_row([hash], |row| row.get(0)).optional()?.map(UnixMs));
    }
    Ok(uses)
}

fn decode(row: &Row<'_>) -> Result<(i64, Record), Fault> {
    let name: String = row.get(2)?;
    let bad = |what: &str| Fault::Damaged(format!("the {what} of record {name} cannot be read"));
    let number =
        |index, what| row.get::<_, i64>(index).map_err(Fault::from).and_then(|number| u64::try_from(number).map_err(|_| bad(what)));
    let code: i64 = row.get(1)?;
    let kind = Kind::ALL.into_iter().find(|kind| kind_code(*kind) == code).ok_or_else(|| bad("kind"))?;
    let (version, count) = (number(3, "version")?, number(4, "chain")?);
    let body: Option<String> = row.get(6)?;
    let body = body.map(|body| serde_json::from_str(&body)).transpose().map_err(|_| bad("body"))?;
    let chain = ChainHead { count, mac: row.get(5)? };
    Ok((row.get(0)?, Record { kind, version, chain, body, name }))
}

/// The number of a kind in the store. Part of the format.
pub(crate) const fn kind_code(kind: Kind) -> i64 {
    match kind {
        Kind::User => 0,
        Kind::Key => 1,
        Kind::Claim => 2,
        Kind::Admins => 3,
        Kind::Group => 4,
        Kind::Rule => 5,
        Kind::Image => 6,
        Kind::DefaultImage => 7,
        Kind::Secret => 8,
        Kind::Playbook => 9,
        Kind::PlaybookVersion => 10,
        Kind::Ledger => 11,
        Kind::Health => 12,
        Kind::Incident => 13,
        Kind::Queue => 16,
        Kind::Permits => 17,
        // Kept elsewhere, and never written here.
        Kind::Job => 14,
        Kind::Task => 15,
        Kind::Worker => 18,
        Kind::Drain => 19,
    }
}
