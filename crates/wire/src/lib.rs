//! What travels between server and clients: the JSON of `/api/v1`, the frames of its WebSocket and the binary log batches of our own
//! clients. Types and their encodings only; it does no IO and decides nothing.

pub mod backup;
pub mod batch;
pub mod doctor;
pub mod error;
pub mod event;
pub mod execution;
pub mod frame;
pub mod health;
pub mod kill;
pub mod lock;
pub mod logs;
pub mod run;
pub mod search;
pub mod status;
pub mod time;
pub mod whoami;

pub use backup::{BackupRequest, BackupResponse};
pub use batch::{Batch, InvalidBatch};
pub use doctor::{DoctorResponse, Probe, ProbeStatus};
pub use error::{Code, ErrorBody};
pub use event::Event;
pub use execution::Execution;
pub use frame::Control;
pub use health::Health;
pub use kill::KillResponse;
pub use lock::{Lock, LockHeld};
pub use logs::{LogEvent, LogsResponse};
pub use run::{RunRequest, RunResponse};
pub use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
pub use runvoy_model::time::UnixMs;
pub use search::{Hit, SearchResponse};
pub use status::{Reason, Status, StatusResponse, WaitResponse};
pub use time::Rfc3339;
pub use whoami::Whoami;

/// Reads a field that Go clients send as `null` where it is empty.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de> + Default,
{
    Ok(<Option<T> as serde::Deserialize>::deserialize(deserializer)?.unwrap_or_default())
}
