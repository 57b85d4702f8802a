//! Accounts of workers: made, given another key, revoked; and workers that are drained. What holds of it: an account has one key; a key that was replaced or revoked never works
//! again, whose it was stays known; a key belongs to one account or one user.

use serde_json::{Value, json};

use super::registry::{commit, look};
use super::{Decision, refuse};
use crate::change::NewWorker;
use crate::command::{Answer, Refusal};
use crate::name::Name;
use crate::record::{Body, Kind, Record, hash_name};
use crate::role::Role;
use crate::step::Step;
use crate::view::{View, Writes};
use crate::worker::{Drain, WorkerAccount, WorkerKey};

pub(super) fn create<V: View>(view: &mut V, step: &Step, new: &NewWorker) -> Decision<V::Error> {
    let mut record = look(view, Kind::Worker, new.name.as_str())?;
    // A name whose account was revoked can be used again; the old key stays a revoked one.
    if record.worker().is_some_and(|account| account.revoked_at.is_none()) {
        return refuse(Refusal::Taken(Kind::Worker, new.name.to_string()));
    }
    let mut queues = new.queues.clone();
    queues.sort_unstable();
    queues.dedup();
    let account = WorkerAccount {
        name: new.name.clone(),
        id: new.id,
        role: new.role,
        may_submit: new.may_submit,
        queues,
        key: new.key.clone(),
        description: new.description.clone(),
        keyed_at: step.at,
        created_by: step.actor.name(),
        created_at: step.at,
        revoked_at: None,
    };
    let mut writes = Writes::default();
    if let Some(refusal) = own_key(view, &account, &mut writes)? {
        return refuse(refusal);
    }
    let mut change = json!({"queues": account.queues, "key": told(&account.key)});
    if account.role != Role::Worker {
        change["role"] = json!(account.role);
    }
    if account.may_submit {
        change["maySubmit"] = json!(true);
    }
    record.body = Some(Body::Worker(Box::new(account)));
    commit(writes, step, record, &change)
}

pub(super) fn rotate<V: View>(view: &mut V, step: &Step, name: &Name, key: &WorkerKey) -> Decision<V::Error> {
    let (mut record, mut account) = match working(view, name)? {
        Ok(found) => found,
        Err(refusal) => return refuse(refusal),
    };
    let before = account.key.shown();
    account.key = key.clone();
    account.keyed_at = step.at;
    let mut writes = Writes::default();
    if let Some(refusal) = own_key(view, &account, &mut writes)? {
        return refuse(refusal);
    }
    let change = json!({"key": told(&account.key), "insteadOf": before});
    record.body = Some(Body::Worker(account));
    commit(writes, step, record, &change)
}

/// A worker that is drained stays drained by whoever asked first.
pub(super) fn drain<V: View>(view: &mut V, step: &Step, name: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::Drain, name)?;
    if record.body.is_some() {
        return Ok((Writes::default(), Answer::Record { record: Box::new(record), repeated: true }));
    }
    record.body = Some(Body::Drain(Drain { by: step.actor.name(), at: step.at }));
    commit(Writes::default(), step, record, &json!({"draining": true}))
}

/// One that is not drained takes work anyway.
pub(super) fn resume<V: View>(view: &mut V, step: &Step, name: &str) -> Decision<V::Error> {
    let mut record = look(view, Kind::Drain, name)?;
    if record.body.take().is_none() {
        return Ok((Writes::default(), Answer::Record { record: Box::new(record), repeated: true }));
    }
    commit(Writes::default(), step, record, &json!({"draining": false}))
}

pub(super) fn revoke<V: View>(view: &mut V, step: &Step, name: &Name) -> Decision<V::Error> {
    let (mut record, mut account) = match working(view, name)? {
        Ok(found) => found,
        Err(refusal) => return refuse(refusal),
    };
    account.revoked_at = Some(step.at);
    let change = json!({"revoked": true, "key": told(&account.key)});
    record.body = Some(Body::Worker(account));
    commit(Writes::default(), step, record, &change)
}

/// An account whose key works.
#[expect(clippy::type_complexity, reason = "a look that can fail, of what may not be there")]
fn working<V: View>(view: &mut V, name: &Name) -> Result<Result<(Record, Box<WorkerAccount>), Refusal>, V::Error> {
    let record = look(view, Kind::Worker, name.as_str())?;
    let account = record.worker().filter(|account| account.revoked_at.is_none()).cloned();
    Ok(match account {
        Some(account) => Ok((record, Box::new(account))),
        None => Err(Refusal::Missing(Kind::Worker, name.to_string())),
    })
}

/// Writes down whose the key of an account is; a reason why not, if somebody has it or had it.
fn own_key<V: View>(view: &mut V, account: &WorkerAccount, writes: &mut Writes) -> Result<Option<Refusal>, V::Error> {
    let mut owner = look(view, Kind::Key, &hash_name(account.key.hash()))?;
    if owner.body.is_some() {
        return Ok(Some(Refusal::Taken(Kind::Key, account.key.shown())));
    }
    owner.body = Some(Body::Key(account.owner()));
    writes.put_record(owner);
    Ok(None)
}

fn told(key: &WorkerKey) -> Value {
    match key {
        WorkerKey::Secret { prefix, .. } => json!({"prefix": prefix}),
        WorkerKey::Public(_) => json!({"fingerprint": key.shown()}),
    }
}
