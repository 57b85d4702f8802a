//! What is promised about people and keys when many want something at once, and after a restart.

use runvoy_model::change::{Change, ClaimKey, Invitation, InvitedBy};
use runvoy_model::command::{Answer, Refusal};
use runvoy_model::record::{Body, Kind, ONLY, Record, hash_name};
use runvoy_model::role::Role;
use runvoy_model::step::{Authority, Step};
use runvoy_model::user::CLAIM_LIVES_MS;
use runvoy_ports::store::StoreError;

use super::office::{Office, admin, key, prefix, record_of, with_key};
use crate::harness::Records;
use crate::stage::refusal;

/// Sends all of them at once; how each was answered, in their order.
async fn at_once(office: &mut Office<'_>, changes: Vec<Change>) -> Vec<Result<Record, Refusal>> {
    let mut sent = Vec::new();
    for change in changes {
        let (store, step) = (office.store(), office.step());
        sent.push(tokio::spawn(async move { store.change(step, change, None).await }));
    }
    let mut answers = Vec::new();
    for answer in sent {
        answers.push(match answer.await.expect("no panic") {
            Ok((record, _)) => Ok(record),
            Err(StoreError::Refused(refusal)) => Err(refusal),
            Err(error) => panic!("the store failed: {error:?}"),
        });
    }
    answers
}

async fn admins(office: &Office<'_>) -> Vec<String> {
    match office.read(Kind::Admins, ONLY).await.and_then(|record| record.body) {
        Some(Body::Admins(admins)) => admins,
        other => panic!("not a list of admins: {other:?}"),
    }
}

async fn works(office: &Office<'_>, number: u8) -> bool {
    let Some(Body::Key(email)) = office.read(Kind::Key, &hash_name(&[number; 32])).await.and_then(|record| record.body) else {
        return false;
    };
    let record = office.read(Kind::User, &email).await;
    let user = record.as_ref().and_then(Record::user);
    user.is_some_and(|user| user.revoked_at.is_none() && user.key(&[number; 32]).is_some_and(|key| key.works(office.now)))
}

/// Of many that want to be first, one is; also after a reopen nobody else is.
pub async fn of_many_first_admins_one_is_made(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let first = (1..=20).map(|number| Change::CreateFirstAdmin(admin(&format!("user-{number}@x"), number))).collect();
    let answers = at_once(&mut office, first).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(office.names(Kind::User).await.len(), 1, "nothing of the refused is left");
    assert_eq!(office.names(Kind::Key).await.len(), 1);
    office.reopen().await;
    let late = office.refused(Change::CreateFirstAdmin(admin("eve@x", 99))).await;
    assert_eq!(late, Refusal::Taken(Kind::User, "eve@x".into()));
}

/// A hundred answers to one invitation at the same time give one key.
pub async fn of_a_hundred_answers_to_one_invitation_one_is_given(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let by = InvitedBy::Token([200; 32], office.now.plus_ms(CLAIM_LIVES_MS));
    office.changed(Change::InviteUser(Invitation { email: "bob@x".into(), role: Role::Developer, by })).await;
    let claim = |number| Change::ClaimKey(ClaimKey { token_hash: [200; 32], key: key(number), from: "10.0.0.9".into() });
    let answers = at_once(&mut office, (1..=100).map(claim).collect()).await;
    let given: Vec<u8> = (1..=100).zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(number, _)| number).collect();
    assert_eq!(given.len(), 1);
    assert!(answers.iter().all(|answer| answer.as_ref().err().is_none_or(|refusal| *refusal == Refusal::Claimed)));
    office.reopen().await;
    for number in 1..=100 {
        assert_eq!(works(&office, number).await, given == [number], "key {number}");
    }
    assert_eq!(office.refused(claim(101)).await, Refusal::Claimed);
}

/// One key given to many at the same time is one person's.
pub async fn of_many_gifts_of_one_key_one_is_made(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let gifts = (0..20).map(|number| with_key(&format!("user-{number}@x"), Role::Viewer, 1)).collect();
    let answers = at_once(&mut office, gifts).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert!(answers.iter().all(|answer| answer.as_ref().err().is_none_or(|refusal| *refusal == Refusal::Taken(Kind::Key, prefix(1)))));
    assert_eq!(office.names(Kind::User).await.len(), 1);
}

/// Admins who take each other away at the same time leave one.
pub async fn the_last_admin_stays_whoever_goes_first(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("user-0@x", 10))).await;
    for number in 1..10 {
        office.changed(with_key(&format!("user-{number}@x"), Role::Admin, 10 + number)).await;
    }
    let ways = (0..10).map(|number: u8| {
        let email = format!("user-{number}@x");
        match number % 3 {
            0 => Change::RevokeUser(email),
            1 => Change::SetRole(email, Role::Viewer),
            _ => Change::RevokeKey(email, prefix(10 + number)),
        }
    });
    let answers = at_once(&mut office, ways.collect()).await;
    let kept: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    office.reopen().await;
    let left = admins(&office).await;
    assert_eq!(left.len(), 1);
    assert_eq!(kept, [&Refusal::LastAdmin(left[0].clone())]);
}

/// A revoked key, and every key of a revoked user, is dead at once and after a reopen, also when its owner comes back.
pub async fn what_was_revoked_stays_revoked(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("root@x", 1))).await;
    office.changed(with_key("bob@x", Role::Viewer, 2)).await;
    office.changed(with_key("carl@x", Role::Viewer, 3)).await;
    office.changed(Change::AddKey("carl@x".into(), key(4))).await;
    office.changed(Change::RevokeUser("bob@x".into())).await;
    office.changed(Change::RevokeKey("carl@x".into(), prefix(3))).await;
    for _ in 0..2 {
        assert_eq!(
            [works(&office, 1).await, works(&office, 2).await, works(&office, 3).await, works(&office, 4).await],
            [true, false, false, true]
        );
        office.reopen().await;
    }
    office.changed(with_key("bob@x", Role::Viewer, 5)).await;
    assert!(works(&office, 5).await && !works(&office, 2).await);
}

/// The use of a key is a hint: known to the minute, never going back, changing nothing that was decided.
pub async fn the_use_of_a_key_is_remembered_to_the_minute(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(with_key("bob@x", Role::Viewer, 1)).await;
    let before = office.read(Kind::User, "bob@x").await;
    let used = office.now.plus_ms(123_456);
    office.store().touch_key([1; 32], used).await.expect("touched");
    office.store().touch_key([1; 32], office.now).await.expect("touched");
    let uses = office.store().key_uses(&[[9; 32], [1; 32], [9; 32]]).await.expect("uses");
    assert_eq!((uses.len(), uses[0], uses[2]), (3, None, None), "in the order that was asked for");
    let at = uses[1].expect("a time");
    assert!((used.0 - 60_000..=used.0).contains(&at.0), "{at:?}");
    assert_eq!(office.read(Kind::User, "bob@x").await, before);
    assert_eq!(office.read(Kind::Key, &hash_name(&[9; 32])).await, None, "an unknown key is not made by using it");
}

/// Whoever was admitted, and revoked or made something else before their step, is refused in the step itself.
pub async fn whoever_was_revoked_since_they_were_admitted_changes_nothing(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("root@x", 1))).await;
    office.changed(with_key("eve@x", Role::Admin, 2)).await;
    let authority = Some(Authority { email: "eve@x".into(), key_hash: Some([2; 32]), role: Role::Admin, may_submit: false });
    let invite = |number: u8| with_key(&format!("user-{number}@x"), Role::Admin, number);
    let step = Step { authority: authority.clone(), ..office.step() };
    record_of(office.apply(&step, invite(3), None).await);
    office.changed(Change::SetRole("eve@x".into(), Role::Operator)).await;
    let demoted = Step { authority: authority.clone(), ..office.step() };
    assert_eq!(refusal(office.apply(&demoted, invite(4), None).await), Refusal::NotAllowed(Role::Operator));
    office.changed(Change::RevokeUser("eve@x".into())).await;
    let revoked = Step { authority, ..office.step() };
    assert_eq!(refusal(office.apply(&revoked, invite(4), None).await), Refusal::Revoked);
    assert!(office.read(Kind::User, "user-4@x").await.is_none());
    office.reopen().await;
    assert!(matches!(office.apply(&step, invite(3), None).await, Answer::Record { repeated: true, .. }), "a repeat is answered as before");
}
