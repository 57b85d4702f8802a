//! What was altered, removed or reordered is named, and what is kept is compared with what the events say.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_conformance::harness::{Opener, TransactionalStore};
use runvoy_conformance::history;
use runvoy_memory::MemoryStore;
use runvoy_model::merkle::Tree;
use runvoy_model::record::ONLY;
use runvoy_model::verify::Problem;
use runvoy_model::witness::Witness;
use runvoy_ports::store::{EventQuery, ExecutionStore, StoredEvent};
use runvoy_ports::trail::{AuditTrail, Witnesses};

use super::*;
use crate::event::BucketWitnesses;
use crate::event::trail::{HeadCursor, HeadPage, Heads, RecordPage, Trail};
use crate::fault::Fault;
use crate::item::{Item, Read, item, s};

/// Heads as they were before anybody changed anything, and the records of a store.
struct Kept(Mutex<BTreeMap<Entity, ChainHead>>, MemoryStore);

impl Kept {
    fn of<'e>(events: impl Iterator<Item = &'e Event>, store: &MemoryStore) -> Arc<Self> {
        let chained = events.filter(|event| event.kind.is_chained());
        let heads = chained.map(|event| (event.entity.clone(), ChainHead { count: event.number, mac: event.mac })).collect();
        Arc::new(Self(Mutex::new(heads), store.clone()))
    }
}

#[async_trait]
impl Heads for Kept {
    async fn heads(&self, after: Option<HeadCursor>) -> Result<HeadPage, Fault> {
        // Two to a page.
        let after = after.and_then(|cursor| cursor.after).map(|key| key.text("at").map(str::to_owned)).transpose()?;
        let from: usize = after.map_or(0, |at| at.parse().expect("a number"));
        let all = self.0.lock();
        let page: Vec<_> = all.iter().skip(from).take(2).map(|(entity, head)| Ok((entity.clone(), *head))).collect();
        let next =
            (from + 2 < all.len()).then(|| HeadCursor { table: Table::Records, after: Some(item([("at", s((from + 2).to_string()))])) });
        Ok((page, next))
    }

    async fn head(&self, entity: &Entity) -> Result<Option<ChainHead>, Fault> {
        Ok(self.0.lock().get(entity).copied())
    }

    async fn records(&self, _: Option<HeadCursor>) -> Result<RecordPage, Fault> {
        Ok((self.1.all_records().into_iter().map(Ok).collect(), None))
    }
}

/// A reference store after a random history.
async fn played(seed: u64, steps: usize) -> MemoryStore {
    let store = MemoryStore::new(KEY);
    let own = store.clone();
    let harness = Opener::<dyn TransactionalStore>::new(move || {
        let own = own.clone();
        async move { Arc::new(own) as Arc<dyn TransactionalStore> }
    })
    .await;
    history::agree_with_reference(seed, steps, &MemoryStore::new(KEY), &harness).await;
    store
}

async fn events_of(store: &MemoryStore) -> Vec<StoredEvent> {
    store.events(EventQuery { limit: usize::MAX, ..EventQuery::default() }).await.expect("events")
}

/// The same events, as steps would have left them.
async fn copied(stand: &Stand, events: &[StoredEvent]) -> EventLog {
    for (n, chunk) in events.chunks(7).enumerate() {
        let chunk: Vec<Event> = chunk.iter().map(|stored| stored.event.clone()).collect();
        stand.commit(StepId(id(3, n as u64)), &chunk, &[]).await;
    }
    stand.log()
}

fn trail(stand: &Stand, heads: Arc<Kept>, store: &MemoryStore, witnesses: bool) -> Trail {
    let witnesses = witnesses.then(|| BucketWitnesses::new(&stand.clients, &stand.config, KEY));
    Trail::new(stand.log(), KEY, heads, (Arc::new(store.clone()), Arc::new(store.clone())), witnesses)
}

/// Adds checkpoints to events, as an auditor would.
fn with_checkpoints(events: Vec<StoredEvent>) -> (Vec<StoredEvent>, Vec<Witness>) {
    let (mut all, mut witnesses, mut tree) = (Vec::new(), Vec::new(), Tree::default());
    let mut ledger = Subject::new(EntityType::Ledger, ONLY);
    let mut covered = 0;
    for (n, StoredEvent { event, .. }) in events.into_iter().enumerate() {
        let mut next = vec![event];
        if n % 8 == 7 {
            let checkpoint = serde_json::to_value(tree.checkpoint(covered)).expect("JSON");
            next.insert(0, ledger.event(id(8, n as u64), EventType::AuditCheckpoint, UnixMs(1_000 + n as i64), checkpoint));
        }
        for event in next {
            let place = all.len() as u64 + 1;
            if event.kind.is_chained() {
                tree.append(event.id, &event.mac);
                covered = place;
            }
            witnesses.extend(Witness::of(&event).map(|(witness, _)| witness));
            all.push(StoredEvent { place, event });
        }
    }
    (all, witnesses)
}

async fn row(stand: &Stand, stored: &StoredEvent) -> Item {
    let key = key(stored);
    stand.dynamo.get(Table::Events, key).await.expect("read").expect("a row")
}

fn key(stored: &StoredEvent) -> Item {
    let entity = &stored.event.entity;
    item([("PK", s(format!("{}#{}", entity.kind.as_str(), entity.id))), ("SK", s(format!("PLACE#{:020}", stored.place)))])
}

#[tokio::test]
async fn a_whole_log_is_whole_and_what_is_changed_is_named() {
    let stand = Stand::new().await;
    let store = played(11, 150).await;
    // The history has ledger events of its own; this log has others.
    let mut events = events_of(&store).await;
    events.retain(|stored| stored.event.entity.kind != EntityType::Ledger);
    let (events, witnesses) = with_checkpoints(events);
    assert!(witnesses.len() > 3, "{} events", events.len());
    copied(&stand, &events).await;
    let heads = Kept::of(events.iter().map(|stored| &stored.event), &store);
    let bucket = BucketWitnesses::new(&stand.clients, &stand.config, KEY);
    bucket.tell(witnesses.clone()).await.expect("told");
    let trail = trail(&stand, Arc::clone(&heads), &store, true);
    let chained = events.iter().filter(|stored| stored.event.kind.is_chained()).count() as u64;
    let whole = trail.verify().await.expect("a verdict");
    assert_eq!((whole.first_bad, whole.checked), (None, chained));
    assert_eq!((whole.checkpoint_at, whole.unexported_from), (witnesses.last().map(|last| last.time), None));

    let victim = events.iter().find(|stored| stored.event.kind == EventType::TaskPending).expect("one").clone();
    let kept = row(&stand, &victim).await;
    let mut altered = kept.clone();
    let mut event = victim.event.clone();
    event.properties["queue"] = json!("other");
    altered.insert("event".into(), crate::item::json(&event));
    let bad = async |when: &str| trail.verify().await.expect("a verdict").first_bad.unwrap_or_else(|| panic!("{when} was not noticed"));
    stand.dynamo.put(Table::Events, altered).await.expect("altered");
    let found = bad("an altered event").await;
    assert_eq!((found.problem, found.event_id, found.place), (Problem::Altered, Some(victim.event.id), victim.place));
    let mut broken = kept.clone();
    broken.insert("event".to_owned(), s("{"));
    stand.dynamo.put(Table::Events, broken).await.expect("broken");
    assert_eq!(bad("an unreadable event").await.problem, Problem::Unreadable);
    stand.dynamo.delete(Table::Events, key(&victim)).await.expect("removed");
    let found = bad("a removed event").await;
    assert_eq!((found.problem, found.entity), (Problem::Removed, format!("TASK:{}", victim.event.entity.id)));
    stand.dynamo.put(Table::Events, kept).await.expect("put back");

    // A whole entity with its record.
    let about = victim.event.entity.clone();
    let head = heads.0.lock().remove(&about).expect("its head");
    let found = bad("a whole entity").await;
    let first = events.iter().find(|stored| stored.event.entity == about).expect("its first").place;
    assert_eq!((found.problem, found.place), (Problem::Removed, first));
    heads.0.lock().insert(about, head);

    // A part of the order by place.
    let query = crate::dynamo::Query::of(Table::Events, "PK", s("SEGMENT#000000000000")).limit(1);
    let segment = stand.dynamo.query(query).await.expect("a query").remove(0);
    let of_segment = item([("PK", segment["PK"].clone()), ("SK", segment["SK"].clone())]);
    stand.dynamo.delete(Table::Events, of_segment).await.expect("removed");
    assert_eq!(bad("a segment").await.problem, Problem::Removed);
    stand.dynamo.put(Table::Events, segment).await.expect("put back");
    assert!(trail.verify().await.expect("a verdict").is_whole());
}

#[tokio::test]
async fn exported_checkpoints_are_put_once_and_compared() {
    let stand = Stand::new().await;
    let store = MemoryStore::new(KEY);
    let mut subject = Subject::new(EntityType::User, "ann@x");
    let events = (0..100).map(|n| StoredEvent { place: 0, event: subject.event(id(1, n), EventType::Audit, UnixMs(5), json!({"n": n})) });
    let (events, witnesses) = with_checkpoints(events.collect());
    copied(&stand, &events).await;
    let bucket = BucketWitnesses::new(&stand.clients, &stand.config, KEY);
    assert_eq!(bucket.last().await.expect("none"), None);
    let trail = trail(&stand, Kept::of(events.iter().map(|stored| &stored.event), &store), &store, true);
    assert_eq!(trail.verify().await.expect("a verdict").first_bad.map(|bad| bad.number), Some(1), "none was told");
    for told in 1..witnesses.len() {
        bucket.tell(witnesses[..told].to_vec()).await.expect("told, most of it again");
        assert_eq!(bucket.last().await.expect("the last"), Some(witnesses[told - 1].clone()));
    }
    assert!(trail.verify().await.expect("a verdict").unexported_from.is_none(), "the newest may be about to be told");
    let behind = Witness { number: witnesses.len() as u64 + 5, ..witnesses[1].clone() };
    bucket.tell(vec![behind.clone()]).await.expect("told");
    let bad = trail.verify().await.expect("a verdict").first_bad.expect("a checkpoint that the store does not have");
    assert!(
        bad.message.contains("was exported, and the store does not have it") || bad.message.contains("missing among"),
        "{}",
        bad.message
    );
    let object = format!("checkpoints/{:020}.json", behind.number);
    stand.clients.s3.delete_object().bucket(&stand.config.bucket).key(object).send().await.expect("deleted");
    // Other words under a number that was told change nothing.
    bucket.tell(vec![Witness { leaves: 1, ..witnesses[0].clone() }]).await.expect("heard before");
    assert!(trail.verify().await.expect("a verdict").is_whole());
    let object = format!("checkpoints/{:020}.json", 2);
    stand.clients.s3.put_object().bucket(&stand.config.bucket).key(object).body(b"{}".to_vec().into()).send().await.expect("forged");
    assert_eq!(trail.verify().await.expect("a verdict").first_bad.map(|bad| (bad.number, bad.problem)), Some((2, Problem::Altered)));
}

#[tokio::test]
async fn what_is_kept_is_compared_with_what_the_events_say() {
    let stand = Stand::new().await;
    let store = played(12, 120).await;
    let events = events_of(&store).await;
    copied(&stand, &events).await;
    let heads = Kept::of(events.iter().map(|stored| &stored.event), &store);
    let found = trail(&stand, Arc::clone(&heads), &store, false).compare_state().await.expect("a comparison");
    let expected = store.compare_state().await.expect("a comparison");
    assert_eq!(found.first, None);
    assert_eq!(found.compared, expected.compared);
    assert!(found.compared > 5);
    // The last event that changed an execution is not there.
    let last = events.iter().rfind(|stored| stored.event.kind == EventType::TaskProcessingStarted).expect("one begun");
    stand.dynamo.delete(Table::Events, key(last)).await.expect("removed");
    let found = trail(&stand, heads, &store, false).compare_state().await.expect("a comparison");
    let first = found.first.expect("one that its events do not explain");
    assert_eq!(first.entity, runvoy_model::verify::label(&last.event.entity));
}
