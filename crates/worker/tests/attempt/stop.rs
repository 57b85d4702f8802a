//! A worker that is told to stop while it waits: for work, or for a server that takes nothing of what has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::git::Reach;
use runvoy_model::job::Payload;
use runvoy_model::log::Block;
use runvoy_ports::lease::{LeaseError, Leases, Materials};
use runvoy_ports::runner::Limits;
use runvoy_worker::{Config, Git, Worker};
use tokio::sync::Notify;

use crate::exchange::LARGE_OUTPUT;
use crate::runner::GroupRunner;
use crate::stage::{Stage, Still};

/// Never has work; says when it is asked for some.
#[derive(Default)]
struct Empty {
    asked: Notify,
    closed: Notify,
}

#[async_trait]
impl Leases for Empty {
    async fn wait_for_work(&self) {}

    async fn lease(&self, _: usize) -> Result<Vec<Execution>, LeaseError> {
        self.asked.notify_one();
        self.closed.notified().await;
        Ok(Vec::new())
    }

    async fn materials(&self, _: Fence) -> Result<Materials, LeaseError> {
        unreachable!("nothing runs")
    }

    async fn extend(&self, _: Extend) -> Result<Extended, LeaseError> {
        unreachable!("nothing runs")
    }

    async fn append(&self, _: Fence, _: u64, _: Block) -> Result<u64, LeaseError> {
        unreachable!("nothing runs")
    }

    async fn put_blob(&self, _: Fence, _: Vec<u8>) -> Result<Payload, LeaseError> {
        unreachable!("nothing runs")
    }

    async fn finish(&self, _: EndAttempt) -> Result<Execution, LeaseError> {
        unreachable!("nothing runs")
    }

    fn close(&self) {
        self.closed.notify_one();
    }
}

#[tokio::test]
async fn a_wait_for_work_ends_with_the_worker() {
    let leases = Arc::new(Empty::default());
    let config = Config {
        concurrency: 2,
        lease_ttl: Duration::from_secs(30),
        yields_before: None,
        lost_after: None,
        output_patience: Duration::from_secs(10),
        grace: Duration::from_secs(1),
        home: String::new(),
        host: "test".to_owned(),
        limits: Limits::default(),
        git: Git { reach: Reach::Private, ca_file: None },
        own_key: None,
        memory: runvoy_ports::memory::MemoryBudget::default(),
        disk: runvoy_worker::DiskLimits::default(),
    };
    let runner = GroupRunner { root: "/nowhere".into(), ..GroupRunner::default() };
    let worker = Worker::new(Arc::clone(&leases) as _, Arc::new(runner), Arc::new(Still::default()), config);
    let running = tokio::spawn(Arc::clone(&worker).run());
    leases.asked.notified().await;
    assert!(!worker.is_draining());
    // Without an end of the wait its slots would never come back.
    tokio::time::timeout(Duration::from_secs(60), worker.stop(Duration::MAX)).await.expect("it stops");
    assert!(worker.is_draining() && worker.held().is_empty());
    running.await.expect("it has come back");
}

/// A worker elsewhere that is told to end everything when its command has ended.
fn elsewhere(command: &str) -> Stage {
    let mut stage = Stage::new(command);
    (stage.lost_after, stage.is_stopped) = (Some(Duration::from_secs(600)), true);
    stage
}

#[tokio::test]
async fn an_end_that_is_written_down_keeps_no_worker_that_is_to_end_everything() {
    let mut stage = elsewhere("echo begun");
    stage.extends_before_end = 1_000_000;
    assert!(stage.play_out().await.is_none(), "others tell it");
}

#[tokio::test]
async fn a_worker_inside_the_server_stays_until_the_end_is_recorded() {
    let mut stage = elsewhere("echo begun");
    (stage.lost_after, stage.extends_before_end) = (None, 25);
    stage.play().await.assert_exit(0);
}

#[tokio::test]
async fn output_that_nobody_takes_keeps_no_worker_that_is_to_end_everything_and_its_end_says_so() {
    for held in ["begun", "exit code"] {
        let mut stage = elsewhere("echo begun");
        stage.holds = Some((held, 1_000_000, PathBuf::new()));
        let played = stage.play().await;
        played.assert_exit(0);
        assert!(played.ended.remark.as_ref().is_some_and(|remark| remark.contains("may be missing")), "{held}: {:?}", played.ended);
    }
}

#[tokio::test]
async fn a_result_that_nobody_takes_keeps_no_worker_that_is_to_end_everything() {
    let mut stage = elsewhere(LARGE_OUTPUT).task("{}");
    stage.extends_before_put = 1_000_000;
    let played = stage.play().await;
    assert!(matches!(&played.outcome, Outcome::OutputFailed { message } if message.contains("the worker stopped")), "{:?}", played.outcome);
}
