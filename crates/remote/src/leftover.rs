//! What a worker that died left in its directory: brought to the server like everything else. Its commands died with it, so an attempt whose
//! end is not written down counts as lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_ports::clock::Clock;

use crate::address::Address;
use crate::outbox::Outbox;
use crate::wal::{EXTENSION, Opening, UNFINISHED, Wal};

const DIED: &str = "the worker died, and the command was killed";

/// The logs in a directory that are for this server. What is for another one is left there.
pub(crate) fn find(dir: &Path, address: &Address, clock: &dyn Clock) -> std::io::Result<Vec<Arc<Outbox>>> {
    let mut found = Vec::new();
    for path in named(dir, UNFINISHED)? {
        std::fs::remove_file(&path)?;
    }
    for path in named(dir, EXTENSION)? {
        match Wal::open(&path) {
            // It may hold what nobody else has: the version that wrote it can bring it.
            Err(error) => tracing::warn!(path = %path.display(), %error, "a write-ahead log cannot be read, and is left"),
            Ok(None) => {
                // Its worker died before it was begun.
                tracing::warn!(path = %path.display(), "an empty write-ahead log is removed");
                std::fs::remove_file(&path)?;
            }
            Ok(Some((wal, _))) if !is_for(wal.opening(), address) => {
                tracing::warn!(path = %path.display(), endpoint = wal.opening().endpoint, "a write-ahead log is for another server, and is left");
            }
            Ok(Some((mut wal, cut))) => {
                if cut > 0 {
                    remark(&mut wal, cut, clock);
                }
                let outbox = Outbox::new(wal);
                outbox.leave(DIED);
                found.push(outbox);
            }
        }
    }
    Ok(found)
}

/// Whether a log is for this server, however its address was written.
fn is_for(opening: &Opening, address: &Address) -> bool {
    opening.endpoint.parse::<Address>().is_ok_and(|other| other == *address)
}

fn named(dir: &Path, ending: &str) -> std::io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect())
}

/// Whoever reads the log is told that something may be missing. Where the server has those records all the same, it drops this one.
fn remark(wal: &mut Wal, cut: u64, clock: &dyn Clock) {
    let text = format!("### runvoy: the worker died while it wrote this log; its last {cut} bytes could not be read");
    let mut block = BlockBuilder::default();
    block.push(Record { at: clock.now(), stream: Stream::Platform, cont: false, eol: true, bytes: text.as_bytes() });
    let next = wal.next().seq;
    if let Err(error) = wal.append(next, &block.take()) {
        tracing::warn!(%error, cut, "a write-ahead log was truncated, which could not be recorded in it");
    }
}
