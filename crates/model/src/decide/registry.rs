//! What people manage changes here: the one door for every [`Change`], and the decisions about groups, rules, images, secrets, playbooks, queues
//! and checkpoints. Each change leaves one event in the chain of what it is about, which says who did what and never holds a value that is secret.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Decision, identity, incident, refuse, worker};
use crate::change::{Change, Checkpoint, Denied, Made, NewImage, NewSecret, SecretUpdate};
use crate::command::{Answer, Refusal, SubmitKey};
use crate::event::EventType;
use crate::group::Group;
use crate::hex::hex;
use crate::image::{Image, image_id};
use crate::name::Name;
use crate::playbook::{Grant, Playbook, PlaybookBody};
use crate::queue::{Pause, QueueTerms, QueueUpdate};
use crate::record::{Body, Kind, ONLY, Record, owner_record};
use crate::rule::Rule;
use crate::secret::{Sealed, Secret};
use crate::step::Step;
use crate::view::{View, Writes};

pub(super) fn change<V: View>(view: &mut V, step: &Step, change: &Change, key: Option<&SubmitKey>) -> Decision<V::Error> {
    if let Some(key) = key
        && let Some((made, fingerprint)) = view.submitted(&key.user, &key.key)?
    {
        let (Made::Record(kind, name), true) = (&made, fingerprint == key.fingerprint) else {
            return refuse(Refusal::KeyReused(made));
        };
        return Ok(match view.record(*kind, name)? {
            Some(record) => (Writes::default(), Answer::Record { record: Box::new(record), repeated: true }),
            None => (Writes::default(), Answer::Refused(Refusal::NotFound)),
        });
    }
    let (mut writes, answer) = decide(view, step, change)?;
    if let (Some(key), Answer::Record { record, .. }) = (key, &answer)
        && !writes.is_empty()
    {
        writes.key = Some((key.clone(), Made::Record(record.kind, record.name.clone())));
    }
    Ok((writes, answer))
}

fn decide<V: View>(view: &mut V, step: &Step, change: &Change) -> Decision<V::Error> {
    match change {
        Change::CreateFirstAdmin(user) => identity::create_first_admin(view, step, user),
        Change::InviteUser(invitation) => identity::invite(view, step, invitation),
        Change::RenewInvitation(renewal) => identity::renew(view, step, renewal),
        Change::ClaimKey(claim) => identity::claim(view, step, claim),
        Change::RevokeUser(email) => identity::revoke(view, step, email),
        Change::SetRole(email, role) => identity::set_role(view, step, email, *role),
        Change::AddKey(email, key) => identity::add_key(view, step, email, key),
        Change::RevokeKey(email, prefix) => identity::revoke_key(view, step, email, prefix),
        Change::RotateKey(email, prefix, key) => identity::rotate_key(view, step, email, prefix, key),
        Change::RecoverAdmin(user) => identity::recover_admin(view, step, user),
        Change::ForgetUnclaimed(email) => identity::forget_unclaimed(view, step, email),
        Change::PutGroup(group) => put_group(view, step, group),
        Change::RemoveGroup(name) => remove(view, step, Kind::Group, name.as_str()),
        Change::PutRule(rule) => put_rule(view, step, rule),
        Change::RemoveRule(name) => remove(view, step, Kind::Rule, name.as_str()),
        Change::RegisterImage(image) => register_image(view, step, image),
        Change::UnregisterImage(id) => unregister_image(view, step, id),
        Change::CreateSecret(secret) => create_secret(view, step, secret),
        Change::UpdateSecret(update) => update_secret(view, step, update),
        Change::ResealSecret(name, from, to) => reseal_secret(view, step, name, from, to),
        Change::DeleteSecret(name) => remove(view, step, Kind::Secret, name.as_str()),
        Change::PushPlaybook(name, body) => push_playbook(view, step, name, body),
        Change::RemovePlaybook(name) => remove(view, step, Kind::Playbook, name.as_str()),
        Change::PutQueue(update) => put_queue(view, step, update),
        Change::RemoveQueue(name) => remove(view, step, Kind::Queue, name.as_str()),
        Change::CreateWorker(new) => worker::create(view, step, new),
        Change::RotateWorker(name, key) => worker::rotate(view, step, name, key),
        Change::RevokeWorker(name) => worker::revoke(view, step, name),
        Change::DrainWorker(name) => worker::drain(view, step, name),
        Change::ResumeWorker(name) => worker::resume(view, step, name),
        Change::Checkpoint(checkpoint) => write_checkpoint(view, step, checkpoint),
        Change::NoteHealth(check) => incident::note_health(view, step, check),
        Change::MoveIncidents(moves) => incident::move_all(view, step, moves),
        Change::NoteDenied(denied) => note_denied(view, step, denied),
        Change::NoteCall(owner) => note_only(view, step, owner_record(owner), &json!({})),
        Change::NoteRevealed(name) => note_only(view, step, (Kind::Secret, name.as_str()), &json!({"revealed": true})),
        Change::NoteRotated(email) => note_only(view, step, (Kind::User, email), &json!({"sealingKey": "rotated"})),
        Change::NoteSigningKey(email) => note_only(view, step, (Kind::User, email), &json!({"signingKey": "rotated"})),
    }
}

/// Writes a record with the one event of its change, and answers with it.
pub(super) fn commit<E>(mut writes: Writes, step: &Step, record: Record, change: &Value) -> Decision<E> {
    note(&mut writes, step, &record, change, "ok");
    let record = writes.put_record(record);
    Ok((writes, Answer::Record { record, repeated: false }))
}

fn note(writes: &mut Writes, step: &Step, record: &Record, change: &Value, result: &str) {
    let entity = record.entity().expect("a change is about what has events");
    let (action, from) = match &step.audit {
        Some(audit) => (audit.action.as_str(), audit.from.as_str()),
        None => ("platform", ""),
    };
    let properties = json!({
        "user": step.actor.name(),
        "action": action,
        "from": from,
        "result": result,
        "apiRequestId": step.request_id,
        "change": change,
    });
    writes.event_about(step, entity, EventType::Audit, properties);
}

/// A record as it is, or as it would begin.
pub(super) fn look<V: View>(view: &mut V, kind: Kind, name: &str) -> Result<Record, V::Error> {
    Ok(view.record(kind, name)?.unwrap_or_else(|| Record::new(kind, name)))
}

fn remove<V: View>(view: &mut V, step: &Step, kind: Kind, name: &str) -> Decision<V::Error> {
    let mut record = look(view, kind, name)?;
    if record.body.take().is_none() {
        return refuse(Refusal::Missing(kind, name.to_owned()));
    }
    commit(Writes::default(), step, record, &json!({"removed": true}))
}

fn put_group<V: View>(view: &mut V, step: &Step, group: &Group) -> Decision<V::Error> {
    let mut record = look(view, Kind::Group, group.name.as_str())?;
    let mut group = group.clone();
    group.members.sort_unstable();
    group.members.dedup();
    if let Some(earlier) = record.group() {
        (group.created_at, group.created_by) = (earlier.created_at, earlier.created_by.clone());
    }
    let change = json!({"members": group.members});
    record.body = Some(Body::Group(group));
    commit(Writes::default(), step, record, &change)
}

fn put_rule<V: View>(view: &mut V, step: &Step, rule: &Rule) -> Decision<V::Error> {
    let mut record = look(view, Kind::Rule, &rule.name)?;
    let change = json!({"rule": rule});
    record.body = Some(Body::Rule(rule.clone()));
    commit(Writes::default(), step, record, &change)
}

fn register_image<V: View>(view: &mut V, step: &Step, new: &NewImage) -> Decision<V::Error> {
    let id = image_id(&new.reference, &new.settings);
    let mut record = look(view, Kind::Image, &id)?;
    let by = step.actor.name();
    let mut image = match record.image() {
        Some(earlier) => earlier.clone(),
        None => Image {
            image_id: id.clone(),
            image: new.image.clone(),
            reference: new.reference.clone(),
            settings: new.settings.clone(),
            owned_by: vec![by.clone()],
            created_by: by,
            created_at: step.at,
            created_by_request_id: step.request_id.clone(),
            modified_by_request_id: String::new(),
        },
    };
    image.modified_by_request_id.clone_from(&step.request_id);
    let mut writes = Writes::default();
    if new.is_default {
        let mut pointer = look(view, Kind::DefaultImage, ONLY)?;
        pointer.body = Some(Body::DefaultImage(id));
        writes.put_record(pointer);
    }
    record.body = Some(Body::Image(image));
    let change = json!({"image": new.image, "settings": new.settings, "default": new.is_default});
    commit(writes, step, record, &change)
}

fn unregister_image<V: View>(view: &mut V, step: &Step, id: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::Image, id)?;
    let Some(Body::Image(image)) = record.body.take() else { return refuse(Refusal::Missing(Kind::Image, id.to_owned())) };
    let mut writes = Writes::default();
    let mut pointer = look(view, Kind::DefaultImage, ONLY)?;
    if pointer.body == Some(Body::DefaultImage(id.to_owned())) {
        pointer.body = None;
        writes.put_record(pointer);
    }
    commit(writes, step, record, &json!({"removed": true, "image": image.image}))
}

fn create_secret<V: View>(view: &mut V, step: &Step, new: &NewSecret) -> Decision<V::Error> {
    let mut record = look(view, Kind::Secret, new.name.as_str())?;
    if record.body.is_some() {
        return refuse(Refusal::Taken(Kind::Secret, new.name.to_string()));
    }
    let by = step.actor.name();
    let change = json!({"keyName": new.key_name, "useBy": new.use_by, "sealedWith": new.sealed.key_id});
    record.body = Some(Body::Secret(Box::new(Secret {
        name: new.name.clone(),
        key_name: new.key_name.clone(),
        description: new.description.clone(),
        sealed: new.sealed.clone(),
        owned_by: vec![by.clone()],
        use_by: new.use_by.clone(),
        created_at: step.at,
        updated_at: step.at,
        updated_by: by.clone(),
        created_by: by,
        created_by_request_id: step.request_id.clone(),
        modified_by_request_id: step.request_id.clone(),
    })));
    commit(Writes::default(), step, record, &change)
}

fn update_secret<V: View>(view: &mut V, step: &Step, update: &SecretUpdate) -> Decision<V::Error> {
    let mut record = look(view, Kind::Secret, update.name.as_str())?;
    let Some(Body::Secret(secret)) = &mut record.body else {
        return refuse(Refusal::Missing(Kind::Secret, update.name.to_string()));
    };
    if let Some(key_name) = &update.key_name {
        secret.key_name.clone_from(key_name);
    }
    if update.description.is_some() {
        secret.description.clone_from(&update.description);
    }
    if let Some(use_by) = &update.use_by {
        secret.use_by.clone_from(use_by);
    }
    if let Some(sealed) = &update.sealed {
        secret.sealed = sealed.clone();
    }
    secret.updated_at = step.at;
    secret.updated_by = step.actor.name();
    secret.modified_by_request_id.clone_from(&step.request_id);
    let change = json!({"keyName": secret.key_name, "useBy": secret.use_by, "value": update.sealed.is_some()});
    commit(Writes::default(), step, record, &change)
}

fn reseal_secret<V: View>(view: &mut V, step: &Step, name: &Name, from: &Sealed, to: &Sealed) -> Decision<V::Error> {
    let mut record = look(view, Kind::Secret, name.as_str())?;
    let Some(Body::Secret(secret)) = &mut record.body else { return refuse(Refusal::Missing(Kind::Secret, name.to_string())) };
    if secret.sealed != *from {
        return refuse(Refusal::Stale(Kind::Secret, name.to_string()));
    }
    secret.sealed = to.clone();
    commit(Writes::default(), step, record, &json!({"sealedWith": to.key_id}))
}

fn push_playbook<V: View>(view: &mut V, step: &Step, name: &Name, body: &PlaybookBody) -> Decision<V::Error> {
    let mut record = look(view, Kind::Playbook, name.as_str())?;
    // A name that is used again goes on counting: a version is never two different texts.
    let version = u32::try_from(record.version).unwrap_or(u32::MAX).saturating_add(1);
    let mut grants = Vec::new();
    for name in body.secrets_used() {
        match look(view, Kind::Secret, name.as_str())?.secret() {
            Some(secret) => grants.push(Grant::of(secret)),
            None => return refuse(Refusal::Missing(Kind::Secret, name.to_string())),
        }
    }
    let playbook = Playbook {
        name: name.clone(),
        version,
        steps: body.clone(),
        created_by: step.actor.name(),
        created_at: step.at,
        created_by_request_id: step.request_id.clone(),
        first_version: record.playbook().map_or(version, |earlier| earlier.first_version),
        grants,
    };
    let mut writes = Writes::default();
    let mut kept = Record::new(Kind::PlaybookVersion, format!("{name}@{version}"));
    kept.body = Some(Body::Playbook(Box::new(playbook.clone())));
    writes.put_record(kept);
    // The text itself is kept as a version; its values may be nobody else's business.
    let text = serde_json::to_vec(&playbook.steps).expect("plain fields can be written as JSON");
    let digest: [u8; 32] = Sha256::digest(&text).into();
    let change = json!({"version": version, "sha256": hex(&digest)});
    record.body = Some(Body::Playbook(Box::new(playbook)));
    commit(writes, step, record, &change)
}

/// What was paused before stays paused by whoever did it, unless there is another reason for it now.
fn put_queue<V: View>(view: &mut V, step: &Step, update: &QueueUpdate) -> Decision<V::Error> {
    let mut record = look(view, Kind::Queue, update.name.as_str())?;
    let mut terms = record.queue().cloned().unwrap_or_else(|| QueueTerms::none(update.name.clone()));
    match update.paused {
        Some(true) => {
            let is_same = |pause: &Pause| update.reason.is_none() || pause.reason == update.reason;
            let now = || Pause { by: step.actor.name(), at: step.at, reason: update.reason.clone() };
            terms.paused = Some(terms.paused.filter(is_same).unwrap_or_else(now));
        }
        Some(false) => terms.paused = None,
        None => {}
    }
    terms.concurrency = update.concurrency.unwrap_or(terms.concurrency);
    terms.per_user = update.per_user.unwrap_or(terms.per_user);
    let reason = terms.paused.as_ref().and_then(|pause| pause.reason.as_ref());
    let change = json!({"paused": terms.paused.is_some(), "reason": reason, "concurrency": terms.concurrency, "perUser": terms.per_user});
    record.body = Some(Body::Queue(terms));
    commit(Writes::default(), step, record, &change)
}

fn write_checkpoint<V: View>(view: &mut V, step: &Step, checkpoint: &Checkpoint) -> Decision<V::Error> {
    let mut record = look(view, Kind::Ledger, ONLY)?;
    let count = match record.body {
        Some(Body::Ledger(count)) => count + 1,
        _ => 1,
    };
    record.body = Some(Body::Ledger(count));
    let mut writes = Writes::default();
    let entity = record.entity().expect("the ledger has events");
    let properties = serde_json::to_value(checkpoint).expect("plain fields can be written as JSON");
    writes.event_about(step, entity, EventType::AuditCheckpoint, properties);
    let record = writes.put_record(record);
    Ok((writes, Answer::Record { record, repeated: false }))
}

fn note_denied<V: View>(view: &mut V, step: &Step, denied: &Denied) -> Decision<V::Error> {
    let (kind, name) = owner_record(&denied.email);
    let Some(record) = view.record(kind, name)? else { return refuse(Refusal::Missing(kind, name.to_owned())) };
    let mut writes = Writes::default();
    note(&mut writes, step, &record, &json!({"why": denied.why}), &format!("denied: {}", denied.code));
    if let Some(event) = writes.events.last_mut() {
        for (name, value) in [("command", &denied.command), ("target", &denied.target)] {
            if let Some(value) = value {
                event.properties[name] = value.as_str().into();
            }
        }
    }
    let record = writes.put_record(record);
    Ok((writes, Answer::Record { record, repeated: false }))
}

/// Leaves an event about something and changes nothing of it.
fn note_only<V: View>(view: &mut V, step: &Step, (kind, name): (Kind, &str), change: &Value) -> Decision<V::Error> {
    match view.record(kind, name)?.filter(|record| record.body.is_some()) {
        Some(record) => commit(Writes::default(), step, record, change),
        None => refuse(Refusal::Missing(kind, name.to_owned())),
    }
}
