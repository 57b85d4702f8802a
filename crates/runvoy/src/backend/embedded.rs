//! The embedded backend: one SQLite database, log and blob files, and keys, all in the data directory of one server.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::BoxFuture;
use runvoy_engine::Delivery;
use runvoy_server::BackupFault;
use runvoy_sqlite::logs::FileLogStore;
use runvoy_sqlite::{DiskReserve, FileBlobStore, OpenError, SqliteStore, WitnessFile};
use runvoy_wire::{Probe, ProbeStatus};
use tokio::sync::Mutex;

use super::{Backend, Upkeep, fits_first_event, probe, scope, used_seal_keys};
use crate::audit::StoreTrail;
use crate::backup;
use crate::data_dir::DataDir;
use crate::keys::Keys;
use crate::machine::mib;
use crate::open_files::OpenFiles;
use crate::seal_keys::FileSealKeys;
use crate::settings::Settings;
use crate::signing_keys::FileSigningKeys;

/// How often a reserve that was given up is tried to be filled.
const TEND_EVERY: Duration = Duration::from_secs(1);

/// Opens the files of a data directory; an empty one gets its keys first.
pub async fn open(data: &DataDir, settings: &Settings, open_files: OpenFiles) -> Result<Backend> {
    let keys = Keys::load_or_make(data)?;
    let reserve = DiskReserve::open(&data.reserve(), settings.disk_reserve_bytes);
    let (store, logs) = open_stores(data, settings, &keys, open_files, &reserve)?;
    Keys::note_store(data)?;
    if !fits_first_event(&*store, &keys.audit).await? {
        bail!(
            "the audit key in {} is not the one that the store's events were made with, or its first event was changed; put the key back, \
             restore a backup, or see what was changed: runvoy audit verify --data-dir {}",
            data.keys().display(),
            data.path().display()
        );
    }
    let seal_keys = Arc::new(FileSealKeys::open(data, &used_seal_keys(&*store).await?)?);
    let blobs = FileBlobStore::open(&data.blobs(), reserve.kept_beside_bytes()).context("cannot open the blobs")?;
    Ok(Backend {
        store: Arc::clone(&store) as _,
        jobs: Arc::clone(&store) as _,
        records: Arc::clone(&store) as _,
        roster: Arc::clone(&store) as _,
        blobs: Arc::new(blobs.clone()),
        logs: Arc::clone(&logs) as _,
        trail: Arc::new(StoreTrail::new(data, keys.audit.clone())),
        witnesses: Arc::new(WitnessFile::new(data.checkpoints(), keys.audit.clone()).with_reserve(reserve.clone())),
        seal_keys: Arc::clone(&seal_keys) as _,
        signing_keys: Arc::new(FileSigningKeys::new(data)),
        keys,
        reserve: Some(reserve.clone()),
        is_shared: false,
        scope: scope(settings),
        place: ("local", None),
        agents: {
            let reserve = reserve.clone();
            Box::new(move |_| vec![Box::pin(tend(reserve)) as BoxFuture<'static, ()>])
        },
        upkeep: Arc::new(Files { data: data.clone(), store, logs, blobs, reserve, seal_keys, backing_up: Arc::default() }),
    })
}

/// Fills the disk reserve again when there is room.
async fn tend(reserve: DiskReserve) {
    loop {
        tokio::time::sleep(TEND_EVERY).await;
        if reserve.is_given_up() {
            let reserve = reserve.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || reserve.tend()).await {
                tracing::error!(%error, "the disk reserve cannot be checked");
            }
        }
    }
}

fn open_stores(
    data: &DataDir,
    settings: &Settings,
    keys: &Keys,
    open_files: OpenFiles,
    reserve: &DiskReserve,
) -> Result<(Arc<SqliteStore>, Arc<FileLogStore>)> {
    let mut options = runvoy_sqlite::Options::new(keys.audit.clone());
    options.reserve_bytes = reserve.kept_beside_bytes();
    options.reserve = reserve.clone();
    let store = SqliteStore::open(data.store(), options).map_err(|error| {
        let path = data.path().display();
        let hint = match &error {
            OpenError::Damaged(_) => format!(" (`runvoy audit verify --data-dir {path}` tells whether events were changed by hand)"),
            _ => String::new(),
        };
        anyhow::Error::new(error).context(format!("cannot open the store in {path}{hint}"))
    })?;
    let config = runvoy_sqlite::logs::Config {
        max_log_bytes: settings.log_max_bytes,
        reserve_bytes: reserve.kept_beside_bytes(),
        reserve: reserve.clone(),
        open_logs: open_files.logs(),
        ..runvoy_sqlite::logs::Config::default()
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data.logs()).context("cannot create the log directory")?;
    let logs = FileLogStore::open(&data.logs(), config).with_context(|| format!("cannot open the logs in {}", data.path().display()))?;
    Ok((Arc::new(store), Arc::new(logs)))
}

/// The files of one server.
struct Files {
    data: DataDir,
    store: Arc<SqliteStore>,
    logs: Arc<FileLogStore>,
    blobs: FileBlobStore,
    reserve: DiskReserve,
    seal_keys: Arc<FileSealKeys>,
    /// Held by whoever makes a backup.
    backing_up: Arc<Mutex<()>>,
}

impl Upkeep for Files {
    fn alive(&self) -> Result<()> {
        self.store.alive().context("the store has failed")?;
        self.logs.alive().context("the log store has failed")
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        let (store, logs) = (Arc::clone(&self.store), Arc::clone(&self.logs));
        Box::pin(async move {
            tokio::task::spawn_blocking(move || logs.close()).await?.context("the logs were not closed")?;
            store.close().await.context("the store was not closed")
        })
    }

    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>> {
        // Why it failed may name files: that is for the log and for admins.
        let one = |name, is_alive| match is_alive {
            true => probe(name, ProbeStatus::Ok, ""),
            false => probe(name, ProbeStatus::Fail, "has failed; the server's log says why"),
        };
        let disk = match self.reserve.is_low() {
            false => probe("disk", ProbeStatus::Ok, ""),
            true => probe("disk", ProbeStatus::Fail, "disk full: no new work is taken; running work can finish"),
        };
        let found = vec![one("store", self.store.alive().is_ok()), one("logs", self.logs.alive().is_ok()), disk];
        Box::pin(async move { found })
    }

    fn probes(&self) -> BoxFuture<'_, Vec<Probe>> {
        Box::pin(async move { vec![self.integrity().await, self.log_usage().await, self.blob_usage().await] })
    }

    fn delivery(&self) -> Delivery {
        Delivery::Elsewhere
    }

    fn backup(&self, destination: PathBuf) -> BoxFuture<'_, Result<(), BackupFault>> {
        let (data, store, logs, seal_keys) =
            (self.data.clone(), Arc::clone(&self.store), Arc::clone(&self.logs), Arc::clone(&self.seal_keys));
        let alone = Arc::clone(&self.backing_up);
        // A task of its own: a client that goes away must not leave half a copy that still grows.
        let copying = tokio::spawn(async move {
            let _alone = alone.lock().await;
            let source = backup::Source { data: &data, store: &store, logs: &logs, seal_keys: &seal_keys };
            backup::copy(source, &destination).await.map_err(|error| backup_fault(&error, &destination))
        });
        Box::pin(async move { copying.await.map_err(|error| BackupFault::Failed(error.to_string()))? })
    }
}

impl Files {
    async fn integrity(&self) -> Probe {
        match self.store.verify().await {
            Ok(()) => probe("integrity", ProbeStatus::Ok, "every page of the store is sound"),
            Err(error) => probe("integrity", ProbeStatus::Fail, &format!("{error}: restore a backup (runvoy restore)")),
        }
    }

    async fn log_usage(&self) -> Probe {
        let logs = Arc::clone(&self.logs);
        match tokio::task::spawn_blocking(move || logs.usage()).await {
            Ok(Ok(usage)) => {
                let detail = format!(
                    "{} in journals, {} in {} large logs, {} in {} packs",
                    mib(usage.journal_bytes),
                    mib(usage.big_bytes),
                    usage.big_logs,
                    mib(usage.pack_bytes),
                    usage.packs
                );
                probe("logs", ProbeStatus::Ok, &detail)
            }
            Ok(Err(error)) => probe("logs", ProbeStatus::Fail, &error.to_string()),
            Err(error) => probe("logs", ProbeStatus::Fail, &error.to_string()),
        }
    }

    async fn blob_usage(&self) -> Probe {
        let blobs = self.blobs.clone();
        match tokio::task::spawn_blocking(move || blobs.usage()).await {
            Ok(Ok(usage)) => {
                let detail = format!("{} in {} blobs: large data of tasks, kept as long as the jobs", mib(usage.bytes), usage.blobs);
                probe("blobs", ProbeStatus::Ok, &detail)
            }
            Ok(Err(error)) => probe("blobs", ProbeStatus::Fail, &error.to_string()),
            Err(error) => probe("blobs", ProbeStatus::Fail, &error.to_string()),
        }
    }
}

/// What is wrong with a destination is said by naming it; all else is about the store, the logs and the keys.
fn backup_fault(error: &anyhow::Error, destination: &Path) -> BackupFault {
    let (what, why) = (error.to_string(), format!("{error:#}"));
    if what.contains("the destination") || what.contains(&destination.display().to_string()) {
        BackupFault::Destination(why)
    } else {
        BackupFault::Failed(why)
    }
}
