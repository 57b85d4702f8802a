//! Executions whose record cannot be read any more: they hold nobody up, are given up once, by what the record is and not by what a message says,
//! and what is left of them can still be shown, killed and ended.

mod emulator;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use emulator::{Emulator, clients};
use runvoy_aws::{BucketWitnesses, Clients, Config, DynamoStore, Listener, Queues, Wakes, set_up};
use runvoy_conformance::harness::AUDIT_KEY;
use runvoy_model::chain::ChainHead;
use runvoy_model::change::Change;
use runvoy_model::command::{EndAttempt, Fence, Kill, LeaseRequest, OpenJob, Outcome, Submit, Worker};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId, LeaseId, StepId, WorkerId};
use runvoy_model::incident::{IncidentKind, Phase as IncidentPhase};
use runvoy_model::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::playbook::PlaybookBody;
use runvoy_model::record::Kind;
use runvoy_model::redrive::{Fate, Letter, Redrive};
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::status::{EndCode, Status};
use runvoy_model::step::{Actor, Step};
use runvoy_model::time::UnixMs;
use runvoy_model::view::Writes;
use runvoy_ports::clock::Clock;
use runvoy_ports::job::JobStore;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::record::{IncidentQuery, RecordStore};
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};

const NOW: UnixMs = UnixMs(1_800_000_000_000);

struct Still;

impl Clock for Still {
    fn now(&self) -> UnixMs {
        NOW
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// As the server wires them: the queues hear of what the store commits.
struct Hints(Queues);

impl Wakes for Hints {
    fn committed(&self, writes: &Writes) {
        writes.executions.iter().for_each(|execution| self.0.changed(None, execution, NOW));
    }

    fn gave_up(&self, execution: &Execution) {
        self.0.gave_up(execution);
    }
}

struct Server {
    clients: Clients,
    config: Arc<Config>,
    store: Arc<DynamoStore>,
    queues: Queues,
    listener: Listener,
}

static MADE: AtomicU64 = AtomicU64::new(1);

fn fresh() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&NOW.0.to_be_bytes()[2..]);
    // The last bytes are left to the events of a step.
    bytes[6..12].copy_from_slice(&MADE.fetch_add(1, Ordering::Relaxed).to_be_bytes()[2..]);
    bytes
}

fn step() -> Step {
    let id = StepId::from_bytes(fresh());
    Step { id, at: NOW, actor: Actor::User { email: "ann@x".into() }, request_id: id.to_string(), audit: None, authority: None }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// One that is kept apart, in the blob store.
fn large() -> Spec {
    let mut spec = small();
    spec.env.insert("BIG".into(), format!("{}{}", "x".repeat(60 * 1024), MADE.load(Ordering::Relaxed)));
    spec
}

fn small() -> Spec {
    Spec { command: "make".into(), image: "local".into(), ..Spec::lost(name("default"), 3) }
}

fn ended(fence: Fence, outcome: Outcome) -> EndAttempt {
    EndAttempt { duration_ms: 1, ..EndAttempt::of(fence, outcome) }
}

fn fence_of(leased: &[Execution]) -> Fence {
    let lease = leased[0].lease.as_ref().expect("leased");
    Fence { execution: leased[0].id, attempt: lease.attempt, lease: lease.id }
}

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
        phase: Phase::Staged,
        looked: 0,
        open_parents: 0,
        marked: false,
        generation: 0,
        execution: None,
        output: None,
    }
}

/// So many servers of one installation.
async fn servers<const N: usize>(emulator: &'static Emulator) -> [Server; N] {
    let config = Arc::new(Config { give_up_after: Duration::ZERO, ..emulator.config() });
    set_up(&clients(emulator).await, &config).await.expect("an installation");
    let mut all = Vec::new();
    for _ in 0..N {
        let clients = clients(emulator).await;
        let queues = Queues::new(&clients, Arc::clone(&config));
        let store = DynamoStore::new(&clients, Arc::clone(&config), AUDIT_KEY).waking(Arc::new(Hints(queues.clone())));
        let store = Arc::new(store);
        let listener = Listener::new(queues.clone(), Arc::clone(&store) as _, Arc::new(Still), Arc::new(|| {}));
        all.push(Server { clients, config: Arc::clone(&config), store, queues, listener });
    }
    all.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for"))
}

impl Server {
    async fn submit(&self, spec: Spec) -> ExecutionId {
        let id = ExecutionId::from_bytes(fresh());
        let submit = Submit { id, spec, created_by: "ann@x".into(), key: None, lease_to: None };
        self.store.submit(step(), submit).await.expect("submitted");
        id
    }

    async fn lease(&self) -> Vec<Execution> {
        let worker = Worker {
            id: WorkerId::from_bytes([1; 16]),
            host: "h".into(),
            runner: "process".into(),
            in_process: false,
            serves: vec![Needs::Process],
            labels: Default::default(),
        };
        let leases = (0..4).map(|_| LeaseId::from_bytes(fresh())).collect();
        let request = LeaseRequest { worker, queues: vec![name("default")], leases, ttl_ms: 30_000, begin: true, lost_after_ms: None };
        self.store.lease(step(), request).await.expect("an answer")
    }

    /// Leases until it has been tried often enough; who is to be given up then.
    async fn lease_in_vain(&self) -> Vec<(ExecutionId, String)> {
        for _ in 0..5 {
            assert!(self.lease().await.is_empty());
        }
        self.store.unreadable(10)
    }

    async fn attribute(&self, id: ExecutionId, name: &str) -> Option<String> {
        let table = format!("{}-executions", self.config.prefix);
        let found = self.clients.dynamo.get_item().table_name(table).key("execution_id", AttributeValue::S(id.to_string()));
        let found = found.consistent_read(true).send().await.expect("an answer").item.expect("it is there");
        found.get(name).and_then(|value| value.as_s().ok()).cloned()
    }

    async fn lose_spec(&self, id: ExecutionId) {
        let key = self.attribute(id, "spec_blob").await.expect("it is kept apart");
        self.clients.s3.delete_object().bucket(&self.config.bucket).key(format!("blobs/{key}")).send().await.expect("gone");
    }

    async fn damage(&self, id: ExecutionId, attribute: &str) {
        let table = format!("{}-executions", self.config.prefix);
        let request = self.clients.dynamo.update_item().table_name(table).key("execution_id", AttributeValue::S(id.to_string()));
        let request = request.update_expression("SET #a = :torn").expression_attribute_names("#a", attribute);
        request.expression_attribute_values(":torn", AttributeValue::S("{torn".into())).send().await.expect("damaged");
    }

    async fn send(&self, body: &str) {
        self.clients.sqs.send_message().queue_url(self.url("").await).message_body(body).send().await.expect("sent");
    }

    async fn url(&self, end: &str) -> String {
        let name = format!("{}default{end}", self.config.queue_prefix);
        self.clients.sqs.get_queue_url().queue_name(name).send().await.expect("an answer").queue_url.expect("it is there")
    }

    /// How many messages there are, seen or hidden.
    async fn messages(&self, end: &str) -> usize {
        let request = self.clients.sqs.get_queue_attributes().queue_url(self.url(end).await).attribute_names(QueueAttributeName::All);
        let found = request.send().await.expect("an answer").attributes.expect("some");
        let count = |name: QueueAttributeName| found.get(&name).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        count(QueueAttributeName::ApproximateNumberOfMessages) + count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
    }

    async fn listen(&self) {
        self.queues.flush().await;
        while self.listener.look(&name("default"), Duration::ZERO).await.expect("an answer") > 0 {}
        self.queues.flush().await;
    }

    async fn get(&self, id: ExecutionId) -> Execution {
        self.store.get(id).await.expect("an answer").expect("it is there")
    }

    async fn kinds(&self, id: ExecutionId) -> Vec<EventType> {
        let query = EventQuery { entity: Some(Entity::task(id)), limit: 100, ..EventQuery::default() };
        self.store.events(query).await.expect("events").into_iter().map(|stored| stored.event.kind).collect()
    }

    /// All that is kept follows from the events.
    async fn assert_agrees(&self) {
        let trail = self.store.trail(BucketWitnesses::new(&self.clients, &self.config, AUDIT_KEY));
        let compared = trail.compare_state().await.expect("compared");
        assert!(compared.agrees() && compared.compared > 0, "{compared:?}");
    }
}

#[tokio::test]
async fn an_execution_whose_spec_is_gone_is_given_up_once_by_two_servers() {
    let [one, other] = servers(Emulator::ministack()).await;
    let (lost, kept) = (one.submit(large()).await, one.submit(large()).await);
    one.lose_spec(lost).await;
    // Its message comes twice, and the other server has one of them in its hands.
    one.queues.wake(lost, &name("default"), 1, Duration::ZERO);
    one.queues.flush().await;
    other.listen().await;
    let leased: Vec<_> = one.lease().await.iter().map(|execution| execution.id).collect();
    assert_eq!(leased, [kept], "who stands behind it is not held up");
    assert_eq!(one.store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list").len(), 2);
    assert_eq!(one.store.next_ready(&[name("default")], &[Needs::Process]).await.expect("an answer"), None, "nobody is woken for it");
    let mut both = Vec::new();
    for server in [&one, &other] {
        let unreadable = loop {
            let unreadable = server.store.unreadable(10);
            if !unreadable.is_empty() {
                break unreadable;
            }
            assert!(server.lease().await.is_empty());
        };
        assert_eq!(unreadable[0].0, lost);
        assert!(unreadable[0].1.contains("is not at"), "{unreadable:?}");
        both.push(server.store.give_up(step(), lost, unreadable[0].1.clone()));
    }
    let ended = futures_util::future::join_all(both).await;
    let ended: Vec<_> = ended.into_iter().filter_map(|ended| ended.expect("an answer")).collect();
    assert_eq!(ended.len(), 1, "one of them was first");
    let found = other.get(lost).await;
    let reason = found.end_reason.clone().expect("a reason");
    assert_eq!((found.status, reason.code, found.exit_code), (Status::Failed, EndCode::StartFailed, Some(125)));
    assert!(reason.message.contains("cannot be read"), "{reason:?}");
    assert_eq!(one.kinds(lost).await.iter().filter(|kind| **kind == EventType::TaskFailed).count(), 1);
    let query = IncidentQuery { phase: IncidentPhase::Begun, kind: Some(IncidentKind::Dead), limit: 10 };
    assert_eq!(one.store.incidents(query).await.expect("incidents").len(), 1);
    for server in [&one, &other] {
        server.listen().await;
    }
    assert_eq!(one.messages("-dlq").await, 1);
    one.assert_agrees().await;
    // A message that comes late changes nothing.
    other.send(&format!(r#"{{"job_id":"{lost}","queue":"default","attempt":1}}"#)).await;
    other.listen().await;
    assert_eq!((other.get(lost).await, other.messages("-dlq").await), (found, 1));
}

#[tokio::test]
async fn whoever_can_only_send_messages_fails_nobody() {
    let [server] = servers(Emulator::ministack()).await;
    let healthy = server.submit(small()).await;
    server.queues.flush().await;
    for attempt in 1..=20 {
        server.send(&format!(r#"{{"job_id":"{healthy}","queue":"default","attempt":{attempt}}}"#)).await;
    }
    server.send(&format!(r#"{{"job_id":"{healthy}"}}"#)).await;
    server.listen().await;
    assert!(server.store.unreadable(10).is_empty());
    assert_eq!(server.store.give_up(step(), healthy, "says somebody".into()).await.expect("an answer"), None);
    assert_eq!(server.get(healthy).await.status, Status::Pending);
    assert_eq!(server.messages("-dlq").await, 1, "what names nobody");
    assert_eq!(server.lease().await.len(), 1);
}

#[tokio::test]
async fn a_damaged_record_is_given_up_by_what_its_events_say_and_its_lock_goes_on() {
    for emulator in [Emulator::ministack(), Emulator::moto()] {
        for attribute in ["state", "spec"] {
            let [server] = servers(emulator).await;
            let waits = |spec: Spec| Spec { lock: Some(name("prod")), lock_wait_ms: Some(60_000), retries: 1, ..spec };
            let lost = server.submit(waits(small())).await;
            let next = server.submit(waits(small())).await;
            // One attempt has failed of something that passes.
            let leased = server.lease().await;
            server.store.end_attempt(step(), ended(fence_of(&leased), Outcome::Lost { message: "gone".into() })).await.expect("an answer");
            let before = server.get(lost).await;
            assert_eq!((before.status, before.attempt), (Status::Pending, 1));
            server.damage(lost, attribute).await;
            let given_up = server.store.give_up(step(), lost, "torn".into()).await.expect("an answer").expect("given up");
            assert_eq!((given_up.status, given_up.attempt, given_up.started_at), (Status::Failed, 1, before.started_at));
            assert_ne!(given_up.chain, ChainHead::default());
            assert_eq!(server.lease().await.iter().map(|execution| execution.id).collect::<Vec<_>>(), [next], "{attribute}");
            server.assert_agrees().await;
            let kept = if attribute == "state" { "damaged_state" } else { "spec" };
            assert_eq!(server.attribute(lost, kept).await.as_deref(), Some("{torn"), "for whoever looks");
        }
    }
}

#[tokio::test]
async fn what_is_left_of_an_execution_can_be_killed_and_what_runs_can_end() {
    let [server] = servers(Emulator::ministack()).await;
    let runs = server.submit(large()).await;
    let leased = server.lease().await;
    let waits = server.submit(large()).await;
    for id in [runs, waits] {
        server.lose_spec(id).await;
    }
    let ended = server
        .store
        .end_attempt(step(), ended(fence_of(&leased), Outcome::Exited { code: 0, after_kill: false }))
        .await
        .expect("an answer");
    assert_eq!(ended.status, Status::Succeeded);
    let killed = server.store.kill(step(), Kill { execution: waits, force: false }).await.expect("an answer");
    assert_eq!(killed.status, Status::Stopped);
    assert!(server.lease_in_vain().await.is_empty(), "neither waits any more");
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_task_whose_spec_is_gone_fails_its_job_and_runs_again_from_there() {
    let [server] = servers(Emulator::ministack()).await;
    let job = JobId::from_bytes(fresh());
    let open = OpenJob { job: new_job(job), nodes: vec![task(job, large())], told: Payload::Inline(serde_json::json!([])), key: None };
    server.store.open_job(step(), open).await.expect("opened");
    let id = server.store.node(job, "a").await.expect("an answer").expect("a task").execution.expect("released");
    server.lose_spec(id).await;
    let unreadable = server.lease_in_vain().await;
    assert_eq!(unreadable.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id]);
    let given_up = server.store.give_up(step(), id, unreadable[0].1.clone()).await.expect("an answer").expect("given up");
    assert!(given_up.dead);
    let status = async || server.store.job(job).await.expect("an answer").expect("a job").status;
    assert_eq!(status().await, JobStatus::Failed);
    // The task still knows what it was to run.
    let letter = Letter { execution: id, again: ExecutionId::from_bytes(fresh()) };
    let redrive = Redrive { letters: vec![letter], settled: Vec::new(), key: None };
    let (letters, _) = server.store.redrive(step(), redrive).await.expect("an answer");
    assert_eq!(letters[0].fate, Fate::Job(job));
    server.store.advance_job(step(), job).await.expect("an answer");
    let again = server.lease().await;
    assert!(again[0].id != id && again[0].spec.env.contains_key("BIG"));
    assert_eq!(status().await, JobStatus::Running);
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_dead_letter_whose_spec_is_gone_is_dropped_and_never_run() {
    let [server] = servers(Emulator::ministack()).await;
    let lost = server.submit(large()).await;
    server.lose_spec(lost).await;
    server.store.give_up(step(), lost, "gone".into()).await.expect("an answer").expect("given up");
    let query = DeadQuery { queue: name("default"), owner: None, oldest_first: false, after: None, until: None, limit: 10 };
    assert_eq!(server.store.dead(query.clone()).await.expect("dead letters").len(), 1);
    let letter = Letter { execution: lost, again: ExecutionId::from_bytes(fresh()) };
    let redrive = Redrive { letters: vec![letter], settled: Vec::new(), key: None };
    let (letters, _) = server.store.redrive(step(), redrive).await.expect("an answer");
    assert!(matches!(&letters[0].fate, Fate::Dropped(why) if why.contains("submit it again")), "{letters:?}");
    assert!(server.store.dead(query).await.expect("dead letters").is_empty());
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_playbook_of_a_megabyte_is_kept_apart_and_comes_back() {
    for emulator in [Emulator::ministack(), Emulator::moto()] {
        let [server] = servers(emulator).await;
        let env = (0..10).map(|number| (format!("V{number}"), "x".repeat(100_000))).collect();
        let body = PlaybookBody { command: "make".into(), env, ..PlaybookBody::default() };
        for version in 1..=2 {
            let push = Change::PushPlaybook(name("big"), Box::new(body.clone()));
            let (pushed, _) = server.store.change(step(), push, None).await.expect("pushed");
            assert_eq!(pushed.playbook().map(|playbook| playbook.version), Some(version));
        }
        let kept = server.store.record(Kind::Playbook, "big").await.expect("an answer").expect("it is there");
        assert_eq!(kept.playbook().map(|playbook| &playbook.steps), Some(&body));
        assert_eq!(server.store.records(Kind::Playbook).await.expect("all"), [kept]);
        let first = server.store.record(Kind::PlaybookVersion, "big@1").await.expect("an answer").expect("it is there");
        assert_eq!(first.playbook().map(|playbook| &playbook.steps), Some(&body));
    }
}
