//! Who waits for work: what one submit costs, that nothing is missed, and that what a queue holds back is not asked for without end.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runvoy_engine::{Config, Engine, Holder, LeaseAsk, Line, LineKey, RunRequest};
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::spec::Needs;
use runvoy_ports::lease::LeaseError;
use stage::{Stage, worker};
use tokio::task::JoinSet;

fn queue() -> Name {
    Name::new("default").expect("a name")
}

fn line(engine: &Engine) -> Line {
    engine.stand_in_line(LineKey { queues: vec![queue()], serves: vec![Needs::Process], labels: Default::default() })
}

async fn take(engine: &Engine, max: usize) -> Vec<Execution> {
    let worker = worker(2, false);
    let holder = Holder::trusted(worker.id);
    let ask = LeaseAsk { worker, queues: vec![queue()], max, ttl_ms: 1_000, begin: false, lost_after_ms: None };
    engine.lease(&holder, ask).await.expect("the store answers")
}

/// Waits for one execution, as a worker with one place does; counts how often it asked.
async fn one(engine: Arc<Engine>, asked: Arc<AtomicUsize>) -> Execution {
    let (line, mut empty_handed) = (line(&engine), false);
    loop {
        let _turn = engine.wait_for_work(&line, empty_handed).await;
        asked.fetch_add(1, Ordering::Relaxed);
        if let Some(execution) = take(&engine, 1).await.pop() {
            line.pass_on();
            return execution;
        }
        empty_handed = true;
    }
}

fn command() -> RunRequest {
    RunRequest { command: "true".into(), ..RunRequest::default() }
}

/// Nobody finds anything by looking: only by being told.
fn told_only() -> Config {
    Config { poll: Duration::from_secs(3600), shares_uid: false, ..Config::default() }
}

#[tokio::test]
async fn one_submit_wakes_one_of_a_thousand_and_each_gets_one() {
    const WAITERS: usize = 1_000;
    let stage = Stage::new(told_only());
    let asked = Arc::new(AtomicUsize::new(0));
    let mut waiting = JoinSet::new();
    for _ in 0..WAITERS {
        waiting.spawn(one(Arc::clone(&stage.engine), Arc::clone(&asked)));
    }
    tokio::task::yield_now().await;
    let first = stage.run(command()).await;
    assert_eq!(waiting.join_next().await.expect("one").expect("no panic").id, first.id);
    let so_far = asked.load(Ordering::Relaxed);
    assert!(so_far <= 3, "{so_far} asked for one execution");
    for _ in 1..WAITERS {
        stage.run(command()).await;
    }
    let mut got = 1;
    while waiting.join_next().await.is_some() {
        got += 1;
    }
    assert_eq!(got, WAITERS);
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked <= 4 * WAITERS, "{asked} asked for {WAITERS}");
}

#[tokio::test]
async fn a_wake_up_that_nobody_uses_goes_to_the_next() {
    let stage = Stage::new(told_only());
    let (gone, asked) = (line(&stage.engine), Arc::new(AtomicUsize::new(0)));
    let waiting = tokio::spawn(one(Arc::clone(&stage.engine), asked));
    {
        let mut leaving = std::pin::pin!(stage.engine.wait_for_work(&gone, false));
        // It waits, is woken, and is dropped before it could do anything about it.
        assert!(tokio::time::timeout(Duration::from_millis(20), leaving.as_mut()).await.is_err());
        stage.run(command()).await;
    }
    drop(gone);
    let taken = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(taken.is_ok(), "it was missed");
}

#[tokio::test(start_paused = true)]
async fn what_a_queue_holds_back_is_asked_for_once_a_wait() {
    let stage = Stage::new(Config { poll: Duration::from_secs(1), shares_uid: false, ..Config::default() });
    let labels = [("gpu".to_owned(), "yes".to_owned())].into();
    stage.run(RunRequest { worker_labels: labels, ..command() }).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let waiting = tokio::spawn(one(Arc::clone(&stage.engine), Arc::clone(&asked)));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = asked.load(Ordering::Relaxed);
    assert!((2..=12).contains(&asked), "{asked} in ten seconds");
    waiting.abort();
}

/// A lease that was not begun has the number of the attempt that the next worker begins.
#[tokio::test]
async fn a_lease_that_was_never_begun_takes_nothing_from_the_attempt() {
    let stage = Stage::new(Config { concurrency: 0, ..told_only() });
    stage.run(command()).await;
    let first = stage::fence(&take(&stage.engine, 1).await.pop().expect("it can be leased"));
    let nothing = |answer: Result<bool, LeaseError>| matches!(answer, Err(LeaseError::Lost(_)));
    assert!(nothing(stage.engine.is_late(first).await), "before it is begun");
    stage.engine.give_back(&Holder::trusted(worker(2, false).id), first).await.expect("handed back");
    assert!(nothing(stage.engine.is_late(first).await), "while it is nobody's");
    let second = take(&stage.engine, 1).await.pop().expect("it can be leased again");
    assert!(nothing(stage.engine.is_late(first).await), "while another has it");
    let second = stage.engine.begin(&Holder::trusted(worker(2, false).id), stage::fence(&second)).await.expect("begun");
    assert!(nothing(stage.engine.is_late(first).await), "while another runs it");
    assert!(!stage.engine.is_late(stage::fence(&second)).await.expect("its own"), "the one that runs may speak");
}
