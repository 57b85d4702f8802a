//! Every port in memory: the reference that the other adapters are compared with. Plain enough to be seen through; it never
//! touches a disk, a clock or an index.

mod log;
mod state;
mod store;

pub use log::MemoryLogStore;
pub use store::MemoryStore;
