//! Tasks of jobs: what is left of one ends with its job, also where the job knows no more of it than the execution does.

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::chain::ChainHead;
use runvoy_model::command::{Kill, OpenJob};
use runvoy_model::digest;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::redrive::{Fate, Letter, Redrive};
use runvoy_model::spec::Spec;
use runvoy_model::status::{EndCode, Status};
use runvoy_ports::job::JobStore;
use runvoy_ports::store::ExecutionStore;

use super::stage::{NOW, Server, fresh, large, name, servers, step};
use crate::emulator::Emulator;

fn new_job(id: JobId) -> Job {
    Job {
        id,
        name: None,
        request_key: None,
        created_by: "ann@x".into(),
        created_by_request_id: "r1".into(),
        modified_by_request_id: String::new(),
        created_at: NOW,
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: None,
        generation: 1,
        opening: Some(7),
        resuming: false,
        counts: Counts { total: 1, ..Counts::default() },
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: ChainHead::default(),
        version: 0,
    }
}

fn task(job: JobId, spec: Spec) -> Node {
    Node {
        job,
        task: name("a"),
        place: 0,
        batch: 7,
        name: "a".into(),
        depends_on: Vec::new(),
        input: None,
        spec,
        revision: None,
        phase: Phase::Staged,
        looked: 0,
        open_parents: 0,
        marked: false,
        generation: 0,
        execution: None,
        output: None,
    }
}

/// A job of one large task, and its execution.
async fn open(server: &Server) -> (JobId, ExecutionId) {
    let job = JobId::from_bytes(fresh());
    let node = task(job, large());
    let open = OpenJob {
        job: new_job(job),
        digest: Some(digest::of_tasks(vec![digest::of_task(&node)])),
        nodes: vec![node],
        told: Payload::Inline(serde_json::json!([])),
        key: None,
    };
    server.store.open_job(step(), open).await.expect("opened");
    (job, execution(server, job).await)
}

async fn execution(server: &Server, job: JobId) -> ExecutionId {
    server.store.node(job, "a").await.expect("an answer").expect("a task").execution.expect("released")
}

async fn status(server: &Server, job: JobId) -> JobStatus {
    server.store.job(job).await.expect("an answer").expect("a job").status
}

/// Where what is written once of the task lies.
async fn blob(server: &Server, job: JobId) -> String {
    let (key, entry) = (AttributeValue::S(job.to_string()), AttributeValue::S("node#a".into()));
    let request = server.clients.dynamo.get_item().table_name(format!("{}-jobs", server.config.prefix));
    let found = request.key("job_id", key).key("entry", entry).consistent_read(true).send().await.expect("an answer");
    found.item.expect("it is there")["fixed_blob"].as_s().expect("a key").clone()
}

async fn redrive(server: &Server, id: ExecutionId) -> Fate {
    let letter = Letter { execution: id, again: ExecutionId::from_bytes(fresh()) };
    let redrive = Redrive { letters: vec![letter], settled: Vec::new(), key: None };
    server.store.redrive(step(), redrive).await.expect("an answer").0[0].fate.clone()
}

#[tokio::test]
async fn a_task_whose_spec_is_gone_fails_its_job_and_runs_again_from_there() {
    let [server] = servers(Emulator::ministack()).await;
    let (job, id) = open(&server).await;
    server.lose_spec(id).await;
    let unreadable = server.lease_in_vain().await;
    assert_eq!(unreadable.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id]);
    let given_up = server.store.give_up(step(), id, unreadable[0].1.clone()).await.expect("an answer").expect("given up");
    assert!(given_up.dead);
    assert_eq!(status(&server, job).await, JobStatus::Failed);
    // The task still knows what it was to run.
    assert_eq!(redrive(&server, id).await, Fate::Job(job));
    server.store.advance_job(step(), job).await.expect("an answer");
    let again = server.lease().await;
    assert!(again[0].id != id && again[0].spec.env.contains_key("BIG"));
    assert_eq!(status(&server, job).await, JobStatus::Running);
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_task_of_which_nothing_is_left_fails_its_job_and_never_runs() {
    let [server] = servers(Emulator::ministack()).await;
    let (job, id) = open(&server).await;
    let lost = blob(&server, job).await;
    server.lose_spec(id).await;
    server.lose_blob(&lost).await;
    let unreadable = server.lease_in_vain().await;
    server.store.give_up(step(), id, unreadable[0].1.clone()).await.expect("an answer").expect("given up");
    assert_eq!(status(&server, job).await, JobStatus::Failed);
    assert_eq!(blob(&server, job).await, lost, "for whoever finds it again");
    let fate = redrive(&server, id).await;
    assert!(matches!(&fate, Fate::Dropped(why) if why.contains("submit it again")), "{fate:?}");
    // A resume makes it fail once more, and nobody leases it.
    server.store.resume_job(step(), job, None).await.expect("resumed");
    server.store.advance_job(step(), job).await.expect("an answer");
    let again = server.get(execution(&server, job).await).await;
    assert!(again.id != id && again.end_reason.is_some_and(|reason| reason.code == EndCode::StartFailed));
    assert_eq!(status(&server, job).await, JobStatus::Failed);
    assert!(server.lease().await.is_empty());
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_task_of_which_nothing_is_left_can_be_killed() {
    let [server] = servers(Emulator::ministack()).await;
    let (job, id) = open(&server).await;
    server.lose_spec(id).await;
    server.lose_blob(&blob(&server, job).await).await;
    let killed = server.store.kill(step(), Kill { execution: id, force: false }).await.expect("an answer");
    assert_eq!((killed.status, status(&server, job).await), (Status::Stopped, JobStatus::Failed));
    server.assert_agrees().await;
}
