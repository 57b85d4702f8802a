//! Who people are: invitations, claims, keys, roles. What holds of it: an invitation is answered once; a revoked key never works again; there is
//! always an admin whose key works, as far as a step can take one away.

use serde_json::{Value, json};

use super::registry::{commit, look};
use super::{Decision, refuse};
use crate::change::{ClaimKey, Invitation, InvitedBy, NewKey, NewUser, Renewal};
use crate::command::Refusal;
use crate::record::{Body, Kind, ONLY, Record, hash_name};
use crate::role::Role;
use crate::step::Step;
use crate::user::{ApiKey, Claim, Claimed, MOST_KEYS, PendingClaim, User};
use crate::view::{View, Writes};

pub(super) fn create_first_admin<V: View>(view: &mut V, step: &Step, new: &NewUser) -> Decision<V::Error> {
    if view.record(Kind::Admins, ONLY)?.is_some() {
        return refuse(Refusal::Taken(Kind::User, new.email.clone()));
    }
    admit(view, step, new)
}

/// The way back in: whoever is named is an admin afterwards, with one more key, whatever they were before.
pub(super) fn recover_admin<V: View>(view: &mut V, step: &Step, new: &NewUser) -> Decision<V::Error> {
    admit(view, step, new)
}

/// Makes somebody what is asked for, with one more key. What they were invited to before is over, and where they have as many keys as one may, the
/// oldest makes room: nobody is to stand before this door in vain.
fn admit<V: View>(view: &mut V, step: &Step, new: &NewUser) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, &new.email)?;
    let mut user = match record.user() {
        Some(user) => user.clone(),
        None => new_user(step, &new.email, new.role),
    };
    let mut writes = Writes::default();
    (user.role, user.revoked_at) = (new.role, None);
    if let Some(claim) = user.claim.take() {
        forget_claim(view, &claim.token_hash, &mut writes)?;
    }
    let ended = make_room(&mut user, step);
    if let Some(refusal) = give_key(view, step, &mut user, &new.key, &mut writes)? {
        return refuse(refusal);
    }
    list_admin(view, &user, &mut writes)?;
    let mut change = json!({"role": user.role, "key": new.key.prefix});
    if let Some(ended) = ended {
        change["insteadOf"] = ended.into();
    }
    finish(writes, step, &mut record, user, &change)
}

/// Ends the oldest key of somebody who has as many as one may; its shown part.
fn make_room(user: &mut User, step: &Step) -> Option<String> {
    if user.keys.iter().filter(|key| key.works(step.at)).count() < MOST_KEYS {
        return None;
    }
    let oldest = user.keys.iter_mut().find(|key| key.works(step.at))?;
    oldest.revoked_at = Some(step.at);
    Some(oldest.prefix.clone())
}

pub(super) fn invite<V: View>(view: &mut V, step: &Step, invitation: &Invitation) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, &invitation.email)?;
    // Whoever was revoked, or never answered, can be invited again.
    if record.user().is_some_and(|user| user.revoked_at.is_none() && user.exists(step.at)) {
        return refuse(Refusal::Taken(Kind::User, invitation.email.clone()));
    }
    let mut writes = Writes::default();
    if let Some(earlier) = record.user().and_then(|user| user.claim.as_ref()) {
        forget_claim(view, &earlier.token_hash, &mut writes)?;
    }
    // They begin anew. Whose an old key was is still known, so that it stays a revoked one.
    let mut user = new_user(step, &invitation.email, invitation.role);
    match &invitation.by {
        InvitedBy::Token(token_hash, expires_at) => {
            let claim = PendingClaim { token_hash: *token_hash, expires_at: *expires_at };
            if let Some(refusal) = open_claim(view, &mut user, claim, &mut writes)? {
                return refuse(refusal);
            }
        }
        InvitedBy::Key(key) => {
            if let Some(refusal) = give_key(view, step, &mut user, key, &mut writes)? {
                return refuse(refusal);
            }
            list_admin(view, &user, &mut writes)?;
        }
    }
    let change = json!({"role": user.role, "invited": true});
    finish(writes, step, &mut record, user, &change)
}

/// Also an invitation that has lapsed can be renewed, as long as it was not forgotten.
pub(super) fn renew<V: View>(view: &mut V, step: &Step, renewal: &Renewal) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, &renewal.email)?;
    let Some(mut user) = record.user().filter(|user| user.revoked_at.is_none()).cloned() else { return missing(&renewal.email) };
    let Some(earlier) = user.claim.take() else { return refuse(Refusal::Claimed) };
    let mut writes = Writes::default();
    let claim = PendingClaim { token_hash: renewal.token_hash, expires_at: renewal.expires_at };
    if let Some(refusal) = open_claim(view, &mut user, claim, &mut writes)? {
        return refuse(refusal);
    }
    forget_claim(view, &earlier.token_hash, &mut writes)?;
    let change = json!({"role": user.role, "renewed": true});
    finish(writes, step, &mut record, user, &change)
}

pub(super) fn claim<V: View>(view: &mut V, step: &Step, claim: &ClaimKey) -> Decision<V::Error> {
    let name = hash_name(&claim.token_hash);
    let mut token = look(view, Kind::Claim, &name)?;
    let missing = || refuse(Refusal::Missing(Kind::Claim, "token".into()));
    let Some(Body::Claim(open)) = &mut token.body else { return missing() };
    if open.claimed.is_some() {
        return refuse(Refusal::Claimed);
    }
    if open.expires_at <= step.at {
        return missing();
    }
    let mut record = look(view, Kind::User, &open.email)?;
    let pending = |user: &&User| user.claim.as_ref().is_some_and(|pending| pending.token_hash == claim.token_hash);
    let Some(mut user) = record.user().filter(pending).cloned() else { return missing() };
    open.claimed = Some(Claimed { at: step.at, from: claim.from.clone() });
    let mut writes = Writes::default();
    writes.put_record(token);
    user.claim = None;
    if let Some(refusal) = give_key(view, step, &mut user, &claim.key, &mut writes)? {
        return refuse(refusal);
    }
    list_admin(view, &user, &mut writes)?;
    finish(writes, step, &mut record, user, &json!({"claimed": true, "key": claim.key.prefix}))
}

pub(super) fn revoke<V: View>(view: &mut V, step: &Step, email: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(mut user) = known(&record, step) else { return missing(email) };
    let mut writes = Writes::default();
    if user.revoked_at.is_some() {
        return finish(writes, step, &mut record, user, &json!({"revoked": true, "already": true}));
    }
    if !unlist_admin(view, step, email, &mut writes)? {
        return refuse(Refusal::LastAdmin(email.to_owned()));
    }
    if let Some(claim) = user.claim.take() {
        forget_claim(view, &claim.token_hash, &mut writes)?;
    }
    user.revoked_at = Some(step.at);
    for key in user.keys.iter_mut().filter(|key| key.revoked_at.is_none()) {
        key.revoked_at = Some(step.at);
    }
    // An invitation that is taken back leaves nobody behind.
    if user.keys.is_empty() {
        record.body = None;
        return commit(writes, step, record, &json!({"revoked": true}));
    }
    finish(writes, step, &mut record, user, &json!({"revoked": true}))
}

pub(super) fn set_role<V: View>(view: &mut V, step: &Step, email: &str, role: Role) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(mut user) = known(&record, step).filter(|user| user.revoked_at.is_none()) else { return missing(email) };
    let mut writes = Writes::default();
    if role != Role::Admin && !unlist_admin(view, step, email, &mut writes)? {
        return refuse(Refusal::LastAdmin(email.to_owned()));
    }
    let change = json!({"role": role, "before": user.role});
    user.role = role;
    if user.has_key(step.at) {
        list_admin(view, &user, &mut writes)?;
    }
    finish(writes, step, &mut record, user, &change)
}

pub(super) fn add_key<V: View>(view: &mut V, step: &Step, email: &str, key: &NewKey) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(mut user) = known(&record, step).filter(|user| user.revoked_at.is_none()) else { return missing(email) };
    let mut writes = Writes::default();
    if let Some(refusal) = give_key(view, step, &mut user, key, &mut writes)? {
        return refuse(refusal);
    }
    list_admin(view, &user, &mut writes)?;
    finish(writes, step, &mut record, user, &json!({"key": key.prefix, "expiresAt": key.expires_at}))
}

pub(super) fn revoke_key<V: View>(view: &mut V, step: &Step, email: &str, prefix: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(mut user) = known(&record, step) else { return missing(email) };
    if !end_key(&mut user, step, prefix) {
        return refuse(Refusal::Missing(Kind::Key, prefix.to_owned()));
    }
    let mut writes = Writes::default();
    let lost =
        if user.has_key(step.at) { !keeps_a_way_in(view, step, &record, &user)? } else { !unlist_admin(view, step, email, &mut writes)? };
    if lost {
        return refuse(Refusal::LastAdmin(email.to_owned()));
    }
    finish(writes, step, &mut record, user, &json!({"key": prefix, "revoked": true}))
}

pub(super) fn rotate_key<V: View>(view: &mut V, step: &Step, email: &str, prefix: &str, key: &NewKey) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(mut user) = known(&record, step).filter(|user| user.revoked_at.is_none()) else { return missing(email) };
    if !end_key(&mut user, step, prefix) {
        return refuse(Refusal::Missing(Kind::Key, prefix.to_owned()));
    }
    let mut writes = Writes::default();
    if let Some(refusal) = give_key(view, step, &mut user, key, &mut writes)? {
        return refuse(refusal);
    }
    // Whoever had only keys that ran out may have left the list; a key that ran out on its way takes nobody's place.
    if user.has_key(step.at) {
        if !keeps_a_way_in(view, step, &record, &user)? {
            return refuse(Refusal::LastAdmin(email.to_owned()));
        }
        list_admin(view, &user, &mut writes)?;
    } else if !unlist_admin(view, step, email, &mut writes)? {
        return refuse(Refusal::LastAdmin(email.to_owned()));
    }
    finish(writes, step, &mut record, user, &json!({"key": key.prefix, "insteadOf": prefix}))
}

pub(super) fn forget_unclaimed<V: View>(view: &mut V, step: &Step, email: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::User, email)?;
    let Some(user) = record.user().filter(|user| !user.exists(step.at)) else { return missing(email) };
    let mut writes = Writes::default();
    if let Some(claim) = user.claim.clone() {
        forget_claim(view, &claim.token_hash, &mut writes)?;
    }
    record.body = None;
    commit(writes, step, record, &json!({"unclaimed": true}))
}

fn new_user(step: &Step, email: &str, role: Role) -> User {
    User {
        email: email.to_owned(),
        role,
        created_at: step.at,
        created_by: step.actor.name(),
        created_by_request_id: step.request_id.clone(),
        modified_by_request_id: step.request_id.clone(),
        revoked_at: None,
        keys: Vec::new(),
        claim: None,
    }
}

/// The user of a record, unless nobody should hear of them any more.
fn known(record: &Record, step: &Step) -> Option<User> {
    record.user().filter(|user| user.exists(step.at)).cloned()
}

fn missing<E>(email: &str) -> Decision<E> {
    refuse(Refusal::Missing(Kind::User, email.to_owned()))
}

fn finish<E>(writes: Writes, step: &Step, record: &mut Record, mut user: User, change: &Value) -> Decision<E> {
    user.modified_by_request_id.clone_from(&step.request_id);
    record.body = Some(Body::User(user));
    commit(writes, step, record.clone(), change)
}

/// Gives a key to a user; a reason why not, if there is one.
fn give_key<V: View>(view: &mut V, step: &Step, user: &mut User, key: &NewKey, writes: &mut Writes) -> Result<Option<Refusal>, V::Error> {
    let mut owner = look(view, Kind::Key, &hash_name(&key.hash))?;
    if owner.body.is_some() || user.keys.iter().any(|own| own.prefix == key.prefix) {
        return Ok(Some(Refusal::Taken(Kind::Key, key.prefix.clone())));
    }
    if user.keys.iter().filter(|own| own.works(step.at)).count() >= MOST_KEYS {
        let message = format!("{} has {MOST_KEYS} keys: revoke one first", user.email);
        return Ok(Some(Refusal::TooMany(message)));
    }
    owner.body = Some(Body::Key(user.email.clone()));
    writes.put_record(owner);
    // Keys that ended long ago say nothing any more; the newest few stay, for people who look back.
    let ended = user.keys.iter().filter(|own| !own.works(step.at)).count();
    let mut surplus = ended.saturating_sub(MOST_KEYS);
    user.keys.retain(|own| {
        let drop = surplus > 0 && !own.works(step.at);
        surplus -= usize::from(drop);
        !drop
    });
    user.keys.push(ApiKey {
        hash: key.hash,
        prefix: key.prefix.clone(),
        name: key.name.clone(),
        created_at: step.at,
        expires_at: key.expires_at,
        revoked_at: None,
    });
    Ok(None)
}

fn end_key(user: &mut User, step: &Step, prefix: &str) -> bool {
    let key = user.keys.iter_mut().find(|key| key.prefix == prefix && key.revoked_at.is_none());
    key.map(|key| key.revoked_at = Some(step.at)).is_some()
}

/// Opens an invitation of a user; a reason why not, if there is one.
fn open_claim<V: View>(view: &mut V, user: &mut User, pending: PendingClaim, writes: &mut Writes) -> Result<Option<Refusal>, V::Error> {
    let mut claim = look(view, Kind::Claim, &hash_name(&pending.token_hash))?;
    if claim.body.is_some() {
        return Ok(Some(Refusal::Taken(Kind::Claim, "token".into())));
    }
    claim.body = Some(Body::Claim(Claim { email: user.email.clone(), expires_at: pending.expires_at, claimed: None }));
    writes.put_record(claim);
    user.claim = Some(pending);
    Ok(None)
}

fn forget_claim<V: View>(view: &mut V, token_hash: &[u8; 32], writes: &mut Writes) -> Result<(), V::Error> {
    let mut claim = look(view, Kind::Claim, &hash_name(token_hash))?;
    if claim.body.take().is_some() {
        writes.put_record(claim);
    }
    Ok(())
}

/// Puts a user on the list of admins, if they are one.
fn list_admin<V: View>(view: &mut V, user: &User, writes: &mut Writes) -> Result<(), V::Error> {
    if user.role != Role::Admin {
        return Ok(());
    }
    let mut record = look(view, Kind::Admins, ONLY)?;
    let mut admins = admins_of(&record);
    if !admins.contains(&user.email) {
        admins.push(user.email.clone());
        record.body = Some(Body::Admins(admins));
        writes.put_record(record);
    }
    Ok(())
}

/// Whether, after a change of an admin's keys, some admin still has a key that does not run out by itself, if one had before.
fn keeps_a_way_in<V: View>(view: &mut V, step: &Step, before: &Record, after: &User) -> Result<bool, V::Error> {
    let had_one = before.user().is_some_and(|user| user.role == Role::Admin && user.has_lasting_key());
    if !had_one || after.has_lasting_key() {
        return Ok(true);
    }
    let admins = admins_of(&look(view, Kind::Admins, ONLY)?);
    for admin in admins.iter().filter(|admin| **admin != after.email) {
        let lasting = |user: &User| user.role == Role::Admin && user.has_key(step.at) && user.has_lasting_key();
        if look(view, Kind::User, admin)?.user().is_some_and(lasting) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes a user off the list of admins; `false`, and nothing written, if nobody left on it has a key that works.
fn unlist_admin<V: View>(view: &mut V, step: &Step, email: &str, writes: &mut Writes) -> Result<bool, V::Error> {
    let mut record = look(view, Kind::Admins, ONLY)?;
    let mut admins = admins_of(&record);
    let Some(place) = admins.iter().position(|admin| admin == email) else { return Ok(true) };
    admins.remove(place);
    // A key that runs out by itself does not stand in for one that lasts.
    let lasting = look(view, Kind::User, email)?.user().is_some_and(User::has_lasting_key);
    let mut one_left = false;
    for admin in &admins {
        let stands_in = |user: &User| user.has_key(step.at) && (!lasting || user.has_lasting_key());
        one_left = look(view, Kind::User, admin)?.user().is_some_and(stands_in);
        // One is enough: the others need not stay as they are until this is written.
        if one_left {
            break;
        }
    }
    if !one_left {
        return Ok(false);
    }
    record.body = Some(Body::Admins(admins));
    writes.put_record(record);
    Ok(true)
}

fn admins_of(record: &Record) -> Vec<String> {
    match &record.body {
        Some(Body::Admins(admins)) => admins.clone(),
        _ => Vec::new(),
    }
}
