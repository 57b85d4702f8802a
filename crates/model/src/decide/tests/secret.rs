//! Named examples of the life of a secret, and that no event ever holds its value.

use super::cast::{sealed, secret, update};
use super::world::{World, name};
use crate::change::{Change, SecretUpdate};
use crate::command::Refusal;
use crate::record::{Kind, Record};
use crate::secret::Secret;

fn db(world: &World) -> &Secret {
    world.live(Kind::Secret, "db").and_then(Record::secret).expect("the secret")
}

fn made() -> World {
    let mut world = World::new();
    world.changed(Change::CreateSecret(Box::new(secret("db", "value-1"))));
    world
}

#[test]
fn a_name_is_taken_once() {
    let mut world = made();
    assert_eq!(db(&world).created_by, "ann@x");
    assert_eq!(db(&world).owned_by, ["ann@x"]);
    let again = Change::CreateSecret(Box::new(secret("db", "value-2")));
    assert_eq!(world.refused(again), Refusal::Taken(Kind::Secret, "db".into()));
    assert_eq!(db(&world).sealed, sealed("value-1"));
}

#[test]
fn an_update_changes_what_it_names_and_nothing_else() {
    let mut world = made();
    let before = db(&world).clone();
    world.now = world.now.plus_ms(1_000);
    world.changed(Change::UpdateSecret(Box::new(SecretUpdate { sealed: Some(sealed("value-2")), ..update("db") })));
    let after = db(&world);
    assert_eq!((&after.sealed, after.updated_at, after.created_at), (&sealed("value-2"), world.now, before.created_at));
    assert_eq!((&after.key_name, &after.description, &after.use_by), (&before.key_name, &before.description, &before.use_by));
    world.changed(Change::UpdateSecret(Box::new(SecretUpdate { key_name: Some("PG_URL".into()), ..update("db") })));
    world.changed(Change::UpdateSecret(Box::new(SecretUpdate { description: Some("new words".into()), ..update("db") })));
    world.changed(Change::UpdateSecret(Box::new(SecretUpdate { use_by: Some(Vec::new()), ..update("db") })));
    let after = db(&world);
    assert_eq!((after.key_name.as_str(), after.description.as_deref(), after.use_by.len()), ("PG_URL", Some("new words"), 0));
    assert_eq!(after.sealed, sealed("value-2"));
    assert_eq!(world.refused(Change::UpdateSecret(Box::new(update("no")))), Refusal::Missing(Kind::Secret, "no".into()));
}

#[test]
fn sealing_anew_never_undoes_an_update_that_came_between() {
    let mut world = made();
    world.changed(Change::ResealSecret(name("db"), sealed("value-1"), sealed("value-1-again")));
    assert_eq!(db(&world).sealed, sealed("value-1-again"));
    let stale = Change::ResealSecret(name("db"), sealed("value-1"), sealed("old"));
    assert_eq!(world.refused(stale), Refusal::Stale(Kind::Secret, "db".into()));
    world.changed(Change::DeleteSecret(name("db")));
    let gone = Change::ResealSecret(name("db"), sealed("value-1-again"), sealed("old"));
    assert_eq!(world.refused(gone), Refusal::Missing(Kind::Secret, "db".into()));
}

#[test]
fn a_name_used_again_is_another_secret_in_the_same_chain() {
    let mut world = made();
    world.changed(Change::DeleteSecret(name("db")));
    world.now = world.now.plus_ms(1_000);
    let again = world.changed(Change::CreateSecret(Box::new(secret("db", "value-2"))));
    assert_eq!((db(&world).created_at, again.chain.count), (world.now, 3));
}

#[test]
fn no_event_holds_a_value() {
    let mut world = made();
    world.changed(Change::UpdateSecret(Box::new(SecretUpdate { sealed: Some(sealed("value-2")), ..update("db") })));
    world.changed(Change::ResealSecret(name("db"), sealed("value-2"), sealed("value-3")));
    world.changed(Change::DeleteSecret(name("db")));
    assert_eq!(world.events.len(), 4);
    assert!(world.events.iter().all(|event| !event.properties.to_string().contains("value-")), "{:?}", world.events);
}
