//! Work for a worker from a server elsewhere, over `job.v1`: the same seam as inside the server, with a network in it that may be gone at any
//! time. Output is kept in a write-ahead log until the server has it. Decides nothing about executions.

mod address;
mod attendant;
mod backoff;
mod courier;
mod desk;
mod dial;
mod errands;
mod fault;
mod leases;
mod leftover;
mod link;
mod offer;
mod outbox;
mod refusal;
mod wal;

pub use runvoy_rpc::job::v1::{WorkerInfo, WorkerNeed};

pub use crate::address::{Address, InvalidAddress};
pub use crate::attendant::{Attendant, Attended};
pub use crate::fault::Fault;
pub use crate::leases::{Config, RemoteLeases};
pub use crate::link::{Endpoint, Explain, Trust};
