//! Compresses the files of sealed big logs, one segment at a time. Readers see the plain file until the compressed one is complete
//! and durable, and those that hold the plain one go on with it.

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::LogError;

use super::big::Part;
use super::copy::copy;
use super::core::Core;
use super::framed::FramedWriter;
use super::segment::{framed_path, plain_path};
use super::summary::Summary;
use super::trouble::Trouble;

/// Large frames compress better; reading one line of a big log decompresses one of them.
const FRAME_BYTES: usize = 512 << 10;

impl Core {
    /// Compresses what is plain of a sealed big log. The caller holds the maintenance lock.
    pub(crate) fn compress(&self, id: ExecutionId) -> Result<(), LogError> {
        let cell = self.checkout(id);
        let work = self.with(&cell, |state| {
            let sealed = state.is_sealed();
            Ok(state.big.as_mut().filter(|_| sealed).map(|big| (big.dir().to_owned(), big.close_segments())))
        })?;
        let Some((dir, parts)) = work else { return Ok(()) };
        let mut summary = Summary::default();
        for (number, part) in parts {
            self.writable()?;
            let (source, max_before) = match part {
                Part::Framed(known) => {
                    summary = known;
                    continue;
                }
                Part::Plain { source, max_before } => (source, max_before),
                Part::Unreadable => return Ok(()),
            };
            let mut writer = FramedWriter::create(dir.join(format!("{number:06}.tmp")), FRAME_BYTES, max_before)?;
            let all_good =
                copy(id, vec![source], &mut summary, |entry, _| if self.is_closing() { Err(Trouble::Closed) } else { writer.push(entry) })?;
            if !all_good {
                // Compressed, the hole would be there but not the bytes that a person may want to look at.
                tracing::error!(segment = %plain_path(&dir, number).display(), "damaged log segment is left as it is");
                return Ok(());
            }
            let framed = writer.finish(Some(&summary), &framed_path(&dir, number), &self.medium)?;
            self.with(&cell, |state| {
                if let Some(big) = &mut state.big {
                    big.replace(number, framed);
                }
                Ok(())
            })?;
            let plain = plain_path(&dir, number);
            std::fs::remove_file(&plain).map_err(Trouble::io("remove", &plain))?;
            self.medium.flush_directory(&dir)?;
        }
        // A sealed log is seldom read again: its open files and index are given up, and loaded from the footers if need be.
        *cell.state.lock() = None;
        Ok(())
    }
}
