//! The limit of every queue that keeps its word: so many bytes written and synced, so many cycles to a sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A cycle is acknowledged three times, and each acknowledgement stands on a sync of its own.
const SYNCS: u64 = 3;
/// The store puts no more steps into one commit.
const STEPS_AT_ONCE: u64 = 256;
/// The file is written over, as the store's write-ahead log is between two checkpoints.
const FILE_BYTES: u64 = 8 << 20;

/// Cycles per second where each writes `bytes` in all and `in_flight` of them share their syncs.
pub fn measure(dir: &Path, bytes: u64, in_flight: u64, time: Duration) -> Result<f64> {
    let path = dir.join("commit");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all_at(&vec![0; usize::try_from(FILE_BYTES)?], 0).context("cannot fill the file")?;
    file.sync_all().context("cannot sync the file")?;

    let steps = in_flight.min(STEPS_AT_ONCE);
    let batch = vec![1; usize::try_from((bytes * steps).div_ceil(SYNCS).clamp(1, FILE_BYTES))?];
    let (start, mut offset, mut commits) = (Instant::now(), 0, 0_u64);
    while start.elapsed() < time {
        if offset + batch.len() as u64 > FILE_BYTES {
            offset = 0;
        }
        file.write_all_at(&batch, offset).context("cannot write")?;
        file.sync_data().context("cannot sync")?;
        offset += batch.len() as u64;
        commits += 1;
    }
    Ok((commits * steps) as f64 / SYNCS as f64 / start.elapsed().as_secs_f64())
}
