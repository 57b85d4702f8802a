//! The people of the plays and what they bring with them: keys, tokens, sealed values. Numbers stand for what chance would make.

use crate::change::{Change, ClaimKey, Invitation, InvitedBy, NewImage, NewKey, NewSecret, NewUser, SecretUpdate};
use crate::image::{ImageSettings, Reference, image_id};
use crate::role::Role;
use crate::secret::Sealed;
use crate::time::UnixMs;
use crate::user::CLAIM_LIVES_MS;

use super::world::{World, name};

/// The hash of the key or token with this number.
pub fn hash(number: u8) -> [u8; 32] {
    [number; 32]
}

/// The part of a key that is shown.
pub fn prefix(number: u8) -> String {
    format!("rv_{number:08}")
}

pub fn key(number: u8) -> NewKey {
    NewKey { hash: hash(number), prefix: prefix(number), name: None, expires_at: None }
}

pub fn key_until(number: u8, expires_at: UnixMs) -> NewKey {
    NewKey { expires_at: Some(expires_at), ..key(number) }
}

pub fn with_key(email: &str, role: Role, key: NewKey) -> Change {
    Change::InviteUser(Invitation { email: email.into(), role, by: InvitedBy::Key(key) })
}

pub fn with_token(email: &str, role: Role, token: u8, now: UnixMs) -> Change {
    let by = InvitedBy::Token(hash(token), now.plus_ms(CLAIM_LIVES_MS));
    Change::InviteUser(Invitation { email: email.into(), role, by })
}

pub fn answer(token: u8, key: NewKey) -> Change {
    Change::ClaimKey(ClaimKey { token_hash: hash(token), key, from: "10.0.0.9".into() })
}

pub fn admin(email: &str, number: u8) -> NewUser {
    NewUser { email: email.into(), role: Role::Admin, key: key(number) }
}

/// A world whose first admin is `root@x`, with key 1.
pub fn founded() -> World {
    let mut world = World::new();
    world.changed(Change::CreateFirstAdmin(admin("root@x", 1)));
    world
}

pub fn image(reference: &str, is_default: bool) -> NewImage {
    let settings = ImageSettings::default();
    NewImage { image: reference.into(), reference: Reference::parse(reference).expect("a reference"), settings, is_default }
}

pub fn id_of(image: &NewImage) -> String {
    image_id(&image.reference, &image.settings)
}

pub fn sealed(text: &str) -> Sealed {
    Sealed { key_id: "k1".into(), data: text.into() }
}

pub fn secret(text: &str, value: &str) -> NewSecret {
    let use_by = vec!["group:ops".into()];
    NewSecret { name: name(text), key_name: "DB_URL".into(), description: Some("the database".into()), use_by, sealed: sealed(value) }
}

/// An update that changes nothing yet.
pub fn update(text: &str) -> SecretUpdate {
    SecretUpdate { name: name(text), key_name: None, description: None, use_by: None, sealed: None }
}
