//! Every port in memory: the reference that the other adapters are compared with. Plain enough to be seen through; it never
//! touches a disk, a clock or an index.

mod blob;
mod cost;
mod event;
mod job;
mod log;
mod queue;
mod roster;
mod seal;
mod signing;
mod state;
mod store;
mod trail;

pub use blob::MemoryBlobStore;
pub use log::MemoryLogStore;
pub use seal::MemorySealKeys;
pub use signing::MemorySigningKeys;
pub use store::MemoryStore;
