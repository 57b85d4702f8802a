//! A typed client of `/api/v1` over TCP, TLS or a Unix socket. It reuses connections, repeats what is safe to repeat, and follows logs
//! through lost connections. It reads no environment and no files but the CA file it is given; it prints nothing.

mod access;
mod audit;
mod call;
mod client;
mod connection;
mod download;
mod endpoint;
mod error;
mod event;
mod execution;
mod follow;
mod image;
mod job;
mod link;
mod lock;
mod log;
mod playbook;
mod pool;
mod probe;
mod query;
mod queue;
mod retry;
mod secret;
mod server;
mod socket;
mod tls;
mod trace;
mod user;
mod worker;

pub use access::AccessQuery;
pub use audit::AuditQuery;
pub use client::{Client, OnRetry, Options, Revive};
pub use download::Download;
pub use endpoint::{Endpoint, InvalidEndpoint};
pub use error::{ClientError, Refusal};
pub use event::{EventStream, EventsQuery, Streamed};
pub use execution::{Killed, ListQuery, Page, Submission};
pub use follow::{Follow, Followed, Start};
pub use job::JobsQuery;
pub use log::{Format, LogsQuery};
pub use probe::ServerClock;
pub use retry::Retry;
pub use runvoy_wire as wire;
pub use tls::tls_config;
pub use trace::{Detail, Trace};
