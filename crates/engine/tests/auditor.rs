//! The auditor over memory adapters: it writes down what happened, once, and tells it outside, whatever is lost in between.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_engine::{AuditFilter, Auditor, Config};
use runvoy_model::event::EventType;
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_model::witness::Witness;
use runvoy_ports::clock::Clock;
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use runvoy_ports::trail::{AuditTrail as _, WitnessError, Witnesses};

use self::stage::{Stage, caller, command};

/// Witnesses who can be made to hear nothing.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<Witness>>,
    deaf: AtomicBool,
    /// They hear, and nobody hears that they did.
    mute: AtomicBool,
}

impl Heard {
    fn numbers(&self) -> Vec<u64> {
        self.lines.lock().iter().map(|witness| witness.number).collect()
    }
}

#[async_trait]
impl Witnesses for Heard {
    async fn last(&self) -> Result<Option<Witness>, WitnessError> {
        Ok(self.lines.lock().last().cloned())
    }

    async fn tell(&self, witnesses: Vec<Witness>) -> Result<(), WitnessError> {
        if self.deaf.load(Ordering::Relaxed) {
            return Err(WitnessError { message: "nobody hears".into(), source: None });
        }
        self.lines.lock().extend(witnesses);
        if self.mute.load(Ordering::Relaxed) {
            return Err(WitnessError { message: "the answer was lost".into(), source: None });
        }
        Ok(())
    }
}

fn audited(stage: &Stage) -> (Auditor, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    (Auditor::new(Arc::clone(&stage.engine), Arc::clone(&heard) as _), heard)
}

async fn checkpoints(stage: &Stage) -> usize {
    let query = EventQuery { kind: Some(EventType::AuditCheckpoint), limit: 1_000, ..EventQuery::default() };
    stage.store.events(query).await.expect("events").len()
}

#[tokio::test]
async fn a_server_at_rest_writes_no_checkpoint() {
    let stage = Stage::new(Config::default());
    let (auditor, heard) = audited(&stage);
    assert!(!auditor.checkpoint().await.expect("nothing"), "nothing ever happened");
    stage.run(command("true")).await;
    assert!(auditor.checkpoint().await.expect("a checkpoint"));
    for _ in 0..5 {
        assert!(!auditor.checkpoint().await.expect("nothing"), "only the checkpoint itself is new");
    }
    assert_eq!((checkpoints(&stage).await, heard.numbers()), (1, vec![1]));
    stage.run(command("true")).await;
    assert!(auditor.checkpoint().await.expect("a checkpoint"));
    assert_eq!(heard.numbers(), [1, 2]);
    let verdict = stage.store.verify().await.expect("a verdict");
    assert!(verdict.is_whole(), "{verdict:?}");
    assert_eq!(verdict.checkpoint_at, Some(heard.lines.lock()[1].time));
}

#[tokio::test]
async fn after_a_restart_the_tree_goes_on_where_it_was() {
    let mut stage = Stage::new(Config::default());
    let heard = Arc::new(Heard::default());
    for round in 1..=6 {
        for _ in 0..round {
            stage.run(command("true")).await;
        }
        let auditor = Auditor::new(Arc::clone(&stage.engine), Arc::clone(&heard) as _);
        assert!(auditor.checkpoint().await.expect("a checkpoint"));
        let idle = Auditor::new(Arc::clone(&stage.engine), Arc::clone(&heard) as _);
        assert!(!idle.checkpoint().await.expect("nothing"), "a restart alone is nothing new");
        stage.restart(round);
    }
    assert_eq!(heard.numbers(), [1, 2, 3, 4, 5, 6]);
    assert!(stage.store.verify().await.expect("a verdict").is_whole(), "a tree from the beginning has the same roots");
}

#[tokio::test]
async fn what_could_not_be_told_is_told_later_and_once() {
    let stage = Stage::new(Config::default());
    let (auditor, heard) = audited(&stage);
    heard.deaf.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        stage.run(command("true")).await;
        auditor.checkpoint().await.expect_err("nobody hears");
    }
    assert_eq!((checkpoints(&stage).await, heard.numbers()), (3, vec![]), "written all the same");
    heard.deaf.store(false, Ordering::Relaxed);
    assert!(!auditor.checkpoint().await.expect("nothing new"));
    assert_eq!(heard.numbers(), [1, 2, 3]);
    // Somebody took the last line away: the next start tells it again.
    heard.lines.lock().pop();
    let again = Auditor::new(Arc::clone(&stage.engine), Arc::clone(&heard) as _);
    again.catch_up().await.expect("told");
    again.catch_up().await.expect("nothing to tell");
    assert_eq!(heard.numbers(), [1, 2, 3]);
}

#[tokio::test]
async fn checkpoints_that_cannot_be_told_are_one_incident_until_they_can() {
    let stage = Stage::new(Config::default());
    let (auditor, heard) = audited(&stage);
    let incident =
        async || stage.store.records(Kind::Incident).await.expect("records").first().and_then(|record| record.incident().cloned());
    auditor.turn().await;
    assert_eq!(incident().await, None);
    heard.deaf.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        stage.run(command("true")).await;
        stage.clock.pass(60_000);
        auditor.turn().await;
    }
    let begun = incident().await.expect("an incident");
    assert!(begun.is_open() && begun.message.contains("nobody hears"), "{begun:?}");
    heard.deaf.store(false, Ordering::Relaxed);
    // Another start finds it as it was left.
    let again = Auditor::new(Arc::clone(&stage.engine), Arc::clone(&heard) as _);
    again.turn().await;
    let over = incident().await.expect("an incident");
    assert_eq!((over.began_at, over.over.map(|over| over.why)), (begun.began_at, Some("it works again".into())));
}

#[tokio::test]
async fn what_was_told_and_not_answered_is_told_once() {
    let stage = Stage::new(Config::default());
    let (auditor, heard) = audited(&stage);
    stage.run(command("true")).await;
    assert!(auditor.checkpoint().await.expect("a checkpoint"));
    for round in 2..=4 {
        heard.mute.store(true, Ordering::Relaxed);
        stage.run(command("true")).await;
        auditor.checkpoint().await.expect_err("the answer was lost");
        heard.mute.store(false, Ordering::Relaxed);
        auditor.catch_up().await.expect("nothing to tell");
        assert_eq!(heard.numbers(), (1..=round).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn the_trail_is_read_in_pages_whatever_is_looked_for() {
    let stage = Stage::new(Config { shares_uid: false, ..Config::default() });
    let (ada, admin) = (stage.admitted("ada@example.com", Role::Admin).await, stage.admitted("root@example.com", Role::Admin).await);
    let rare = stage.engine.run(&admin, &command("true")).await.expect("taken").id;
    for _ in 0..5_600 {
        stage.engine.run(&ada, &command("true")).await.expect("taken");
    }
    let filter = AuditFilter { user: Some("root@example.com".into()), limit: 10, ..AuditFilter::default() };
    let first = stage.engine.audit(&admin, &filter).await.expect("a page");
    assert_eq!(first.events.len(), 0, "it lies further back than one call looks");
    let second = stage.engine.audit(&admin, &AuditFilter { after: first.next, ..filter.clone() }).await.expect("a page");
    assert_eq!(second.events.iter().map(|stored| stored.event.entity.id.clone()).collect::<Vec<_>>(), [rare.to_string()]);
    assert_eq!(second.next, None);
    let refused = stage.engine.audit(&caller("ada@example.com", Role::Operator), &filter).await;
    assert!(refused.is_err(), "only admins read the trail");
    // A past as long as this is written down in steps.
    let (auditor, heard) = audited(&stage);
    assert!(auditor.checkpoint().await.expect("checkpoints"));
    assert_eq!(heard.numbers(), [1, 2]);
    assert!(!auditor.checkpoint().await.expect("nothing"));
    assert!(stage.store.verify().await.expect("a verdict").is_whole());
}

/// A clock that has something done, once, when it is next asked.
struct Interrupted {
    clock: Arc<dyn Clock>,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for Interrupted {
    fn now(&self) -> UnixMs {
        let meanwhile = self.meanwhile.lock().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

#[tokio::test]
async fn of_two_servers_that_do_not_know_of_each_other_one_writes_the_checkpoint() {
    let stage = Arc::new(Stage::new(Config::default()));
    let heard = Arc::new(Heard::default());
    let clock = Arc::new(Interrupted { clock: Arc::clone(&stage.clock) as _, meanwhile: Mutex::default() });
    let slow = Auditor::new(stage.beside(2, &[], |ports| ports.clock = Arc::clone(&clock) as _), Arc::clone(&heard) as _);
    let fast = Arc::new(Auditor::new(stage.beside(3, &[], |_| {}), Arc::clone(&heard) as _));
    for round in 1..=3 {
        stage.run(command("true")).await;
        let (other, stage_there) = (Arc::clone(&fast), Arc::clone(&stage));
        // The slow one has read the log and is about to write when the fast one covers more.
        *clock.meanwhile.lock() = Some(Box::new(move || {
            let there = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    stage_there.run(command("true")).await;
                    assert!(other.checkpoint().await.expect("a checkpoint"));
                });
            });
            there.join().expect("no panic");
        }));
        slow.checkpoint().await.expect("it is answered");
        assert!(clock.meanwhile.lock().is_none(), "it was interrupted");
        assert_eq!(checkpoints(&stage).await, round, "one of the two wrote");
        let verdict = stage.store.verify().await.expect("a verdict");
        assert!(verdict.is_whole(), "{verdict:?}");
    }
    stage.run(command("true")).await;
    assert!(slow.checkpoint().await.expect("a checkpoint"), "it knows of the others by now");
    assert_eq!(heard.numbers(), [1, 2, 3, 4]);
    assert!(stage.store.verify().await.expect("a verdict").is_whole());
}
