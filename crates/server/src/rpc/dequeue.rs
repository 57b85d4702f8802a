//! Leases, streamed to whoever waits for them. Every step runs on a task of its own and gives what it took to a [`Hand`]: what was not sent, because
//! the client went away or does not read, goes back to its place, uncounted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use parking_lot::Mutex;
use runvoy_engine::{Engine, Holder, LeaseAsk, Line, LineKey, Turn};
use runvoy_model::command::{EndAttempt, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::retry::Category;
use runvoy_model::role::Action;
use runvoy_model::signing::SigningRing;
use runvoy_model::spec::DEFAULT_QUEUE;
use runvoy_model::worker::Presence;
use runvoy_ports::lease::LeaseError;
use runvoy_rpc::connectrpc::{ConnectError, ServiceStream};
use runvoy_rpc::job::v1::{DequeueJobRequest, DequeueJobResponse, Job};
use tokio::time::Instant;

use super::call::Call;
use super::error::RpcFault;
use super::lease::{json, ttl_ms};
use super::token::{self, Task};
use super::{enqueue, job, worker};
use crate::app::OpenStream;
use crate::credential::Standing;
use crate::fault::Fault;

const MOST_JOBS: usize = 1_000;
/// So many are leased at once.
const AT_ONCE: usize = 32;
/// What a client has not read by then goes to others.
const UNREAD: Duration = Duration::from_secs(2);
const TAKE_BACK_TRIES: usize = 5;
/// A worker that may come back is waited for no longer than this: the execution, and its place in its queue, are held all the while.
const MOST_PATIENCE_MS: u64 = 12 * 3600 * 1000;
/// Whoever waits is looked at so often: their key may have been revoked.
const LOOK_AT_CALLER: Duration = Duration::from_secs(5);

pub(super) async fn dequeue(call: Call, request: DequeueJobRequest) -> Result<ServiceStream<DequeueJobResponse>, RpcFault> {
    let dequeue = Dequeue::of(call, request).await?;
    let leases = stream::try_unfold(dequeue, |mut dequeue| async move {
        match dequeue.next().await {
            Ok(next) => Ok::<_, ConnectError>(next.map(|response| (response, dequeue))),
            Err(fault) => Err(dequeue.call.ended(fault).await),
        }
    });
    Ok(Box::pin(leases))
}

/// One client that waits.
struct Dequeue {
    call: Call,
    standing: Standing,
    /// What is told of a client that tells nothing of itself.
    presence: Option<Presence>,
    ask: LeaseAsk,
    line: Line,
    turn: Option<Turn>,
    two_step: bool,
    deadline: Option<Instant>,
    /// How many are still wanted.
    left: usize,
    hand: Arc<Mutex<Hand>>,
    asked_before: bool,
    empty_handed: bool,
    has_sent: bool,
    _open: OpenStream,
}

impl Dequeue {
    async fn of(call: Call, request: DequeueJobRequest) -> Result<Self, RpcFault> {
        let left = match usize::try_from(request.max_jobs) {
            Ok(0) | Err(_) => 1,
            Ok(max @ 1..=MOST_JOBS) => max,
            Ok(_) => return Err(RpcFault::invalid("max_jobs", format!("must be at most {MOST_JOBS}"))),
        };
        let info = request.worker.as_option();
        let queues = queues(&call, &request)?;
        let worker = worker::identity(&call, info, &queues, request.two_step)?;
        if info.is_some() {
            // A worker that says who it is makes its queues known by that.
            worker::speak_for(&call, worker.id).await?;
        } else {
            for queue in &queues {
                enqueue::known(&call, queue).await?;
            }
        }
        let wait = request.wait_ms.map(|ms| u64::try_from(ms).map_err(|_| RpcFault::invalid("wait_ms", "must not be negative")));
        let deadline = wait.transpose()?.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let lost_after_ms = u64::try_from(request.lost_after_ms).map_err(|_| RpcFault::invalid("lost_after_ms", "must not be negative"))?;
        let ask = LeaseAsk {
            worker: worker.clone(),
            queues: queues.clone(),
            max: AT_ONCE,
            ttl_ms: ttl_ms(request.visibility_timeout_seconds, request.lease_ttl_ms)?,
            begin: false,
            lost_after_ms: Some(lost_after_ms.min(MOST_PATIENCE_MS)).filter(|ms| *ms > 0),
        };
        let presence = info.is_none().then(|| worker::asker(&call, &worker, &queues, left));
        let line = call.engine().stand_in_line(LineKey { queues, serves: worker.serves, labels: worker.labels });
        let hand = Hand { engine: Arc::clone(call.engine()), leased: VecDeque::new() }.shared();
        let (standing, two_step, open) = (Standing::of(&call.caller), request.two_step, call.open_stream()?);
        let dequeue = Self {
            call,
            standing,
            presence,
            ask,
            line,
            turn: None,
            two_step,
            deadline,
            left,
            hand,
            asked_before: false,
            empty_handed: false,
            has_sent: false,
            _open: open,
        };
        dequeue.be_seen().await;
        Ok(dequeue)
    }

    /// Tells that a client is there which tells nothing of itself. It is a hint: that it is not kept costs nobody their lease.
    async fn be_seen(&self) {
        let (Some(presence), engine) = (&self.presence, self.call.engine()) else { return };
        let presence = Presence { seen_at: engine.now(), ..presence.clone() };
        if let Err(error) = engine.note_asker(presence).await {
            tracing::debug!(%error, "the presence of a client that asks for leases was not recorded");
        }
    }

    /// The next lease; `None` when the client has as many as it wanted or as there were, or has waited as long as it wanted.
    async fn next(&mut self) -> Result<Option<DequeueJobResponse>, RpcFault> {
        loop {
            if let Some(response) = self.send().await? {
                (self.left, self.has_sent) = (self.left - 1, true);
                return Ok(Some(response));
            }
            // A client may read to the end before it begins to work: with something in hand, it does not wait for more.
            let is_served = self.has_sent && (self.two_step || self.empty_handed);
            if self.left == 0 || is_served {
                return Ok(None);
            }
            if self.empty_handed && !self.wait().await? {
                return Ok(None);
            }
            self.lease().await?;
        }
    }

    /// Takes what is there. Whoever waited is looked at again first: a key that was revoked gets nothing.
    async fn lease(&mut self) -> Result<(), RpcFault> {
        if std::mem::replace(&mut self.asked_before, true) {
            self.standing.still_stands(&self.call.state, Action::Lease).await?;
            self.be_seen().await;
        }
        let engine = Arc::clone(self.call.engine());
        if engine.is_drained(self.ask.worker.id).await {
            if self.turn.take().is_some() {
                self.line.pass_on();
            }
            self.empty_handed = true;
            return Ok(());
        }
        let max = self.left.min(AT_ONCE);
        // The only one is sent in the same breath; of several each is begun as it is sent.
        let ask = LeaseAsk { max, begin: max == 1 && !self.two_step, ..self.ask.clone() };
        let most = ask.max.min(engine.ports().store.step_limits().leases);
        let holder = self.call.holder(ask.worker.id);
        let leasing = async move {
            let leased = engine.lease(&holder, ask).await?;
            Ok::<_, LeaseError>(Hand { leased: leased.into(), engine })
        };
        let hand = tokio::spawn(Box::pin(leasing)).await.map_err(|_| Fault::Panicked)??;
        self.turn = None;
        self.empty_handed = hand.leased.is_empty();
        if hand.leased.len() >= most {
            self.line.pass_on();
        }
        self.hand = hand.shared();
        Ok(())
    }

    /// Waits for work; whether there may be some.
    async fn wait(&mut self) -> Result<bool, RpcFault> {
        loop {
            let patience = self.deadline.unwrap_or_else(|| Instant::now() + LOOK_AT_CALLER);
            let state = &self.call.state;
            let work = async {
                state.engine.while_drained(self.ask.worker.id).await;
                state.engine.wait_for_work(&self.line, self.empty_handed).await
            };
            tokio::select! {
                turn = work => {
                    self.turn = Some(turn);
                    return Ok(true);
                }
                () = tokio::time::sleep_until(patience.min(Instant::now() + LOOK_AT_CALLER)) => {}
                () = state.stopping() => return Err(RpcFault::Stopping),
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            self.standing.still_stands(state, Action::Lease).await?;
            self.be_seen().await;
        }
    }

    /// Sends one of those in hand, if there are any.
    async fn send(&self) -> Result<Option<DequeueJobResponse>, RpcFault> {
        loop {
            let Some(mut one) = self.hand.lock().take_one() else { return Ok(None) };
            if !self.two_step && one.is_to_be_prepared() {
                match tokio::spawn(Box::pin(one.prepare())).await.map_err(|_| Fault::Panicked)?? {
                    Some(prepared) => one = prepared,
                    None => continue,
                }
            }
            // Before it counts as sent: one that cannot be told goes back.
            let Some(execution) = one.leased.front() else { continue };
            let job = job::job(self.call.engine(), execution).await?;
            let ring = self.call.engine().signing_ring().await?;
            return Ok(one.sent().map(|execution| self.response(&execution, job, &ring)));
        }
    }

    fn response(&self, execution: &Execution, mut job: Job, ring: &SigningRing) -> DequeueJobResponse {
        let account = Some(token::account_tag(&self.call.caller.account));
        let task = Task { account, ..Task::of(execution).expect("it was leased") };
        if let Some(params) = job.job_params.as_option_mut() {
            params.environment = execution.spec.env.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        let mut response = DequeueJobResponse {
            job: job.into(),
            task_token: token::issue(ring, &task),
            attempt: task.fence.attempt,
            lease_ttl_ms: self.ask.ttl_ms,
            ..DequeueJobResponse::default()
        };
        if self.two_step {
            (response.execution, response.spec) = (json(execution), json(&execution.spec));
        }
        response
    }
}

/// The queues that a request names; else those that the key is for, else the default one.
fn queues(call: &Call, request: &DequeueJobRequest) -> Result<Vec<Name>, RpcFault> {
    let mut queues =
        if request.queue.is_empty() { Vec::new() } else { worker::queues(call, "queue", std::slice::from_ref(&request.queue))? };
    let more = worker::queues(call, "queues", &request.queues)?;
    let more: Vec<Name> = more.into_iter().filter(|queue| !queues.contains(queue)).collect();
    queues.extend(more);
    if !queues.is_empty() {
        return Ok(queues);
    }
    match &call.caller.queues {
        Some(own) => Ok(own.clone()),
        None => Ok(vec![Name::new(DEFAULT_QUEUE).expect("a constant name")]),
    }
}

/// Leases that were taken and not sent; they go back when nobody holds the hand any more.
struct Hand {
    engine: Arc<Engine>,
    leased: VecDeque<Execution>,
}

impl Hand {
    /// The same, for as long as a client may take to read what is in it.
    fn shared(self) -> Arc<Mutex<Self>> {
        let waits = self.leased.len() > 1;
        let hand = Arc::new(Mutex::new(self));
        if waits {
            let watched = Arc::downgrade(&hand);
            tokio::spawn(async move {
                tokio::time::sleep(UNREAD).await;
                if let Some(hand) = watched.upgrade() {
                    hand.lock().give_back();
                }
            });
        }
        hand
    }

    fn take_one(&mut self) -> Option<Self> {
        let leased = self.leased.pop_front()?;
        Some(Self { engine: Arc::clone(&self.engine), leased: VecDeque::from([leased]) })
    }

    /// Whether the one in hand is to be begun, or has secrets.
    fn is_to_be_prepared(&self) -> bool {
        self.leased.iter().any(|execution| !is_begun(execution) || !execution.spec.secrets.is_empty())
    }

    /// Begins the one in hand and adds its secrets; `None` where it cannot be sent any more.
    async fn prepare(mut self) -> Result<Option<Self>, LeaseError> {
        let Some(task) = self.leased.front().filter(|execution| !is_begun(execution)).and_then(Task::of) else {
            return self.open_secrets().await;
        };
        match self.engine.send(&Holder::trusted(task.worker), task.fence).await {
            Ok(begun) => self.leased = VecDeque::from([begun]),
            // Somebody ended it in the meantime.
            Err(LeaseError::Lost(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        self.open_secrets().await
    }

    /// Adds the values of its secrets to the environment of the one in hand: whoever holds the lease may have them. An attempt that may not have them
    /// is over.
    async fn open_secrets(mut self) -> Result<Option<Self>, LeaseError> {
        if self.leased.iter().all(|execution| execution.spec.secrets.is_empty()) {
            return Ok(Some(self));
        }
        let Some(task) = self.leased.front().and_then(Task::of) else { return Ok(None) };
        match self.engine.materials(task.fence).await {
            Ok(materials) => {
                if let Some(execution) = self.leased.front_mut() {
                    execution.spec.env.extend(materials.secrets.into_iter().map(|secret| (secret.key_name, secret.value)));
                }
                Ok(Some(self))
            }
            Err(LeaseError::Refused(message)) => {
                self.leased.clear();
                let outcome = Outcome::Refused { message, category: Category::Auth };
                self.engine.finish(&Holder::trusted(task.worker), EndAttempt::of(task.fence, outcome)).await?;
                Ok(None)
            }
            // Somebody ended it in the meantime.
            Err(LeaseError::Lost(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The one in hand is the client's.
    fn sent(mut self) -> Option<Execution> {
        self.leased.pop_front()
    }

    fn give_back(&mut self) {
        let leases: Vec<(Task, bool)> = std::mem::take(&mut self.leased).iter().filter_map(lease_of).collect();
        if leases.is_empty() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move {
            for (task, is_begun) in leases {
                if let Err(error) = take_back(&engine, &task, is_begun).await {
                    tracing::warn!(%error, execution = %task.fence.execution, is_begun, "a lease that was not sent is left to expire");
                }
            }
        });
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A store that does not answer is asked again: an attempt that nobody runs would count.
async fn take_back(engine: &Engine, task: &Task, is_begun: bool) -> Result<(), LeaseError> {
    let holder = Holder::trusted(task.worker);
    let mut tries = 0;
    loop {
        let taken = match is_begun {
            true => engine.unsend(&holder, task.fence).await,
            false => engine.give_back(&holder, task.fence).await,
        };
        tries += 1;
        match taken {
            Err(LeaseError::Unavailable(_)) if tries < TAKE_BACK_TRIES => tokio::time::sleep(UNREAD).await,
            // It is another's by now, or has ended.
            Err(LeaseError::Lost(_)) => return Ok(()),
            taken => return taken,
        }
    }
}

/// The lease of an execution, and whether its attempt was begun.
fn lease_of(execution: &Execution) -> Option<(Task, bool)> {
    Some((Task::of(execution)?, is_begun(execution)))
}

fn is_begun(execution: &Execution) -> bool {
    execution.lease.as_ref().is_some_and(|lease| lease.begun)
}
