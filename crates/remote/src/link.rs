//! The connection to the server. Every call has its time; one that is not answered makes the next one connect anew, because a connection
//! whose other end is gone may take very long to notice. Decides nothing and repeats nothing.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use runvoy_rpc::connectrpc::client::{ClientBody, ClientConfig, ServiceTransport};
use runvoy_rpc::connectrpc::{ConnectError, ErrorCode};
use runvoy_rpc::job::v1::JobServiceClient;
use tokio::time::timeout;

use crate::address::Address;
use crate::dial::Dial;
use crate::fault::Fault;

/// The largest answer: the input of a task, which holds what other tasks gave.
const LARGEST_ANSWER: usize = 256 << 20;

/// Where the server is, and who asks.
#[derive(Clone)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// The worker's key.
    pub key: String,
    /// How an `https` server is trusted.
    pub tls: Option<Trust>,
}

/// How a server is trusted.
#[derive(Clone)]
pub struct Trust {
    /// Which certificates are.
    pub config: Arc<rustls::ClientConfig>,
    /// Why a handshake failed, in words.
    pub explain: Explain,
}

/// Why a TLS handshake failed, in words.
pub type Explain = fn(&io::Error) -> String;

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoint({})", self.address)
    }
}

type Transport = ServiceTransport<Client<Dial, ClientBody>>;
pub(crate) type Caller = JobServiceClient<Transport>;

/// Calls a server.
pub(crate) struct Link {
    endpoint: Endpoint,
    config: ClientConfig,
    /// How long an ordinary call may take.
    within: Duration,
    /// The connections, and how often they were made anew.
    current: Mutex<(u64, Transport)>,
}

impl Link {
    pub(crate) fn new(endpoint: Endpoint, within: Duration) -> Self {
        let uri: Uri = endpoint.address.as_str().parse().expect("an address is a URI");
        let config = ClientConfig::new(uri)
            .with_default_max_message_size(LARGEST_ANSWER)
            .with_default_header("authorization", format!("Bearer {}", endpoint.key));
        let client = connect(&endpoint, within);
        Self { endpoint, config, within, current: Mutex::new((0, client)) }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.endpoint.address
    }

    /// How long an ordinary call may take.
    pub(crate) fn within(&self) -> Duration {
        self.within
    }

    /// Makes a call.
    pub(crate) async fn call<T, F>(&self, within: Duration, ask: impl FnOnce(Caller) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, ConnectError>>,
    {
        let (generation, client) = self.current.lock().clone();
        let asked = timeout(within, ask(Caller::new(client, self.config.clone()))).await;
        match asked {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if matches!(error.code, ErrorCode::Unavailable | ErrorCode::DeadlineExceeded) {
                    self.renew(generation);
                }
                Err(Fault::of(&error))
            }
            Err(_) => {
                self.renew(generation);
                Err(Fault::Away(format!("no answer within {} ms", within.as_millis())))
            }
        }
    }

    /// The next call connects anew, unless another call has seen to that already.
    fn renew(&self, generation: u64) {
        let mut current = self.current.lock();
        if current.0 == generation {
            *current = (generation + 1, connect(&self.endpoint, self.within));
        }
    }
}

fn connect(endpoint: &Endpoint, within: Duration) -> Transport {
    ServiceTransport::new(Client::builder(TokioExecutor::new()).build(Dial::new(endpoint.tls.as_ref(), within)))
}
