//! Our side: the real binary without a worker of its own, and clients that enqueue, lease and finish over gRPC as those elsewhere do.
//!
//! As many are leased as were enqueued, so that what waits in the queue before stays as much as it was.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use runvoy_rpc::connectrpc::Protocol;
use runvoy_rpc::connectrpc::client::{ClientConfig, Http2Connection, SharedHttp2Connection};
use runvoy_rpc::job::v1::{
    CompleteJobRequest, CompleteJobsRequest, DequeueJobRequest, EnqueueJobRequest, EnqueueJobsRequest, JobParams, JobResult,
    JobServiceClient,
};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::server::{Home, Server};

type Client = JobServiceClient<SharedHttp2Connection>;

/// Requests that share a connection, well below what the server lets one have open.
const REQUESTS_EACH: u64 = 100;
/// Cycles that share a stream of leases, or calls that enqueue many.
const CYCLES_EACH: u64 = 32;
/// Submits in one call while the queue is filled.
const FILL_BATCH: u64 = 500;
/// Calls under way at once while the queue is filled.
const FILL_CALLS: usize = 4;

/// How a client talks to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// One call for each enqueue and for each finish.
    Single,
    /// What is there to enqueue or to finish goes in one call, up to a hundred.
    Batched,
}

/// A running server and its clients.
pub struct Ours {
    server: Server,
    _home: Home,
    runtime: Runtime,
    clients: Vec<Client>,
}

impl Ours {
    /// Starts the server, and connects for `in_flight` cycles at once.
    pub fn start(binary: &Path, in_flight: u64) -> Result<Ours> {
        let home = Home::new(binary)?;
        let server = home.start(&["--no-worker"])?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let uri = format!("http://{}", server.endpoint.address).parse().context("an address is a URI")?;
        let config = ClientConfig::new(uri).with_protocol(Protocol::Grpc);
        let config = config.with_default_header("authorization", format!("Bearer {}", server.endpoint.key));
        let connect = async {
            let mut clients = Vec::new();
            for _ in 0..in_flight.div_ceil(REQUESTS_EACH).max(1) {
                let connection = Http2Connection::connect_plaintext(config.base_uri().clone()).await?;
                clients.push(JobServiceClient::new(connection.shared(1_024), config.clone()));
            }
            anyhow::Ok(clients)
        };
        let clients = runtime.block_on(connect)?;
        Ok(Ours { server, _home: home, runtime, clients })
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Puts `count` executions into the queue that nobody takes.
    pub fn fill(&self, count: u64) -> Result<()> {
        let left = Arc::new(AtomicU64::new(count));
        let fill = |client: Client, left: Arc<AtomicU64>| async move {
            loop {
                let rest = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(FILL_BATCH)));
                let batch = rest.unwrap_or(0).min(FILL_BATCH);
                if batch == 0 {
                    return anyhow::Ok(());
                }
                enqueue_many(&client, batch).await?;
            }
        };
        self.runtime.block_on(async {
            let mut calls = JoinSet::new();
            for index in 0..FILL_CALLS {
                calls.spawn(fill(self.clients[index % self.clients.len()].clone(), Arc::clone(&left)));
            }
            all(calls).await
        })
    }

    /// Turns cycles for `time`, `in_flight` of them open at once, then lets those that are open end.
    pub fn turn(&self, calls: Calls, in_flight: u64, time: Duration) -> Result<u64> {
        self.runtime.block_on(turn(&self.clients, calls, in_flight, time))
    }
}

async fn turn(clients: &[Client], calls: Calls, in_flight: u64, time: Duration) -> Result<u64> {
    let end = Instant::now() + time;
    let open = Arc::new(Semaphore::new(usize::try_from(in_flight)?));
    let done = Arc::new(AtomicU64::new(0));
    let (enqueued, waiting) = mpsc::unbounded_channel();
    let waiting = Arc::new(Mutex::new(waiting));
    let mut tasks = JoinSet::new();
    let client = |index: u64| clients[usize::try_from(index).unwrap_or(0) % clients.len()].clone();
    let streams = in_flight.div_ceil(CYCLES_EACH);
    let producers = if calls == Calls::Single { in_flight } else { streams };
    for index in 0..producers {
        tasks.spawn(produce(client(index), calls, Arc::clone(&open), enqueued.clone(), end));
    }
    drop(enqueued);
    for index in 0..streams {
        let worker = Consumer { client: client(index), calls, open: Arc::clone(&open), done: Arc::clone(&done) };
        tasks.spawn(worker.consume(Arc::clone(&waiting)));
    }
    all(tasks).await?;
    Ok(done.load(Ordering::Relaxed))
}

/// Enqueues whenever a cycle may begin, until the time is over.
async fn produce(client: Client, calls: Calls, open: Arc<Semaphore>, enqueued: mpsc::UnboundedSender<()>, end: Instant) -> Result<()> {
    while Instant::now() < end {
        let mut count = 1;
        open.acquire().await?.forget();
        match calls {
            Calls::Single => drop(client.enqueue_job(job()).await?),
            Calls::Batched => {
                while count < REQUESTS_EACH
                    && let Ok(more) = open.try_acquire()
                {
                    more.forget();
                    count += 1;
                }
                enqueue_many(&client, count).await?;
            }
        }
        for _ in 0..count {
            // Nobody listens any more only where a consumer failed, which is told by its own error.
            let _ = enqueued.send(());
        }
    }
    Ok(())
}

/// A worker that leases what was enqueued and finishes it at once.
#[derive(Clone)]
struct Consumer {
    client: Client,
    calls: Calls,
    open: Arc<Semaphore>,
    done: Arc<AtomicU64>,
}

impl Consumer {
    async fn consume(self, waiting: Arc<Mutex<mpsc::UnboundedReceiver<()>>>) -> Result<()> {
        let mut finishing = JoinSet::new();
        loop {
            let count = {
                let mut waiting = waiting.lock().await;
                if waiting.recv().await.is_none() {
                    break;
                }
                let mut count = 1;
                while count < REQUESTS_EACH && waiting.try_recv().is_ok() {
                    count += 1;
                }
                count
            };
            self.lease(count, &mut finishing).await?;
            while let Some(finished) = finishing.try_join_next() {
                finished??;
            }
        }
        all(finishing).await
    }

    /// Leases so many over one stream; each is finished while the next ones come.
    async fn lease(&self, count: u64, finishing: &mut JoinSet<Result<()>>) -> Result<()> {
        let request = DequeueJobRequest { max_jobs: i32::try_from(count)?, ..DequeueJobRequest::default() };
        let mut leases = self.client.dequeue_job(request).await?;
        let mut ends = Vec::new();
        let mut leased = 0;
        while let Some(lease) = leases.message().await? {
            leased += 1;
            let lease = lease.to_owned_message();
            let started_at = lease.job.as_option().map(|job| job.updated_at.clone()).unwrap_or_default();
            let result = JobResult { success: true, started_at, ..JobResult::default() };
            let task_token = lease.task_token;
            ends.push(CompleteJobRequest { task_token, job_result: result.into(), ..CompleteJobRequest::default() });
            if self.calls == Calls::Single || leased == count {
                finishing.spawn(self.clone().finish(std::mem::take(&mut ends)));
            }
        }
        ensure!(leased == count, "{leased} of {count} were leased");
        Ok(())
    }

    async fn finish(self, mut ends: Vec<CompleteJobRequest>) -> Result<()> {
        let count = ends.len();
        match (self.calls, ends.pop()) {
            (Calls::Single, Some(end)) => drop(self.client.complete_job(end).await?),
            (_, last) => {
                ends.extend(last);
                let request = CompleteJobsRequest { jobs: ends, ..CompleteJobsRequest::default() };
                let answer = self.client.complete_jobs(request).await?.into_owned();
                if let Some(error) = answer.results.iter().find_map(|result| result.error.as_option()) {
                    bail!("an execution was not finished: {}", error.message);
                }
            }
        }
        self.done.fetch_add(count as u64, Ordering::Relaxed);
        self.open.add_permits(count);
        Ok(())
    }
}

async fn enqueue_many(client: &Client, count: u64) -> Result<()> {
    let jobs = (0..count).map(|_| job()).collect();
    let answer = client.enqueue_jobs(EnqueueJobsRequest { jobs, ..EnqueueJobsRequest::default() }).await?.into_owned();
    match answer.results.iter().find_map(|result| result.error.as_option()) {
        Some(error) => bail!("an execution was not enqueued: {}", error.message),
        None => Ok(()),
    }
}

/// What is enqueued. Nobody runs it: the workers here only say that it is over.
pub fn job() -> EnqueueJobRequest {
    let params = JobParams { command: "true".to_owned(), ..JobParams::default() };
    EnqueueJobRequest { job_params: params.into(), ..EnqueueJobRequest::default() }
}

async fn all(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
}
