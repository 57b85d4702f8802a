//! A right that ended between a request and its step is no right.

use super::cast::{admin, answer, founded, hash, key, key_until, prefix, with_key, with_token};
use super::refusal;
use super::world::{World, name, spec};
use crate::change::{Change, Denied};
use crate::command::{Answer, Command, Kill, Refusal, Submit};
use crate::id::ExecutionId;
use crate::role::Role;
use crate::step::{Actor, Authority, Step};

/// A step of somebody who was admitted with this key as this.
fn step_of(world: &mut World, email: &str, number: u8, role: Role) -> Step {
    let authority = Authority { email: email.into(), key_hash: Some(hash(number)), role, may_submit: false };
    Step { actor: Actor::User { email: email.into() }, authority: Some(authority), ..world.step() }
}

fn submit(world: &mut World) -> Command {
    let id = ExecutionId::from_bytes(world.fresh());
    Command::Submit(Submit { id, spec: spec(), created_by: "eve@x".into(), key: None, lease_to: None })
}

/// One of each kind that a user may ask for and eve, as an admin, could.
fn asked(world: &mut World) -> Vec<Command> {
    let running = world.submit(|spec| spec.lock = Some(name("prod")));
    let change = |change| Command::Change(change, None);
    vec![
        submit(world),
        Command::Kill(Kill { execution: running, force: false }),
        Command::ReleaseLock(name("prod")),
        Command::NoteLink(running, world.now, None),
        change(with_key("mallory@x", Role::Admin, key(50))),
        change(Change::AddKey("root@x".into(), key(51))),
        change(Change::SetRole("root@x".into(), Role::Viewer)),
        change(Change::NoteCall("eve@x".into())),
        change(Change::RemovePlaybook(name("deploy"))),
    ]
}

fn with_eve(role: Role) -> World {
    let mut world = founded();
    world.changed(with_key("eve@x", role, key(2)));
    world
}

#[track_caller]
fn nothing_is_done(world: &mut World, role: Role, why: &Refusal) {
    for command in asked(world) {
        let step = step_of(world, "eve@x", 2, role);
        let (events, records, executions) = (world.events.len(), world.records.clone(), world.executions.clone());
        assert_eq!(&refusal(world.apply(&step, &command)), why, "{command:?}");
        assert_eq!((world.events.len(), &world.records, &world.executions), (events, &records, &executions), "{command:?} wrote something");
    }
}

#[test]
fn whoever_was_revoked_since_changes_nothing() {
    let mut world = with_eve(Role::Admin);
    world.changed(Change::RevokeUser("eve@x".into()));
    nothing_is_done(&mut world, Role::Admin, &Refusal::Revoked);
}

#[test]
fn a_key_that_was_revoked_or_ran_out_since_changes_nothing_although_its_user_stays() {
    let mut world = with_eve(Role::Admin);
    world.changed(Change::AddKey("eve@x".into(), key(3)));
    world.changed(Change::RevokeKey("eve@x".into(), prefix(2)));
    nothing_is_done(&mut world, Role::Admin, &Refusal::Revoked);
    let mut world = founded();
    world.changed(with_key("eve@x", Role::Admin, key_until(2, world.now.plus_ms(10))));
    world.now = world.now.plus_ms(10);
    nothing_is_done(&mut world, Role::Admin, &Refusal::Revoked);
}

#[test]
fn whoever_never_was_or_was_forgotten_changes_nothing() {
    nothing_is_done(&mut founded(), Role::Admin, &Refusal::Revoked);
}

#[test]
fn whoever_was_revoked_and_invited_again_needs_their_new_key() {
    let mut world = with_eve(Role::Admin);
    world.changed(Change::RevokeUser("eve@x".into()));
    world.changed(with_key("eve@x", Role::Admin, key(9)));
    nothing_is_done(&mut world, Role::Admin, &Refusal::Revoked);
}

#[test]
fn a_role_that_allows_it_no_longer_is_told() {
    let mut world = with_eve(Role::Admin);
    world.changed(Change::SetRole("eve@x".into(), Role::Viewer));
    let invite = Command::Change(with_key("mallory@x", Role::Admin, key(50)), None);
    let step = step_of(&mut world, "eve@x", 2, Role::Admin);
    assert_eq!(refusal(world.apply(&step, &invite)), Refusal::NotAllowed(Role::Viewer));
    assert!(world.user("mallory@x").is_none());
}

#[test]
fn a_role_with_a_shorter_reach_does_not_act_on_what_the_longer_one_found() {
    let mut world = with_eve(Role::Operator);
    let others = world.submit(|_| {});
    world.changed(Change::SetRole("eve@x".into(), Role::Developer));
    let kill = Command::Kill(Kill { execution: others, force: false });
    let step = step_of(&mut world, "eve@x", 2, Role::Operator);
    assert_eq!(refusal(world.apply(&step, &kill)), Refusal::RoleChanged(Role::Developer));
    assert!(!world.get(others).status.is_terminal());
}

#[test]
fn whoever_still_may_does_and_a_repeat_is_answered_as_before_also_to_the_revoked() {
    let mut world = with_eve(Role::Developer);
    let (step, command) = (step_of(&mut world, "eve@x", 2, Role::Developer), submit(&mut world));
    let Answer::Submitted { execution, repeated: false } = world.apply(&step, &command) else { panic!("submitted") };
    world.changed(Change::RevokeUser("eve@x".into()));
    let again = world.apply(&step, &command);
    assert!(matches!(again, Answer::Submitted { execution: same, repeated: true } if same.id == execution.id));
}

#[test]
fn the_owner_of_the_machine_needs_no_key_and_must_still_be_what_they_were() {
    let mut world = founded();
    let owner = |world: &mut World| {
        let authority = Authority { email: "root@x".into(), key_hash: None, role: Role::Admin, may_submit: false };
        Step { authority: Some(authority), ..world.step() }
    };
    let invite = |number| Command::Change(with_key(&format!("user-{number}@x"), Role::Admin, key(number)), None);
    let step = owner(&mut world);
    assert!(matches!(world.apply(&step, &invite(20)), Answer::Record { .. }));
    world.changed(Change::RevokeUser("root@x".into()));
    let step = owner(&mut world);
    assert_eq!(refusal(world.apply(&step, &invite(21))), Refusal::Revoked);
    let recover = Command::Change(Change::RecoverAdmin(admin("root@x", 30)), None);
    let step = owner(&mut world);
    assert!(matches!(world.apply(&step, &recover), Answer::Record { .. }), "the way back in asks nobody");
}

#[test]
fn that_somebody_was_refused_is_kept_of_the_revoked_too() {
    let mut world = with_eve(Role::Admin);
    world.changed(Change::RevokeUser("eve@x".into()));
    let denied = Denied { email: "eve@x".into(), code: "API_KEY_REVOKED".into(), why: "revoked".into(), ..Denied::default() };
    let step = step_of(&mut world, "eve@x", 2, Role::Admin);
    assert!(matches!(world.apply(&step, &Command::Change(Change::NoteDenied(denied), None)), Answer::Record { .. }));
}

#[test]
fn an_invitation_that_recovery_overtook_is_over() {
    let mut world = founded();
    world.changed(with_token("ida@x", Role::Viewer, 10, world.now));
    world.changed(Change::RecoverAdmin(admin("ida@x", 4)));
    assert!(world.user("ida@x").expect("ida").claim.is_none());
    assert!(matches!(world.refused(answer(10, key(5))), Refusal::Missing(..)), "its token gives no second key to an admin");
}
