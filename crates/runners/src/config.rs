//! What a process runner is told when it is made.

use std::path::PathBuf;

use runvoy_ports::runner::Containment;
use serde::{Deserialize, Serialize};

use crate::uid::UidRange;

/// How a process runner works on this machine.
#[derive(Debug, Clone)]
pub struct Config {
    /// The program that becomes the spawner: the `runvoy` binary itself, or `runvoy-spawner`.
    pub spawner_program: PathBuf,
    /// Its arguments, such as the hidden subcommand. The socket to the worker is its standard input.
    pub spawner_args: Vec<String>,
    /// The directory that holds one work directory per attempt, and the records that a sweep reads.
    pub work_root: PathBuf,
    /// A name that stays the same over restarts of one server and differs between two of them: letters, digits, `-` and `_`.
    pub instance: String,
    /// Who commands run as.
    pub user: User,
    /// How far commands are kept apart where each has a user of its own; otherwise it is not used.
    pub isolation: Isolation,
    /// A file that the server sets aside on the disk of its data directory; `None` for a worker
    /// without a server.
    pub set_aside: Option<PathBuf>,
    /// Use this containment and no other; `None` takes the surest that works here.
    pub containment: Option<Containment>,
}

/// How far commands with users of their own are kept apart from each other and from the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// What is asked for; what the kernel lacks is left out and reported.
    pub level: IsolationLevel,
    /// Directories that commands see empty, but for their work directory.
    pub hidden: Vec<PathBuf>,
    /// Directories outside of their own that commands may write to.
    pub writable: Vec<PathBuf>,
    /// Memory of a command that has no other limit.
    pub memory_bytes: Option<u64>,
    /// Processes of a command that has no other limit.
    pub pids: Option<u64>,
}

/// How much of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IsolationLevel {
    /// Namespaces, a system call filter and Landlock.
    #[default]
    Strict,
    /// Namespaces only: a private `/tmp`, `/dev/shm`, `/proc` and IPC.
    Basic,
    /// A user for each execution and nothing else.
    Off,
}

/// Who commands run as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum User {
    /// Whoever runs the worker.
    Worker,
    /// One user for all of them: each can see and signal the others.
    One(RunAs),
    /// A user and group of its own for every attempt while it lasts, and its work directory for a home where none is set.
    Each(UidRange),
}

/// A user that commands run as, with no capability left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// All supplementary groups.
    pub groups: Vec<u32>,
}
