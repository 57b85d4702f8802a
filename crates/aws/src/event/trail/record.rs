//! Records against the events that wrote them. Records are few beside executions, so all of them are looked at together: before their events are read, and again
//! after that. One that is the same both times was what the events must say.

use std::collections::BTreeMap;

use runvoy_model::fold::{Comparison, Mismatch, RecordCheck};
use runvoy_model::record::{Kind, Record};
use runvoy_ports::store::{StoreError, StoredEvent};

use super::Trail;
use super::state::{TRIES, events_of};
use crate::dynamo::pause;

/// All records by kind and name, and what is wrong with those that cannot be read.
#[derive(Default)]
struct Look {
    records: BTreeMap<(Kind, String), Record>,
    unreadable: Vec<Mismatch>,
}

/// Compares every record.
pub(super) async fn compare(trail: &Trail, found: &mut Comparison) -> Result<(), StoreError> {
    let mut before = look(trail).await?;
    for attempt in 1..=TRIES {
        let events = events(trail, &before).await?;
        let after = look(trail).await?;
        if attempt == TRIES || before.records == after.records {
            found.join(judge(&before, &after, &events));
            return Ok(());
        }
        before = after;
        pause(attempt).await;
    }
    Ok(())
}

async fn look(trail: &Trail) -> Result<Look, StoreError> {
    let (mut look, mut after) = (Look::default(), None);
    loop {
        let (page, next) = trail.heads.records(after).await?;
        for record in page {
            match record {
                Ok(record) => drop(look.records.insert((record.kind, record.name.clone()), record)),
                Err(bad) => look.unreadable.push(bad.into()),
            }
        }
        after = next;
        if after.is_none() {
            return Ok(look);
        }
    }
}

/// The events that wrote records: those of records that have a chain of their own. One that is gone with its chain is missed in the whole log.
async fn events(trail: &Trail, look: &Look) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = Vec::new();
    for record in look.records.values().filter(|record| record.kind.is_bound()) {
        if let Some(entity) = record.entity() {
            events.extend(events_of(trail, entity).await?);
        }
    }
    Ok(events)
}

/// What the events say of the records that were the same in both looks.
fn judge(before: &Look, after: &Look, events: &[StoredEvent]) -> Comparison {
    let (mut check, mut found) = (RecordCheck::default(), Comparison::default());
    events.iter().for_each(|stored| check.event(stored.place, &stored.event));
    for (key, record) in &after.records {
        if before.records.get(key) != Some(record) {
            check.forget(record);
        }
    }
    for (key, record) in &before.records {
        match after.records.get(key) {
            Some(now) if now != record => {}
            _ => found.add(check.record(record).map_err(|bad| Mismatch::from(*bad))),
        }
    }
    for mismatch in &before.unreadable {
        found.add(Err(mismatch.clone()));
    }
    // Claims that nobody answered are removed by the table itself.
    check.forget_gone(Kind::Claim);
    if let Some(bad) = check.finish() {
        found.add(Err(bad.into()));
    }
    found
}

#[cfg(test)]
mod tests {
    use runvoy_memory::MemoryStore;
    use runvoy_model::chain::{AuditKey, ChainHead};
    use runvoy_model::change::{Change, NewKey, NewUser};
    use runvoy_model::id::StepId;
    use runvoy_model::role::Role;
    use runvoy_model::step::{Actor, Audit, Step};
    use runvoy_model::time::UnixMs;
    use runvoy_ports::store::{EventQuery, ExecutionStore as _};

    use super::*;

    fn step(number: u8) -> Step {
        let audit = Audit { action: "test".into(), from: "127.0.0.1".into(), ..Audit::default() };
        let id = StepId::from_bytes([number; 16]);
        Step { id, at: UnixMs(1), actor: Actor::System("test"), request_id: String::new(), audit: Some(audit), authority: None }
    }

    /// What a store with one admin and a role that changed holds, and its events.
    async fn used() -> (Look, Vec<StoredEvent>) {
        let store = MemoryStore::new(AuditKey::new([7; 32]));
        for (number, email) in [(1, "ann@x.org"), (2, "bob@x.org")] {
            let key = NewKey { hash: [number; 32], prefix: "rv_1".into(), name: None, expires_at: None };
            let user = NewUser { email: email.into(), role: Role::Admin, key };
            let change = if number == 1 { Change::CreateFirstAdmin(user) } else { Change::RecoverAdmin(user) };
            store.change(step(number), change, None).await.expect("an admin");
        }
        store.change(step(3), Change::SetRole("bob@x.org".into(), Role::Developer), None).await.expect("a role");
        let records = store.all_records().into_iter().map(|record| ((record.kind, record.name.clone()), record)).collect();
        let events = store.events(EventQuery { limit: 100, ..EventQuery::default() }).await.expect("events");
        (Look { records, unreadable: Vec::new() }, events)
    }

    fn copied(look: &Look) -> Look {
        Look { records: look.records.clone(), unreadable: look.unreadable.clone() }
    }

    #[tokio::test]
    async fn security_15_records_that_another_hand_wrote_or_removed_are_named() {
        let (look, events) = used().await;
        let whole = judge(&look, &look, &events);
        assert!(whole.agrees() && whole.compared > 4, "{whole:?}");
        let (ann, bob) = ((Kind::User, "ann@x.org".to_owned()), (Kind::User, "bob@x.org".to_owned()));
        let changed = |change: &dyn Fn(&mut Look)| {
            let mut forged = copied(&look);
            change(&mut forged);
            let found = judge(&forged, &forged, &events).first.expect("it is found");
            (found.entity, found.message)
        };
        let (entity, message) = changed(&|look| {
            let admin = look.records[&ann].body.clone();
            look.records.get_mut(&bob).expect("bob").body = admin;
        });
        assert!(entity == "USER:bob@x.org" && message.contains("altered"), "{entity}: {message}");
        let (entity, message) = changed(&|look| {
            let eve = Record { name: "eve@x.org".into(), chain: ChainHead::default(), ..look.records[&ann].clone() };
            look.records.insert((Kind::User, "eve@x.org".into()), eve);
        });
        assert!(entity == "USER:eve@x.org" && message.contains("no event wrote it"), "{entity}: {message}");
        let (entity, message) = changed(&|look| drop(look.records.remove(&ann)));
        assert!(entity == "USER:ann@x.org" && message.contains("gone"), "{entity}: {message}");
    }

    #[tokio::test]
    async fn nothing_is_said_of_a_record_that_changed_meanwhile() {
        let (look, mut events) = used().await;
        let bob = (Kind::User, "bob@x.org".to_owned());
        let mut after = copied(&look);
        after.records.get_mut(&bob).expect("bob").version += 1;
        assert!(judge(&look, &after, &events).agrees(), "it changed between the looks");
        let mut before = copied(&look);
        before.records.remove(&bob);
        assert!(judge(&before, &look, &events).agrees(), "it was made between the looks");
        // A claim goes by itself when its time is over.
        let last = events.last_mut().expect("an event");
        runvoy_model::digest::add(&mut last.event.properties, "claim:ab".into(), "cd".into());
        assert!(judge(&look, &look, &events).agrees());
    }
}
