//! Where the promises of the execution store are played: short verbs over a store, with a clock and ids that the play itself makes.

use std::sync::Arc;

use runvoy_model::chain::ChainHead;
use runvoy_model::command::{
    Answer, Command, EndAttempt, Extend, Extended, Fence, Kill, LeaseRequest, Outcome, Reap, Refusal, Submit, SubmitKey, Worker,
};
use runvoy_model::event::{Entity, Event};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, LeaseId, StepId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery, StoreError, StoredEvent};

use crate::chance::mix;
use crate::harness::{AUDIT_KEY, Executions};

/// When every play begins.
pub(crate) const BEGINNING: UnixMs = UnixMs(1_800_000_000_000);
/// An exit code that is worth another attempt.
pub(crate) const PASSING_FAILURE: i32 = 69;

pub(crate) struct Stage<'h> {
    harness: Executions<'h>,
    pub now: UnixMs,
    made: u64,
}

impl<'h> Stage<'h> {
    pub fn new(harness: Executions<'h>) -> Self {
        Self { harness, now: BEGINNING, made: 0 }
    }

    pub fn store(&self) -> Arc<dyn ExecutionStore> {
        self.harness.store()
    }

    pub async fn reopen(&self) {
        self.harness.reopen().await;
    }

    pub fn pass_ms(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
    }

    /// Sixteen bytes that nobody had before and that sort after all of those.
    pub fn fresh(&mut self) -> [u8; 16] {
        self.made += 1;
        id_bytes(BEGINNING, self.made)
    }

    pub fn step(&mut self) -> Step {
        let id = StepId::from_bytes(self.fresh());
        let audit = Some(Audit { action: "executions.test".into(), from: "127.0.0.1".into(), ..Audit::default() });
        Step { id, at: self.now, actor: Actor::User { email: "ann@x".into() }, request_id: id.to_string(), audit, authority: None }
    }

    pub async fn play(&mut self, command: Command) -> Answer {
        let step = self.step();
        self.apply(&step, &command).await
    }

    pub async fn apply(&self, step: &Step, command: &Command) -> Answer {
        answered(self.store().apply(step.clone(), command.clone()).await)
    }

    /// The command of a submit that nobody sent yet.
    pub fn new_submit(&mut self, change: impl FnOnce(&mut Spec)) -> Submit {
        let mut spec = spec();
        change(&mut spec);
        Submit { id: ExecutionId::from_bytes(self.fresh()), spec, created_by: "ann@x".into(), key: None, lease_to: None }
    }

    pub async fn submit(&mut self, change: impl FnOnce(&mut Spec)) -> ExecutionId {
        let submit = self.new_submit(change);
        let id = submit.id;
        match self.play(Command::Submit(submit)).await {
            Answer::Submitted { execution, .. } if execution.id == id => id,
            other => panic!("not submitted: {other:?}"),
        }
    }

    pub async fn submit_keyed(&mut self, user: &str, key: &str, fingerprint: u8) -> Answer {
        let mut submit = self.new_submit(|_| ());
        submit.created_by = user.into();
        submit.key = Some(SubmitKey { user: user.into(), key: key.into(), fingerprint: [fingerprint; 32] });
        self.play(Command::Submit(submit)).await
    }

    pub fn lease_request(&mut self, worker: u8, want: usize) -> LeaseRequest {
        LeaseRequest {
            worker: worker_of(worker),
            queues: vec![name("default")],
            leases: (0..want).map(|_| LeaseId::from_bytes(self.fresh())).collect(),
            ttl_ms: 30_000,
            begin: false,
            lost_after_ms: None,
        }
    }

    /// Leases up to `want` executions of queue `default` for worker 1.
    pub async fn lease(&mut self, want: usize) -> Vec<Fence> {
        let request = self.lease_request(1, want);
        leased(self.play(Command::Lease(request)).await)
    }

    pub async fn lease_one(&mut self) -> Fence {
        *self.lease(1).await.first().expect("something to lease")
    }

    /// Leases and begins whatever comes first.
    pub async fn begun(&mut self) -> Fence {
        let fence = self.lease_one().await;
        let answer = self.play(Command::Begin(fence)).await;
        assert!(matches!(answer, Answer::Begun(_)), "not begun: {answer:?}");
        fence
    }

    /// Leases one and begins it in the same step, for a worker on another machine.
    pub async fn begun_at_once(&mut self) -> Fence {
        let mut request = self.lease_request(2, 1);
        (request.begin, request.worker.in_process) = (true, false);
        let fences = leased(self.play(Command::Lease(request)).await);
        *fences.first().expect("a ready execution")
    }

    /// Submits one and begins its first attempt.
    pub async fn running(&mut self, change: impl FnOnce(&mut Spec)) -> Fence {
        let id = self.submit(change).await;
        let fence = self.begun().await;
        assert_eq!(fence.execution, id, "another one was first in line");
        fence
    }

    pub async fn end(&mut self, fence: Fence, outcome: Outcome) -> Answer {
        self.play(Command::EndAttempt(ended(fence, outcome))).await
    }

    pub async fn kill(&mut self, id: ExecutionId) -> Answer {
        self.play(Command::Kill(Kill { execution: id, force: false })).await
    }

    pub async fn extend(&mut self, fence: Fence) -> Extended {
        match self.play(Command::Extend(extend(fence))).await {
            Answer::Extended(extended) => extended,
            other => panic!("not extended: {other:?}"),
        }
    }

    /// Reaps the lease as it stands now.
    pub async fn reap(&mut self, fence: Fence) -> Answer {
        let extensions = self.get(fence.execution).await.lease.map_or(0, |lease| lease.extensions);
        self.play(Command::Reap(reap(fence, extensions))).await
    }

    pub async fn get(&self, id: ExecutionId) -> Execution {
        self.store().get(id).await.expect("a read").expect("a stored execution")
    }

    pub async fn list(&self, query: ListQuery) -> Vec<ExecutionId> {
        let query = ListQuery { limit: if query.limit == 0 { 10_000 } else { query.limit }, ..query };
        self.store().list(query).await.expect("a list").into_iter().map(|execution| execution.id).collect()
    }

    pub async fn events(&self, query: EventQuery) -> Vec<StoredEvent> {
        let query = EventQuery { limit: if query.limit == 0 { 100_000 } else { query.limit }, ..query };
        self.store().events(query).await.expect("events")
    }

    pub async fn events_of(&self, id: ExecutionId) -> Vec<Event> {
        let stored = self.events(EventQuery { entity: Some(Entity::task(id)), ..EventQuery::default() }).await;
        stored.into_iter().map(|stored| stored.event).collect()
    }

    /// Panics unless the execution's events are the chain that its record names.
    pub async fn verify_chain(&self, id: ExecutionId) {
        let mut head = ChainHead::default();
        for event in self.events_of(id).await {
            if event.kind.is_chained() {
                head = AUDIT_KEY.link(&head, &event.canonical());
                assert_eq!((event.number, event.mac), (head.count, head.mac), "the chain breaks at {event:?}");
            }
        }
        assert_eq!(self.get(id).await.chain, head, "the record names another head");
    }
}

/// An id made at a time, unlike every other with another number.
pub(crate) fn id_bytes(at: UnixMs, number: u64) -> [u8; 16] {
    let ms = u128::from(at.0.unsigned_abs()) & 0xffff_ffff_ffff;
    // The last four bytes are left to the events of a step; the rest must differ without them.
    let tail = u128::from(mix(number) & 0xffff_ffff);
    ((ms << 80) | (u128::from(number & 0xffff_ffff_ffff) << 32) | tail).to_be_bytes()
}

/// A refusal is the same thing whichever way the adapter says it.
pub(crate) fn answered(result: Result<Answer, StoreError>) -> Answer {
    match result {
        Ok(answer) => answer,
        Err(StoreError::Refused(refusal)) => Answer::Refused(refusal),
        Err(error) => panic!("the store failed: {error:?}"),
    }
}

pub(crate) fn refusal(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn leased(answer: Answer) -> Vec<Fence> {
    match answer {
        Answer::Leased(executions) => executions.iter().map(fence_of).collect(),
        other => panic!("not leased: {other:?}"),
    }
}

pub(crate) fn submitted(answer: Answer) -> ExecutionId {
    match answer {
        Answer::Submitted { execution, .. } => execution.id,
        other => panic!("not submitted: {other:?}"),
    }
}

pub(crate) fn fence_of(execution: &Execution) -> Fence {
    let lease = execution.lease.as_ref().expect("a leased execution");
    Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id }
}

pub(crate) fn extend(fence: Fence) -> Extend {
    Extend {
        fence,
        ttl_ms: 30_000,
        process_id: Some(42),
        rss_bytes: Some(1 << 20),
        last_output_at: Some(BEGINNING),
        activity: None,
        preparing: None,
    }
}

pub(crate) fn ended(fence: Fence, outcome: Outcome) -> EndAttempt {
    EndAttempt {
        fence,
        outcome,
        log_end: 7,
        duration_ms: 1_234,
        process_id: Some(42),
        cost_micro_usd: 5,
        output: None,
        said: None,
        usage: None,
        remark: None,
    }
}

pub(crate) fn reap(fence: Fence, extensions: u64) -> Reap {
    Reap {
        execution: fence.execution,
        lease: fence.lease,
        extensions,
        message: "its worker was lost".into(),
        log_end: 9,
        with_server: false,
        cost_micro_usd: 2,
    }
}

pub(crate) fn worker_of(number: u8) -> Worker {
    Worker {
        id: WorkerId::from_bytes([number; 16]),
        host: format!("host-{number}"),
        runner: "process".into(),
        in_process: false,
        serves: vec![Needs::Process],
        labels: Default::default(),
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

pub(crate) fn exit(code: i32) -> Outcome {
    Outcome::Exited { code, after_kill: false }
}

pub(crate) fn spec() -> Spec {
    Spec {
        command: "true".into(),
        args: None,
        image: "local".into(),
        env: Default::default(),
        timeout_ms: None,
        lock: None,
        lock_wait_ms: None,
        queue: name("default"),
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

pub(crate) fn locked(spec: &mut Spec) {
    spec.lock = Some(name("prod"));
}

/// In an image, which needs a worker that has images.
pub(crate) fn in_image(spec: &mut Spec) {
    spec.image = "alpine:3.20-0123456789ab".into();
}

pub(crate) fn in_line(spec: &mut Spec) {
    locked(spec);
    spec.lock_wait_ms = Some(60_000);
}
