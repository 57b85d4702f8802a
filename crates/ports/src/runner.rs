//! How commands run. A runner starts a command and hands back its output, its end and a way to stop it; it knows
//! nothing of stores, leases or logs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::retry::Category;
use runvoy_model::spec::ContainerSpec;
use tokio::io::AsyncRead;
use tokio::sync::{oneshot, watch};

/// The work directory as a command in a container sees it.
pub const CONTAINER_WORK_DIR: &str = "/workspace";

/// What a command writes, as bytes in their order. It is not read ahead: a command whose output nobody reads waits.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A command to start. It is data: nothing here is ever spliced into shell text.
#[derive(Clone)]
pub struct Start {
    /// The execution, which names the cgroup and the work directory.
    pub execution: ExecutionId,
    /// Which attempt of it.
    pub attempt: u32,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Limits, where asked for.
    pub limits: Limits,
    /// Where in the work directory it runs; empty is the work directory itself.
    pub directory: String,
    /// The work directory that it finds.
    pub work_dir: WorkDir,
    /// Every process of it is ended after this time unless [`Control::live_for`] says another one before; `None` is without end. A runner that
    /// has nobody beside the worker cannot, and passes it over.
    pub live_for: Option<Duration>,
    /// It gets a terminal of its own for standard input, output and error, on which nobody types. A runner that has none refuses.
    pub terminal: bool,
    /// The container that it runs in; absent for the worker's own environment.
    pub container: Option<Container>,
}

/// The container of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its image, and what the image was registered with.
    pub spec: ContainerSpec,
    /// The lease that it runs under.
    pub lease: LeaseId,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither command nor environment: both may hold secrets.
        write!(f, "Start({}, attempt {}, {:?})", self.execution, self.attempt, self.work_dir)
    }
}

/// The work directory that a command finds.
#[derive(Clone, PartialEq, Eq)]
pub enum WorkDir {
    /// A new one, with these files in it.
    New(Vec<WorkFile>),
    /// As an earlier command of the same attempt, which has ended, left it.
    Kept,
}

/// A file that a command finds in its work directory: its own, and nobody else's to read.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkFile {
    /// Its name, without any directory.
    pub name: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

// Written by hand: files may hold secrets.
impl std::fmt::Debug for WorkDir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New(files) => f.debug_tuple("New").field(&files.iter().map(|file| &file.name).collect::<Vec<_>>()).finish(),
            Self::Kept => f.write_str("Kept"),
        }
    }
}

/// Resource limits of one command and its descendants; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// CPU in thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Open files per process.
    pub open_files: Option<u64>,
    /// Largest file a process may write, in bytes.
    pub file_bytes: Option<u64>,
}

/// A command that runs.
pub struct Started {
    /// What is needed to find the command again after a restart of the worker; opaque to everybody else, stored at once.
    pub handle: String,
    /// The command's process id where it has one on this machine.
    pub pid: Option<u32>,
    /// Where the command runs.
    pub work_dir: PathBuf,
    /// Its standard output, or all that it writes to its terminal; end of file once every descendant is gone.
    pub stdout: Output,
    /// Its standard error; with a terminal, at its end.
    pub stderr: Output,
    /// How it ended. Sent once, after every descendant is gone.
    pub exit: oneshot::Receiver<Exit>,
    /// The way to stop it.
    pub control: Box<dyn Control>,
}

/// Stops a command.
pub trait Control: Send + Sync {
    /// Asks every process of the command to end (`SIGTERM`).
    fn terminate(&self);
    /// Ends every process of the command, whatever it does (`SIGKILL` to all descendants).
    fn kill(&self);
    /// Ends every process of the command after this time unless it is told another one before, also where whoever said so is frozen by then, or
    /// the machine slept meanwhile. A runner that has nobody beside the worker cannot, and does nothing.
    fn live_for(&self, _time: Duration) {}
    /// The memory that all of it takes now; `None` where only its process tells.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It returned this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The runner lost sight of it; its code is unknown.
    Lost,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// How the main process ended.
    pub status: ExitStatus,
    /// The kernel killed it, or a descendant, for going over its memory limit.
    pub oom_killed: bool,
    /// CPU time of the command and the descendants it waited for.
    pub cpu_ms: u64,
    /// The largest resident set of any of them.
    pub max_rss_bytes: u64,
}

/// The disk under the work directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What unprivileged writers can still have.
    pub free_bytes: u64,
    /// How large it is.
    pub total_bytes: u64,
    /// What the server has set aside on it for itself.
    pub set_aside_bytes: u64,
}

/// Why a command could not be started, in words for the person who submitted it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    /// What happened and what to do.
    pub message: String,
    /// The exit code that a shell gives for it, where the program itself could not be executed.
    pub exit_code: Option<i32>,
}

/// Why an image could not be had, in words for the person who submitted the command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ImageError {
    /// What happened, in the words of the daemon or the registry, and what to do.
    pub message: String,
    /// Whether another attempt could help.
    pub category: Category,
}

/// Why a file that a command left was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// There is none.
    #[error("it is not there")]
    Missing,
    /// It is a link, a directory, a pipe, a device, or not the command's own.
    #[error("it is not an ordinary file of the command's own")]
    NotAFile,
    /// It is larger than was asked for.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        limit: usize,
    },
    /// It could not be read.
    #[error("it cannot be read: {0}")]
    Failed(String),
}

/// How surely a kill reaches every descendant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A cgroup v2 per command, with `cgroup.kill`.
    CgroupV2,
    /// A cgroup v1 per command, frozen and killed.
    CgroupV1,
    /// A PID namespace per command.
    PidNamespace,
    /// Process groups and a subreaper only: a hostile command may get away.
    Weak,
}

/// One thing that keeps commands apart, and whether it is in force.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Protection {
    /// Its name, such as `seccomp`.
    pub name: String,
    /// Whether it is in force.
    pub state: ProtectionState,
}

/// Whether a protection is in force.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ProtectionState {
    /// It is.
    On,
    /// A setting turned it off.
    Off,
    /// It does not work here, and why.
    Unsupported(String),
}

/// The runner port.
#[async_trait]
pub trait Runner: Send + Sync {
    /// `process`, `container` or `fargate`.
    fn name(&self) -> &'static str;

    /// How surely a kill reaches every descendant.
    fn containment(&self) -> Containment;

    /// What keeps commands apart beyond their users; empty where they have no users of their own.
    fn protections(&self) -> Vec<Protection>;

    /// Sees that the image of a container is there, and says meanwhile how far that is; whether it had to be pulled. A runner without containers refuses.
    async fn fetch(&self, container: &ContainerSpec, _progress: &watch::Sender<Option<String>>) -> Result<bool, ImageError> {
        let message = format!("this worker runs no containers, and cannot run image {}", container.reference);
        Err(ImageError { message, category: Category::ServerError })
    }

    /// Starts a command. Nothing is left behind when this fails.
    async fn start(&self, start: Start) -> Result<Started, StartError>;

    /// Comes back when nothing is left of a start that nobody waits for any more. A runner whose starts take no time has nothing to wait for.
    async fn given_up(&self, _execution: ExecutionId, _attempt: u32) {}

    /// The work directory of an attempt, as its command sees it.
    fn work_dir(&self, execution: ExecutionId, attempt: u32) -> PathBuf;

    /// Reads a file that the command of an attempt left in its work directory: at most `limit` bytes, and nothing but an ordinary file
    /// that is the command's own, whatever it put in its place. `name` has no directory.
    async fn read(&self, execution: ExecutionId, attempt: u32, name: &str, limit: usize) -> Result<Vec<u8>, Unread>;

    /// Ends whatever earlier starts of this worker left running, and removes their work directories. Returns how many commands were found.
    async fn sweep(&self) -> Result<usize, StartError>;

    /// The disk under the work directories; `None` where nobody can tell.
    async fn disk_space(&self) -> Option<DiskSpace>;

    /// What the files in the work directory of an attempt, and in its own `/tmp`, take on the disk, with those that its processes
    /// deleted and keep open; `u64::MAX` where that cannot be measured. Walks through them.
    async fn disk_usage(&self, execution: ExecutionId, attempt: u32) -> u64;

    /// Removes the work directory of an attempt that has ended.
    async fn clean_up(&self, execution: ExecutionId, attempt: u32);
}
