//! Stores as earlier versions wrote them. They never change: every later version must be able to read them, bring them up to date and go on.

use std::path::{Path, PathBuf};

use runvoy_model::chain::ChainHead;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewKey, NewSecret, NewUser};
use runvoy_model::command::{Answer, Command, LeaseRequest, LeaseTo, OpenJob, Submit, SubmitKey};
use runvoy_model::id::{ExecutionId, JobId, StepId};
use runvoy_model::incident::{IncidentKind, name_for};
use runvoy_model::job::{Counts as JobCounts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::record::{Body, Kind, ONLY, Record, hash_name};
use runvoy_model::redrive::{Fate, Letter, Redrive};
use runvoy_model::retry::Category;
use runvoy_model::role::Role;
use runvoy_model::secret::Sealed;
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::user::User;
use runvoy_ports::job::{JobQuery, JobStore};
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};
use runvoy_sqlite::{KNOWN_VERSION, SqliteStore, compare_state, verify};
use serde_json::json;
use tempfile::TempDir;

use crate::batch::{read, spoil};
use crate::fixture::{START, bytes, cycle, end_of, lease_to, open, options, spec, step, submit};
use crate::invariant;

pub fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store_v{version}.sqlite"))
}

pub fn copy(version: u32) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    std::fs::copy(golden(version), &path).expect("the golden store");
    (directory, path)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A key without the key.
fn key(number: u8, prefix: &str) -> NewKey {
    NewKey { hash: [number; 32], prefix: prefix.into(), name: None, expires_at: None }
}

/// The first admin, with key 5.
pub fn first_admin() -> Change {
    Change::CreateFirstAdmin(NewUser { email: "admin@localhost".into(), role: Role::Admin, key: key(5, "rv_12345678") })
}

async fn user(store: &SqliteStore, email: &str) -> User {
    let record = store.record(Kind::User, email).await.expect("a read").expect("a record");
    record.user().expect("a user").clone()
}

async fn body(store: &SqliteStore, kind: Kind, name: &str) -> Option<Body> {
    store.record(kind, name).await.expect("a read").and_then(|record| record.body)
}

/// What both versions hold of executions, and that it goes on.
async fn check_executions(store: &SqliteStore, events: usize) {
    let all = store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list");
    let statuses: Vec<_> = all.iter().map(|execution| execution.status).collect();
    assert_eq!(statuses, [Status::Running, Status::Pending, Status::Succeeded, Status::Pending]);
    assert_eq!(all[2].spec.command, "make deploy");
    assert_eq!(store.locks().await.expect("locks")[0].lock.name.as_str(), "infra-prod");
    assert_eq!(store.events(EventQuery { limit: 100, ..EventQuery::default() }).await.expect("events").len(), events);
    assert!(store.next_ready(&[name("default")], &[Needs::Process]).await.expect("a time").is_some());
    let repeat = store.submit(step(), golden_submit(&all[3].id)).await.expect("known by its key");
    assert_eq!((repeat.0.id, repeat.1), (all[3].id, true));
    cycle(store, "true").await.expect("it goes on");
}

fn golden_submit(id: &ExecutionId) -> Submit {
    let key = SubmitKey { user: "ana@example.com".into(), key: "k1".into(), fingerprint: [4; 32] };
    let mut asked = Submit { id: *id, key: Some(key), ..submit("terraform apply") };
    asked.spec.lock = Some(name("infra-prod"));
    asked.spec.lock_wait_ms = Some(60_000);
    asked
}

#[tokio::test]
async fn a_store_of_version_1_is_read_and_goes_on() {
    let (_directory, path) = copy(1);
    assert_eq!(read(&path, "PRAGMA user_version"), 1);
    let store = open(&path);
    assert_eq!(read(&path, "PRAGMA user_version"), i64::from(KNOWN_VERSION));
    assert_eq!(invariant::check(&store, &options().audit_key).await.len(), 4);
    let admin = user(&store, "admin@localhost").await;
    assert_eq!((admin.role, admin.keys[0].hash, admin.keys[0].prefix.as_str()), (Role::Admin, [5; 32], "rv_12345678"));
    assert!(admin.has_key(UnixMs(START)));
    check_executions(&store, 11).await;
    invariant::check(&store, &options().audit_key).await;
}

/// Version 1 could hold more than its golden store does: several users, some revoked, keys that expire, uses of keys.
const MORE_OF_VERSION_1: &str = "
    INSERT INTO users VALUES ('zoe@example.com', 'admin', 1000, 0), ('bob@example.com', 'developer', 2000, 0),
                             ('eve@example.com', 'admin', 500, 1), ('o''neil@example.com', 'viewer', 4000, 0);
    INSERT INTO keys VALUES (x'0101010101010101010101010101010101010101010101010101010101010101', 'rv_zoe', 'zoe@example.com', 1000, 0, NULL, 60000),
                            (x'0202020202020202020202020202020202020202020202020202020202020202', 'rv_bob1', 'bob@example.com', 2000, 1, NULL, NULL),
                            (x'0303030303030303030303030303030303030303030303030303030303030303', 'rv_bob2', 'bob@example.com', 3000, 0, 9000, 120000),
                            (x'abababababababababababababababababababababababababababababababab', 'rv_eve', 'eve@example.com', 500, 1, NULL, NULL);";

/// What an older version wrote is counted and not called intact; what is written afterwards is
/// compared.
#[tokio::test]
async fn what_older_versions_wrote_is_told_as_unverifiable() {
    for version in 1..=4 {
        let (_directory, path) = copy(version);
        let store = open(&path);
        let before = store.counts().await.expect("counts").executions;
        for _ in 0..2 {
            store.submit(step(), submit("true")).await.expect("taken");
        }
        store.close().await.expect("a clean end");
        let opened_jobs = u64::try_from(read(&path, "SELECT count(*) FROM jobs WHERE status <> 0")).expect("a count");
        let found = compare_state(&path).expect("it can be read");
        assert_eq!(found.unverifiable, before + opened_jobs, "version {version}");
        // Of a record without a digest no event says that it is the server's.
        let is_of_work = |entity: &str| entity.starts_with("TASK:") || entity.starts_with("JOB:");
        assert!(!found.first.is_some_and(|first| is_of_work(&first.entity)), "version {version}");
        let verdict = verify(&path, &options().audit_key, None).expect("it can be read");
        assert_eq!(verdict.unverifiable, found.unverifiable, "version {version}");
        assert!(!verdict.first_bad.is_some_and(|bad| is_of_work(&bad.entity)), "version {version}");
        // No digest may be missing of what came after the first that has one.
        let last = "UPDATE events SET properties = json_remove(properties, '$.body') WHERE seq = (SELECT max(seq) FROM events)";
        assert_eq!(rusqlite::Connection::open(&path).expect("it opens").execute(last, []).expect("changed"), 1);
        let first = compare_state(&path).expect("it can be read").first.expect("it is named");
        assert!(first.field == "spec" && first.message.contains("no digest"), "version {version}: {first:?}");
    }
}

#[tokio::test]
async fn every_user_and_key_of_version_1_is_there_afterwards() {
    let (_directory, path) = copy(1);
    spoil(&path, MORE_OF_VERSION_1);
    let store = open(&path);
    invariant::check(&store, &options().audit_key).await;
    let users: Vec<_> = store.records(Kind::User).await.expect("users").into_iter().map(|record| (record.name, record.version)).collect();
    let emails = ["admin@localhost", "bob@example.com", "eve@example.com", "o'neil@example.com", "zoe@example.com"];
    assert_eq!(users, emails.map(|email| (email.to_owned(), 1)));
    let bob = user(&store, "bob@example.com").await;
    assert_eq!((bob.role, bob.created_at, bob.revoked_at), (Role::Developer, UnixMs(2000), None));
    let works = |at| bob.keys.iter().map(|key| (key.prefix.as_str(), key.works(UnixMs(at)))).collect::<Vec<_>>();
    assert_eq!(works(8999), [("rv_bob1", false), ("rv_bob2", true)], "oldest first");
    assert_eq!(works(9000), [("rv_bob1", false), ("rv_bob2", false)]);
    let eve = user(&store, "eve@example.com").await;
    assert!(eve.revoked_at.is_some() && !eve.has_key(UnixMs(START)));
    assert!(user(&store, "o'neil@example.com").await.keys.is_empty());
    assert_eq!(body(&store, Kind::Key, &hash_name(&[0xab; 32])).await, Some(Body::Key("eve@example.com".into())));
    // In the order of their making, and without those who were revoked.
    let admins = Body::Admins(vec!["zoe@example.com".into(), "admin@localhost".into()]);
    assert_eq!(body(&store, Kind::Admins, ONLY).await, Some(admins));
    let uses = store.key_uses(&[[1; 32], [2; 32], [3; 32]]).await.expect("uses");
    assert_eq!(uses, [Some(UnixMs(60_000)), None, Some(UnixMs(120_000))]);
    // They change like those that were made today.
    store.change(step(), Change::RevokeUser("zoe@example.com".into()), None).await.expect("another admin is left");
    let last = store.change(step(), Change::RevokeUser("admin@localhost".into()), None).await;
    assert!(last.is_err(), "{last:?}");
    store.change(step(), Change::AddKey("bob@example.com".into(), key(9, "rv_new")), None).await.expect("a key");
    let again = Change::InviteUser(Invitation { email: "eve@example.com".into(), role: Role::Viewer, by: InvitedBy::Key(key(10, "rv_e")) });
    store.change(step(), again, None).await.expect("whoever was revoked can come back");
    invariant::check(&store, &options().audit_key).await;
}

#[tokio::test]
async fn a_store_of_version_1_without_users_can_still_have_its_first_admin() {
    let (_directory, path) = copy(1);
    spoil(&path, "DELETE FROM users; DELETE FROM keys;");
    let store = open(&path);
    assert_eq!(body(&store, Kind::Admins, ONLY).await, None);
    store.change(step(), first_admin(), None).await.expect("the first admin of an empty store");
}

#[tokio::test]
async fn a_step_of_version_1_is_still_answered_as_before() {
    let (_directory, path) = copy(1);
    let conn = rusqlite::Connection::open(&path).expect("a connection");
    let sql = "SELECT id FROM receipts WHERE body LIKE '%Submitted%' ORDER BY id LIMIT 1";
    let id: [u8; 16] = conn.query_row(sql, [], |row| row.get(0)).expect("a receipt");
    drop(conn);
    let store = open(&path);
    let again = Step { id: StepId::from_bytes(id), ..step() };
    let answer = store.apply(again, Command::Submit(submit("another"))).await.expect("an answer");
    let Answer::Submitted { execution, repeated: true } = answer else { panic!("{answer:?}") };
    assert_eq!(execution.spec.command, "terraform apply");
}

#[tokio::test]
async fn a_store_of_version_2_is_read_and_goes_on() {
    let (_directory, path) = copy(2);
    assert_eq!(read(&path, "PRAGMA user_version"), 2);
    let store = open(&path);
    assert_eq!(invariant::check(&store, &options().audit_key).await.len(), 4);
    let admin = user(&store, "admin@localhost").await;
    assert!(admin.role == Role::Admin && admin.has_key(UnixMs(START)));
    let bob = user(&store, "bob@example.com").await;
    assert_eq!((bob.role, bob.keys.len(), bob.keys[0].revoked_at.is_some()), (Role::Developer, 2, true));
    assert!(user(&store, "ida@example.com").await.claim.is_some());
    assert_eq!(body(&store, Kind::Admins, ONLY).await, Some(Body::Admins(vec!["admin@localhost".into()])));
    assert_eq!(store.key_uses(&[[5; 32]]).await.expect("uses")[0], Some(UnixMs(START - START.rem_euclid(60_000))));
    let Some(Body::DefaultImage(image)) = body(&store, Kind::DefaultImage, ONLY).await else { panic!("a default image") };
    let image = store.record(Kind::Image, &image).await.expect("a read").expect("an image");
    assert_eq!(image.image().expect("an image").image, "alpine:3.20");
    let secret = store.record(Kind::Secret, "db").await.expect("a read").expect("a secret");
    assert_eq!(secret.secret().expect("a secret").sealed, Sealed { key_id: "k1".into(), data: "c2VhbGVk".into() });
    assert!(store.record(Kind::Secret, "old").await.expect("a read").is_none());
    let playbook = store.record(Kind::Playbook, "deploy").await.expect("a read").expect("a playbook");
    assert_eq!(playbook.playbook().expect("a playbook").version, 2);
    assert_eq!(store.records(Kind::PlaybookVersion).await.expect("versions").len(), 2);
    assert_eq!(store.records(Kind::Group).await.expect("groups").iter().filter_map(Record::group).count(), 1);
    assert_eq!(store.records(Kind::Rule).await.expect("rules").iter().filter_map(Record::rule).count(), 1);
    assert_eq!(body(&store, Kind::Ledger, ONLY).await, Some(Body::Ledger(1)));
    check_executions(&store, 27).await;
    let (again, repeated) = store.change(step(), secret_of("db"), keyed()).await.expect("known by its key");
    assert_eq!((again.name.as_str(), repeated), ("db", true));
    let anew = store.change(step(), secret_of("old"), None).await.expect("the name is free").0;
    assert_eq!(anew.chain.count, 3, "its chain goes on");
    invariant::check(&store, &options().audit_key).await;
}

/// A job whose first task is done, whose second runs, whose third waits for both and whose fourth failed; and one that was never opened.
#[tokio::test]
async fn a_store_of_version_3_is_read_and_goes_on() {
    let (_directory, path) = copy(3);
    assert_eq!(read(&path, "PRAGMA user_version"), 3);
    let store = open(&path);
    invariant::check(&store, &options().audit_key).await;
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    let jobs = store.jobs(query).await.expect("jobs");
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    let counts = JobCounts { total: 5, waiting: 1, ready: 1, active: 1, completed: 1, failed: 1, ..JobCounts::default() };
    assert_eq!((job.status, job.counts, job.concurrency), (JobStatus::Running, counts, Some(1)));
    let nodes = store.nodes(job.id, None, 10).await.expect("tasks");
    let phases: Vec<_> = nodes.iter().map(|node| (node.task.as_str(), node.phase)).collect();
    let [ready, active] = [Phase::Ready, Phase::Active];
    assert_eq!(phases, [("a", Phase::Completed), ("d", Phase::Failed), ("b", active), ("c", Phase::Waiting), ("e", ready)]);
    assert_eq!(nodes[0].output, Some(Payload::Inline(json!({"rows": 3}))));
    assert_eq!((nodes[3].depends_on.len(), nodes[3].open_parents), (2, 1));
    let tasks = store.list(ListQuery { job: Some(job.id), limit: 10, ..ListQuery::default() }).await.expect("a list");
    assert_eq!(tasks.len(), 3);
    let staged = store.staged_before(UnixMs(i64::MAX), 10).await.expect("jobs");
    assert_eq!(staged.len(), 1);
    store.forget_staged(step(), staged[0]).await.expect("forgotten");
    check_dead_letter(&store).await;
    let repeat = store.open_job(step(), golden_job(job.id)).await.expect("known by its key");
    assert_eq!((repeat.0.id, repeat.1), (job.id, true));
    store.resume_job(step(), job.id, None).await.expect("it goes on");
    store.end_attempt(step(), end_of(&tasks[0])).await.expect("b is done");
    while let Ok(leased) = store.lease(step(), lease_one()).await
        && let Some(execution) = leased.first().filter(|execution| execution.spec.task.is_some())
    {
        store.end_attempt(step(), end_of(execution)).await.expect("an end");
    }
    assert_eq!(store.job(job.id).await.expect("a read").expect("a job").status, JobStatus::Completed);
    invariant::check(&store, &options().audit_key).await;
}

/// One execution of queue `flaky` that was given up: it is found, and runs again.
async fn check_dead_letter(store: &SqliteStore) {
    let query = DeadQuery { queue: name("flaky"), owner: None, oldest_first: false, after: None, until: None, limit: 10 };
    let dead = store.dead(query.clone()).await.expect("dead letters");
    let [letter] = &dead[..] else { panic!("{dead:?}") };
    assert_eq!((letter.spec.command.as_str(), letter.attempt, letter.error_category), ("make flaky", 2, Some(Category::Network)));
    let incident = store.record(Kind::Incident, &name_for(IncidentKind::Dead, letter.id)).await.expect("a read");
    assert!(incident.is_some(), "people are told of it");
    let again = ExecutionId::from_bytes(bytes());
    let letters = vec![Letter { execution: letter.id, again }];
    let (letters, _) = store.redrive(step(), Redrive { letters, settled: Vec::new(), key: None }).await.expect("redriven");
    assert_eq!(letters[0].fate, Fate::Execution(again));
    assert!(store.dead(query).await.expect("dead letters").is_empty());
}

/// A mark that was set before there was an index of them.
#[tokio::test]
async fn a_dead_letter_of_version_2_is_found_afterwards() {
    let (_directory, path) = copy(2);
    let mark = "UPDATE executions SET status = 5, state = json_set(state, '$.status', 'FAILED', '$.dead', json('true')) WHERE status = 4";
    spoil(&path, mark);
    let store = open(&path);
    let query = DeadQuery { queue: name("default"), owner: None, oldest_first: true, after: None, until: None, limit: 10 };
    let dead = store.dead(query).await.expect("dead letters");
    assert_eq!(dead.iter().map(|letter| letter.spec.command.as_str()).collect::<Vec<_>>(), ["make deploy"]);
    let queues = store.queues().await.expect("queues");
    assert_eq!(queues.iter().map(|queue| (queue.queue.as_str(), queue.dead)).collect::<Vec<_>>(), [("default", 1)]);
}

fn lease_one() -> LeaseRequest {
    let LeaseTo { lease, worker, ttl_ms } = lease_to();
    LeaseRequest { worker, queues: vec![name("default")], leases: vec![lease], ttl_ms, begin: true, lost_after_ms: None }
}

fn golden_job(id: JobId) -> OpenJob {
    let tasks: [(&str, &[&str]); 5] = [("a", &[]), ("d", &[]), ("b", &[]), ("c", &["a", "b"]), ("e", &["a"])];
    let nodes: Vec<_> = tasks.iter().map(|(task, parents)| golden_task(id, task, parents)).collect();
    let key = SubmitKey { user: "ana@example.com".into(), key: "k3".into(), fingerprint: [4; 32] };
    let mut job = golden_begin(id);
    job.counts.total = 5;
    OpenJob { job, nodes, told: Payload::Inline(json!(["a", "b", "c", "d", "e"])), digest: None, key: Some(key) }
}

fn golden_begin(id: JobId) -> Job {
    Job {
        id,
        name: Some("nightly".into()),
        request_key: None,
        created_by: "ana@example.com".into(),
        created_by_request_id: "r1".into(),
        modified_by_request_id: String::new(),
        created_at: UnixMs(START),
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: Some(1),
        generation: 1,
        opening: Some(u64::MAX - 1),
        resuming: false,
        counts: JobCounts::default(),
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: ChainHead::default(),
        version: 0,
    }
}

fn golden_task(job: JobId, task: &str, depends_on: &[&str]) -> Node {
    Node {
        job,
        task: name(task),
        place: 0,
        batch: u64::MAX - 1,
        name: format!("Task {task}"),
        depends_on: depends_on.iter().map(|parent| name(parent)).collect(),
        input: Some(Payload::Inline(json!({"from": "é"}))),
        spec: spec("make part"),
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

fn keyed() -> Option<SubmitKey> {
    Some(SubmitKey { user: "ana@example.com".into(), key: "k2".into(), fingerprint: [4; 32] })
}

fn secret_of(text: &str) -> Change {
    Change::CreateSecret(Box::new(NewSecret {
        name: name(text),
        key_name: "DB_URL".into(),
        description: Some("the database".into()),
        use_by: vec!["group:ops".into()],
        sealed: Sealed { key_id: "k1".into(), data: "c2VhbGVk".into() },
    }))
}
