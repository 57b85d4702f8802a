//! The machine under a server, as its edge sees it: probes for `runvoy doctor` (the store, the disk, what logs and blobs take, how
//! commands are contained) and backups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use runvoy_ports::runner::{Containment, Runner};
use runvoy_server::{BackupFault, Host};
use runvoy_sqlite::logs::FileLogStore;
use runvoy_sqlite::{FileBlobStore, SqliteStore};
use runvoy_wire::{Probe, ProbeStatus};
use tokio::sync::Mutex;

use crate::backup;
use crate::data_dir::DataDir;
use crate::seal_keys::FileSealKeys;
use crate::settings::Settings;

/// The files and processes of one server.
pub struct Machine {
    pub data: DataDir,
    pub settings: Settings,
    pub store: Arc<SqliteStore>,
    pub logs: Arc<FileLogStore>,
    pub blobs: FileBlobStore,
    pub seal_keys: Arc<FileSealKeys>,
    pub runner: Option<Arc<dyn Runner>>,
    /// Held by whoever makes a backup.
    pub backing_up: Arc<Mutex<()>>,
}

impl Host for Machine {
    fn probes(&self) -> BoxFuture<'_, Vec<Probe>> {
        Box::pin(async move { vec![self.integrity().await, self.disk(), self.logs().await, self.blobs().await, self.containment()] })
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

impl Machine {
    async fn integrity(&self) -> Probe {
        match self.store.verify().await {
            Ok(()) => probe("integrity", ProbeStatus::Ok, "every page of the store is sound"),
            Err(error) => probe("integrity", ProbeStatus::Fail, &format!("{error}: restore a backup (runvoy restore)")),
        }
    }

    fn disk(&self) -> Probe {
        let Some(free) = free_bytes(self.data.path()) else {
            return probe("disk", ProbeStatus::Warn, "the free space cannot be read");
        };
        let detail = format!("{} free in {}", mib(free), self.data.path().display());
        let reserve = self.settings.disk_reserve_bytes;
        let status = if free < reserve {
            ProbeStatus::Fail
        } else if free < reserve.saturating_mul(4) {
            ProbeStatus::Warn
        } else {
            ProbeStatus::Ok
        };
        probe("disk", status, &detail)
    }

    async fn logs(&self) -> Probe {
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

    async fn blobs(&self) -> Probe {
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

    fn containment(&self) -> Probe {
        let Some(runner) = &self.runner else {
            return probe("containment", ProbeStatus::Ok, "this server runs no commands itself");
        };
        let (status, how) = match runner.containment() {
            Containment::CgroupV2 => (ProbeStatus::Ok, "a cgroup v2 per command"),
            Containment::CgroupV1 => (ProbeStatus::Ok, "a cgroup v1 per command"),
            Containment::PidNamespace => (ProbeStatus::Ok, "a PID namespace per command"),
            Containment::Weak => {
                (ProbeStatus::Warn, "process groups only: a hostile command may outlive its kill; give the server a cgroup")
            }
        };
        probe("containment", status, how)
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

fn probe(name: &str, status: ProbeStatus, detail: &str) -> Probe {
    Probe { name: name.to_owned(), status, detail: detail.to_owned() }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[expect(unsafe_code, reason = "statvfs has no safe form in std")]
fn free_bytes(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path is NUL-terminated and the buffer is large enough; it is read only after success.
    let stat = unsafe {
        if libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some(stat.f_bavail * stat.f_frsize)
}
