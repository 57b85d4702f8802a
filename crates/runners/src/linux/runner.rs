//! The process runner of a worker: asks its spawner for commands, hands out their pipes and ends, and starts a new spawner if
//! one is lost. It never forks: a worker is large and has threads, and its spawner is small and has none.

use std::collections::{HashMap, HashSet};
use std::error::Error as _;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_ports::runner::{Containment, DiskSpace, Exit, ExitStatus, Protection, Runner, Start, StartError, Started, Unread, WorkDir};

use super::cgroup::members;
use super::deleted;
use super::failure::{self, Context};
use super::handle::{Handle, boot_id};
use super::kernel;
use super::link::{Link, NotBegun, Orphan, Pending, Stop};
use super::message::{self, PACKET_MAX, Rung, Wanted};
use super::outlet::Outlet;
use super::pool::{LentUid, UidPool};
use super::running::private_tmp;
use super::sweep::{Records, Spawner};
use super::tree;
use crate::command::{attempt_name, check, readable};
use crate::config::{Config, User};
use crate::leftover;
use crate::uid::{UidRange, UnfitUids};
use crate::usage;

/// Runs commands as processes of this machine.
pub struct ProcessRunner {
    config: Config,
    records: Records,
    boot_id: String,
    link: Mutex<Arc<Link>>,
    /// One at a time starts a new spawner.
    renewing: tokio::sync::Mutex<()>,
    /// Where attempts get uids of their own from.
    pool: Option<Arc<UidPool>>,
    kept: Arc<Mutex<Kept>>,
}

/// Attempts that were started here and not cleaned up yet, with the uid of each; a sweep leaves them alone.
type Kept = HashMap<String, Option<Arc<LentUid>>>;

impl ProcessRunner {
    /// Makes the work root, starts the spawner and waits until it is ready. Must be called in a tokio runtime.
    pub async fn new(mut config: Config) -> Result<Self, StartError> {
        if config.instance.is_empty() || !config.instance.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            let message = format!("instance name `{}` may only have letters, digits, '-' and '_'", config.instance.escape_debug());
            return Err(StartError { message, exit_code: None });
        }
        let range = if let User::Each(range) = config.user { Some(range) } else { None };
        range.map_or(Ok(()), check_range)?;
        config.work_root = make_work_root(&config).map_err(|error| StartError {
            message: format!(
                "work root {} could not be created: {error} (the worker must be able to write there)",
                config.work_root.display()
            ),
            exit_code: None,
        })?;
        let records = Records { work_root: config.work_root.clone(), instance: config.instance.clone() };
        let boot_id = boot_id();
        let link = open(&config, &records, &boot_id).await?;
        let (link, renewing, pool) = (Mutex::new(link), tokio::sync::Mutex::new(()), range.map(UidPool::new));
        Ok(Self { config, records, boot_id, link, renewing, pool, kept: Arc::default() })
    }

    /// The spawner's process id.
    pub fn spawner_pid(&self) -> u32 {
        lock(&self.link).spawner_pid
    }

    /// The spawner that is there, or a new one.
    async fn link(&self) -> Result<Arc<Link>, StartError> {
        let link = Arc::clone(&lock(&self.link));
        if link.is_open() {
            return Ok(link);
        }
        let _alone = self.renewing.lock().await;
        let link = Arc::clone(&lock(&self.link));
        if link.is_open() {
            return Ok(link);
        }
        tracing::warn!(pid = link.spawner_pid, "the spawner died; starting another");
        let link = open(&self.config, &self.records, &self.boot_id).await?;
        *lock(&self.link) = Arc::clone(&link);
        Ok(link)
    }

    /// Asks for a command. A spawner that died unnoticed is replaced: what could not be sent was not started.
    async fn ask(&self, name: &str, start: &Start, lent: Option<&Arc<LentUid>>) -> Result<Asked, StartError> {
        let wanted = Wanted { name, start, uid: lent.map(|lent| lent.uid()) };
        let Outlet { stdout, stderr, given } = Outlet::open(start)?;
        let mut last_error = None;
        for _ in 0..2 {
            let link = self.link().await?;
            let Some(pending) = link.expect(name, lent.cloned()) else { continue };
            match send(&link, pending.id, &wanted, given.each_ref()).await {
                Ok(()) => return Ok(Asked { link, pending, stdout, stderr }),
                Err(error) => {
                    link.give_up(pending.id);
                    last_error = Some(error);
                }
            }
        }
        let why = last_error.map_or_else(|| "it ends as soon as it is started".to_owned(), |error| error.to_string());
        Err(StartError { message: format!("the spawner could not be asked to start the command: {why}"), exit_code: None })
    }

    async fn begin(&self, name: &str, mut start: Start, lent: Option<Arc<LentUid>>) -> Result<Started, StartError> {
        let work_dir = self.config.work_root.join(name);
        if lent.is_some()
            && let Some(home) = start.env.get_mut("HOME").filter(|home| home.is_empty())
        {
            // A uid that no user database knows has no home.
            *home = work_dir.display().to_string();
        }
        let Asked { link, pending: Pending { id, reply, exit }, stdout, stderr } = self.ask(name, &start, lent.as_ref()).await?;
        let begun = match reply.await {
            Ok(Ok(begun)) => begun,
            Ok(Err(NotBegun::Failed(failure))) => {
                let uid = match &self.config.user {
                    User::One(run_as) => Some(run_as.uid),
                    User::Worker | User::Each(_) => lent.map(|lent| lent.uid()),
                };
                return Err(failure::explain(&failure, &Context { start: &start, work_dir: &work_dir, uid }));
            }
            Ok(Err(NotBegun::Gone)) | Err(_) => return Err(gone()),
        };
        let control = Box::new(Stop { link: Arc::clone(&link), id });
        let cgroup = link.home.as_ref().map(|home| home.join(name));
        let handle =
            Handle { pid: begun.pid, boot_id: self.boot_id.clone(), start_time: begun.start_time, containment: link.containment, cgroup };
        let handle = serde_json::to_string(&handle).expect("a handle is plain data");
        if !has_cgroup(link.containment)
            && let Err(error) = self.records.add_command(name, &handle)
        {
            tracing::warn!(%error, name, "a command could not be written down; if worker and spawner are both killed it may outlive them");
        }
        let (stdout, stderr) = (readable(stdout)?, readable(stderr)?);
        Ok(Started { handle, pid: Some(begun.pid), work_dir, stdout, stderr, exit, control })
    }

    /// Enters a new attempt and lends it a uid, where attempts have uids of their own.
    fn keep(&self, name: &str, execution: ExecutionId) -> Result<Option<Arc<LentUid>>, StartError> {
        let mut kept = lock(&self.kept);
        if kept.contains_key(name) {
            return Err(StartError {
                message: format!("attempt {name} was started here before: every start needs its own attempt"),
                exit_code: None,
            });
        }
        let lent = self.pool.as_ref().map(|pool| lend(pool, execution)).transpose()?;
        kept.insert(name.to_owned(), lent.clone());
        Ok(lent)
    }

    fn current(&self) -> Spawner {
        spawner(&lock(&self.link), &self.boot_id)
    }
}

#[async_trait]
impl Runner for ProcessRunner {
    fn name(&self) -> &'static str {
        "process"
    }

    fn containment(&self) -> Containment {
        lock(&self.link).containment.into()
    }

    fn protections(&self) -> Vec<Protection> {
        lock(&self.link).protections.clone()
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        check(&start)?;
        let name = attempt_name(start.execution, start.attempt);
        if start.work_dir == WorkDir::Kept {
            let Some(lent) = lock(&self.kept).get(&name).cloned() else {
                return Err(StartError {
                    message: format!("attempt {name} has no work directory here: nothing of it was started before"),
                    exit_code: None,
                });
            };
            return self.begin(&name, start, lent).await;
        }
        let lent = self.keep(&name, start.execution)?;
        // Also when the caller gives up waiting: what was asked for is killed then, and its directory is left to the next sweep.
        let kept = Keeping { kept: &self.kept, name: &name, done: false };
        let started = self.begin(&name, start, lent).await;
        kept.finish(started.is_ok());
        started
    }

    fn work_dir(&self, execution: ExecutionId, attempt: u32) -> PathBuf {
        self.config.work_root.join(attempt_name(execution, attempt))
    }

    async fn read(&self, execution: ExecutionId, attempt: u32, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
        leftover::read(&self.work_dir(execution, attempt), name, limit).await
    }

    async fn sweep(&self) -> Result<usize, StartError> {
        let (records, current, kept, pool) = (self.records.clone(), self.current(), Arc::clone(&self.kept), self.pool.clone());
        let swept = tokio::task::spawn_blocking(move || {
            let swept = records.sweep(&current, |name| lock(&kept).contains_key(name))?;
            if let Some(pool) = pool.filter(|_| lock(&kept).is_empty()) {
                withhold_used(&pool);
            }
            Ok(swept)
        });
        swept.await.unwrap_or_else(|error| Err(error.to_string())).map_err(|message| StartError { message, exit_code: None })
    }

    async fn disk_space(&self) -> Option<DiskSpace> {
        usage::space(&self.config.work_root, self.config.set_aside.as_deref())
    }

    async fn disk_usage(&self, execution: ExecutionId, attempt: u32) -> u64 {
        let work_dir = self.work_dir(execution, attempt);
        let place = work_dir.clone();
        let cgroup = lock(&self.link).home.as_ref().map(|home| home.join(attempt_name(execution, attempt)));
        let deleted = tokio::task::spawn_blocking(move || cgroup.map_or(0, |cgroup| deleted::bytes(&members(&cgroup), &place)));
        usage::usage(vec![private_tmp(&work_dir), work_dir]).await.saturating_add(deleted.await.unwrap_or(0))
    }

    async fn clean_up(&self, execution: ExecutionId, attempt: u32) {
        let name = attempt_name(execution, attempt);
        let had_handle = !has_cgroup(lock(&self.link).containment);
        // Even an empty directory can take a disk milliseconds, which no other task shall wait for.
        let (records, removed_name) = (self.records.clone(), name.clone());
        let removed = tokio::task::spawn_blocking(move || records.remove_command(&removed_name, had_handle)).await;
        if let Err(error) = removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
            let directory = self.config.work_root.join(&name);
            tracing::warn!(%error, directory = %directory.display(), "a work directory could not be removed; the next sweep tries again");
            if let Some(Some(lent)) = lock(&self.kept).get(&name) {
                // Whoever had the uid next could read what is left.
                lent.lose();
            }
        }
        lock(&self.kept).remove(&name);
    }
}

impl Drop for ProcessRunner {
    fn drop(&mut self) {
        lock(&self.link).shut_down();
    }
}

/// A command that the spawner was asked for.
struct Asked {
    link: Arc<Link>,
    pending: Pending,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Removes a name from the kept ones unless the command runs.
struct Keeping<'a> {
    kept: &'a Mutex<Kept>,
    name: &'a str,
    done: bool,
}

impl Keeping<'_> {
    fn finish(mut self, runs: bool) {
        self.done = runs;
    }
}

impl Drop for Keeping<'_> {
    fn drop(&mut self) {
        if !self.done {
            lock(self.kept).remove(self.name);
        }
    }
}

/// Starts a spawner and writes it down. When it ends, whatever it left is killed and reported lost.
async fn open(config: &Config, records: &Records, boot_id: &str) -> Result<Arc<Link>, StartError> {
    let (on_loss_records, roots) = (records.clone(), Arc::new(Mutex::new(Vec::new())));
    let on_loss_roots = Arc::clone(&roots);
    let link = Link::open(config, move |orphans| lose(&on_loss_records, &lock(&on_loss_roots), orphans)).await?;
    lock(&roots).clone_from(&link.cgroups);
    records.add_spawner(&spawner(&link, boot_id)).map_err(|error| {
        link.shut_down();
        StartError { message: format!("the work root cannot be written: {error}"), exit_code: None }
    })?;
    Ok(link)
}

fn lose(records: &Records, roots: &[std::path::PathBuf], orphans: Vec<Orphan>) {
    if orphans.is_empty() {
        return;
    }
    let names: HashSet<&str> = orphans.iter().map(|orphan| orphan.name.as_str()).collect();
    if let Err(error) = records.end(roots, |name| names.contains(name)) {
        tracing::error!(error, "the spawner was lost and left commands behind");
        orphans.iter().filter_map(|orphan| orphan.lent.as_ref()).for_each(|lent| lent.lose());
    }
    for orphan in orphans {
        // Whoever does not wait for the end does not want it.
        let _ = orphan.exit.send(Exit { status: ExitStatus::Lost, oom_killed: false, cpu_ms: 0, max_rss_bytes: 0 });
    }
}

fn spawner(link: &Link, boot_id: &str) -> Spawner {
    let handle = Handle {
        pid: link.spawner_pid,
        boot_id: boot_id.to_owned(),
        start_time: link.spawner_start_time,
        containment: link.containment,
        cgroup: None,
    };
    Spawner { handle, cgroups: link.cgroups.clone() }
}

fn has_cgroup(rung: Rung) -> bool {
    matches!(rung, Rung::CgroupV2 | Rung::CgroupV1)
}

async fn send(link: &Link, id: u64, wanted: &Wanted<'_>, files: [&OwnedFd; 2]) -> io::Result<()> {
    let packet = message::encode_start(id, wanted);
    if packet.len() <= PACKET_MAX {
        return link.send(&packet, &files.map(AsFd::as_fd)).await;
    }
    let large = kernel::memory_file()?;
    let mut file = fs::File::from(large.try_clone()?);
    file.write_all(&packet)?;
    link.send(&message::encode_start_large(id, packet.len()), &[files[0].as_fd(), files[1].as_fd(), large.as_fd()]).await
}

fn check_range(range: UidRange) -> Result<(), StartError> {
    let refuse = |error: UnfitUids| {
        let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
        StartError { message: format!("commands cannot run as uids {range}: {error}{why}"), exit_code: None }
    };
    range.check(kernel::ids().0).map_err(refuse)
}

/// The end of an execution's id is random, so that a new pool begins anywhere in its range.
fn lend(pool: &Arc<UidPool>, execution: ExecutionId) -> Result<Arc<LentUid>, StartError> {
    let (_, random) = execution.as_bytes().split_last_chunk().expect("an id has 16 bytes");
    pool.lend(u64::from_be_bytes(*random)).ok_or_else(|| StartError {
        message: format!("every uid of {} is in use: widen the range, or run fewer executions at once", pool.range()),
        exit_code: None,
    })
}

/// Looked at once, when nothing of ours runs: whoever else uses a uid of the range has it for good.
fn withhold_used(pool: &UidPool) {
    for uid in tree::uids().into_iter().filter(|uid| pool.range().contains(*uid)) {
        tracing::warn!(uid, "a process that is not ours has a uid of the range for commands; it is not used");
        pool.withhold(uid);
    }
}

fn gone() -> StartError {
    StartError { message: "the spawner died before the command was started (the next start uses a new one)".to_owned(), exit_code: None }
}

/// Nobody but us may list it; the user that commands run as must be able to pass.
fn make_work_root(config: &Config) -> io::Result<std::path::PathBuf> {
    let mode = if config.user == User::Worker { 0o700 } else { 0o711 };
    let root: &Path = &config.work_root;
    DirBuilder::new().recursive(true).mode(mode).create(root)?;
    fs::set_permissions(root, Permissions::from_mode(mode))?;
    fs::canonicalize(root)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
