//! Wake-ups through SQS: messages are hints, whatever becomes of them. The store behind them is the reference.

mod emulator;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName;
use emulator::fault::{Faults, Kind};
use emulator::{Emulator, clients, clients_through};
use runvoy_aws::{Clients, Config, Listener, Queues, ReadySource, Sweep, Waiting};
use runvoy_conformance::harness::AUDIT_KEY;
use runvoy_memory::MemoryStore;
use runvoy_model::command::{Kill, LeaseRequest, Submit, Worker};
use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::{ExecutionStore, ListQuery, StoreError};

/// A clock that is moved by hand.
struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed) as u64)
    }
}

/// The reference, as the sweep asks it.
struct Source(Arc<MemoryStore>);

#[async_trait]
impl ReadySource for Source {
    async fn ready_since(&self, before: UnixMs, max: usize) -> Result<Vec<Waiting>, StoreError> {
        let all = self.0.list(ListQuery { limit: 10_000, ..ListQuery::default() }).await?;
        let ready = all.iter().filter_map(|execution| Some((execution.attempt + 1, execution.ready_key()?)));
        let mut ready: Vec<_> = ready.filter(|(_, key)| key.ready_at <= before).collect();
        ready.sort_by_key(|(_, key)| (key.ready_at, key.id));
        Ok(ready.into_iter().take(max).map(|(attempt, key)| Waiting { execution: key.id, queue: key.queue, attempt }).collect())
    }
}

/// One server: its queues, its listener, and the store that it shares with nobody.
struct Server {
    plain: Clients,
    config: Config,
    store: Arc<MemoryStore>,
    clock: Arc<HandClock>,
    queues: Queues,
    listener: Listener,
    hints: Arc<AtomicUsize>,
    made: AtomicU64,
}

fn default() -> Name {
    Name::new("default").expect("it is there")
}

fn spec() -> Spec {
    Spec {
        command: "true".into(),
        args: None,
        image: "local".into(),
        env: Default::default(),
        timeout_ms: None,
        lock: None,
        lock_wait_ms: None,
        queue: default(),
        priority: 3,
        labels: Default::default(),
        worker_labels: Default::default(),
        terminal: false,
        retries: 0,
        redeliveries: 0,
        secrets: Vec::new(),
        git: None,
        task: None,
        playbook: None,
        rpc: None,
        container: None,
    }
}

impl Server {
    async fn start() -> Self {
        Self::through(clients(Emulator::ministack()).await).await
    }

    async fn through(clients_of_queues: Clients) -> Self {
        let emulator = Emulator::ministack();
        let config = emulator.config();
        let store = Arc::new(MemoryStore::new(AUDIT_KEY));
        let clock = Arc::new(HandClock(AtomicI64::new(1_800_000_000_000)));
        let queues = Queues::new(&clients_of_queues, Arc::new(config.clone()));
        let hints = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&hints);
        let hint = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let listener = Listener::new(queues.clone(), Arc::clone(&store) as _, Arc::clone(&clock) as _, hint);
        Self { plain: clients(emulator).await, config, store, clock, queues, listener, hints, made: AtomicU64::new(0) }
    }

    fn fresh(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&self.clock.now().0.to_be_bytes()[2..]);
        bytes[8..].copy_from_slice(&self.made.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }

    fn step(&self) -> Step {
        let id = StepId::from_bytes(self.fresh());
        let actor = Actor::User { email: "ann@x".into() };
        Step { id, at: self.clock.now(), actor, request_id: id.to_string(), audit: None, authority: None }
    }

    async fn submit(&self) -> ExecutionId {
        let id = ExecutionId::from_bytes(self.fresh());
        let submit = Submit { id, spec: spec(), created_by: "ann@x".into(), key: None, lease_to: None };
        self.store.submit(self.step(), submit).await.expect("an answer");
        id
    }

    fn wake(&self, id: ExecutionId) {
        self.queues.wake(id, &default(), 1, Duration::ZERO);
    }

    /// Leases whatever can be, as a worker that was woken does, and says so.
    async fn lease(&self) -> Vec<ExecutionId> {
        let leased = self.lease_silently().await;
        self.queues.leased(leased.clone());
        self.queues.flush().await;
        leased
    }

    async fn lease_silently(&self) -> Vec<ExecutionId> {
        let worker = Worker {
            id: WorkerId::from_bytes([1; 16]),
            host: "host".into(),
            runner: "process".into(),
            in_process: false,
            serves: vec![Needs::Process],
            labels: Default::default(),
        };
        let leases = (0..100).map(|_| LeaseId::from_bytes(self.fresh())).collect();
        let request = LeaseRequest { worker, queues: vec![default()], leases, ttl_ms: 30_000, begin: false, lost_after_ms: None };
        self.store.lease(self.step(), request).await.expect("an answer").iter().map(|execution| execution.id).collect()
    }

    async fn kill(&self, id: ExecutionId) {
        self.store.kill(self.step(), Kill { execution: id, force: false }).await.expect("an answer");
    }

    /// Looks until nothing comes any more; how many hints that gave.
    async fn listen(&self) -> usize {
        let before = self.hints.load(Ordering::Relaxed);
        while self.listener.look(&default(), Duration::ZERO).await.expect("an answer") > 0 {}
        self.queues.flush().await;
        self.hints.load(Ordering::Relaxed) - before
    }

    async fn url(&self, end: &str) -> String {
        let name = format!("{}default{end}", self.config.queue_prefix);
        self.plain.sqs.get_queue_url().queue_name(name).send().await.expect("an answer").queue_url.expect("it is there")
    }

    async fn attribute(&self, end: &str, name: QueueAttributeName) -> String {
        let request = self.plain.sqs.get_queue_attributes().queue_url(self.url(end).await).attribute_names(QueueAttributeName::All);
        request.send().await.expect("an answer").attributes.expect("it is there").remove(&name).unwrap_or_default()
    }

    /// Messages that could be received, and those that were and are still there.
    async fn depth(&self, end: &str) -> (usize, usize) {
        let seen = self.attribute(end, QueueAttributeName::ApproximateNumberOfMessages).await;
        let hidden = self.attribute(end, QueueAttributeName::ApproximateNumberOfMessagesNotVisible).await;
        (seen.parse().expect("it is there"), hidden.parse().expect("it is there"))
    }

    fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(time.as_millis() as i64, Ordering::Relaxed);
    }

    fn sweep(&self) -> Sweep {
        Sweep::new(self.queues.clone(), Arc::new(Source(Arc::clone(&self.store))), Arc::clone(&self.clock) as _)
    }
}

#[tokio::test]
async fn a_queue_is_made_when_it_is_first_needed() {
    let server = Server::start().await;
    server.wake(server.submit().await);
    server.queues.flush().await;
    assert_eq!(server.queues.counts().sent, 1);
    for (name, value) in [
        (QueueAttributeName::VisibilityTimeout, "300"),
        (QueueAttributeName::ReceiveMessageWaitTimeSeconds, "20"),
        (QueueAttributeName::MessageRetentionPeriod, "1209600"),
        (QueueAttributeName::SqsManagedSseEnabled, "true"),
    ] {
        assert_eq!(server.attribute("", name.clone()).await, value, "{name:?}");
    }
    let redrive: serde_json::Value =
        serde_json::from_str(&server.attribute("", QueueAttributeName::RedrivePolicy).await).expect("it is there");
    assert_eq!(redrive["deadLetterTargetArn"], server.attribute("-dlq", QueueAttributeName::QueueArn).await);
    assert_eq!(redrive["maxReceiveCount"].to_string().trim_matches('"'), "1000");
    let again = Queues::new(&server.plain, Arc::new(Config { max_receives: 5, ..server.config.clone() }));
    again.wake(server.submit().await, &default(), 1, Duration::ZERO);
    again.flush().await;
    assert_eq!((again.counts().sent, server.depth("").await), (1, (2, 0)), "what is there stays as it is");
}

#[tokio::test]
async fn a_message_stays_until_its_execution_is_leased() {
    let server = Server::start().await;
    let id = server.submit().await;
    server.wake(id);
    server.queues.flush().await;
    assert_eq!(server.listen().await, 1);
    assert_eq!(server.depth("").await, (0, 1));
    assert_eq!(server.lease().await, [id]);
    assert_eq!(server.depth("").await, (0, 0));
}

#[tokio::test]
async fn a_change_wakes_once_and_a_lease_removes() {
    let server = Server::start().await;
    let id = server.submit().await;
    let pending = server.store.get(id).await.expect("an answer").expect("it is there");
    server.queues.changed(None, &pending, server.clock.now());
    server.queues.changed(Some(&pending), &pending, server.clock.now());
    server.queues.flush().await;
    assert_eq!(server.queues.counts().sent, 1);
    assert_eq!(server.listen().await, 1);
    server.lease_silently().await;
    let leased = server.store.get(id).await.expect("an answer").expect("it is there");
    server.queues.changed(Some(&pending), &leased, server.clock.now());
    server.queues.flush().await;
    assert_eq!((server.queues.counts().deleted, server.depth("").await), (1, (0, 0)));
}

#[tokio::test]
async fn messages_of_what_cannot_be_leased_are_removed_unseen() {
    let server = Server::start().await;
    let leased = server.submit().await;
    server.lease().await;
    let (killed, unknown) = (server.submit().await, ExecutionId::from_bytes([9; 16]));
    server.kill(killed).await;
    let later_attempt = server.submit().await;
    for id in [leased, killed, unknown] {
        server.wake(id);
    }
    server.queues.wake(later_attempt, &default(), 2, Duration::ZERO);
    server.queues.flush().await;
    assert_eq!(server.listen().await, 0);
    assert_eq!((server.queues.counts().received, server.queues.counts().deleted), (4, 4));
    assert_eq!(server.depth("").await, (0, 0));
}

#[tokio::test]
async fn a_message_that_is_no_wake_up_is_put_where_a_person_looks() {
    let server = Server::start().await;
    server.wake(server.submit().await);
    server.queues.flush().await;
    let url = server.url("").await;
    for body in ["not json", r#"{"job_id":"07070707070707070707070707070707","queue":"other","attempt":1}"#] {
        server.plain.sqs.send_message().queue_url(&url).message_body(body).send().await.expect("an answer");
    }
    assert_eq!(server.listen().await, 1, "the good one is heard all the same");
    assert_eq!((server.queues.counts().poison, server.depth("").await, server.depth("-dlq").await), (2, (0, 1), (2, 0)));
    let buried =
        server.plain.sqs.receive_message().queue_url(server.url("-dlq").await).max_number_of_messages(10).send().await.expect("an answer");
    assert!(buried.messages().iter().any(|message| message.body() == Some("not json")));
}

#[tokio::test]
async fn a_wake_up_that_comes_too_early_comes_again_when_it_is_time() {
    let server = Server::start().await;
    let id = server.submit().await;
    server.wake(id);
    server.queues.flush().await;
    server.clock.0.fetch_sub(1000, Ordering::Relaxed);
    assert_eq!(server.listen().await, 0);
    server.pass(Duration::from_secs(1));
    assert_eq!(server.listener.look(&default(), Duration::from_secs(20)).await.expect("an answer"), 1);
    assert_eq!(server.hints.load(Ordering::Relaxed), 1);
    assert_eq!(server.lease().await, [id]);
    assert_eq!(server.depth("").await, (0, 0));
}

#[tokio::test]
async fn whoever_listens_hears_of_a_message_when_it_comes() {
    let server = Arc::new(Server::start().await);
    let agents = {
        let server = Arc::clone(&server);
        let served = [default()];
        tokio::spawn(async move { tokio::join!(server.listener.run(&served), server.queues.run()) })
    };
    let id = server.submit().await;
    server.wake(id);
    let give_up = Instant::now() + Duration::from_secs(60);
    while server.hints.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < give_up, "nothing was heard: {:?}", server.queues.counts());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.lease().await, [id]);
    agents.abort();
}

#[tokio::test]
async fn what_has_no_message_gets_one_again() {
    let server = Server::start().await;
    let mut sweep = server.sweep();
    let id = server.submit().await;
    assert_eq!(sweep.look().await.expect("an answer"), 0, "its message may be on the way");
    server.pass(Duration::from_secs(61));
    assert_eq!(sweep.look().await.expect("an answer"), 1);
    assert_eq!(sweep.look().await.expect("an answer"), 0, "it is noted");
    server.queues.flush().await;
    assert_eq!(server.sweep().look().await.expect("an answer"), 0, "whoever knows nothing of it sees that one can be received");
    assert_eq!(server.listen().await, 1);
    server.pass(Duration::from_secs(301));
    assert_eq!(sweep.look().await.expect("an answer"), 0, "it has one, in our hands");
    assert_eq!(server.lease().await, [id]);
    assert_eq!((server.sweep().look().await.expect("an answer"), server.depth("").await), (0, (0, 0)));
}

/// Messages that others hold, or that are of what cannot be leased yet, hide nothing from the sweep.
#[tokio::test]
async fn what_is_hidden_keeps_nobody_from_a_message_but_they_come_ever_more_rarely() {
    let server = Server::start().await;
    let lost = server.submit().await;
    for _ in 0..5 {
        server.wake(server.submit().await);
    }
    server.queues.flush().await;
    let url = server.url("").await;
    server.plain.sqs.receive_message().queue_url(&url).max_number_of_messages(10).send().await.expect("an answer");
    assert_eq!(server.depth("").await, (0, 5));
    let mut sweep = server.sweep();
    let mut rounds = Vec::new();
    for round in 0..40 {
        server.pass(Duration::from_secs(100));
        let swept = sweep.look().await.expect("an answer");
        // Whatever is sent is lost.
        server.queues.flush().await;
        server.plain.sqs.purge_queue().queue_url(&url).send().await.expect("an answer");
        rounds.extend((swept > 0).then_some((round, swept)));
    }
    assert_eq!(rounds, [(0, 6), (3, 6), (9, 6), (21, 6)], "{lost}");
}

#[tokio::test]
async fn a_sweep_sends_no_flood() {
    let server = Server::start().await;
    for _ in 0..250 {
        server.submit().await;
    }
    server.pass(Duration::from_secs(61));
    let mut sweep = server.sweep();
    assert_eq!(sweep.look().await.expect("an answer"), 200);
    server.queues.flush().await;
    assert_eq!((sweep.look().await.expect("an answer"), server.sweep().look().await.expect("an answer")), (0, 0));
    assert_eq!(server.depth("").await.0, 200);
}

/// Doubled, lost, late, in another order: everything is leased, once, and no message is left.
#[tokio::test]
async fn whatever_becomes_of_messages_costs_only_time() {
    for seed in 1..=3 {
        let faults = [Kind::DoubledMessage, Kind::LostMessage, Kind::Reordered, Kind::FailedEntry, Kind::Throttle];
        let faults = faults.into_iter().fold(Faults::seeded(seed), |faults, kind| faults.with(kind, 300));
        let server = Server::through(clients_through(Emulator::ministack(), &faults).await).await;
        let mut sweep = server.sweep();
        for wave in 0..20 {
            let mut waiting = Vec::new();
            for _ in 0..3 {
                let id = server.submit().await;
                server.wake(id);
                waiting.push(id);
            }
            let mut leased = Vec::new();
            for round in 0.. {
                assert!(round < 100, "seed {seed}, wave {wave}: nobody was woken, {:?}", server.queues.counts());
                server.queues.flush().await;
                let before = server.hints.load(Ordering::Relaxed);
                // A call that is throttled too often fails; the next one may not.
                let _ = server.listener.look(&default(), Duration::ZERO).await;
                if server.hints.load(Ordering::Relaxed) > before {
                    leased = server.lease().await;
                    break;
                }
                server.pass(Duration::from_secs(400));
                sweep.look().await.expect("an answer");
            }
            leased.sort();
            assert_eq!(leased, waiting, "seed {seed}, wave {wave}");
        }
        faults.switch(false);
        server.listen().await;
        // A message whose removal failed is hidden for a while before it comes again: only what can be seen must be none.
        assert_eq!(server.depth("").await.0, 0, "seed {seed}: {:?}", server.queues.counts());
        for kind in [Kind::DoubledMessage, Kind::LostMessage, Kind::FailedEntry, Kind::Throttle] {
            assert!(faults.happened(kind) > 0, "seed {seed}: {kind:?} never happened");
        }
        assert!(server.queues.counts().swept > 0, "seed {seed}");
    }
}

/// Calls whose answers never come leave the agents as they were: they go on, and what they could not do is counted.
#[tokio::test]
async fn an_agent_outlives_every_lost_answer() {
    let faults = Faults::seeded(5).with(Kind::LostCall, 1000);
    let server = Server::through(clients_through(Emulator::ministack(), &faults).await).await;
    let id = server.submit().await;
    server.wake(id);
    server.queues.flush().await;
    assert!(server.listener.look(&default(), Duration::ZERO).await.is_err());
    assert_eq!((server.queues.counts().sent, server.queues.counts().unsent), (0, 1));
    assert!(server.queues.trouble().is_some_and(|trouble| trouble.contains("SQS")));
    faults.switch(false);
    server.pass(Duration::from_secs(61));
    assert_eq!(server.sweep().look().await.expect("an answer"), 1);
    server.queues.flush().await;
    assert_eq!((server.listen().await, server.lease().await), (1, vec![id]));
    assert_eq!(server.queues.trouble(), None);
}
