//! The operations that are counted, played on an installation of their own with times and ids that are the same in every run.

use std::sync::Arc;
use std::time::Duration;

use runvoy_aws::{Clients, Config, DynamoStore, EventLayout, Listener, Publisher, Queues, set_up};
use runvoy_conformance::harness::AUDIT_KEY;
use runvoy_model::chain::ChainHead;
use runvoy_model::change::{Change, NewKey, NewUser};
use runvoy_model::command::{Answer, Command, EndAttempt, Extend, Fence, Kill, LeaseRequest, LeaseTo, OpenJob, Outcome, Submit, Worker};
use runvoy_model::event::Entity;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId, LeaseId, StepId, WorkerId};
use runvoy_model::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::role::Role;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Audit, Authority, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery};
use serde_json::json;

use crate::emulator::count::{Counter, Tally};
use crate::emulator::{Emulator, clients_counted};

pub const NOW: UnixMs = UnixMs(1_800_000_000_000);
const USER: &str = "ada@example.com";
const BATCH: u64 = 1;
pub const WAKE_UP: &str = "wake-up sent, received, judged and removed";

/// It stands still.
pub struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> UnixMs {
        NOW
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// The clock of a publisher that waits for no process any more.
struct LaterClock;

impl Clock for LaterClock {
    fn now(&self) -> UnixMs {
        NOW.plus_ms(60_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// An installation and what was counted on it.
pub struct Play {
    pub counter: Counter,
    pub clients: Clients,
    pub config: Arc<Config>,
    pub store: DynamoStore,
    pub rows: Vec<(String, Tally)>,
    made: u64,
}

impl Play {
    /// One user, one queue and one day are known: the first of each costs a little more.
    pub async fn new(layout: EventLayout) -> Self {
        let (emulator, counter) = (Emulator::ministack(), Counter::default());
        let clients = clients_counted(emulator, &counter).await;
        let config = Arc::new(Config { layout, ..emulator.config() });
        set_up(&clients, &config).await.expect("an installation");
        let store = DynamoStore::new(&clients, Arc::clone(&config), AUDIT_KEY);
        let mut play = Self { counter, clients, config, store, rows: Vec::new(), made: 0 };
        let key = NewKey { hash: [7; 32], prefix: "rv_ada".into(), name: None, expires_at: None };
        let admin = Change::CreateFirstAdmin(NewUser { email: USER.into(), role: Role::Admin, key });
        let step = Step::system(StepId::from_bytes(play.fresh()), NOW, "setup");
        play.store.apply(step, Command::Change(admin, None)).await.expect("an admin");
        let fence = play.running(|_| ()).await;
        play.end(fence).await;
        play.settle().await;
        play
    }

    /// Sixteen bytes that no other run differs in; the last ones spread over partitions.
    pub fn fresh(&mut self) -> [u8; 16] {
        self.made += 1;
        let tail = u128::from(self.made.wrapping_mul(0x9e37_79b9) & 0xffff_ffff);
        ((u128::from(NOW.0.unsigned_abs()) << 80) | (u128::from(self.made) << 32) | tail).to_be_bytes()
    }

    /// Counts everything from the last count on under a name.
    pub fn count(&mut self, name: impl Into<String>) {
        let tally = self.counter.take();
        self.rows.push((name.into(), self.without_prefix(tally)));
    }

    pub fn without_prefix(&self, mut tally: Tally) -> Tally {
        let prefix = format!("{}-", self.config.prefix);
        let short = |place: String| place.strip_prefix(&prefix).unwrap_or(&place).to_owned();
        tally.write_units = tally.write_units.into_iter().map(|(place, units)| (short(place), units)).collect();
        tally.partitions = tally.partitions.into_iter().map(|((place, part), units)| ((short(place), part), units)).collect();
        tally
    }

    /// What went before is not counted.
    pub fn begin(&self) {
        self.counter.take();
    }

    /// A store that remembers nothing of what this one wrote: another server.
    pub fn other(&self) -> DynamoStore {
        DynamoStore::new(&self.clients, Arc::clone(&self.config), AUDIT_KEY)
    }

    /// Gives places to all events there are.
    pub async fn settle(&self) {
        self.store.leaves(u64::MAX - 1, 1).await.expect("an answer");
    }

    pub fn publisher(&self) -> Publisher {
        Publisher::new(&self.clients, Arc::clone(&self.config), Arc::new(LaterClock), "server-1".into())
    }

    /// A step through the API.
    pub async fn ask(&mut self, command: Command) -> Answer {
        let id = StepId::from_bytes(self.fresh());
        let step = Step {
            id,
            at: NOW,
            actor: Actor::User { email: USER.into() },
            request_id: id.to_string(),
            audit: Some(Audit { action: "executions.run".into(), from: "192.0.2.1".into(), ..Audit::default() }),
            authority: Some(Authority { email: USER.into(), key_hash: Some([7; 32]), role: Role::Admin, may_submit: false }),
        };
        self.store.apply(step, command).await.expect("an answer")
    }

    /// A step of a worker.
    pub async fn work(&mut self, command: Command) -> Answer {
        let step = Step::worker(StepId::from_bytes(self.fresh()), NOW, worker().id);
        self.store.apply(step, command).await.expect("an answer")
    }

    pub async fn submit(&mut self, change: impl FnOnce(&mut Spec)) -> ExecutionId {
        self.submit_to(None, change).await.id
    }

    async fn submit_to(&mut self, lease_to: Option<LeaseTo>, change: impl FnOnce(&mut Spec)) -> Execution {
        let mut spec = spec();
        change(&mut spec);
        let submit = Submit { id: ExecutionId::from_bytes(self.fresh()), spec, created_by: USER.into(), key: None, lease_to };
        match self.ask(Command::Submit(submit)).await {
            Answer::Submitted { execution, .. } => *execution,
            other => panic!("not submitted: {other:?}"),
        }
    }

    /// Submits one that begins in the same step.
    pub async fn running(&mut self, change: impl FnOnce(&mut Spec)) -> Fence {
        let lease_to = LeaseTo { lease: LeaseId::from_bytes(self.fresh()), worker: worker(), ttl_ms: 30_000 };
        let execution = self.submit_to(Some(lease_to), change).await;
        fence(&execution)
    }

    /// Leases one as a server does that did not submit it.
    pub async fn lease(&mut self) -> Fence {
        let leases = vec![LeaseId::from_bytes(self.fresh())];
        let request =
            LeaseRequest { worker: worker(), queues: vec![name("default")], leases, ttl_ms: 30_000, begin: false, lost_after_ms: None };
        let step = Step::worker(StepId::from_bytes(self.fresh()), NOW, worker().id);
        match self.other().apply(step, Command::Lease(request)).await.expect("an answer") {
            Answer::Leased(leased) => fence(leased.first().expect("something to lease")),
            other => panic!("not leased: {other:?}"),
        }
    }

    pub async fn end(&mut self, fence: Fence) {
        let ended = EndAttempt {
            fence,
            outcome: Outcome::Exited { code: 0, after_kill: false },
            log_end: 100,
            duration_ms: 1_234,
            process_id: Some(42),
            cost_micro_usd: 5,
            output: None,
            said: None,
            usage: None,
            remark: None,
        };
        let answer = self.work(Command::EndAttempt(ended)).await;
        assert!(matches!(answer, Answer::Ended(_)), "{answer:?}");
    }

    pub async fn extend(&mut self, fence: Fence) {
        let extend = Extend {
            fence,
            ttl_ms: 30_000,
            process_id: Some(42),
            rss_bytes: Some(1 << 20),
            last_output_at: Some(NOW),
            activity: None,
            preparing: None,
        };
        let answer = self.work(Command::Extend(extend)).await;
        assert!(matches!(answer, Answer::Extended(_)), "{answer:?}");
    }

    pub async fn executions(&mut self) {
        self.begin();
        self.submit(|_| ()).await;
        self.count("submit");
        let leased = self.lease().await;
        self.count("lease of one");
        self.work(Command::Begin(leased)).await;
        self.count("begin");
        self.extend(leased).await;
        self.count("extend (heartbeat)");
        self.end(leased).await;
        self.count("finish");
        let running = self.running(|_| ()).await;
        self.count("submit, lease and begin in one");
        self.ask(Command::Kill(Kill { execution: running.execution, force: false })).await;
        self.count("kill of a running execution");
        self.end(running).await;
        self.begin();
        let leases = vec![LeaseId::from_bytes(self.fresh())];
        let request =
            LeaseRequest { worker: worker(), queues: vec![name("default")], leases, ttl_ms: 30_000, begin: false, lost_after_ms: None };
        let step = Step::worker(StepId::from_bytes(self.fresh()), NOW, worker().id);
        let found = self.other().apply(step, Command::Lease(request)).await.expect("an answer");
        assert_eq!(found, Answer::Leased(Vec::new()));
        self.count("lease that finds nothing");
    }

    pub async fn locks(&mut self) {
        let locked = |spec: &mut Spec| {
            spec.lock = Some(name("prod"));
            spec.lock_wait_ms = Some(60_000);
        };
        self.begin();
        let holder = self.running(locked).await;
        self.count("submit, lease and begin in one, with a lock");
        self.submit(locked).await;
        self.count("submit that waits for a lock");
        self.end(holder).await;
        self.count("finish that hands the lock over");
        let next = self.lease().await;
        self.work(Command::Begin(next)).await;
        self.begin();
        self.end(next).await;
        self.count("finish that leaves the lock free");
    }

    pub async fn jobs(&mut self) {
        let id = JobId::from_bytes(self.fresh());
        let tasks = (0..10).map(|number| match number {
            0 => task(id, 0, &[]),
            1..4 => task(id, number, &[0]),
            _ => task(id, number, &[1, 2]),
        });
        let open = OpenJob { job: job(id), nodes: tasks.collect(), told: Payload::Inline(json!([])), digest: None, key: None };
        self.begin();
        let answer = self.ask(Command::OpenJob(Box::new(open))).await;
        assert!(matches!(&answer, Answer::Job { job, .. } if !job.attention), "{answer:?}");
        self.count("job of 10 tasks opened");
        let first = self.lease().await;
        self.work(Command::Begin(first)).await;
        self.begin();
        self.end(first).await;
        self.count("finish of a task that releases 3 others");
        for _ in 0..3 {
            let fence = self.lease().await;
            self.work(Command::Begin(fence)).await;
        }
    }

    pub async fn reads(&mut self) {
        let mut last = None;
        for _ in 0..25 {
            let fence = self.running(|_| ()).await;
            self.end(fence).await;
            last = Some(fence.execution);
        }
        let last = last.expect("some were made");
        self.settle().await;
        let other = self.other();
        self.begin();
        assert!(other.get(last).await.expect("an answer").is_some());
        self.count("get");
        let query = ListQuery { created_by: Some(USER.into()), limit: 20, ..ListQuery::default() };
        assert_eq!(other.list(query).await.expect("an answer").len(), 20);
        self.count("list, a page of 20 of a user");
        assert_eq!(other.list(ListQuery { limit: 20, ..ListQuery::default() }).await.expect("an answer").len(), 20);
        self.count("list, a page of 20 of all users");
        let query = EventQuery { entity: Some(Entity::task(last)), limit: 100, ..EventQuery::default() };
        assert!(!other.events(query).await.expect("an answer").is_empty());
        self.count("events of one execution");
        assert_eq!(other.events(EventQuery { limit: 100, ..EventQuery::default() }).await.expect("an answer").len(), 100);
        self.count("events, a page of 100 by place");
    }

    /// A wake-up from one server to another.
    pub async fn messages(&mut self) {
        let (sender, receiver) =
            (Queues::new(&self.clients, Arc::clone(&self.config)), Queues::new(&self.clients, Arc::clone(&self.config)));
        let listener = Listener::new(receiver.clone(), Arc::new(self.other()), Arc::new(StillClock), Arc::new(|| ()));
        let warm = self.submit(|_| ()).await;
        sender.wake(warm, &name("default"), 1, Duration::ZERO);
        sender.flush().await;
        assert_eq!(listener.look(&name("default"), Duration::ZERO).await.expect("an answer"), 1);
        let id = self.submit(|_| ()).await;
        self.begin();
        sender.wake(id, &name("default"), 1, Duration::ZERO);
        sender.flush().await;
        assert_eq!(listener.look(&name("default"), Duration::ZERO).await.expect("an answer"), 1);
        receiver.leased([id]);
        receiver.flush().await;
        self.count(WAKE_UP);
        for _ in 0..2 {
            let fence = self.lease().await;
            self.end_leased(fence).await;
        }
    }

    async fn end_leased(&mut self, fence: Fence) {
        self.work(Command::Begin(fence)).await;
        self.end(fence).await;
    }
}

pub fn fence(execution: &Execution) -> Fence {
    let lease = execution.lease.as_ref().expect("a lease");
    Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

fn worker() -> Worker {
    let serves = vec![Needs::Process];
    Worker {
        id: WorkerId::from_bytes([1; 16]),
        host: "ip-10-0-0-1".into(),
        runner: "process".into(),
        in_process: false,
        serves,
        labels: Default::default(),
    }
}

/// What somebody runs: a command of some length and a few names.
fn spec() -> Spec {
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    Spec {
        command: "python3 report.py --customer 4711 --month 2027-01 --output report.pdf".into(),
        args: None,
        image: "local".into(),
        env: pairs([("REPORT_LANGUAGE", "en"), ("REPORT_PAGES", "all")]),
        timeout_ms: Some(600_000),
        lock: None,
        lock_wait_ms: None,
        queue: name("default"),
        priority: 3,
        labels: pairs([("team", "billing"), ("stage", "prod")]),
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

fn task(job: JobId, number: u32, parents: &[u32]) -> Node {
    let named = |number: &u32| name(&format!("task-{number}"));
    Node {
        job,
        task: named(&number),
        place: 0,
        batch: BATCH,
        name: format!("part {number} of the report"),
        depends_on: parents.iter().map(named).collect(),
        input: None,
        spec: spec(),
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

fn job(id: JobId) -> Job {
    Job {
        id,
        name: Some("monthly report".into()),
        request_key: None,
        created_by: USER.into(),
        created_by_request_id: id.to_string(),
        modified_by_request_id: String::new(),
        created_at: NOW,
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: None,
        generation: 1,
        opening: Some(BATCH),
        resuming: false,
        counts: Counts { total: 10, ..Counts::default() },
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: ChainHead::default(),
        version: 0,
    }
}
