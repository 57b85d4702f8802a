//! What the number of changes promises: whoever remembers what was read under it never remembers what is no longer true.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runvoy_model::change::{Change, Denied};
use runvoy_model::record::Kind;
use runvoy_model::role::Role;

use super::office::{Office, admin, group, image, key, playbook, prefix, rule, secret, with_key};
use crate::harness::Records;
use crate::stage::name;

/// Every change has another number by the time it is acknowledged.
pub async fn a_change_that_is_acknowledged_has_another_number(harness: Records<'_>) {
    let mut office = Office::new(harness);
    for change in [
        Change::CreateFirstAdmin(admin("root@x", 1)),
        with_key("bob@x", Role::Viewer, 2),
        Change::SetRole("bob@x".into(), Role::Operator),
        Change::AddKey("bob@x".into(), key(3)),
        Change::RotateKey("bob@x".into(), prefix(3), key(4)),
        Change::RevokeKey("bob@x".into(), prefix(4)),
        Change::RevokeUser("bob@x".into()),
        group("ops", &["root@x"]),
        Change::RemoveGroup(name("ops")),
        rule("no"),
        Change::RegisterImage(image("alpine:3.20", true)),
        secret("db"),
        Change::DeleteSecret(name("db")),
        playbook("deploy", "true"),
    ] {
        let Some(before) = office.store().authority() else { return };
        office.changed(change.clone()).await;
        assert_ne!(office.store().authority(), Some(before), "{change:?}");
    }
}

/// What leaves only an event, or nothing, makes nobody read anew.
pub async fn a_note_and_a_refusal_leave_the_number(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("root@x", 1))).await;
    let before = office.store().authority();
    let denied = Denied { email: "root@x".into(), code: "FORBIDDEN".into(), why: "no".into(), ..Denied::default() };
    for note in [Change::NoteDenied(denied), Change::NoteCall("root@x".into())] {
        office.changed(note.clone()).await;
        assert_eq!(office.store().authority(), before, "{note:?}");
    }
    office.refused(Change::RevokeUser("root@x".into())).await;
    assert_eq!(office.store().authority(), before);
}

/// Beside a writer that never rests: as long as the number that was looked at before a read still stands, the read shows every change that
/// was acknowledged.
pub async fn what_was_read_while_the_number_stood_is_true(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(group("ops", &[])).await;
    let acknowledged = Arc::new(AtomicU64::new(1));
    let mut readers = Vec::new();
    for _ in 0..3 {
        let (store, acknowledged) = (office.store(), Arc::clone(&acknowledged));
        readers.push(tokio::spawn(async move {
            let mut trusted = 0_u64;
            while acknowledged.load(Ordering::Acquire) < 200 {
                let number = store.authority();
                let version = store.record(Kind::Group, "ops").await.expect("a read").expect("a group").version;
                for _ in 0..3 {
                    let known = acknowledged.load(Ordering::Acquire);
                    if number.is_some() && store.authority() == number {
                        assert!(version >= known, "version {version} was still trusted after {known} was acknowledged");
                        trusted += 1;
                    }
                    tokio::task::yield_now().await;
                }
            }
            trusted
        }));
    }
    for version in 2..=200 {
        let record = office.changed(group("ops", &[])).await;
        assert_eq!(record.version, version);
        acknowledged.store(version, Ordering::Release);
        tokio::task::yield_now().await;
    }
    for reader in readers {
        let trusted = reader.await.expect("nothing untrue was trusted");
        assert!(trusted > 0 || office.store().authority().is_none(), "nothing was ever remembered");
    }
}
