//! Named examples of how people come, get keys, change and go.

use super::cast::{admin, answer, founded, hash, key, key_until, prefix, with_key, with_token};
use super::world::World;
use crate::change::Change;
use crate::command::Refusal;
use crate::record::{Body, Kind, hash_name};
use crate::role::Role;
use crate::user::{CLAIM_LIVES_MS, MOST_KEYS};

fn no_user(email: &str) -> Refusal {
    Refusal::Missing(Kind::User, email.into())
}

fn no_token() -> Refusal {
    Refusal::Missing(Kind::Claim, "token".into())
}

fn last_admin(email: &str) -> Refusal {
    Refusal::LastAdmin(email.into())
}

/// Takes away whatever is left of an admin, in every way there is; all of them are refused.
fn cannot_be_lost(world: &mut World, email: &str, number: u8) {
    for way in [
        Change::RevokeUser(email.into()),
        Change::SetRole(email.into(), Role::Operator),
        Change::RevokeKey(email.into(), prefix(number)),
        Change::RotateKey(email.into(), prefix(number), key_until(200, world.now)),
    ] {
        assert_eq!(world.refused(way.clone()), last_admin(email), "{way:?}");
    }
    assert!(world.opens(&hash(number)).is_some_and(|user| user.role == Role::Admin));
}

#[test]
fn the_first_admin_is_made_once() {
    let mut world = founded();
    assert_eq!(world.opens(&hash(1)).map(|user| (user.email.as_str(), user.role)), Some(("root@x", Role::Admin)));
    assert_eq!(world.admins(), ["root@x"]);
    assert_eq!(world.refused(Change::CreateFirstAdmin(admin("eve@x", 2))), Refusal::Taken(Kind::User, "eve@x".into()));
    assert!(world.opens(&hash(2)).is_none());
}

#[test]
fn an_invitation_is_answered_once() {
    let mut world = founded();
    world.changed(with_token("bob@x", Role::Developer, 10, world.now));
    assert!(world.user("bob@x").is_some_and(|user| user.keys.is_empty() && user.exists(world.now)));
    world.changed(answer(10, key(2)));
    let bob = world.opens(&hash(2)).expect("the key works");
    assert_eq!((bob.email.as_str(), bob.role, bob.claim.is_none(), bob.created_by.as_str()), ("bob@x", Role::Developer, true, "ann@x"));
    let Some(Body::Claim(claim)) = &world.live(Kind::Claim, &hash_name(&hash(10))).expect("kept").body else { panic!("a claim") };
    assert_eq!(claim.claimed.as_ref().map(|claimed| (claimed.at, claimed.from.as_str())), Some((world.now, "10.0.0.9")));
    assert_eq!(world.refused(answer(10, key(3))), Refusal::Claimed);
    assert!(world.opens(&hash(3)).is_none());
}

#[test]
fn what_was_never_sent_or_ran_out_is_answered_the_same() {
    let mut world = founded();
    assert_eq!(world.refused(answer(99, key(2))), no_token());
    world.changed(with_token("bob@x", Role::Developer, 10, world.now));
    world.now = world.now.plus_ms(CLAIM_LIVES_MS - 1);
    assert!(world.user("bob@x").is_some_and(|user| user.exists(world.now)));
    world.now = world.now.plus_ms(1);
    assert_eq!(world.refused(answer(10, key(2))), no_token());
    for gone in [Change::RevokeUser("bob@x".into()), Change::SetRole("bob@x".into(), Role::Viewer), Change::AddKey("bob@x".into(), key(2))]
    {
        assert_eq!(world.refused(gone), no_user("bob@x"));
    }
}

#[test]
fn whoever_is_here_or_invited_is_not_invited_again() {
    let mut world = founded();
    world.changed(with_key("ann@x", Role::Viewer, key(2)));
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    for email in ["root@x", "ann@x", "bob@x"] {
        assert_eq!(world.refused(with_token(email, Role::Admin, 11, world.now)), Refusal::Taken(Kind::User, email.into()));
    }
}

#[test]
fn a_new_invitation_makes_the_one_before_worthless() {
    let mut world = founded();
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    world.now = world.now.plus_ms(CLAIM_LIVES_MS);
    world.changed(with_token("bob@x", Role::Developer, 11, world.now));
    // Even a clock that was set back does not bring the first one to life.
    world.now = world.now.plus_ms(-CLAIM_LIVES_MS);
    assert_eq!(world.refused(answer(10, key(2))), no_token());
    world.changed(answer(11, key(2)));
    assert_eq!(world.opens(&hash(2)).map(|user| user.role), Some(Role::Developer));
}

#[test]
fn a_token_is_nobody_elses() {
    let mut world = founded();
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    assert_eq!(world.refused(with_token("eve@x", Role::Admin, 10, world.now)), Refusal::Taken(Kind::Claim, "token".into()));
}

#[test]
fn an_invitation_that_is_taken_back_leaves_nobody() {
    let mut world = founded();
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    assert_eq!(world.changed(Change::RevokeUser("bob@x".into())).body, None);
    assert_eq!(world.refused(answer(10, key(2))), no_token());
    assert_eq!(world.events_about(Kind::User, "bob@x").len(), 2, "what happened stays known");
    world.changed(with_key("bob@x", Role::Viewer, key(2)));
    assert_eq!(world.events_about(Kind::User, "bob@x").last().map(|event| event.number), Some(3), "the chain goes on");
}

#[test]
fn an_unanswered_invitation_is_forgotten_and_not_before() {
    let mut world = founded();
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    assert_eq!(world.refused(Change::ForgetUnclaimed("bob@x".into())), no_user("bob@x"));
    assert_eq!(world.refused(Change::ForgetUnclaimed("root@x".into())), no_user("root@x"));
    world.now = world.now.plus_ms(CLAIM_LIVES_MS);
    assert_eq!(world.changed(Change::ForgetUnclaimed("bob@x".into())).body, None);
    assert!(world.live(Kind::Claim, &hash_name(&hash(10))).is_none());
    assert_eq!(world.refused(Change::ForgetUnclaimed("bob@x".into())), no_user("bob@x"));
}

#[test]
fn whoever_was_revoked_can_come_back_and_their_old_keys_cannot() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Operator, key(2)));
    world.changed(Change::AddKey("bob@x".into(), key(3)));
    world.changed(Change::RevokeUser("bob@x".into()));
    assert!(world.opens(&hash(2)).is_none() && world.opens(&hash(3)).is_none());
    let revoked_at = world.user("bob@x").expect("bob").revoked_at;
    world.now = world.now.plus_ms(1);
    world.changed(Change::RevokeUser("bob@x".into()));
    assert_eq!(world.user("bob@x").expect("bob").revoked_at, revoked_at, "revoked once is revoked");
    assert_eq!(world.refused(Change::AddKey("bob@x".into(), key(4))), no_user("bob@x"));
    assert_eq!(world.refused(Change::SetRole("bob@x".into(), Role::Admin)), no_user("bob@x"));
    world.changed(with_token("bob@x", Role::Viewer, 10, world.now));
    world.changed(answer(10, key(5)));
    assert_eq!(world.opens(&hash(5)).map(|user| user.role), Some(Role::Viewer));
    assert!(world.opens(&hash(2)).is_none() && world.opens(&hash(3)).is_none());
    let old = Change::AddKey("bob@x".into(), key(2));
    assert_eq!(world.refused(old), Refusal::Taken(Kind::Key, prefix(2)), "and nobody gets one of them again");
}

#[test]
fn the_last_admin_cannot_be_lost() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Operator, key(2)));
    world.changed(with_token("ida@x", Role::Admin, 10, world.now));
    cannot_be_lost(&mut world, "root@x", 1);
    world.changed(answer(10, key(3)));
    world.changed(Change::RevokeUser("root@x".into()));
    assert_eq!(world.admins(), ["ida@x"]);
    cannot_be_lost(&mut world, "ida@x", 3);
}

#[test]
fn an_admin_whose_only_key_has_expired_does_not_count() {
    let mut world = founded();
    let soon = world.now.plus_ms(1_000);
    world.changed(with_key("ida@x", Role::Admin, key(2)));
    world.changed(Change::AddKey("ida@x".into(), key_until(3, soon)));
    world.changed(Change::RevokeKey("ida@x".into(), prefix(2)));
    assert!(world.opens(&hash(3)).is_some());
    world.now = soon;
    assert!(world.opens(&hash(3)).is_none(), "a key that expired opens nothing");
    cannot_be_lost(&mut world, "root@x", 1);
    world.changed(Change::RevokeUser("ida@x".into()));
    assert_eq!(world.admins(), ["root@x"]);
}

#[test]
fn the_last_key_that_lasts_is_not_given_up_for_one_that_runs_out() {
    let mut world = founded();
    let soon = world.now.plus_ms(3_000);
    let rotate = Change::RotateKey("root@x".into(), prefix(1), key_until(2, soon));
    assert_eq!(world.refused(rotate.clone()), last_admin("root@x"));
    world.changed(Change::AddKey("root@x".into(), key_until(3, soon)));
    assert_eq!(world.refused(Change::RevokeKey("root@x".into(), prefix(1))), last_admin("root@x"));
    world.changed(with_key("ida@x", Role::Admin, key_until(4, soon)));
    assert_eq!(world.refused(Change::RevokeUser("root@x".into())), last_admin("root@x"), "hers runs out too");
    world.changed(Change::AddKey("ida@x".into(), key(5)));
    world.changed(rotate);
    assert_eq!(world.refused(Change::RevokeKey("ida@x".into(), prefix(5))), last_admin("ida@x"));
}

#[test]
fn an_admin_who_gets_a_key_again_counts_again() {
    let mut world = founded();
    let soon = world.now.plus_ms(1_000);
    world.changed(with_key("ida@x", Role::Admin, key(2)));
    world.changed(Change::AddKey("ida@x".into(), key_until(3, soon)));
    world.now = soon;
    world.changed(Change::RevokeKey("ida@x".into(), prefix(2)));
    assert_eq!(world.admins(), ["root@x"], "what is left of hers has expired");
    world.changed(Change::RotateKey("ida@x".into(), prefix(3), key(4)));
    assert_eq!(world.admins(), ["root@x", "ida@x"]);
    world.changed(Change::RevokeUser("root@x".into()));
    cannot_be_lost(&mut world, "ida@x", 4);
}

#[test]
fn a_role_is_what_it_was_set_to_last() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Developer, key(2)));
    world.changed(Change::SetRole("bob@x".into(), Role::Admin));
    assert_eq!((world.user("bob@x").expect("bob").role, world.admins()), (Role::Admin, vec!["root@x".into(), "bob@x".into()]));
    world.changed(Change::SetRole("root@x".into(), Role::Viewer));
    assert_eq!((world.user("root@x").expect("root").role, world.admins()), (Role::Viewer, vec!["bob@x".into()]));
    let told = world.events_about(Kind::User, "root@x").last().expect("an event").properties["change"].clone();
    assert_eq!((told["before"].as_str(), told["role"].as_str()), (Some("admin"), Some("viewer")));
    assert_eq!(world.refused(Change::SetRole("eve@x".into(), Role::Admin)), no_user("eve@x"));
}

#[test]
fn whoever_is_invited_as_admin_is_one_when_they_have_a_key() {
    let mut world = founded();
    world.changed(with_token("ida@x", Role::Viewer, 10, world.now));
    world.changed(Change::SetRole("ida@x".into(), Role::Admin));
    assert_eq!(world.admins(), ["root@x"]);
    world.changed(answer(10, key(2)));
    assert_eq!(world.admins(), ["root@x", "ida@x"]);
}

#[test]
fn keys_are_added_and_revoked_one_by_one() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Developer, key(2)));
    world.changed(Change::AddKey("bob@x".into(), key(3)));
    assert_eq!(world.refused(Change::AddKey("bob@x".into(), key(3))), Refusal::Taken(Kind::Key, prefix(3)));
    assert_eq!(world.refused(Change::AddKey("root@x".into(), key(3))), Refusal::Taken(Kind::Key, prefix(3)));
    world.changed(Change::RevokeKey("bob@x".into(), prefix(2)));
    assert!(world.opens(&hash(2)).is_none() && world.opens(&hash(3)).is_some());
    let again = Change::RevokeKey("bob@x".into(), prefix(2));
    assert_eq!(world.refused(again), Refusal::Missing(Kind::Key, prefix(2)));
    world.changed(Change::RevokeKey("bob@x".into(), prefix(3)));
    assert!(world.user("bob@x").is_some_and(|user| user.exists(world.now)), "without a key they are still somebody");
}

#[test]
fn a_rotated_key_gives_its_place_to_the_new_one() {
    let mut world = founded();
    world.changed(Change::RotateKey("root@x".into(), prefix(1), key(2)));
    assert!(world.opens(&hash(1)).is_none() && world.opens(&hash(2)).is_some());
    assert_eq!(world.admins(), ["root@x"]);
    let again = Change::RotateKey("root@x".into(), prefix(1), key(3));
    assert_eq!(world.refused(again), Refusal::Missing(Kind::Key, prefix(1)));
}

#[test]
fn recovery_makes_an_admin_of_whomever_it_names() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Viewer, key(2)));
    world.changed(with_key("ida@x", Role::Admin, key(3)));
    world.changed(Change::RevokeUser("root@x".into()));
    for (email, number) in [("root@x", 4), ("bob@x", 5), ("new@x", 6)] {
        world.changed(Change::RecoverAdmin(admin(email, number)));
        assert_eq!(world.opens(&hash(number)).map(|user| (user.email.as_str(), user.role)), Some((email, Role::Admin)));
    }
    assert!(world.opens(&hash(1)).is_none(), "what was revoked stays so");
    assert_eq!(world.admins(), ["ida@x", "root@x", "bob@x", "new@x"]);
}

#[test]
fn recovery_is_never_refused_for_too_many_keys_and_the_oldest_makes_room() {
    let mut world = founded();
    let last = u8::try_from(MOST_KEYS).expect("few");
    for number in 2..=last {
        world.changed(Change::AddKey("root@x".into(), key(number)));
    }
    world.changed(Change::RecoverAdmin(admin("root@x", 100)));
    assert!(world.opens(&hash(100)).is_some() && world.opens(&hash(1)).is_none() && world.opens(&hash(2)).is_some());
    let told = world.events_about(Kind::User, "root@x").last().expect("an event").properties["change"].clone();
    assert_eq!(told["insteadOf"].as_str(), Some(prefix(1).as_str()));
}

#[test]
fn nobody_has_more_keys_than_can_be_looked_through() {
    let mut world = founded();
    let last = u8::try_from(MOST_KEYS).expect("few");
    for number in 2..=last {
        world.changed(Change::AddKey("root@x".into(), key(number)));
    }
    let more = Change::AddKey("root@x".into(), key(100));
    assert!(matches!(world.refused(more.clone()), Refusal::TooMany(message) if message.contains("revoke one first")));
    world.changed(Change::RevokeKey("root@x".into(), prefix(2)));
    world.changed(more);
    for number in 101..200 {
        world.changed(Change::RotateKey("root@x".into(), prefix(number - 1), key(number)));
    }
    let keys = &world.user("root@x").expect("root").keys;
    assert!(keys.len() <= 2 * MOST_KEYS + 1, "{} keys", keys.len());
    assert!(world.opens(&hash(1)).is_some() && world.opens(&hash(199)).is_some());
    assert_eq!(world.refused(Change::AddKey("root@x".into(), key(2))), Refusal::Taken(Kind::Key, prefix(2)), "forgotten, and still taken");
}
