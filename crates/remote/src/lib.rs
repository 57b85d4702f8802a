//! Work from a server elsewhere, over `job.v1`.

mod wal;
