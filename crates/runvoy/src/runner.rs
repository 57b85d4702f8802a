//! How this machine runs commands: the spawner, the users they run as, their limits. The same for a server and for a worker elsewhere.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runvoy_model::git;
use runvoy_ports::memory::MemoryBudget;
use runvoy_ports::runner::{Limits, Protection, ProtectionState, Runner};
use runvoy_runners::{Isolation, IsolationLevel, ProcessRunner, User};

use crate::containers::Ability;
use crate::data_dir::{DataDir, create_private};
use crate::open_files::OpenFiles;
use crate::settings::Settings;

/// How long a lease lasts.
pub const LEASE: Duration = Duration::from_secs(30);
/// What somebody else could be given is killed so long before its lease lapses.
pub const YIELD_BEFORE: Duration = Duration::from_secs(5);
/// Output that cannot be stored for so long ends its command: on a full disk soon, behind a network when that had time to come back.
const PATIENT_WITH_DISK: Duration = Duration::from_secs(10);
pub const PATIENT_WITH_NETWORK: Duration = Duration::from_secs(120);

/// The protections that a level of isolation stands for. The others are limits.
const ISOLATION: [&str; 3] = ["namespaces", "seccomp", "landlock"];

/// Processes of one command with a user of its own.
const DEFAULT_PIDS: u64 = 4096;

/// Fills in how much runs at once where nobody says.
pub fn settle_concurrency(settings: &mut Settings) {
    if settings.concurrency == 0 {
        settings.concurrency = 4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    }
}

/// What a worker on this machine is told; nobody else could be given what it runs, and its output goes to a disk of this machine.
pub fn worker_config(settings: &Settings, lease_ttl: Duration, host: String) -> runvoy_worker::Config {
    runvoy_worker::Config {
        concurrency: settings.concurrency,
        lease_ttl,
        yields_before: None,
        lost_after: None,
        output_patience: PATIENT_WITH_DISK,
        grace: settings.grace,
        home: home(settings),
        host,
        git: runvoy_worker::Git { reach: git_reach(settings), ca_file: settings.git_ca_file.clone() },
        own_key: None,
        memory: MemoryBudget::default(),
        disk: runvoy_worker::DiskLimits { limit_bytes: settings.limit_disk_bytes, keep_free_bytes: settings.disk_reserve_bytes },
        limits: Limits {
            memory_bytes: settings.limit_memory_bytes,
            pids: settings.limit_pids,
            cpu_millis: settings.limit_cpu_millis,
            open_files: settings.limit_open_files,
            file_bytes: settings.limit_file_bytes,
        },
    }
}

/// Starts the spawner and ends what an earlier start left running.
pub async fn start(data: &DataDir, settings: &Settings, open_files: OpenFiles, ability: &Ability) -> Result<Arc<dyn Runner>> {
    let user = command_user(settings)?;
    if settings.worker && user != User::Worker && settings.work_dir.is_none() {
        data.let_pass().context("cannot let commands reach their work directories")?;
    }
    refuse_impossible(data, settings)?;
    if let Some(dir) = &settings.work_dir {
        create_private(dir).with_context(|| format!("cannot create the work directory {}", dir.display()))?;
    }
    let work_root = settings.work_dir.clone().unwrap_or_else(|| data.work());
    let config = runvoy_runners::Config {
        spawner_program: std::env::current_exe().context("cannot find this program")?,
        spawner_args: vec![crate::SPAWNER.to_owned(), open_files.before.to_string()],
        work_root,
        instance: instance(data),
        user,
        isolation: isolation(data, settings),
        set_aside: Some(data.reserve()),
        containment: None,
    };
    let runner: Arc<dyn Runner> = Arc::new(ProcessRunner::new(config).await.context("cannot start the process runner")?);
    let runner = ability.join(runner, settings, instance(data))?;
    let swept = runner.sweep().await.context("cannot kill what an earlier start left running")?;
    if swept > 0 {
        tracing::warn!(swept, "killed commands of an earlier start");
    }
    if settings.worker {
        check_isolation(settings.isolation, &runner.protections())?;
    }
    Ok(runner)
}

/// Refuses settings by which no command could be started as they say, before anything is made or
/// opened.
pub fn refuse_impossible(data: &DataDir, settings: &Settings) -> Result<()> {
    let each_has_a_user = settings.run_as.is_none() && settings.run_as_uids.is_some();
    if !settings.worker {
        return Ok(());
    }
    if !each_has_a_user {
        return refuse_shared_isolation(settings.isolation);
    }
    // The data directory itself lets commands with users of their own pass.
    refuse_closed(settings.work_dir.as_deref().unwrap_or(data.path()))
}

/// Refuses isolation that was asked for by name where commands share a user.
fn refuse_shared_isolation(asked: Option<IsolationLevel>) -> Result<()> {
    if asked.is_some_and(|level| level != IsolationLevel::Off) {
        bail!("isolation: commands that share a user cannot be kept apart: give --run-as-uids FIRST-LAST, or leave the setting out");
    }
    Ok(())
}

/// Refuses a place below a directory that lets no other user pass.
fn refuse_closed(place: &Path) -> Result<()> {
    let place = std::path::absolute(place)?;
    let is_closed = |dir: &&Path| std::fs::metadata(dir).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 == 0);
    if let Some(closed) = place.ancestors().skip(1).find(is_closed) {
        let (place, closed) = (place.display(), closed.display());
        bail!(
            "run_as_uids: commands cannot reach {place}, for {closed} lets no other user pass: \
             choose a directory elsewhere, such as --data-dir /var/lib/runvoy for a server or --worker-dir /var/lib/runvoy-worker for a worker, or let them pass (chmod o+x {closed})"
        );
    }
    Ok(())
}

/// The memory of a command without another limit: half of the machine's.
pub(crate) fn default_memory(settings: &Settings) -> Option<u64> {
    machine_memory().map(|bytes| bytes / 2).filter(|_| settings.default_limits)
}

/// How far commands with users of their own are kept apart. A limit that is set elsewhere goes before the default one.
fn isolation(data: &DataDir, settings: &Settings) -> Isolation {
    let hidden = std::fs::canonicalize(data.path()).unwrap_or_else(|_| data.path().to_owned());
    Isolation {
        level: settings.isolation.unwrap_or_default(),
        hidden: vec![hidden],
        writable: settings.isolation_writable.iter().map(Into::into).collect(),
        memory_bytes: default_memory(settings),
        pids: Some(DEFAULT_PIDS).filter(|_| settings.default_limits),
    }
}

/// Warns of what this machine lacks to keep commands apart. What was asked for by name is not left out: then the start is refused.
fn check_isolation(asked: Option<IsolationLevel>, found: &[Protection]) -> Result<()> {
    let asked = asked.is_some_and(|level| level != IsolationLevel::Off);
    let mut missing = Vec::new();
    for Protection { name, state } in found {
        let ProtectionState::Unsupported(why) = state else { continue };
        if asked && ISOLATION.contains(&name.as_str()) {
            missing.push(format!("{name} ({why})"));
        } else {
            tracing::warn!(protection = name, why, "this machine cannot keep commands apart as far as it should");
        }
    }
    if !missing.is_empty() {
        bail!(
            "isolation: this machine has no {}: run the server where it is supported, or leave the setting out to do without",
            missing.join(", and no ")
        );
    }
    Ok(())
}

/// The memory of this machine in bytes.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Who commands run as.
fn command_user(settings: &Settings) -> Result<User> {
    match (&settings.run_as, settings.run_as_uids) {
        (Some(name), _) => Ok(User::One(runvoy_runners::lookup_user(name).context("run_as")?)),
        (None, Some(range)) if settings.worker && range.count() < settings.concurrency => {
            let (uids, at_once) = (range.count(), settings.concurrency);
            bail!("run_as_uids: {uids} uids are too few for {at_once} executions at once; widen the range, or lower --concurrency");
        }
        (None, Some(range)) => Ok(User::Each(range)),
        (None, None) => Ok(User::Worker),
    }
}

/// A name for this data directory that no other one on the machine has: a digest of its path.
fn instance(data: &DataDir) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let path = std::fs::canonicalize(data.path()).unwrap_or_else(|_| data.path().to_owned());
    let digest = runvoy_model::key::key_hash(&String::from_utf8_lossy(path.as_os_str().as_bytes()));
    digest[..8].iter().fold(String::new(), |mut name, byte| {
        write!(name, "{byte:02x}").expect("writing to a string");
        name
    })
}

fn git_reach(settings: &Settings) -> git::Reach {
    if settings.git_allow_private { git::Reach::Private } else { git::Reach::Public }
}

/// The name of this machine.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// The home of commands: that of the user they run as. Where each has a user of its own it is empty, and the runner fills in the work directory.
fn home(settings: &Settings) -> String {
    let own = || std::env::var("HOME").ok().filter(|home| !home.is_empty());
    match (&settings.run_as, settings.run_as_uids) {
        (Some(user), _) => home_of(user).unwrap_or_else(|| "/".to_owned()),
        (None, Some(_)) => String::new(),
        (None, None) => own().unwrap_or_else(|| "/".to_owned()),
    }
}

fn home_of(user: &str) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(user))?;
    line.split(':').nth(5).filter(|home| !home.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_that_was_asked_for_is_in_force_or_refused() {
        let found = |state: ProtectionState| [Protection { name: "landlock".into(), state }];
        let lacking = found(ProtectionState::Unsupported("too old".into()));
        check_isolation(None, &lacking).expect("it is only told");
        refuse_shared_isolation(Some(IsolationLevel::Off)).expect("nothing is asked for");
        check_isolation(Some(IsolationLevel::Strict), &found(ProtectionState::On)).expect("it is in force");
        let refused = check_isolation(Some(IsolationLevel::Strict), &lacking).expect_err("it is not").to_string();
        assert!(refused.contains("no landlock (too old)"), "{refused}");
        assert!(refuse_shared_isolation(Some(IsolationLevel::Basic)).is_err(), "one user for all");
        let limit = [Protection { name: "pid limit".into(), state: ProtectionState::Unsupported("no cgroup".into()) }];
        check_isolation(Some(IsolationLevel::Strict), &limit).expect("limits are another setting");
    }

    #[test]
    fn a_place_below_a_directory_that_lets_nobody_pass_is_refused_by_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let (home, data) = (dir.path().join("home"), dir.path().join("home/data"));
        std::fs::create_dir_all(&data).expect("directories");
        set(&home, 0o700);
        let refused = refuse_closed(&data).expect_err("it is closed").to_string();
        assert!(refused.contains(&format!("{} lets no other user pass", home.display())), "{refused}");
        set(&home, 0o711);
        refuse_closed(&data).expect("everybody may pass");
    }
}
