//! The embedded store and its log files.
//!
//! [`SqliteStore`] keeps everything that changes in steps in one SQLite database; [`logs`] keeps what commands write in files beside it.
//! Every decision is the model's: this crate only keeps things, durably, and says so when it cannot.

mod blob;
mod cost;
mod count;
mod desk;
mod disk;
mod event;
mod fault;
mod incident;
mod job;
mod lock;
pub mod logs;
mod node;
mod open;
mod page;
mod passed;
mod poison;
mod port;
mod queue;
mod reader;
mod ready;
mod receipt;
mod record;
mod registry;
mod reserve;
mod retention;
mod roster;
mod schema;
mod search;
mod sight;
mod span;
mod stats;
mod store;
mod stretch;
mod table;
mod verify;
mod vfs;
mod wal;
mod witness;
mod writer;

pub use blob::{BlobUsage, FileBlobStore, UNFINISHED as UNFINISHED_BLOBS};
pub use open::{OpenError, Options};
pub use reserve::DiskReserve;
pub use schema::KNOWN_VERSION;
pub use stats::Stats;
pub use store::{BackupError, SqliteStore};
pub use verify::{compare_state, verify};
pub use witness::WitnessFile;
