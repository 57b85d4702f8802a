//! The logs of executions in files: everything below one directory, `<data>/logs`, opened by one process at a time.
//!
//! # Where a record lives
//!
//! ```text
//! append ──► journal/00000007.rvj          small logs share one append-only file
//!                │  log passes spill_bytes       │  journal passes journal_bytes
//!                ▼                                ▼
//!            big/<shard>/<id>/000001.seg     pack/00000003-<min id>-<max id>.pack        sealed logs, compressed
//!                │  sealed                   pack/00000004-<min id>-<max id>-open.pack   beginnings of open ones, of those that wait above all;
//!                ▼                           an open log with more than a beginning gets its own `big` directory
//!            big/<shard>/<id>/000001.segz    compressed, with a footer index
//! ```
//!
//! # Why every record is found exactly once
//!
//! The identity of a record is *(execution, line number)*, and it never changes when the record moves. A move is
//! always: write the copy, put it on stable storage, rename it into place, put the directory on stable storage, remove
//! the original. A crash between any two of these steps leaves either only the original, or both. Both are
//! harmless: a reader walks by line number and takes each line from the first source that has it, and whoever moves
//! records again skips the lines that already arrived. Names ending in `.tmp` or `.gone` are leftovers of an
//! interrupted step and are removed.
//!
//! A log that has a `big` directory is complete there. The copy into it is not flushed at once; if power fails before it was,
//! the journal still holds the original (a journal is removed only after everything copied out of it was flushed), and loading
//! the log copies what the directory lacks ("healing").
//!
//! A beginning is packed once, and copied into the pack of its whole log when that has ended. So an ended log is whole in one pack, but for what came
//! late. Before retention takes a log, it takes its beginning out of the pack with that: a log that has lost its end would look as if it went on. What is
//! left replaces the pack under its own name, in one step.
//!
//! # What a crash may cost
//!
//! Records appended after the last [`sync`](runvoy_ports::log::LogStore::sync) may be lost with the power, never with the process.
//! A torn tail is cut at the last good record when its file is opened, and said so through `tracing`. Damage in the middle of a
//! file keeps what is good before and after it; the reader stops with `Damaged { after_line }` at the hole. A
//! record whose checksum fails is never served. A damaged pack concerns the logs that may be in it and nobody else: it goes when it is old, and a log that still
//! runs goes on without what cannot be read of it, in files of its own. A failed flush poisons the store: nothing is acknowledged after it, and the
//! flush is never tried again, for the kernel may have dropped the dirty pages while reporting the error once.
//!
//! # What is in memory
//!
//! A log in use has its state in memory, and its last records for followers. Both are caches: a log that is not used for long, open or sealed, is
//! forgotten and loaded from its files at its next use, as after a start. What then is left of it is its id and the places of its entries in the
//! index of a journal, some sixty bytes, or nothing if it has files of its own. Only a log with bytes in files of its own that were not flushed stays.
//!
//! # Locks
//!
//! Order: maintenance → one log's state → registry, journals, packs, tails (each alone). All are plain mutexes held for page-cache
//! writes at most; reading from disk happens outside of them, on tokio's blocking pool.

mod big;
mod check;
mod compactor;
mod compressor;
mod config;
mod copy;
mod core;
mod cursor;
mod data_file;
mod entry;
mod format;
mod framed;
mod index;
mod journal;
mod keeper;
mod medium;
mod pack;
mod piece;
mod pruner;
mod registry;
mod scan;
mod seam;
mod search;
mod segment;
mod snapshot;
mod source;
mod space;
mod spots;
mod state;
mod store;
mod summary;
mod tail;
mod trouble;
mod usage;
mod window;

pub use check::{Damage, Verified};
pub use config::Config;
pub use seam::{Disk, Flush, Seams};
pub use store::FileLogStore;
pub use usage::Usage;
