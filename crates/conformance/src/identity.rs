//! The promises of an identity store.

use std::sync::Arc;

use runvoy_model::id::StepId;
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::identity::{IdentityStore, NewUser};

use crate::harness::Identities;
use crate::stage::{BEGINNING, id_bytes};

fn step(number: u64) -> Step {
    Step::system(StepId::from_bytes(id_bytes(BEGINNING, number)), BEGINNING, "test")
}

fn user(email: &str, key: u8) -> NewUser {
    NewUser { email: email.into(), role: Role::Developer, key_hash: [key; 32], key_prefix: format!("rv_{key:08}") }
}

async fn emails(store: Arc<dyn IdentityStore>) -> Vec<String> {
    store.users().await.expect("users").into_iter().map(|user| user.email).collect()
}

/// The first user is made in an empty store and never again, also after a reopen.
pub async fn the_first_user_is_made_once(harness: Identities<'_>) {
    let admin = NewUser { role: Role::Admin, ..user("admin@localhost", 1) };
    assert!(harness.store().create_first_user(step(1), admin).await.expect("made"));
    assert!(!harness.store().create_first_user(step(2), user("eve@x", 2)).await.expect("not made"));
    harness.reopen().await;
    assert!(!harness.store().create_first_user(step(3), user("eve@x", 3)).await.expect("not made"));
    let users = harness.store().users().await.expect("users");
    assert_eq!(users.len(), 1);
    assert_eq!(
        (users[0].email.as_str(), users[0].role, users[0].created_at, users[0].revoked),
        ("admin@localhost", Role::Admin, BEGINNING, false)
    );
    assert_eq!(harness.store().key([2; 32]).await.expect("a read"), None, "nothing of the refused is left");
}

/// Of many that want to be first at the same time, one is.
pub async fn of_many_first_users_one_is_made(harness: Identities<'_>) {
    let mut sent = Vec::new();
    for number in 1..=20u8 {
        let store = harness.store();
        let user = user(&format!("user-{number}@x"), number);
        sent.push(tokio::spawn(async move { store.create_first_user(step(u64::from(number)), user).await }));
    }
    let mut made = 0;
    for answer in sent {
        made += usize::from(answer.await.expect("no panic").expect("an answer"));
    }
    assert_eq!((made, emails(harness.store()).await.len()), (1, 1));
}

/// A name is taken once; the second is refused and its key does not work.
pub async fn a_name_is_taken_once(harness: Identities<'_>) {
    assert!(harness.store().create_user(step(1), user("ann@x", 1)).await.expect("made"));
    assert!(!harness.store().create_user(step(2), user("ann@x", 2)).await.expect("not made"));
    assert_eq!(harness.store().key([2; 32]).await.expect("a read"), None);
    assert!(harness.store().key([1; 32]).await.expect("a read").is_some());
}

/// A repeat of the step that made a user is answered as before.
pub async fn a_repeated_creation_is_answered_as_before(harness: Identities<'_>) {
    for _ in 0..2 {
        assert!(harness.store().create_first_user(step(1), user("ann@x", 1)).await.expect("made"));
        assert!(harness.store().create_user(step(2), user("bob@x", 2)).await.expect("made"));
    }
    harness.reopen().await;
    assert!(harness.store().create_first_user(step(1), user("ann@x", 1)).await.expect("made"));
    assert!(harness.store().create_user(step(2), user("bob@x", 2)).await.expect("made"));
    assert_eq!(emails(harness.store()).await, ["ann@x", "bob@x"]);
}

/// A key is found by its hash, with its user, also after a reopen; another hash finds nothing.
pub async fn a_key_is_found_by_its_hash(harness: Identities<'_>) {
    harness.store().create_user(step(1), user("ann@x", 1)).await.expect("made");
    harness.store().create_user(step(2), user("bob@x", 2)).await.expect("made");
    harness.reopen().await;
    let (key, owner) = harness.store().key([2; 32]).await.expect("a read").expect("a key");
    assert_eq!((key.hash, key.prefix.as_str(), key.email.as_str(), key.revoked), ([2; 32], "rv_00000002", "bob@x", false));
    assert_eq!((key.created_at, key.expires_at, key.last_used), (BEGINNING, None, None));
    assert_eq!((owner.email.as_str(), owner.role), ("bob@x", Role::Developer));
    assert_eq!(harness.store().key([3; 32]).await.expect("a read"), None);
}

/// Users are listed by e-mail.
pub async fn users_are_listed_by_email(harness: Identities<'_>) {
    for (number, email) in ["carl@x", "ann@x", "bob@x"].into_iter().enumerate() {
        let number = u8::try_from(number).expect("few");
        harness.store().create_user(step(u64::from(number) + 1), user(email, number)).await.expect("made");
    }
    assert_eq!(emails(harness.store()).await, ["ann@x", "bob@x", "carl@x"]);
}

/// When a key was last used is known to the minute; an unknown key is not made by touching it.
pub async fn the_use_of_a_key_is_remembered(harness: Identities<'_>) {
    harness.store().create_user(step(1), user("ann@x", 1)).await.expect("made");
    let used = UnixMs(BEGINNING.0 + 123_456);
    harness.store().touch_key([1; 32], used).await.expect("touched");
    harness.store().touch_key([9; 32], used).await.expect("ignored");
    let (key, _) = harness.store().key([1; 32]).await.expect("a read").expect("a key");
    let last_used = key.last_used.expect("a time");
    assert!((used.0 - 60_000..=used.0).contains(&last_used.0), "{last_used:?}");
    assert_eq!(harness.store().key([9; 32]).await.expect("a read"), None);
}
