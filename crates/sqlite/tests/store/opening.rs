//! Which stores are opened and which are refused.

use std::path::Path;

use runvoy_model::command::{Submit, SubmitKey};
use runvoy_model::id::ExecutionId;
use runvoy_model::role::Role;
use runvoy_model::status::Status;
use runvoy_ports::identity::{IdentityStore, NewUser};
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};
use runvoy_sqlite::{KNOWN_VERSION, OpenError, SqliteStore};

use crate::batch::spoil;
use crate::fixture::{cycle, open, options, step, submit, submitted};
use crate::invariant;

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    open(&path).close().await.expect("a clean end");
    spoil(&path, "PRAGMA user_version = 99");
    let before = std::fs::read(&path).expect("the file");
    match SqliteStore::open(&path, options()) {
        Err(error @ OpenError::TooNew { found: 99, known: KNOWN_VERSION }) => {
            assert!(error.to_string().contains("use the newer program"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&path).expect("the file"), before);
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

/// The store as version 1 wrote it. It never changes: a later version must be able to read it.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/store_v1.sqlite");

#[tokio::test]
async fn a_store_of_version_1_is_read_and_goes_on() {
    if std::env::var_os("RUNVOY_WRITE_GOLDEN").is_some() {
        write_golden().await;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    std::fs::copy(GOLDEN, &path).expect("the golden store");
    let store = open(&path);
    assert_eq!(invariant::check(&store, &options().audit_key).await.len(), 4);
    let all = store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list");
    let statuses: Vec<_> = all.iter().map(|execution| execution.status).collect();
    assert_eq!(statuses, [Status::Running, Status::Pending, Status::Succeeded, Status::Pending]);
    assert_eq!(all[2].spec.command, "make deploy");
    assert_eq!(store.locks().await.expect("locks")[0].lock.name.as_str(), "infra-prod");
    assert_eq!(store.events(EventQuery { limit: 100, ..EventQuery::default() }).await.expect("events").len(), 11);
    let (key, user) = store.key([5; 32]).await.expect("a read").expect("the admin's key");
    assert_eq!((user.email.as_str(), user.role, key.prefix.as_str()), ("admin@localhost", Role::Admin, "rv_12345678"));
    let repeat = store.submit(step(), golden_submit(&all[3].id)).await.expect("known by its key");
    assert_eq!((repeat.0.id, repeat.1), (all[3].id, true));
    cycle(&store, "true").await.expect("it goes on");
    invariant::check(&store, &options().audit_key).await;
}

fn golden_submit(id: &ExecutionId) -> Submit {
    let key = SubmitKey { user: "ana@example.com".into(), key: "k1".into(), fingerprint: [4; 32] };
    let mut asked = Submit { id: *id, key: Some(key), ..submit("terraform apply") };
    asked.spec.lock = Some(runvoy_model::name::Name::new("infra-prod").expect("a name"));
    asked.spec.lock_wait_ms = Some(60_000);
    asked
}

async fn write_golden() {
    let golden = Path::new(GOLDEN);
    let _ = std::fs::remove_file(golden);
    let store = open(golden);
    let admin = NewUser { email: "admin@localhost".into(), role: Role::Admin, key_hash: [5; 32], key_prefix: "rv_12345678".into() };
    assert!(store.create_first_user(step(), admin).await.expect("made"));
    store.submit(step(), golden_submit(&submit("").id)).await.expect("taken");
    cycle(&store, "make deploy").await.expect("a life");
    submitted(&store, "sleep 1").await;
    let lease_to = Some(crate::fixture::lease_to());
    store.submit(step(), Submit { lease_to, ..submit("sleep 2") }).await.expect("taken");
    store.close().await.expect("a clean end");
    drop(store);
    for beside in ["-wal", "-shm"] {
        // Empty by now; only the one file is kept.
        let _ = std::fs::remove_file(format!("{GOLDEN}{beside}"));
    }
}
