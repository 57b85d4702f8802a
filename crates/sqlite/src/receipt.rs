//! What is kept so that a repeat is recognised: receipts of steps by their id, and the keys of submits in buckets of a day, where a
//! new key goes among today's few and not among all.

use runvoy_model::change::Made;
use runvoy_model::command::{Receipt, SubmitKey};
use runvoy_model::id::{ExecutionId, StepId};
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::fault::Fault;
use crate::record::text;

const DAY_MS: i64 = 86_400_000;

/// The receipt of a step as it is kept. Part of the format.
#[derive(Debug, Deserialize)]
enum Kept {
    Step(Receipt),
    /// The first version's receipt of a step that made a user.
    User,
}

/// The receipt of a step, if it was applied before.
pub(crate) fn find(conn: &Connection, id: StepId) -> Result<Option<Receipt>, Fault> {
    let mut statement = conn.prepare_cached("SELECT body FROM receipts WHERE id = ?1")?;
    let read = |row: &rusqlite::Row<'_>| -> Result<Receipt, Fault> {
        match serde_json::from_slice(text(row, 0)?) {
            Ok(Kept::Step(receipt)) => Ok(receipt),
            Ok(Kept::User) => Err(Fault::Damaged(format!("step {id} was of another kind before"))),
            Err(error) => Err(Fault::Damaged(format!("the receipt of step {id} cannot be read: {error}"))),
        }
    };
    statement.query_row([id.as_bytes()], |row| Ok(read(row))).optional()?.transpose()
}

/// Keeps the receipt of a step.
pub(crate) fn keep(conn: &Connection, step: &Step, receipt: &Receipt) -> Result<(), Fault> {
    let body = serde_json::to_string(&serde_json::json!({ "Step": receipt })).expect("a receipt can be written as JSON");
    let mut statement = conn.prepare_cached("INSERT INTO receipts (id, at, body) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![step.id.as_bytes(), step.at.0, body])?;
    Ok(())
}

/// Forgets receipts of steps before this time, `max` at most. Ids of steps begin with their time, so only old ones are looked at.
pub(crate) fn prune(conn: &Connection, before: UnixMs, max: i64) -> Result<usize, Fault> {
    let mut statement =
        conn.prepare_cached("DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE id < ?1 AND at < ?2 ORDER BY id LIMIT ?3)")?;
    let mut first_kept = [0; 16];
    first_kept[..6].copy_from_slice(&before.0.clamp(0, (1 << 48) - 1).to_be_bytes()[2..]);
    Ok(statement.execute(params![first_kept, before.0, max])?)
}

/// What a user's key was used for. Only `days` are looked into: see [`days`].
pub(crate) fn find_key(conn: &Connection, days: &[i64], user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, Fault> {
    let mut statement = conn.prepare_cached("SELECT execution, fingerprint, made FROM submit_keys WHERE day = ?1 AND digest = ?2")?;
    let digest = digest(user, key);
    for day in days.iter().rev() {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?));
        if let Some((execution, fingerprint, made)) = statement.query_row(params![day, digest], read).optional()? {
            let made = match (made, <[u8; 16]>::try_from(execution)) {
                (Some(made), _) => serde_json::from_str(&made).ok(),
                (None, Ok(execution)) => Some(Made::Execution(ExecutionId::from_bytes(execution))),
                (None, Err(_)) => None,
            };
            let made = made.ok_or_else(|| Fault::Damaged("what an idempotency key made cannot be read".into()))?;
            return Ok(Some((made, fingerprint)));
        }
    }
    Ok(None)
}

/// Keeps a client's own key and what it made.
pub(crate) fn keep_key(conn: &Connection, at: UnixMs, key: &SubmitKey, made: &Made) -> Result<(), Fault> {
    let mut statement =
        conn.prepare_cached("INSERT INTO submit_keys (day, digest, execution, fingerprint, made) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let (execution, made): (&[u8], _) = match made {
        Made::Execution(id) => (id.as_bytes(), None),
        Made::Job(_) | Made::Record(..) | Made::Redrive(_) | Made::Link(..) => {
            (&[], Some(serde_json::to_string(made).expect("plain fields can be written as JSON")))
        }
    };
    statement.execute(params![day_of(at), digest(&key.user, &key.key), execution, key.fingerprint, made])?;
    Ok(())
}

/// The bucket of a time.
pub(crate) const fn day_of(at: UnixMs) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// Every bucket there is, oldest first.
pub(crate) fn days(conn: &Connection) -> Result<Vec<i64>, Fault> {
    let mut statement = conn.prepare_cached("SELECT day FROM submit_keys WHERE day > ?1 ORDER BY day LIMIT 1")?;
    let mut days = Vec::new();
    let mut last = i64::MIN;
    while let Some(day) = statement.query_row([last], |row| row.get(0)).optional()? {
        days.push(day);
        last = day;
    }
    Ok(days)
}

/// Forgets keys of days that were over before this time, `max` at most.
pub(crate) fn prune_keys(conn: &Connection, before: UnixMs, max: i64) -> Result<usize, Fault> {
    let mut statement = conn.prepare_cached(
        "DELETE FROM submit_keys WHERE (day, digest) IN (SELECT day, digest FROM submit_keys WHERE day < ?1 ORDER BY day, digest LIMIT ?2)",
    )?;
    Ok(statement.execute(params![day_of(before), max])?)
}

/// Users' keys never meet, whatever characters they are of.
fn digest(user: &str, key: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update((user.len() as u64).to_be_bytes());
    hash.update(user);
    hash.update(key);
    let whole: [u8; 32] = hash.finalize().into();
    whole[..16].try_into().expect("half of it")
}
