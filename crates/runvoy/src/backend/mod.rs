//! What a server keeps everything in: one of the backends, opened and behind the ports. The rest of the program does not know which it is.

#[cfg(feature = "aws")]
mod aws;
pub mod embedded;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use runvoy_engine::Delivery;
use runvoy_model::chain::{AuditKey, ChainHead};
use runvoy_model::event::EventScope;
use runvoy_model::record::{Kind, Record};
use runvoy_ports::blob::BlobStore;
use runvoy_ports::clock::Clock;
use runvoy_ports::cost::CostStore;
use runvoy_ports::job::JobStore;
use runvoy_ports::log::LogStore;
use runvoy_ports::record::RecordStore;
use runvoy_ports::roster::Roster;
use runvoy_ports::seal::SealKeys;
use runvoy_ports::signing::SigningKeys;
use runvoy_ports::store::{EventQuery, ExecutionStore, StoreError};
use runvoy_ports::trail::{AuditTrail, Witnesses};
use runvoy_server::BackupFault;
use runvoy_sqlite::DiskReserve;
use runvoy_wire::{Probe, ProbeStatus};

use crate::data_dir::DataDir;
use crate::keys::Keys;
use crate::open_files::OpenFiles;
use crate::settings::{BackendName, Settings};

/// An open backend.
pub struct Backend {
    pub store: Arc<dyn ExecutionStore>,
    pub jobs: Arc<dyn JobStore>,
    pub records: Arc<dyn RecordStore>,
    pub roster: Arc<dyn Roster>,
    pub costs: Arc<dyn CostStore>,
    pub blobs: Arc<dyn BlobStore>,
    pub logs: Arc<dyn LogStore>,
    pub trail: Arc<dyn AuditTrail>,
    pub witnesses: Arc<dyn Witnesses>,
    pub seal_keys: Arc<dyn SealKeys>,
    pub signing_keys: Arc<dyn SigningKeys>,
    pub keys: Keys,
    /// What is kept of the disk for what has begun, where the backend is on this machine's disk.
    pub reserve: Option<DiskReserve>,
    /// Other servers may work on the same store.
    pub is_shared: bool,
    /// Where its events are kept, as they say themselves.
    pub scope: EventScope,
    /// What the health route says of it: its provider and region.
    pub place: (&'static str, Option<String>),
    /// Makes what must run as long as it is used.
    pub agents: Agents,
    pub upkeep: Arc<dyn Upkeep>,
}

/// What it takes to open one.
pub struct Opening<'a> {
    pub data: &'a DataDir,
    pub settings: &'a Settings,
    pub open_files: OpenFiles,
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "files need no clock"))]
    pub clock: &'a Arc<dyn Clock>,
    /// What tells this server from others on the same store.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "files have one server"))]
    pub name: &'a str,
}

/// What a backend's agents call where there may be work.
pub type Wake = Arc<dyn Fn() + Send + Sync>;
/// The agents of a backend.
pub type Agents = Box<dyn FnOnce(Wake) -> Vec<BoxFuture<'static, ()>> + Send>;

/// What only a backend itself can do for the server on it.
pub trait Upkeep: Send + Sync {
    /// An error once nothing can be kept any more, for good. What may pass is none.
    fn alive(&self) -> Result<()>;

    /// Puts everything away.
    fn close(&self) -> BoxFuture<'_, Result<()>>;

    /// What it stands on, for anybody: cheap, and without what only admins may know.
    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>>;

    /// What it finds about itself, for admins.
    fn probes(&self) -> BoxFuture<'_, Vec<Probe>>;

    /// How handing events on to a bus goes, where there is one.
    fn delivery(&self) -> Delivery;

    /// Copies everything to a directory that it makes, if everything is in files.
    fn backup(&self, destination: PathBuf) -> BoxFuture<'_, Result<(), BackupFault>>;
}

/// Where events are kept, as the settings say.
fn scope(settings: &Settings) -> EventScope {
    let Settings { tenant, app, environment, .. } = settings;
    EventScope { tenant: tenant.clone(), app: app.clone(), environment: environment.clone(), blobs: None }
}

impl Backend {
    /// Opens the one that the settings name.
    pub async fn open(opening: Opening<'_>) -> Result<Self> {
        let Opening { data, settings, open_files, .. } = opening;
        match settings.backend {
            BackendName::Embedded => embedded::open(data, settings, open_files).await,
            #[cfg(feature = "aws")]
            BackendName::Aws => aws::open(settings, Arc::clone(opening.clock), opening.name.to_owned()).await,
            #[cfg(not(feature = "aws"))]
            BackendName::Aws => anyhow::bail!(crate::settings::NO_AWS),
        }
    }
}

pub(crate) fn probe(name: &str, status: ProbeStatus, detail: &str) -> Probe {
    Probe { name: name.to_owned(), status, detail: detail.to_owned() }
}

/// Whether the first event was made with this key. A key that is not the store's own would begin chains that nobody can verify.
async fn fits_first_event(store: &dyn ExecutionStore, key: &AuditKey) -> Result<bool> {
    let first = match store.events(EventQuery { limit: 1, ..EventQuery::default() }).await {
        Ok(first) => first,
        // A page that cannot be read says nothing about the key; `audit verify` names what was changed in it.
        Err(StoreError::Damaged(what)) => {
            tracing::error!(what, "the first event cannot be read: runvoy audit verify says more");
            return Ok(true);
        }
        Err(error) => return Err(error).context("cannot read the events"),
    };
    let first = first.into_iter().map(|stored| stored.event).find(|event| event.number == 1 && event.kind.is_chained());
    Ok(first.is_none_or(|event| key.link(&ChainHead::default(), &event.canonical()).mac == event.mac))
}

/// The ids of the keys that secrets are sealed with.
async fn used_seal_keys(records: &dyn RecordStore) -> Result<Vec<String>> {
    let secrets = records.records(Kind::Secret).await.context("cannot read the secrets")?;
    Ok(secrets.iter().filter_map(Record::secret).map(|secret| secret.sealed.key_id.clone()).collect())
}
