//! The process runner on Linux: the worker's half (`runner`, `link`, `outlet`, `terminal`, `pool`, `sweep`, `deleted`, `failure`), the spawner's half
//! (`spawner`, `running`, `report`, `ladder`, `capability`, `child`, `init`), and what both use.

mod capability;
mod cgroup;
mod child;
mod clone;
mod deleted;
mod directory;
mod failure;
mod handle;
mod hierarchy;
mod init;
mod isolation;
mod kernel;
mod ladder;
mod landlock;
mod limit;
mod link;
mod message;
mod mounts;
mod outlet;
mod pool;
mod report;
pub(crate) mod runner;
mod running;
mod seccomp;
mod socket;
pub(crate) mod spawner;
mod step;
mod sweep;
mod terminal;
mod tree;
