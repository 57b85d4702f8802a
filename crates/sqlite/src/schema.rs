//! The schema and its versions. A published version never changes; what is new is a further migration.

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use crate::open::OpenError;

const MIGRATIONS: &[M<'_>] = &[
    M::up(include_str!("schema/1.sql")),
    M::up(include_str!("schema/2.sql")),
    M::up(include_str!("schema/3.sql")),
    M::up(include_str!("schema/4.sql")),
    M::up(include_str!("schema/5.sql")),
];

/// The newest version that this program knows.
pub const KNOWN_VERSION: u32 = 5;

/// Brings a store to the newest version, all the way in one transaction; refuses one that is newer.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), OpenError> {
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > KNOWN_VERSION {
        return Err(OpenError::TooNew { found, known: KNOWN_VERSION });
    }
    match Migrations::from_slice(MIGRATIONS).to_latest(conn) {
        Ok(()) => Ok(()),
        Err(rusqlite_migration::Error::RusqliteError { err, .. }) => Err(err.into()),
        Err(error) => Err(OpenError::Migration(Box::new(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_is_known_and_valid() {
        assert_eq!(MIGRATIONS.len(), KNOWN_VERSION as usize);
        Migrations::from_slice(MIGRATIONS).validate().expect("the migrations apply to an empty store");
    }
}
