//! The seam of a worker elsewhere: leases by long polls, output through a write-ahead log, ends told until they are heard. What it says is in
//! [`crate::outbox`] and [`crate::courier`]; this file asks.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence};
use runvoy_model::execution::{Execution, KillRequest};
use runvoy_model::id::LeaseId;
use runvoy_model::job::Payload;
use runvoy_model::log::Block;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::lease::{LeaseError, Leases, Material, Materials};
use runvoy_rpc::job::v1::{BeginJobRequest, DequeueJobRequest, FetchMaterialsRequest, StoreBlobRequest, UpdateJobRequest, WorkerInfo};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::attendant::Attendant;
use crate::backoff::Backoff;
use crate::courier::{Courier, Patience};
use crate::desk::Desk;
use crate::errands::Errands;
use crate::fault::Fault;
use crate::leftover;
use crate::link::{Endpoint, Link};
use crate::offer::{self, Offer, Since};
use crate::outbox::{Outbox, Verdict};
use crate::refusal::Refusals;
use crate::wal::{Opening, Wal};

/// How long the server keeps a request for work waiting.
const WAIT: Duration = Duration::from_secs(25);
/// What is large may take this long.
const LARGE_WITHIN: Duration = Duration::from_secs(60);
const DENIED: &str = "the server no longer accepts the worker's key, so the worker killed the command";
const CUT_OFF: &str = "the worker could not reach the server for too long, and killed the command";

/// What a worker elsewhere can be told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the server is.
    pub endpoint: Endpoint,
    /// Who asks.
    pub worker: WorkerInfo,
    /// The queues that it serves.
    pub queues: Vec<Name>,
    /// How long its leases last.
    pub lease_ttl: Duration,
    /// What nobody else will run may go on for so long without the server.
    pub lost_after: Duration,
    /// Where write-ahead logs are. Nobody else uses this directory.
    pub dir: PathBuf,
}

/// Work from a server elsewhere.
pub struct RemoteLeases {
    link: Arc<Link>,
    config: Config,
    clock: Arc<dyn Clock>,
    held: Mutex<HashMap<LeaseId, Held>>,
    errands: Errands,
    backoff: Mutex<Backoff>,
    refusals: Mutex<Refusals>,
    closing: watch::Sender<bool>,
    denied: watch::Sender<Option<Fault>>,
    /// The last extend that was answered said that the key is not taken.
    is_key_refused: AtomicBool,
}

/// A lease that an attempt runs under.
#[derive(Clone)]
struct Held {
    token: String,
    since: Since,
    outbox: Arc<Outbox>,
    /// The server said that the lease is over, and why.
    over: Option<String>,
}

impl RemoteLeases {
    /// Work from this server. Nothing is asked yet.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Self {
        let within = (config.lease_ttl / 3).clamp(Duration::from_millis(500), Duration::from_secs(10));
        let link = Arc::new(Link::new(config.endpoint.clone(), within));
        Self {
            link,
            config,
            clock,
            held: Mutex::default(),
            errands: Errands::new(),
            backoff: Mutex::default(),
            refusals: Mutex::default(),
            closing: watch::Sender::new(false),
            denied: watch::Sender::new(None),
            is_key_refused: AtomicBool::new(false),
        }
    }

    /// Whoever speaks for this worker.
    pub fn attendant(&self) -> Attendant {
        Attendant {
            link: Arc::clone(&self.link),
            info: self.config.worker.clone(),
            queues: self.config.queues.clone(),
            since: self.clock.now(),
            is_back: tokio::sync::Notify::new(),
        }
    }

    /// Comes back when the server has refused this worker for good: its key, or its queues.
    pub async fn denied(&self) -> Fault {
        let mut denied = self.denied.subscribe();
        let denied = denied.wait_for(Option::is_some).await.expect("the sender is here");
        denied.clone().expect("just seen")
    }

    /// Brings what a worker left here that died; how many attempts. Its commands must be gone.
    pub async fn take_up(&self) -> std::io::Result<usize> {
        let (dir, address, clock) = (self.config.dir.clone(), self.link.address().clone(), Arc::clone(&self.clock));
        let found = tokio::task::spawn_blocking(move || leftover::find(&dir, &address, &*clock)).await.map_err(std::io::Error::other)??;
        let count = found.len();
        for outbox in found {
            self.send(outbox);
        }
        Ok(count)
    }

    fn send(&self, outbox: Arc<Outbox>) {
        let patience = Patience { lease_ttl: self.config.lease_ttl, lost_after: self.config.lost_after };
        self.errands.send(Courier::new(Arc::clone(&self.link), outbox, Arc::clone(&self.clock)).patient(patience).run());
    }

    /// Of how many attempts, those that run too, the server has not heard everything.
    pub fn untold(&self) -> usize {
        self.errands.count()
    }

    /// Waits until the server has heard everything, or does not want to.
    pub async fn told_all(&self) {
        self.errands.done().await;
    }

    fn held(&self, fence: Fence) -> Result<Held, LeaseError> {
        let held = self.held.lock().get(&fence.lease).cloned();
        held.ok_or_else(|| LeaseError::Lost("this worker does not hold the lease".to_owned()))
    }

    /// Asks for work and waits for it; what was handed out, and how much of it was handed back because nobody here understands it.
    async fn wait_for_offers(&self, max: usize) -> Result<(Vec<Offer>, usize), Fault> {
        let request = DequeueJobRequest {
            max_jobs: i32::try_from(max).unwrap_or(i32::MAX),
            worker: self.config.worker.clone().into(),
            queues: self.config.queues.iter().map(ToString::to_string).collect(),
            two_step: true,
            wait_ms: Some(ms(WAIT)),
            lease_ttl_ms: ms(self.config.lease_ttl),
            lost_after_ms: ms(self.config.lost_after),
            ..Default::default()
        };
        let (within, mut closing) = (WAIT + self.link.within(), self.closing.subscribe());
        let asked = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return Ok((Vec::new(), 0)),
            asked = self.link.call(within, |server| async move { server.dequeue_job(request).await }) => asked?,
        };
        let messages = stream::unfold(asked, |mut stream| async move {
            let message = stream.message().await.map_err(|error| Fault::of(&error)).transpose()?;
            Some((message.map(|message| message.to_owned_message()), stream))
        });
        let (mut offers, mut unreadable) = (Vec::new(), 0);
        for offer in offer::read(messages.boxed(), within, &*self.clock, closing).await? {
            match offer {
                Ok(offer) => offers.push(offer),
                Err((token, why)) => {
                    tracing::error!(why, "a lease cannot be understood: the server is of another version");
                    unreadable += 1;
                    self.link.release(&token).await.ok();
                }
            }
        }
        Ok((offers, unreadable))
    }

    /// Makes an offer an attempt; `None` where that could not be, and then it was handed back.
    async fn begin(&self, offer: Offer) -> Option<Execution> {
        let lease = offer.execution.lease.as_ref()?;
        let fence = Fence { execution: offer.execution.id, attempt: lease.attempt, lease: lease.id };
        let opening = Opening { endpoint: self.link.address().to_string(), token: offer.token.clone(), fence };
        let dir = self.config.dir.clone();
        let created =
            tokio::task::spawn_blocking(move || Wal::create(&dir, opening)).await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let outbox = match created {
            Ok(wal) => Outbox::new(wal),
            Err(error) => {
                tracing::error!(execution = %fence.execution, %error, "a write-ahead log cannot be created: the lease is returned");
                self.link.release(&offer.token).await.ok();
                return None;
            }
        };
        match self.ask_to_begin(&offer).await {
            Some(execution) => {
                let held = Held { token: offer.token, since: offer.since, outbox: Arc::clone(&outbox), over: None };
                self.held.lock().insert(fence.lease, held);
                self.send(outbox);
                Some(execution)
            }
            None => {
                outbox.leave("it was not begun in time");
                self.send(outbox);
                None
            }
        }
    }

    /// Repeats after a lost answer, for as long as the lease holds: a second begin is the first one.
    async fn ask_to_begin(&self, offer: &Offer) -> Option<Execution> {
        let mut backoff = Backoff::default();
        while offer.since.instant(&*self.clock).elapsed() < self.config.lease_ttl && !*self.closing.borrow() {
            let request = BeginJobRequest { task_token: offer.token.clone(), ..Default::default() };
            match self.link.call(self.link.within(), |server| async move { server.begin_job(request).await }).await {
                Ok(answer) => match serde_json::from_slice::<Execution>(&answer.into_owned().execution) {
                    Ok(execution) => return Some(Execution { spec: offer.spec.clone(), ..execution }),
                    Err(error) => {
                        tracing::error!(%error, "the server's answer cannot be understood: it is of another version");
                        return None;
                    }
                },
                Err(Fault::Lost(why) | Fault::Refused(why)) => {
                    tracing::info!(execution = %offer.execution.id, why, "a lease was not started");
                    return None;
                }
                Err(fault) => {
                    tracing::warn!(execution = %offer.execution.id, %fault, "a lease could not be started yet: trying again");
                    sleep(backoff.next()).await;
                }
            }
        }
        None
    }

    /// Remembers whether the server takes the key. One that has every place taken asks for no work: it hears so from its extends alone.
    fn note_key(&self, fault: Option<&Fault>) {
        match fault {
            None => self.is_key_refused.store(false, Ordering::Relaxed),
            Some(fault @ Fault::Key(_)) => {
                if !self.is_key_refused.swap(true, Ordering::Relaxed) {
                    tracing::error!(%fault, "no lease can be extended: commands are killed before their leases expire");
                }
                self.denied.send_if_modified(|denied| {
                    let is_new = denied.is_none();
                    if is_new {
                        *denied = Some(fault.clone());
                    }
                    is_new
                });
            }
            Some(_) => {}
        }
    }

    /// What the server says of a lease; that it is over is remembered.
    fn answered<T>(&self, fence: Fence, asked: Result<T, Fault>) -> Result<T, LeaseError> {
        if let Err(Fault::Lost(why)) = &asked
            && let Some(held) = self.held.lock().get_mut(&fence.lease)
        {
            held.over = Some(why.clone());
        }
        asked.map_err(Fault::into_lease_error)
    }

    /// Whether there will be no work for this worker any more.
    fn is_for_good(&self, fault: &Fault) -> bool {
        let mut refusals = self.refusals.lock();
        match fault {
            Fault::Key(_) => true,
            Fault::Refused(_) => refusals.again(),
            Fault::Away(_) | Fault::Lost(_) | Fault::Damaged(_) => {
                refusals.reset();
                false
            }
        }
    }

    /// Waits before work is asked for again, or for good where there will be none.
    async fn rest(&self, fault: Fault) {
        let mut closing = self.closing.subscribe();
        let rest = async {
            if self.is_for_good(&fault) {
                tracing::error!(%fault, "cannot get work");
                self.denied.send_replace(Some(fault));
                return std::future::pending().await;
            }
            let wait = self.backoff.lock().next();
            tracing::warn!(%fault, again_in_ms = wait.as_millis(), "could not get work");
            sleep(wait).await;
        };
        tokio::select! {
            () = rest => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
}

#[async_trait]
impl Leases for RemoteLeases {
    /// The wait is part of the lease.
    async fn wait_for_work(&self) {}

    async fn lease(&self, max: usize) -> Result<Vec<Execution>, LeaseError> {
        match self.wait_for_offers(max).await {
            Ok((offers, unreadable)) => {
                self.refusals.lock().reset();
                let handed_out = offers.len() + unreadable;
                let begun: Vec<Execution> =
                    join_all(offers.into_iter().map(|offer| self.begin(offer))).await.into_iter().flatten().collect();
                if begun.is_empty() && handed_out > 0 {
                    // It went back to its place, and would be handed out again at once.
                    self.rest(Fault::Away("none of the leases could be started".to_owned())).await;
                } else {
                    self.backoff.lock().reset();
                }
                Ok(begun)
            }
            Err(fault) => {
                self.rest(fault).await;
                Ok(Vec::new())
            }
        }
    }

    async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError> {
        let request = FetchMaterialsRequest { task_token: self.held(fence)?.token, ..Default::default() };
        let asked = self.link.call(LARGE_WITHIN, |server| async move { server.fetch_materials(request).await }).await;
        let answer = self.answered(fence, asked)?.into_owned();
        if let Some(why) = answer.refused {
            return Err(LeaseError::Refused(why));
        }
        let git_token = answer.git_token.into_option().map(material).transpose()?;
        let secrets = answer.secrets.into_iter().map(material).collect::<Result<_, _>>()?;
        Ok(Materials { secrets, git_token, input: answer.input.map(|input| input.to_vec()), reserved: None })
    }

    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError> {
        let Held { token, outbox, .. } = self.held(extend.fence)?;
        let request = UpdateJobRequest {
            task_token: token,
            lease_ttl_ms: i64::try_from(extend.ttl_ms).unwrap_or(i64::MAX),
            process_id: extend.process_id,
            rss_bytes: extend.rss_bytes,
            last_output_at_ms: extend.last_output_at.map(|at| at.0),
            activity_json: extend.activity.map(|activity| activity.to_string()).unwrap_or_default(),
            preparing: extend.preparing.unwrap_or_default(),
            ..Default::default()
        };
        let asked = self.link.call(self.link.within(), |server| async move { server.update_job(request).await }).await;
        self.note_key(asked.as_ref().err());
        let answer = self.answered(extend.fence, asked)?.into_owned();
        outbox.note_heard();
        let kill = answer.kill.into_option().map(|kill| KillRequest { by: kill.by, at: UnixMs(kill.at_ms), force: kill.force });
        Ok(Extended { ttl_ms: answer.lease_ttl_ms, kill })
    }

    async fn append(&self, fence: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError> {
        self.held(fence)?.outbox.append(first_seq, block).await
    }

    async fn put_blob(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError> {
        let request = StoreBlobRequest { task_token: self.held(fence)?.token, data: bytes.into(), ..Default::default() };
        let asked = self.link.call(LARGE_WITHIN, |server| async move { server.store_blob(request).await }).await;
        let answer = self.answered(fence, asked)?.into_owned();
        match answer.refused {
            Some(why) => Err(LeaseError::Refused(why)),
            None => serde_json::from_slice(&answer.payload).map_err(|error| LeaseError::Refused(format!("the server's answer: {error}"))),
        }
    }

    async fn finish(&self, ended: EndAttempt) -> Result<Execution, LeaseError> {
        let held = self.held(ended.fence)?;
        match held.outbox.finish(serde_json::to_vec(&ended).expect("plain data")).await {
            Verdict::Lost(why) => Err(LeaseError::Lost(why)),
            Verdict::Told(execution) => serde_json::from_slice(&execution)
                .map_err(|error| LeaseError::Lost(format!("the request arrived, but its answer is unknown: {error}"))),
        }
    }

    fn close(&self) {
        self.closing.send_replace(true);
    }

    fn held_since(&self, fence: Fence) -> Option<Instant> {
        self.held.lock().get(&fence.lease).map(|held| held.since.instant(&*self.clock))
    }

    fn is_denied(&self) -> bool {
        self.is_key_refused.load(Ordering::Relaxed)
    }

    fn leave(&self, fence: Fence) {
        if let Some(held) = self.held.lock().remove(&fence.lease) {
            held.outbox.leave(&why_left(held.over.as_deref(), self.is_denied()));
        }
    }
}

/// What became of an attempt whose end nobody told: what the server said of it, or that it could not be asked.
fn why_left(over: Option<&str>, is_denied: bool) -> String {
    match over {
        Some(why) => format!("the server ended the lease, so the worker killed the command: {why}"),
        None if is_denied => DENIED.to_owned(),
        None => CUT_OFF.to_owned(),
    }
}

fn material(material: runvoy_rpc::job::v1::Material) -> Result<Material, LeaseError> {
    let name = Name::new(material.name).map_err(|error| LeaseError::Refused(format!("the server's answer: {error}")))?;
    Ok(Material { name, key_name: material.key_name, value: material.value })
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
