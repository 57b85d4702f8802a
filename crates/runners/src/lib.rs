//! How commands run: the process runner and its spawner. On Linux a small single-threaded process starts every command in a
//! cgroup, or what comes nearest, and kills all of them when its worker is gone. Elsewhere a portable twin uses process groups.
//! Nothing here knows of stores, leases or logs.

mod command;
mod config;
mod leftover;
mod uid;
mod usage;
mod user;

#[cfg(target_os = "linux")]
mod linux;
// Also built for tests on Linux, so that it cannot rot unseen.
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

pub use config::{Config, Isolation, IsolationLevel, RunAs, User};
pub use uid::{UidRange, UnfitUids};
pub use user::{UnknownUser, lookup_user};

#[cfg(target_os = "linux")]
pub use linux::runner::ProcessRunner;
#[cfg(not(target_os = "linux"))]
pub use portable::ProcessRunner;

/// The small process that starts every command of one worker.
pub mod spawner {
    #[cfg(target_os = "linux")]
    pub use crate::linux::spawner::run;
    #[cfg(not(target_os = "linux"))]
    pub use crate::portable::run_spawner as run;
}
