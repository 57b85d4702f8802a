//! Which stores are opened and which are refused.

use runvoy_sqlite::{KNOWN_VERSION, OpenError, SqliteStore};

use crate::batch::spoil;
use crate::fixture::{open, options};

#[tokio::test]
async fn promise_23_a_store_of_a_newer_program_is_refused_and_left_alone() {
    let newer = [KNOWN_VERSION + 1, KNOWN_VERSION + 2, 99, 1 << 30];
    for version in newer {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        open(&path).close().await.expect("a clean end");
        spoil(&path, &format!("PRAGMA user_version = {version}"));
        let before = std::fs::read(&path).expect("the file");
        match SqliteStore::open(&path, options()) {
            Err(error @ OpenError::TooNew { known: KNOWN_VERSION, .. }) => {
                let message = format!(
                    "the store has version {version}, and this program knows versions up to {KNOWN_VERSION}: use the newer program"
                );
                assert_eq!(error.to_string(), message);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read(&path).expect("the file"), before);
    }
    println!("PROMISE 23 | a newer store is refused with a clear message | {} versions | untouched", newer.len());
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    for bytes in [b"not a database, but long enough to be looked at\n".repeat(200), b"SQLite format 3\0".repeat(600), vec![0; 8192]] {
        std::fs::write(&path, &bytes).expect("a file");
        let opened = SqliteStore::open(&path, options());
        assert!(matches!(opened, Err(OpenError::Damaged(_))), "{opened:?}");
        drop(opened);
        assert_eq!(std::fs::read(&path).expect("the file"), bytes);
    }
}

#[test]
fn a_store_that_cannot_be_opened_says_which() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("missing/store.db");
    let error = SqliteStore::open(&path, options()).expect_err("no such directory");
    assert!(matches!(&error, OpenError::File { path: named, .. } if *named == path), "{error:?}");
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let _store = open(&path);
    for file in std::fs::read_dir(directory.path()).expect("files") {
        let file = file.expect("a file");
        assert_eq!(file.metadata().expect("its mode").permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
}
