//! How commands run in containers: a runner over the API of a Docker daemon. The work directory, the clone of a repository and everything
//! that needs no image stay with the process runner, which this one wraps. Nothing here knows of stores or logs.

mod attach;
mod blueprint;
mod daemon;
mod follow;
mod guard;
mod init;
mod owner;
mod pull;
mod runner;
mod usage;
mod words;

pub use blueprint::Network;
pub use daemon::Daemon;
pub use guard::run as run_guard;
pub use runner::{Config, ContainerRunner};
