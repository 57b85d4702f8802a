//! What goes wrong inside the store, and the one place where it gets the meaning that the port's callers see.

use runvoy_ports::store::StoreError;
use rusqlite::ffi;

/// A failure of one piece of work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A row that no version of this program writes.
    #[error("{0}")]
    Damaged(String),
    /// The disk is at its reserve.
    #[error("the disk is at its reserve")]
    AtReserve,
}

/// What a failure means for whoever asked and for those who come after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// What is stored cannot be trusted.
    Damaged,
    /// No room; it may be made.
    NoSpace,
    /// The disk failed a write or a sync. What was written before may be gone, so nothing may be acknowledged any more.
    Fatal,
    /// Not now.
    Unavailable,
}

impl Fault {
    pub(crate) fn meaning(&self) -> Meaning {
        match self {
            Self::Damaged(_) => Meaning::Damaged,
            Self::AtReserve => Meaning::NoSpace,
            Self::Sql(error) => meaning(error),
        }
    }

    /// The error of the port.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self.meaning() {
            Meaning::Damaged => StoreError::Damaged(self.to_string()),
            Meaning::NoSpace => StoreError::NoSpace,
            Meaning::Fatal | Meaning::Unavailable => StoreError::Unavailable(Box::new(self)),
        }
    }
}

pub(crate) fn meaning(error: &rusqlite::Error) -> Meaning {
    use rusqlite::Error as E;
    match error {
        E::SqliteFailure(failure, _) => code_meaning(failure.extended_code),
        E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) | E::InvalidColumnType(..) | E::Utf8Error(..) => Meaning::Damaged,
        _ => Meaning::Unavailable,
    }
}

fn code_meaning(extended: i32) -> Meaning {
    match extended {
        // A page whose checksum is wrong.
        ffi::SQLITE_IOERR_DATA | ffi::SQLITE_IOERR_CORRUPTFS => Meaning::Damaged,
        // The shared index of the WAL could not grow: the only IO error that a full disk makes.
        ffi::SQLITE_IOERR_SHMSIZE => Meaning::NoSpace,
        ffi::SQLITE_IOERR_NOMEM => Meaning::Unavailable,
        _ => match extended & 0xff {
            // A broken constraint means that an index and its table disagree: decisions are made before rows are.
            ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH => Meaning::Damaged,
            ffi::SQLITE_FULL => Meaning::NoSpace,
            ffi::SQLITE_IOERR => Meaning::Fatal,
            _ => Meaning::Unavailable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_meaning() {
        let cases = [
            (ffi::SQLITE_IOERR_FSYNC, Meaning::Fatal),
            (ffi::SQLITE_IOERR_WRITE, Meaning::Fatal),
            (ffi::SQLITE_IOERR_DATA, Meaning::Damaged),
            (ffi::SQLITE_IOERR_SHMSIZE, Meaning::NoSpace),
            (ffi::SQLITE_FULL, Meaning::NoSpace),
            (ffi::SQLITE_CORRUPT, Meaning::Damaged),
            (ffi::SQLITE_CORRUPT_INDEX, Meaning::Damaged),
            (ffi::SQLITE_NOTADB, Meaning::Damaged),
            (ffi::SQLITE_BUSY, Meaning::Unavailable),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Meaning::Damaged),
        ];
        for (code, expected) in cases {
            assert_eq!(code_meaning(code), expected, "{code}");
        }
    }
}
