//! A runner in a directory of its own, and ways to see what it really did.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runvoy_model::id::ExecutionId;
use runvoy_ports::runner::{Containment, Exit, Limits, Output, Runner, Start, StartError, Started, WorkDir};
use runvoy_runners::{Config, Isolation, ProcessRunner, RunAs, UidRange, User};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

pub const ALL: [Containment; 4] = [Containment::CgroupV2, Containment::CgroupV1, Containment::PidNamespace, Containment::Weak];
const MARK: &str = "RUNVOY_TEST_MARK";

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A runner and the commands it is given. Every command carries a mark by which its descendants are found.
pub struct Stage {
    pub root: TempDir,
    pub runner: ProcessRunner,
    pub mark: String,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn of(containment: Containment) -> Self {
        let stage = Self::with(|config| config.containment = Some(containment)).await;
        assert_eq!(stage.runner.containment(), containment);
        stage
    }

    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut config = config(root.path());
        change(&mut config);
        let runner = ProcessRunner::new(config).await.expect("a runner");
        Self { root, runner, mark: unique() }
    }

    /// A shell command.
    pub fn shell(&self, script: &str) -> Start {
        self.program(&["sh", "-c", script])
    }

    pub fn program(&self, argv: &[&str]) -> Start {
        marked(&self.mark, argv)
    }

    /// Runs a shell command to its end and returns what it wrote.
    pub async fn run(&self, script: &str) -> (String, Exit) {
        self.run_start(self.shell(script)).await
    }

    pub async fn run_start(&self, start: Start) -> (String, Exit) {
        let (execution, attempt) = (start.execution, start.attempt);
        let started = self.runner.start(start).await.expect("it starts");
        let text = String::from_utf8(read_all(started.stdout).await).expect("text");
        let exit = started.exit.await.expect("it ends");
        self.runner.clean_up(execution, attempt).await;
        (text, exit)
    }

    pub async fn refused(&self, start: Start) -> StartError {
        match self.runner.start(start).await {
            Ok(_) => panic!("it started"),
            Err(error) => error,
        }
    }

    pub fn work_root(&self) -> PathBuf {
        self.root.path().join("work")
    }
}

pub fn need_root() {
    let uid = fs::metadata("/proc/self").unwrap().uid();
    assert_eq!(uid, 0, "this test makes cgroups and changes users: run it as root");
}

pub fn config(root: &Path) -> Config {
    need_root();
    Config {
        spawner_program: env!("CARGO_BIN_EXE_runvoy-spawner").into(),
        spawner_args: Vec::new(),
        work_root: root.join("work"),
        instance: unique(),
        user: User::Worker,
        isolation: Isolation::default(),
        set_aside: None,
        containment: None,
    }
}

pub fn marked(mark: &str, argv: &[&str]) -> Start {
    let env = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), (MARK, mark)];
    Start {
        execution: execution(),
        attempt: 1,
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>(),
        limits: Limits::default(),
        directory: String::new(),
        work_dir: WorkDir::New(Vec::new()),
        live_for: None,
        terminal: false,
        container: None,
    }
}

pub fn nobody() -> RunAs {
    runvoy_runners::lookup_user("nobody").expect("the machine has a user nobody")
}

/// Uids that no other test has at this time.
pub fn uids(count: u32) -> UidRange {
    // A million for each of some thousand processes.
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let first = (1 + std::process::id() % 4_000) * 1_000_000 + TAKEN.fetch_add(count, Ordering::Relaxed);
    format!("{first}-{}", first + count - 1).parse().unwrap()
}

pub fn execution() -> ExecutionId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&u64::from(std::process::id()).to_be_bytes());
    bytes[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    ExecutionId::from_bytes(bytes)
}

/// A name that no other test of any process has.
pub fn unique() -> String {
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Living processes that carry a mark.
pub fn living(mark: &str) -> Vec<u32> {
    let needle = format!("{MARK}={mark}\0").into_bytes();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| env.windows(needle.len()).any(|part| part == needle)))
        .collect()
}

/// Zombies whose parent is this process.
pub fn zombies_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_ascii_whitespace().take(2).eq(["Z", &parent.to_string()])
    })
    .collect()
}

/// Waits until something holds; fails, loudly, if it never does.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub async fn read_all(mut output: Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// Cgroup directories, in any hierarchy, whose path holds this text.
pub fn cgroups_with(text: &str) -> Vec<PathBuf> {
    fn walk(directory: &Path, text: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(text) {
                    found.push(entry.path());
                }
                walk(&entry.path(), text, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), text, &mut found);
    found
}

/// Those of them that have become `sleep`, and so are what they will be until they are killed.
pub fn sleeping(mark: &str) -> usize {
    living(mark).iter().filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")).count()
}

/// Starts a command and waits until this many of its processes have become `sleep`.
pub async fn start_and_settle(stage: &Stage, script: &str, sleepers: usize) -> Started {
    let started = stage.runner.start(stage.shell(script)).await.expect("it starts");
    until("the processes of the command run", || sleeping(&stage.mark) >= sleepers).await;
    started
}
