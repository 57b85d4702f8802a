//! The machine under a server, as its edge sees it: what the backend finds about itself, then the disk and how commands are contained.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use runvoy_containers::Daemon;
use runvoy_ports::runner::{Containment, Protection, ProtectionState, Runner};
use runvoy_server::{BackupFault, Host};
use runvoy_sqlite::DiskReserve;
use runvoy_wire::{Probe, ProbeStatus};

use crate::admin;
use crate::backend::{Upkeep, probe};
use crate::data_dir::DataDir;

/// The disk, the processes and the backend of one server.
pub struct Machine {
    pub data: DataDir,
    pub reserve: DiskReserve,
    pub upkeep: Arc<dyn Upkeep>,
    pub runner: Option<Arc<dyn Runner>>,
    pub containers: Option<Daemon>,
}

impl Host for Machine {
    fn probes(&self) -> BoxFuture<'_, Vec<Probe>> {
        Box::pin(async move {
            let mut probes = self.upkeep.probes().await;
            probes.extend([self.disk(), self.containment()]);
            probes.extend(self.protections());
            if let Some(daemon) = &self.containers {
                probes.push(containers(daemon).await);
            }
            probes
        })
    }

    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>> {
        self.upkeep.dependencies()
    }

    fn key_ended<'a>(&'a self, prefix: &'a str, instead: Option<&'a str>) -> BoxFuture<'a, Option<String>> {
        let (data, prefix, instead) = (self.data.clone(), prefix.to_owned(), instead.map(str::to_owned));
        let done = tokio::task::spawn_blocking(move || admin::key_ended(&data, &prefix, instead.as_deref()));
        Box::pin(async move { done.await.unwrap_or_default() })
    }

    fn backup(&self, destination: PathBuf) -> BoxFuture<'_, Result<(), BackupFault>> {
        self.upkeep.backup(destination)
    }
}

impl Machine {
    fn disk(&self) -> Probe {
        let Some(free) = free_bytes(self.data.path()) else {
            return probe("disk", ProbeStatus::Warn, "the free space cannot be read");
        };
        let detail = format!("{} free in {}", mib(free), self.data.path().display());
        let needed = self.reserve.min_free_bytes();
        if self.reserve.is_short_of_files() {
            let detail =
                format!("disk full: {detail}, but hardly any inodes for further files, so no new work is taken: remove some files");
            return probe("disk", ProbeStatus::Fail, &detail);
        }
        // The same question that a submit is answered by.
        if self.reserve.is_low() {
            let detail = format!("disk full: {detail}, and below {} no new work is taken: free some space", mib(needed));
            return probe("disk", ProbeStatus::Fail, &detail);
        }
        let status = if free < needed.saturating_mul(4) { ProbeStatus::Warn } else { ProbeStatus::Ok };
        probe("disk", status, &format!("{detail}; limits of executions are watched, without quotas of the file system"))
    }

    /// What keeps commands with users of their own apart.
    fn protections(&self) -> Vec<Probe> {
        let found = self.runner.as_ref().map(|runner| runner.protections()).unwrap_or_default();
        let one = |protection: Protection| {
            let (status, detail) = match protection.state {
                ProtectionState::On => (ProbeStatus::Ok, "on".to_owned()),
                ProtectionState::Off => (ProbeStatus::Warn, "off by setting".to_owned()),
                ProtectionState::Unsupported(why) => (ProbeStatus::Warn, format!("not supported on this machine: {why}")),
            };
            probe(&format!("isolation: {}", protection.name), status, &detail)
        };
        found.into_iter().map(one).collect()
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

/// The daemon that runs images.
async fn containers(daemon: &Daemon) -> Probe {
    let (name, place) = (daemon.describe(), daemon.place().display());
    match daemon.answers().await {
        Ok(()) => probe("containers", ProbeStatus::Ok, &format!("{name} at {place}")),
        Err(why) => {
            let detail = format!("{name} at {place} does not answer: {why}; images cannot run until it is started");
            probe("containers", ProbeStatus::Warn, &detail)
        }
    }
}

/// A size as people read it.
pub fn mib(bytes: u64) -> String {
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
