//! The RPC edge, driven by generated clients over real sockets: over Connect on HTTP/1.1 and over gRPC on HTTP/2.

mod both_ways;
mod credential;
mod dense;
mod event;
mod flow;
mod lease;
mod list;
mod log;
mod params;
mod redelivery;
mod refusal;
pub mod signer;
mod token;
mod worker;

use std::future::Future;

use runvoy_engine::{Caller, Credential, WorkerRequest};
use runvoy_model::role::Role;
use runvoy_rpc::connectrpc::client::{ClientConfig, HttpClient};
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode, Protocol};
use runvoy_rpc::job::v1::{
    DequeueJobRequest, DequeueJobResponse, EnqueueJobRequest, GetJobRequest, Job, JobParams, JobServiceClient, JobState,
};

use crate::app::{Served, TestApp, key_of};

pub type Jobs = JobServiceClient<HttpClient>;

/// Both ways to speak to it.
pub const BOTH: [Protocol; 2] = [Protocol::Connect, Protocol::Grpc];

/// How a server is spoken to with a key.
pub fn spoken(served: &Served, protocol: Protocol, key: &str) -> (HttpClient, ClientConfig) {
    let address = format!("http://{}", served.address).parse().expect("an address");
    let config = ClientConfig::new(address).with_protocol(protocol).with_default_header("authorization", format!("Bearer {key}"));
    let transport = if protocol == Protocol::Grpc { HttpClient::plaintext_http2_only() } else { HttpClient::plaintext() };
    (transport, config)
}

/// A client that shows a key.
pub fn jobs(served: &Served, protocol: Protocol, key: &str) -> Jobs {
    let (transport, config) = spoken(served, protocol, key);
    JobServiceClient::new(transport, config)
}

/// A client of an admin.
pub fn admin(served: &Served, protocol: Protocol) -> Jobs {
    jobs(served, protocol, &key_of(Role::Admin))
}

/// Plays the same on a server of its own for each way to speak to it.
pub async fn over_both<F: Future<Output = ()>>(play: impl Fn(TestApp, Protocol) -> F) {
    for protocol in BOTH {
        play(TestApp::new().await, protocol).await;
    }
}

/// A job that runs a command.
pub fn job(command: &str) -> EnqueueJobRequest {
    let params = JobParams { command: command.to_owned(), ..JobParams::default() };
    EnqueueJobRequest { job_params: params.into(), ..EnqueueJobRequest::default() }
}

/// Submits a job and returns its id.
pub async fn enqueue(client: &Jobs, request: EnqueueJobRequest) -> String {
    client.enqueue_job(request).await.expect("it is taken").into_owned().job_id
}

/// The first lease that is given.
pub async fn lease(client: &Jobs, request: DequeueJobRequest) -> DequeueJobResponse {
    let mut leases = client.dequeue_job(request).await.expect("a stream");
    leases.message().await.expect("a lease").expect("one").to_owned_message()
}

/// A token with another signature. The character stands before the last ones, some of whose bits must be zero for it to be a token at all.
pub fn forged(token: &str) -> String {
    let (before, rest) = token.split_at(token.len() - 8);
    format!("{before}{}{}", if rest.starts_with('A') { 'B' } else { 'A' }, &rest[1..])
}

/// A job as it stands.
pub async fn look(client: &Jobs, id: &str) -> Job {
    let request = GetJobRequest { job_id: id.to_owned(), ..GetJobRequest::default() };
    client.get_job(request).await.expect("it is there").into_owned().job.into_option().expect("a job")
}

pub async fn state(client: &Jobs, id: &str) -> JobState {
    look(client, id).await.state.as_known().expect("a known state")
}

/// What a call was refused with.
pub fn refusal<T>(answered: Result<T, ConnectError>) -> (ErrorCode, String) {
    match answered {
        Ok(_) => panic!("it was not refused"),
        Err(error) => (error.code, error.message.unwrap_or_default()),
    }
}

/// What a stream was refused with, wherever it shows.
pub async fn stream_refusal(client: &Jobs, request: DequeueJobRequest) -> (ErrorCode, String) {
    match client.dequeue_job(request).await {
        Err(error) => (error.code, error.message.unwrap_or_default()),
        Ok(mut leases) => refusal(leases.message().await.map(drop)),
    }
}

/// An account of workers and its key.
pub async fn worker_key(app: &TestApp, name: &str, queues: &[&str]) -> String {
    let caller = caller(app).await;
    let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
    let request = WorkerRequest { name: name.to_owned(), queues, ..WorkerRequest::default() };
    app.engine.create_worker(&caller, &request).await.expect("an account").api_key.expect("a key")
}

pub async fn caller(app: &TestApp) -> Caller {
    let key = Credential::Key(key_of(Role::Admin));
    app.engine.authenticate(key, "test".into(), "r".into()).await.expect("an admin")
}
