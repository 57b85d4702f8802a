//! Users and the hashes of their keys as rows.

use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::identity::{Key, NewUser, User};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::fault::Fault;
use crate::receipt::{self, Kept};

const MINUTE_MS: i64 = 60_000;

/// Makes a user with a first key; `false` if there is one of that name, or, for the first one, any.
pub(crate) fn create(conn: &Connection, step: &Step, user: &NewUser, only_first: bool) -> Result<bool, Fault> {
    match receipt::find(conn, step.id)? {
        Some(Kept::User) => return Ok(true),
        Some(Kept::Step(_)) => return Err(Fault::Damaged(format!("step {} was of another kind before", step.id))),
        None => {}
    }
    let taken: bool = if only_first {
        conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM users)")?.query_row([], |row| row.get(0))?
    } else {
        conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM users WHERE email = ?1)")?.query_row([&user.email], |row| row.get(0))?
    };
    if taken {
        return Ok(false);
    }
    conn.prepare_cached("INSERT INTO users (email, role, created_at, revoked) VALUES (?1, ?2, ?3, 0)")?.execute(params![
        user.email,
        user.role.as_str(),
        step.at.0
    ])?;
    conn.prepare_cached("INSERT INTO keys (hash, prefix, email, created_at, revoked) VALUES (?1, ?2, ?3, ?4, 0)")?.execute(params![
        user.key_hash,
        user.key_prefix,
        user.email,
        step.at.0
    ])?;
    receipt::keep(conn, step, &Kept::User)?;
    Ok(true)
}

/// The key with this hash and its user.
pub(crate) fn by_key(conn: &Connection, hash: [u8; 32]) -> Result<Option<(Key, User)>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT users.email, role, users.created_at, users.revoked, hash, prefix, keys.created_at, keys.revoked, expires_at, last_used \
         FROM keys JOIN users ON users.email = keys.email WHERE hash = ?1",
    )?;
    statement.query_row([hash], |row| Ok(decode_key(row))).optional()?.transpose()
}

/// Remembers when a key was used, to the minute.
pub(crate) fn touch(conn: &Connection, hash: [u8; 32], at: UnixMs) -> Result<(), Fault> {
    let minute = at.0 - at.0.rem_euclid(MINUTE_MS);
    conn.prepare_cached("UPDATE keys SET last_used = ?2 WHERE hash = ?1 AND ifnull(last_used, ?3) < ?2")?.execute(params![
        hash,
        minute,
        i64::MIN
    ])?;
    Ok(())
}

/// Every user, by e-mail.
pub(crate) fn all(conn: &Connection) -> Result<Vec<User>, Fault> {
    let mut statement = conn.prepare_cached("SELECT email, role, created_at, revoked FROM users ORDER BY email")?;
    let mut rows = statement.query([])?;
    let mut users = Vec::new();
    while let Some(row) = rows.next()? {
        users.push(decode(row)?);
    }
    Ok(users)
}

fn decode(row: &Row<'_>) -> Result<User, Fault> {
    let email: String = row.get(0)?;
    let role: String = row.get(1)?;
    let role = Role::parse(&role).ok_or_else(|| Fault::Damaged(format!("user {email} has the role {role:?}")))?;
    Ok(User { email, role, created_at: UnixMs(row.get(2)?), revoked: row.get(3)? })
}

fn decode_key(row: &Row<'_>) -> Result<(Key, User), Fault> {
    let user = decode(row)?;
    let key = Key {
        hash: row.get(4)?,
        prefix: row.get(5)?,
        email: user.email.clone(),
        created_at: UnixMs(row.get(6)?),
        revoked: row.get(7)?,
        expires_at: row.get::<_, Option<i64>>(8)?.map(UnixMs),
        last_used: row.get::<_, Option<i64>>(9)?.map(UnixMs),
    };
    Ok((key, user))
}
