//! Who works here, as the roster and the open leases say and as was last looked at. It answers what people ask (which workers are there, does anybody serve a
//! queue) and decides nothing: a lease is given to whoever asks for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::execution::Execution;
use runvoy_model::id::WorkerId;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::spec::{LOCAL_IMAGE, Needs, Spec};
use runvoy_model::status::{WaitCode, WaitingFor};
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::store::OpenLease;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::holding::Holdings;
use crate::overrun::FOREIGN_RUNNER;

/// How often a worker says that it is there.
const EVERY: Duration = Duration::from_secs(5);
/// Whoever asks for leases or holds some and says nothing else is noted no more often than that.
const ASKER_EVERY_MS: i64 = 5_000;
/// Whoever was not heard of for so long is forgotten.
const FORGOTTEN_AFTER_MS: i64 = 24 * 3600 * 1_000;
/// That is looked for once in so many rounds: every ten minutes.
const FORGET_EVERY: u32 = 120;

/// So many workers of one account are on the roster. Nothing else bounds it: a worker names itself.
const MOST_OF_ACCOUNT: usize = 1_000;

/// Who takes an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// No worker serves its queue.
    Nobody,
    /// An admin drains those that serve its queue.
    Drained,
    /// Those that serve its queue lack a label.
    Unfit,
    Somebody,
}

/// What is known of the workers.
#[derive(Default)]
pub(crate) struct Attendance(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// `None` until the roster was looked at.
    present: Option<HashMap<WorkerId, Presence>>,
    holdings: Holdings,
}

impl Attendance {
    /// Takes in what the roster says; returns it with what the leases say.
    fn set(&self, mut present: Vec<Presence>, now: UnixMs) -> Vec<Presence> {
        let mut known = self.0.lock();
        present.iter_mut().for_each(|presence| known.holdings.tell(presence, now));
        known.present = Some(present.iter().map(|presence| (presence.worker, presence.clone())).collect());
        present
    }

    /// Whether the leases were looked at just before.
    fn has_looked_at_leases(&self, now: UnixMs) -> bool {
        self.0.lock().holdings.are_fresh(now)
    }

    /// Takes in which leases are open.
    pub(crate) fn hold(&self, leases: &[OpenLease], now: UnixMs) {
        let holdings = Holdings::of(leases, now);
        let mut known = self.0.lock();
        known.present.iter_mut().flat_map(HashMap::values_mut).for_each(|presence| holdings.tell(presence, now));
        known.holdings = holdings;
    }

    fn add(&self, mut presence: Presence, now: UnixMs) {
        let mut known = self.0.lock();
        known.holdings.tell(&mut presence, now);
        if let Some(present) = known.present.as_mut() {
            present.insert(presence.worker, presence);
        }
    }

    /// Since when a worker that asks is there; `None` where it was noted just before.
    fn since(&self, asker: &Presence) -> Option<UnixMs> {
        let known = self.0.lock();
        match known.present.as_ref().and_then(|present| present.get(&asker.worker)) {
            Some(known) if asker.seen_at.ms_since(known.seen_at) < ASKER_EVERY_MS => None,
            Some(known) if known.is_live(asker.seen_at) => Some(known.since),
            _ => Some(asker.since),
        }
    }

    /// A worker that says nothing of itself is heard of now; what there is to note, where that was not done just before.
    fn heard(&self, worker: WorkerId, now: UnixMs) -> Option<Presence> {
        let mut known = self.0.lock();
        let presence = known.present.as_mut()?.get_mut(&worker)?;
        if presence.runner != FOREIGN_RUNNER || now.ms_since(presence.seen_at) < ASKER_EVERY_MS {
            return None;
        }
        presence.seen_at = now;
        Some(presence.clone())
    }

    fn remove(&self, worker: WorkerId) {
        if let Some(present) = self.0.lock().present.as_mut() {
            present.remove(&worker);
        }
    }

    /// What a worker is known as.
    fn name_of(&self, worker: WorkerId) -> Option<String> {
        self.0.lock().present.as_ref()?.get(&worker).map(|known| known.name.clone())
    }

    /// The name of a worker: what it calls itself, with a number where another worker is called so. It stays, also for a later start of the worker.
    fn name_for(&self, worker: &Presence, reserved: Option<&str>, now: UnixMs) -> String {
        let known = self.0.lock();
        let own = &worker.name;
        // The worker inside the server has its machine's name to itself, and one that says nothing of itself is known by its account.
        let is_numbered_here = !worker.in_process && worker.runner != FOREIGN_RUNNER;
        let Some(present) = known.present.as_ref().filter(|_| is_numbered_here) else { return own.clone() };
        let others = present.values().filter(|other| !other.is_start_of(worker) && other.is_live(now));
        let taken: HashSet<&str> = others.map(|other| other.name.as_str()).chain(reserved).collect();
        let starts = present.values().filter(|other| other.is_start_of(worker) && is_numbered(&other.name, own));
        let newest = starts.max_by_key(|start| (start.worker == worker.worker, start.seen_at)).map(|start| start.name.clone());
        let numbered = std::iter::once(own.clone()).chain((2_u32..).map(|number| format!("{own}-{number}")));
        newest.into_iter().chain(numbered).find(|name| !taken.contains(name.as_str())).unwrap_or_else(|| own.clone())
    }

    fn is_known(&self) -> bool {
        self.0.lock().present.is_some()
    }

    /// Whether anybody on the roster names this queue, heard of lately or not.
    fn names(&self, queue: &Name) -> bool {
        self.0.lock().present.as_ref().is_some_and(|present| present.values().any(|worker| worker.queues.contains(queue)))
    }

    /// Whether this worker is there and somebody else's.
    fn is_others(&self, worker: WorkerId, account: Option<&Name>) -> bool {
        let is_others = |known: &Presence| known.in_process || known.account.as_ref() != account;
        self.0.lock().present.as_ref().and_then(|present| present.get(&worker)).is_some_and(is_others)
    }

    /// Whose place a newcomer takes, where its account has as many workers as it may have; an error where all of those are there.
    fn displaced(&self, newcomer: &Presence, now: UnixMs) -> Result<Option<WorkerId>, EngineError> {
        let known = self.0.lock();
        let Some(present) = known.present.as_ref().filter(|present| !present.contains_key(&newcomer.worker)) else { return Ok(None) };
        let of_account = || present.values().filter(|known| !known.in_process && known.account == newcomer.account);
        if of_account().count() < MOST_OF_ACCOUNT {
            return Ok(None);
        }
        let gone = of_account().filter(|known| !known.is_live(now)).min_by_key(|known| known.seen_at);
        gone.map(|oldest| Some(oldest.worker)).ok_or(EngineError::Overloaded)
    }

    /// Whether anybody who is there is like this; `None` where nobody looked yet.
    fn any(&self, now: UnixMs, fits: impl Fn(&Presence) -> bool) -> Option<bool> {
        self.0.lock().present.as_ref().map(|present| present.values().any(|worker| worker.is_live(now) && fits(worker)))
    }
}

/// Whether a name is another one, with a number or without.
fn is_numbered(name: &str, own: &str) -> bool {
    let Some(rest) = name.strip_prefix(own) else { return false };
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

impl Engine {
    /// Refuses whoever speaks for a worker that is there and not of this account.
    pub async fn may_speak_for(&self, worker: WorkerId, account: Option<&Name>) -> Result<(), EngineError> {
        self.look_at_workers_once().await?;
        if self.attendance.is_others(worker, account) {
            return Err(EngineError::Denied { rule: None, why: format!("worker {worker} does not belong to this account") });
        }
        Ok(())
    }

    pub(crate) async fn look_at_workers_once(&self) -> Result<(), EngineError> {
        if !self.attendance.is_known() {
            self.look_at_workers().await?;
        }
        Ok(())
    }

    async fn look_at_workers(&self) -> Result<Vec<Presence>, EngineError> {
        self.look_at_leases().await?;
        let present = self.ports.roster.present().await?;
        Ok(self.attendance.set(present, self.now()))
    }

    /// Looks at who holds what, unless the reaper has just done so.
    async fn look_at_leases(&self) -> Result<(), EngineError> {
        if !self.attendance.has_looked_at_leases(self.now()) {
            let leases = self.ports.store.open_leases().await?;
            self.attendance.hold(&leases, self.now());
        }
        Ok(())
    }

    /// A worker says what it is and that it is there; the name that it is known by. Of one account so many are remembered; the one that was not heard of
    /// for longest goes first.
    pub async fn note_worker(&self, presence: Presence) -> Result<String, EngineError> {
        if !presence.in_process {
            self.look_at_workers_once().await?;
            if let Some(displaced) = self.attendance.displaced(&presence, self.now())? {
                self.worker_left(displaced).await?;
            }
        }
        let reserved = (self.config.concurrency > 0).then_some(self.worker.host.as_str());
        let name = self.attendance.name_for(&presence, reserved, self.now());
        let presence = Presence { name: name.clone(), ..presence };
        self.attendance.add(presence.clone(), self.now());
        self.ports.roster.note(presence).await?;
        Ok(name)
    }

    /// What a worker is known as.
    pub(crate) fn worker_name(&self, worker: WorkerId) -> Option<String> {
        let own = || (worker == self.worker.id).then(|| self.worker.host.clone());
        self.attendance.name_of(worker).or_else(own)
    }

    /// Notes a worker that asks for leases and says nothing else of itself, however often it asks. It never says that it goes: it is there until it was not
    /// heard of for a while and holds nothing.
    pub async fn note_asker(&self, presence: Presence) -> Result<(), EngineError> {
        self.look_at_workers_once().await?;
        match self.attendance.since(&presence) {
            Some(since) => self.note_worker(Presence { since, ..presence }).await.map(drop),
            None => Ok(()),
        }
    }

    /// Notes that such a worker said something of a lease. Most of the time that is a look into memory: whoever ends an attempt waits for no more.
    pub async fn note_holder(&self, worker: WorkerId) -> Result<(), EngineError> {
        match self.attendance.heard(worker, self.now()) {
            Some(presence) => Ok(self.ports.roster.note(presence).await?),
            None => Ok(()),
        }
    }

    /// The key of an account works no more. Workers that say nothing of themselves go with it: what they hold would keep them here.
    pub(crate) async fn account_ended(&self, account: &Name) {
        let leaving = async {
            for worker in self.ports.roster.present().await? {
                if worker.runner == FOREIGN_RUNNER && worker.account.as_ref() == Some(account) {
                    self.worker_left(worker.worker).await?;
                }
            }
            Ok::<_, EngineError>(())
        };
        if let Err(error) = leaving.await {
            tracing::warn!(%error, %account, "workers of an account whose key is no longer valid are shown until their leases expire");
        }
    }

    /// A worker says that it goes.
    pub async fn worker_left(&self, worker: WorkerId) -> Result<(), EngineError> {
        self.attendance.remove(worker);
        Ok(self.ports.roster.leave(worker).await?)
    }

    /// Every worker that was heard of within a day and has not left, by name.
    pub async fn workers(&self, caller: &Caller) -> Result<Vec<Presence>, EngineError> {
        caller.may(Action::ReadQueues)?;
        let mut workers = self.look_at_workers().await?;
        self.look_at_drains().await?;
        self.tell_drains(&mut workers);
        Ok(workers)
    }

    /// Whether anybody has heard of a queue: the worker of this server, an admin, an account of workers or a worker that is on the roster. One that is silent
    /// for a while counts: its queue is no typing error.
    pub async fn knows_queue(&self, queue: &Name) -> Result<bool, EngineError> {
        if self.config.queues.contains(queue) || self.ports.records.record(Kind::Queue, queue.as_str()).await?.is_some() {
            return Ok(true);
        }
        let serves = |account: &runvoy_model::worker::WorkerAccount| account.revoked_at.is_none() && account.queues.contains(queue);
        if self.all(Kind::Worker).await?.iter().filter_map(Record::worker).any(serves) {
            return Ok(true);
        }
        if self.attendance.names(queue) {
            return Ok(true);
        }
        let present = self.ports.roster.present().await?;
        self.attendance.set(present, self.now());
        Ok(self.attendance.names(queue))
    }

    /// What an execution waits for, with what only the engine knows.
    pub fn waiting_for(&self, execution: &Execution) -> Option<WaitingFor> {
        let waiting = execution.waiting_for(self.now())?;
        let waits_for_worker = execution.preparing().is_none() && matches!(waiting.code, WaitCode::Image | WaitCode::Worker);
        Some(self.unserved(&execution.spec).filter(|_| waits_for_worker).unwrap_or(waiting))
    }

    /// What this would wait for; `None` where somebody who is there can run it, or that is not known.
    pub(crate) fn unserved(&self, spec: &Spec) -> Option<WaitingFor> {
        // Whoever speaks it need not say that it is there: nobody knows that there is none.
        if spec.is_for_job_v1() {
            return None;
        }
        let (needs, queue) = (spec.needs(), &spec.queue);
        let (code, message) = match (needs, self.takes(needs, spec)?) {
            (Needs::Image, Taker::Nobody) => {
                (WaitCode::Image, format!("a worker that can run image {}: the connected workers run only image {LOCAL_IMAGE}", spec.image))
            }
            (Needs::Image, Taker::Drained) => {
                (WaitCode::Image, format!("a worker that can run image {}: all that can are drained", spec.image))
            }
            (Needs::Process, Taker::Drained) => (WaitCode::Worker, format!("a worker: all workers of queue {queue} are drained")),
            (Needs::Process, Taker::Nobody) => (WaitCode::Worker, format!("a worker: no worker serves queue {queue}")),
            (Needs::Process, Taker::Unfit) => (
                WaitCode::Worker,
                format!("a free worker of queue {queue}{}: no worker of queue {queue} has these labels", spec.asked_labels()),
            ),
            (Needs::Image, Taker::Unfit) | (_, Taker::Somebody) => return None,
        };
        Some(WaitingFor { code, message })
    }

    /// Who takes executions like this one; `None` where that is not known.
    fn takes(&self, needs: Needs, spec: &Spec) -> Option<Taker> {
        let is_drained = |worker: &str| self.drain_of(worker).is_some();
        let is_able = self.config.concurrency > 0 && self.config.queues.contains(&spec.queue) && self.worker.serves.contains(&needs);
        let is_own = is_able && !self.worker_name(self.worker.id).is_some_and(|name| is_drained(&name));
        let could = |worker: &Presence| worker.worker != self.worker.id && worker.serves(&spec.queue) && has_runner(worker, needs);
        let serves = |worker: &Presence| could(worker) && !is_drained(&worker.name);
        let now = self.now();
        let other = self.attendance.any(now, serves);
        let fits = self.attendance.any(now, |worker| serves(worker) && spec.fits(&worker.labels));
        if is_own && spec.fits(&self.worker.labels) || fits == Some(true) {
            return Some(Taker::Somebody);
        }
        // Without a look at the others, what they do on a store that is shared is not known.
        if other.is_none() && self.config.shares_store() {
            return None;
        }
        Some(if is_own || other == Some(true) {
            Taker::Unfit
        } else if is_able || self.attendance.any(now, could) == Some(true) {
            Taker::Drained
        } else {
            Taker::Nobody
        })
    }

    /// What the worker of this server says of itself; `None` without one.
    fn own_presence(&self, since: UnixMs) -> Option<Presence> {
        let slots = self.slots.get()?;
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Presence {
            worker: self.worker.id,
            account: None,
            name: self.worker.host.clone(),
            host: self.worker.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runner: self.worker.runner.clone(),
            queues: self.config.queues.clone(),
            labels: self.worker.labels.clone(),
            concurrency: small(self.config.concurrency),
            running: small(slots.running()),
            in_process: true,
            draining: slots.is_draining(),
            since,
            seen_at: self.now(),
            busy_until: None,
            place: None,
        })
    }
}

/// The agent: the worker of this server says that it is there, the others are looked at, and who is long gone is forgotten.
pub struct RollCall {
    engine: Arc<Engine>,
    since: UnixMs,
}

impl RollCall {
    /// An agent for this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        let since = engine.now();
        Self { engine, since }
    }

    /// Calls the roll every few seconds, until dropped.
    pub async fn run(self) {
        let mut round: u32 = 0;
        loop {
            if let Err(error) = self.call(round.is_multiple_of(FORGET_EVERY)).await {
                tracing::warn!(%error, "the roster of workers was not read");
            }
            round = round.wrapping_add(1);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// One round.
    pub async fn call(&self, forget: bool) -> Result<(), EngineError> {
        let engine = &self.engine;
        if let Some(own) = engine.own_presence(self.since) {
            engine.note_worker(own).await?;
        }
        if forget {
            engine.ports.roster.forget(engine.now().plus_ms(-FORGOTTEN_AFTER_MS)).await?;
        }
        engine.look_at_drains().await?;
        engine.look_at_leases().await?;
        let (gone, present): (Vec<_>, Vec<_>) = engine.ports.roster.present().await?.into_iter().partition(|worker| engine.is_gone(worker));
        engine.attendance.set(present, engine.now());
        for worker in gone {
            engine.ports.roster.leave(worker.worker).await?;
        }
        Ok(())
    }
}

impl Engine {
    /// The worker of this server goes.
    pub async fn leave_roster(&self) -> Result<(), EngineError> {
        if self.slots.get().is_some() { self.worker_left(self.worker.id).await } else { Ok(()) }
    }

    /// In-process workers of earlier starts of this very server are known to be gone.
    fn is_gone(&self, worker: &Presence) -> bool {
        worker.in_process && worker.worker != self.worker.id && self.config.predecessors.contains(worker.worker)
    }
}
/// Whether a worker has a runner for this need. Workers of this program name theirs, such as `process, container (Docker 20.10.24)`; what others
/// name is not known, and may run anything.
fn has_runner(worker: &Presence, needs: Needs) -> bool {
    let runners = worker.runner.split(", ");
    match needs {
        Needs::Process => runners.into_iter().any(|runner| !runner.starts_with("container")),
        Needs::Image => runners.into_iter().any(|runner| runner != "process"),
    }
}
