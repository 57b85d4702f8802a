//! Stand-ins.
#![allow(missing_docs, unused_variables, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
use std::sync::Arc;
use std::time::Duration;
use runvoy_model::chain::AuditKey;
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_model::view::Writes;
use runvoy_model::witness::Witness;
use runvoy_ports::clock::Clock;
use runvoy_ports::store::ExecutionStore;
use runvoy_ports::trail::{AuditTrail, WitnessError, Witnesses};
use crate::{Clients, Config, Fault};

pub trait Wakes: Send + Sync { fn committed(&self, writes: &Writes); }
pub trait ReadySource: Send + Sync {}
pub struct LogConfig { pub max_log_bytes: u64, pub x: u8 }
impl Default for LogConfig { fn default() -> Self { Self { max_log_bytes: 1, x: 0 } } }
#[derive(Clone)] pub struct Mirror;
#[derive(Default)] pub struct MirrorConfig;
impl Mirror { pub fn start(clients: &Clients, config: &Config, limits: MirrorConfig) -> Option<Self> { None } pub async fn idle(&self) {} }
pub struct DynamoLogStore;
impl DynamoLogStore { pub fn open(clients: &Clients, config: &Config, logs: LogConfig, mirror: Option<Mirror>) -> Result<runvoy_memory::MemoryLogStore, Fault> { Ok(runvoy_memory::MemoryLogStore::default()) } }
pub struct S3BlobStore;
impl S3BlobStore { #[allow(clippy::new_ret_no_self)] pub fn new(clients: &Clients, config: &Config) -> runvoy_memory::MemoryBlobStore { runvoy_memory::MemoryBlobStore::default() } }
pub struct BucketWitnesses;
impl BucketWitnesses { pub fn new(clients: &Clients, config: &Config, key: AuditKey) -> Self { Self } }
#[async_trait::async_trait]
impl Witnesses for BucketWitnesses {
    async fn last(&self) -> Result<Option<Witness>, WitnessError> { Ok(None) }
    async fn tell(&self, witnesses: Vec<Witness>) -> Result<(), WitnessError> { Ok(()) }
}
pub struct Publisher;
impl Publisher { pub fn new(clients: &Clients, config: Arc<Config>, clock: Arc<dyn Clock>, name: String) -> Self { Self } pub async fn run(self: Arc<Self>) { std::future::pending().await } pub fn last_error(&self) -> Option<String> { None } }
#[derive(Clone)] pub struct Queues;
impl Queues { pub fn new(clients: &Clients, config: Arc<Config>) -> Self { Self } pub fn changed(&self, before: Option<&Execution>, after: &Execution, now: UnixMs) {} pub async fn run(&self) { std::future::pending().await } pub async fn flush(&self) {} pub fn trouble(&self) -> Option<String> { None } }
pub struct Listener;
impl Listener { pub fn new(queues: Queues, store: Arc<dyn ExecutionStore>, clock: Arc<dyn Clock>, hint: Arc<dyn Fn() + Send + Sync>) -> Self { Self } pub async fn run(&self, served: &[Name]) { std::future::pending().await } }
pub struct Sweep;
impl Sweep { pub fn new<S>(queues: Queues, source: Arc<S>, clock: Arc<dyn Clock>) -> Self { Self } pub async fn run(self) { std::future::pending().await } }
pub use runvoy_memory::MemoryStore;
