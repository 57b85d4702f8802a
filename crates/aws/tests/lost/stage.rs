//! Servers of one installation, as the program wires them, and what can be done to their records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use runvoy_aws::{BucketWitnesses, Clients, Config, DynamoStore, Listener, Queues, Wakes, set_up};
use runvoy_conformance::harness::AUDIT_KEY;
use runvoy_model::command::{EndAttempt, Fence, LeaseRequest, Outcome, Submit, Worker};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Step};
use runvoy_model::time::UnixMs;
use runvoy_model::view::Writes;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::{EventQuery, ExecutionStore};
use runvoy_ports::trail::AuditTrail;

use crate::emulator::{Emulator, clients};

pub const NOW: UnixMs = UnixMs(1_800_000_000_000);

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

pub struct Server {
    pub clients: Clients,
    pub config: Arc<Config>,
    pub store: Arc<DynamoStore>,
    pub queues: Queues,
    pub listener: Listener,
}

static MADE: AtomicU64 = AtomicU64::new(1);

pub fn fresh() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&NOW.0.to_be_bytes()[2..]);
    // The last bytes are left to the events of a step.
    bytes[6..12].copy_from_slice(&MADE.fetch_add(1, Ordering::Relaxed).to_be_bytes()[2..]);
    bytes
}

pub fn step() -> Step {
    let id = StepId::from_bytes(fresh());
    Step { id, at: NOW, actor: Actor::User { email: "ann@x".into() }, request_id: id.to_string(), audit: None, authority: None }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// One that is kept apart, in the blob store.
pub fn large() -> Spec {
    let mut spec = small();
    spec.env.insert("BIG".into(), format!("{}{}", "x".repeat(60 * 1024), MADE.load(Ordering::Relaxed)));
    spec
}

pub fn small() -> Spec {
    Spec { command: "make".into(), image: "local".into(), ..Spec::lost(name("default"), 3) }
}

pub fn ended(fence: Fence, outcome: Outcome) -> EndAttempt {
    EndAttempt { duration_ms: 1, ..EndAttempt::of(fence, outcome) }
}

pub fn fence_of(leased: &[Execution]) -> Fence {
    let lease = leased[0].lease.as_ref().expect("leased");
    Fence { execution: leased[0].id, attempt: lease.attempt, lease: lease.id }
}

/// So many servers of one installation.
pub async fn servers<const N: usize>(emulator: &'static Emulator) -> [Server; N] {
    let config = Arc::new(Config { give_up_after: Duration::ZERO, ..emulator.config() });
    set_up(&clients(emulator).await, &config).await.expect("an installation");
    let mut all = Vec::new();
    for _ in 0..N {
        all.push(Server::start(emulator, Arc::clone(&config)).await);
    }
    all.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for"))
}

impl Server {
    pub async fn start(emulator: &Emulator, config: Arc<Config>) -> Self {
        let clients = clients(emulator).await;
        let queues = Queues::new(&clients, Arc::clone(&config));
        let store = DynamoStore::new(&clients, Arc::clone(&config), AUDIT_KEY).waking(Arc::new(Hints(queues.clone())));
        let store = Arc::new(store);
        let listener = Listener::new(queues.clone(), Arc::clone(&store) as _, Arc::new(Still), Arc::new(|| {}));
        Self { clients, config, store, queues, listener }
    }

    pub async fn submit(&self, spec: Spec) -> ExecutionId {
        let id = ExecutionId::from_bytes(fresh());
        let submit = Submit { id, spec, created_by: "ann@x".into(), key: None, lease_to: None };
        self.store.submit(step(), submit).await.expect("submitted");
        id
    }

    pub async fn lease(&self) -> Vec<Execution> {
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
    pub async fn lease_in_vain(&self) -> Vec<(ExecutionId, String)> {
        for _ in 0..5 {
            assert!(self.lease().await.is_empty());
        }
        self.store.unreadable(10)
    }

    pub async fn attribute(&self, id: ExecutionId, name: &str) -> Option<String> {
        let table = format!("{}-executions", self.config.prefix);
        let found = self.clients.dynamo.get_item().table_name(table).key("execution_id", AttributeValue::S(id.to_string()));
        let found = found.consistent_read(true).send().await.expect("an answer").item.expect("it is there");
        found.get(name).and_then(|value| value.as_s().ok()).cloned()
    }

    pub async fn lose_spec(&self, id: ExecutionId) {
        let key = self.attribute(id, "spec_blob").await.expect("it is kept apart");
        self.lose_blob(&key).await;
    }

    pub async fn lose_blob(&self, key: &str) {
        self.clients.s3.delete_object().bucket(&self.config.bucket).key(format!("blobs/{key}")).send().await.expect("gone");
    }

    pub async fn damage(&self, id: ExecutionId, attribute: &str) {
        self.write(id, attribute, "{torn").await;
    }

    pub async fn write(&self, id: ExecutionId, attribute: &str, text: &str) {
        let table = format!("{}-executions", self.config.prefix);
        let request = self.clients.dynamo.update_item().table_name(table).key("execution_id", AttributeValue::S(id.to_string()));
        let request = request.update_expression("SET #a = :text").expression_attribute_names("#a", attribute);
        request.expression_attribute_values(":text", AttributeValue::S(text.into())).send().await.expect("written");
    }

    pub async fn send(&self, body: &str) {
        self.clients.sqs.send_message().queue_url(self.url("").await).message_body(body).send().await.expect("sent");
    }

    pub async fn url(&self, end: &str) -> String {
        let name = format!("{}default{end}", self.config.queue_prefix);
        self.clients.sqs.get_queue_url().queue_name(name).send().await.expect("an answer").queue_url.expect("it is there")
    }

    /// How many messages there are, seen or hidden.
    pub async fn messages(&self, end: &str) -> usize {
        let request = self.clients.sqs.get_queue_attributes().queue_url(self.url(end).await).attribute_names(QueueAttributeName::All);
        let found = request.send().await.expect("an answer").attributes.expect("some");
        let count = |name: QueueAttributeName| found.get(&name).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        count(QueueAttributeName::ApproximateNumberOfMessages) + count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
    }

    pub async fn listen(&self) {
        self.queues.flush().await;
        while self.listener.look(&name("default"), Duration::ZERO).await.expect("an answer") > 0 {}
        self.queues.flush().await;
    }

    pub async fn get(&self, id: ExecutionId) -> Execution {
        self.store.get(id).await.expect("an answer").expect("it is there")
    }

    pub async fn kinds(&self, id: ExecutionId) -> Vec<EventType> {
        let query = EventQuery { entity: Some(Entity::task(id)), limit: 100, ..EventQuery::default() };
        self.store.events(query).await.expect("events").into_iter().map(|stored| stored.event.kind).collect()
    }

    pub fn trail(&self) -> Arc<dyn AuditTrail> {
        self.store.trail(BucketWitnesses::new(&self.clients, &self.config, AUDIT_KEY))
    }

    /// All that is kept follows from the events.
    pub async fn assert_agrees(&self) {
        let compared = self.trail().compare_state().await.expect("compared");
        assert!(compared.agrees() && compared.compared > 0, "{compared:?}");
    }
}
