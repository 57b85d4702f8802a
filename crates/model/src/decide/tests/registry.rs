//! Named examples of how groups, rules, images and playbooks change, and of what is true of every change: its event, its repeat, its key.

use serde_json::Value;

use super::cast::{admin, founded, id_of, image, key, sealed, secret, update, with_key, with_token};
use super::refusal;
use super::world::{World, name};
use crate::change::{Change, Checkpoint, Denied, Made, SecretUpdate};
use crate::command::{Answer, Command, Refusal, SubmitKey};
use crate::event::EventType;
use crate::group::Group;
use crate::playbook::{Grant, PlaybookBody};
use crate::record::{Body, Kind, ONLY, Record};
use crate::role::Role;
use crate::rule::{Effect, Rule};
use crate::time::UnixMs;

fn group(text: &str, members: &[&str]) -> Change {
    let members = members.iter().map(|member| (*member).to_owned()).collect();
    Change::PutGroup(Group { name: name(text), members, created_at: UnixMs(5), created_by: "maker@x".into() })
}

fn playbook(text: &str, command: &str) -> Change {
    Change::PushPlaybook(name(text), Box::new(PlaybookBody { command: command.into(), ..PlaybookBody::default() }))
}

fn default_image(world: &World) -> Option<String> {
    match world.live(Kind::DefaultImage, ONLY)?.body.as_ref()? {
        Body::DefaultImage(id) => Some(id.clone()),
        other => panic!("not a pointer: {other:?}"),
    }
}

fn keyed(text: &str, fingerprint: u8) -> Option<SubmitKey> {
    Some(SubmitKey { user: "ann@x".into(), key: text.into(), fingerprint: [fingerprint; 32] })
}

#[test]
fn a_group_is_its_members_in_one_order_and_keeps_its_maker() {
    let mut world = World::new();
    world.changed(group("ops", &["bob@x", "ann@x", "bob@x"]));
    world.now = world.now.plus_ms(1_000);
    let Change::PutGroup(mut later) = group("ops", &["carl@x"]) else { panic!("a group") };
    (later.created_at, later.created_by) = (UnixMs(9), "eve@x".into());
    let record = world.changed(Change::PutGroup(later));
    let after = record.group().expect("a group");
    assert_eq!(after.members, ["carl@x"]);
    assert_eq!((after.created_at, after.created_by.as_str()), (UnixMs(5), "maker@x"));
    let first = world.events_about(Kind::Group, "ops")[0].properties["change"]["members"].clone();
    assert_eq!(first, serde_json::json!(["ann@x", "bob@x"]));
}

#[test]
fn what_was_removed_is_gone_and_its_chain_goes_on() {
    let mut world = founded();
    let made = [
        (Kind::Group, "one", group("one", &[]), Change::RemoveGroup(name("one"))),
        (Kind::Rule, "one", Change::PutRule(Box::new(Rule::new("one", Effect::Deny))), Change::RemoveRule(name("one"))),
        (Kind::Secret, "one", Change::CreateSecret(Box::new(secret("one", "v"))), Change::DeleteSecret(name("one"))),
        (Kind::Playbook, "one", playbook("one", "true"), Change::RemovePlaybook(name("one"))),
    ];
    for (kind, text, make, remove) in made {
        assert_eq!(world.refused(remove.clone()), Refusal::Missing(kind, text.into()));
        world.changed(make.clone());
        assert_eq!(world.changed(remove.clone()).body, None);
        assert!(world.live(kind, text).is_none());
        assert_eq!(world.refused(remove), Refusal::Missing(kind, text.into()));
        let again = world.changed(make);
        assert_eq!((again.version, again.chain.count), (3, 3), "{text}");
        assert_eq!(world.events_about(kind, text).iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2, 3]);
    }
}

#[test]
fn a_rule_is_as_it_was_put_last() {
    let mut world = World::new();
    let mut rule = Rule::new("no-prod", Effect::Deny);
    world.changed(Change::PutRule(Box::new(rule.clone())));
    rule.locks = vec!["prod-*".into()];
    let record = world.changed(Change::PutRule(Box::new(rule.clone())));
    assert_eq!((record.rule(), record.version), (Some(&rule), 2));
    let told = &world.events_about(Kind::Rule, "no-prod")[1].properties["change"]["rule"];
    assert_eq!(serde_json::from_value::<Rule>(told.clone()).expect("a rule"), rule);
}

#[test]
fn the_default_image_is_the_last_one_that_was_made_it() {
    let mut world = World::new();
    let (one, two) = (image("alpine:3.20", true), image("debian:12", false));
    world.changed(Change::RegisterImage(one.clone()));
    world.changed(Change::RegisterImage(two.clone()));
    assert_eq!(default_image(&world), Some(id_of(&one)));
    world.changed(Change::RegisterImage(super::cast::image("debian:12", true)));
    assert_eq!(default_image(&world), Some(id_of(&two)));
    world.changed(Change::UnregisterImage(id_of(&one)));
    assert_eq!(default_image(&world), Some(id_of(&two)), "another one's end changes nothing");
    world.changed(Change::UnregisterImage(id_of(&two)));
    assert_eq!(default_image(&world), None);
    assert_eq!(world.refused(Change::UnregisterImage(id_of(&two))), Refusal::Missing(Kind::Image, id_of(&two)));
}

#[test]
fn registering_an_image_again_keeps_who_did_it_first() {
    let mut world = World::new();
    let first = world.changed(Change::RegisterImage(image("alpine:3.20", false)));
    world.now = world.now.plus_ms(1_000);
    let again = world.changed(Change::RegisterImage(image("alpine:3.20", false)));
    let (first, again) = (first.image().expect("an image"), again.image().expect("an image"));
    assert_eq!((again.created_at, &again.created_by_request_id), (first.created_at, &first.created_by_request_id));
    assert_ne!(again.modified_by_request_id, first.modified_by_request_id);
}

#[test]
fn every_version_of_a_playbook_stays_what_it_was() {
    let mut world = World::new();
    let version = |record: Record| record.playbook().expect("a playbook").version;
    let first = version(world.changed(playbook("deploy", "make one")));
    let second = version(world.changed(playbook("deploy", "make two")));
    world.changed(Change::RemovePlaybook(name("deploy")));
    let third = version(world.changed(playbook("deploy", "make three")));
    assert!(first < second && second < third, "{first} {second} {third}");
    for (version, command) in [(first, "make one"), (second, "make two"), (third, "make three")] {
        let kept = world.live(Kind::PlaybookVersion, &format!("deploy@{version}")).and_then(Record::playbook).expect("kept");
        assert_eq!((kept.version, kept.steps.command.as_str()), (version, command));
    }
}

#[test]
fn a_playbook_knows_where_its_own_versions_begin() {
    let mut world = World::new();
    let push = |world: &mut World| {
        let record = world.changed(playbook("deploy", "make"));
        record.playbook().map(|playbook| (playbook.version, playbook.first_version)).expect("a playbook")
    };
    assert_eq!((push(&mut world), push(&mut world)), ((1, 1), (2, 1)));
    world.changed(Change::RemovePlaybook(name("deploy")));
    assert_eq!((push(&mut world), push(&mut world)), ((4, 4), (5, 4)), "those of a life before are not its own");
}

#[test]
fn a_playbook_grants_the_very_secrets_it_was_pushed_with() {
    let mut world = World::new();
    let git = serde_json::from_value(serde_json::json!({"repo": "https://git.example/x.git", "token": "deploy-token"})).expect("a source");
    let body = PlaybookBody { command: "make".into(), secrets: vec![name("db")], git: Some(git), ..PlaybookBody::default() };
    let push = Change::PushPlaybook(name("deploy"), Box::new(body));
    let first = world.changed(Change::CreateSecret(Box::new(secret("db", "v"))));
    assert_eq!(world.refused(push.clone()), Refusal::Missing(Kind::Secret, "deploy-token".into()));
    let token = world.changed(Change::CreateSecret(Box::new(secret("deploy-token", "t"))));
    let pushed = world.changed(push);
    let playbook = pushed.playbook().expect("a playbook");
    let (first, token) = (first.secret().expect("a secret"), token.secret().expect("a secret"));
    assert_eq!(playbook.grants, [Grant::of(first), Grant::of(token)]);
    let new_value = world.changed(Change::UpdateSecret(Box::new(SecretUpdate { sealed: Some(sealed("w")), ..update("db") })));
    assert!(playbook.grants(new_value.secret().expect("a secret")), "a new value is still the same secret");
    let renamed = Change::UpdateSecret(Box::new(SecretUpdate { key_name: Some("PAGER".into()), ..update("db") }));
    assert!(!playbook.grants(world.changed(renamed).secret().expect("a secret")), "another variable is another thing to give");
    world.changed(Change::DeleteSecret(name("db")));
    let squatted = world.changed(Change::CreateSecret(Box::new(secret("db", "v"))));
    assert!(!playbook.grants(squatted.secret().expect("a secret")), "the name alone is nothing");
}

#[test]
fn the_same_key_makes_the_same_thing_once() {
    let mut world = World::new();
    let make = Change::CreateSecret(Box::new(secret("db", "v")));
    let Answer::Record { record: first, repeated: false } = world.play(Command::Change(make.clone(), keyed("k", 1))) else { panic!("new") };
    let (events, records) = (world.events.len(), world.records.clone());
    let Answer::Record { record: again, repeated: true } = world.play(Command::Change(make.clone(), keyed("k", 1))) else {
        panic!("known")
    };
    assert_eq!(again, first);
    let made = Made::Record(Kind::Secret, "db".into());
    let other = Change::CreateSecret(Box::new(secret("other", "v")));
    assert_eq!(refusal(world.play(Command::Change(other, keyed("k", 2)))), Refusal::KeyReused(made.clone()));
    assert_eq!((world.events.len(), &world.records), (events, &records), "neither wrote anything");
    let anew = SubmitKey { user: "bob@x".into(), ..keyed("k", 2).expect("a key") };
    let other = Change::CreateSecret(Box::new(secret("other", "v")));
    assert!(matches!(world.play(Command::Change(other, Some(anew))), Answer::Record { repeated: false, .. }), "another user's key");
}

#[test]
fn one_key_makes_one_thing_whatever_it_is() {
    let mut world = World::new();
    let Answer::Submitted { execution, .. } = world.try_submit(|_| (), keyed("run", 1)) else { panic!("submitted") };
    let make = Change::CreateSecret(Box::new(secret("db", "v")));
    for fingerprint in [1, 2] {
        let crossed = world.play(Command::Change(make.clone(), keyed("run", fingerprint)));
        assert_eq!(refusal(crossed), Refusal::KeyReused(Made::Execution(execution.id)));
    }
    world.play(Command::Change(make, keyed("make", 1)));
    let made = Refusal::KeyReused(Made::Record(Kind::Secret, "db".into()));
    assert_eq!(refusal(world.try_submit(|_| (), keyed("make", 1))), made);
    assert_eq!(refusal(world.try_submit(|_| (), keyed("make", 2))), made);
}

#[test]
fn a_refused_change_does_not_use_up_its_key() {
    let mut world = World::new();
    let update = Change::UpdateSecret(Box::new(update("db")));
    assert_eq!(refusal(world.play(Command::Change(update.clone(), keyed("k", 1)))), Refusal::Missing(Kind::Secret, "db".into()));
    world.changed(Change::CreateSecret(Box::new(secret("db", "v"))));
    assert!(matches!(world.play(Command::Change(update, keyed("k", 1))), Answer::Record { repeated: false, .. }));
}

#[test]
fn a_repeated_step_is_answered_with_what_is_now_and_writes_nothing() {
    let mut world = World::new();
    let (step, make) = (world.step(), Command::Change(Change::CreateSecret(Box::new(secret("db", "v"))), None));
    let Answer::Record { record: first, repeated: false } = world.apply(&step, &make) else { panic!("new") };
    let (events, records) = (world.events.len(), world.records.clone());
    let Answer::Record { record: again, repeated: true } = world.apply(&step, &make) else { panic!("known") };
    assert_eq!((&again, world.events.len(), &world.records), (&first, events, &records));
    world.changed(Change::DeleteSecret(name("db")));
    let Answer::Record { record: gone, repeated: true } = world.apply(&step, &make) else { panic!("known") };
    assert_eq!(gone.body, None, "what was removed since is not made again");
}

#[test]
fn every_change_leaves_one_event_with_what_it_is_about() {
    let mut world = World::new();
    let push = playbook("deploy", "true");
    let changes = [
        (Kind::User, "root@x".to_owned(), Change::CreateFirstAdmin(admin("root@x", 1))),
        (Kind::User, "bob@x".into(), with_token("bob@x", Role::Viewer, 10, world.now)),
        (Kind::User, "bob@x".into(), super::cast::answer(10, key(2))),
        (Kind::User, "bob@x".into(), Change::AddKey("bob@x".into(), key(3))),
        (Kind::User, "bob@x".into(), Change::RotateKey("bob@x".into(), super::cast::prefix(3), key(4))),
        (Kind::User, "bob@x".into(), Change::RevokeKey("bob@x".into(), super::cast::prefix(4))),
        (Kind::User, "bob@x".into(), Change::SetRole("bob@x".into(), Role::Admin)),
        (Kind::User, "bob@x".into(), Change::RevokeUser("bob@x".into())),
        (Kind::User, "root@x".into(), Change::RecoverAdmin(admin("root@x", 5))),
        (Kind::Group, "ops".into(), group("ops", &[])),
        (Kind::Rule, "r".into(), Change::PutRule(Box::new(Rule::new("r", Effect::Deny)))),
        (Kind::Image, id_of(&image("alpine:3.20", true)), Change::RegisterImage(image("alpine:3.20", true))),
        (Kind::Secret, "db".into(), Change::CreateSecret(Box::new(secret("db", "v")))),
        (Kind::Secret, "db".into(), Change::ResealSecret(name("db"), sealed("v"), sealed("w"))),
        (Kind::Playbook, "deploy".into(), push),
    ];
    for (kind, about, change) in changes {
        let (events, before) = (world.events.len(), world.events_about(kind, &about).len());
        let record = world.changed(change.clone());
        assert_eq!((record.kind, record.name.as_str()), (kind, about.as_str()), "{change:?}");
        assert_eq!((world.events.len(), world.events_about(kind, &about).len()), (events + 1, before + 1), "{change:?}");
        let event = world.events.last().expect("an event");
        assert_eq!((event.kind, event.number, event.mac), (EventType::Audit, record.chain.count, record.chain.mac));
        let told = |field: &str| event.properties[field].as_str().map(str::to_owned);
        assert_eq!(told("result").as_deref(), Some("ok"));
        assert_eq!((told("user").as_deref(), told("action").as_deref()), (Some("ann@x"), Some("executions.test")));
    }
}

#[test]
fn who_was_denied_is_noted_with_them_and_changes_nothing_else() {
    let mut world = founded();
    world.changed(with_key("bob@x", Role::Viewer, key(2)));
    let before = world.user("bob@x").cloned();
    let denied = |email: &str| {
        Change::NoteDenied(Denied {
            email: email.into(),
            code: "FORBIDDEN".into(),
            why: "role viewer may not run".into(),
            ..Denied::default()
        })
    };
    world.changed(denied("bob@x"));
    assert_eq!(world.user("bob@x").cloned(), before);
    let event = world.events_about(Kind::User, "bob@x")[1];
    assert_eq!(event.properties["result"], "denied: FORBIDDEN");
    assert_eq!(event.properties["change"]["why"], "role viewer may not run");
    assert_eq!(world.refused(denied("eve@x")), Refusal::Missing(Kind::User, "eve@x".into()));
}

#[test]
fn checkpoints_are_one_chain_of_their_own() {
    let mut world = World::new();
    for number in 1..=3 {
        let checkpoint = Checkpoint { up_to: number * 10, leaves: number * 9, root: [7; 32], peaks: vec!["ab".into()] };
        let record = world.changed(Change::Checkpoint(checkpoint));
        assert_eq!((record.body, record.chain.count), (Some(Body::Ledger(number)), number));
    }
    let events = world.events_about(Kind::Ledger, ONLY);
    assert!(events.iter().all(|event| event.kind == EventType::AuditCheckpoint));
    assert_eq!(events[2].properties["upTo"], Value::from(30));
}
