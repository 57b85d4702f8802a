//! Reads a file forward through one shared buffer, so that walking entries costs few system calls and no copies.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

/// The part of a file that is in memory.
pub(crate) struct Window {
    bytes: Bytes,
    start: u64,
    size: usize,
}

impl Window {
    /// A window that reads at least `size` bytes at a time.
    pub(crate) fn new(size: usize) -> Self {
        Self { bytes: Bytes::new(), start: 0, size }
    }

    /// `len` bytes at `offset`, which must lie before `end`, the part of the file that may be read. `None` if they do not.
    pub(crate) fn take(&mut self, file: &File, offset: u64, len: usize, end: u64) -> io::Result<Option<Bytes>> {
        if offset.checked_add(len as u64).is_none_or(|until| until > end) {
            return Ok(None);
        }
        let inside = offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        if let Some(skip) = inside.filter(|skip| skip + len <= self.bytes.len()) {
            return Ok(Some(self.bytes.slice(skip..skip + len)));
        }
        let want = usize::try_from(end - offset).unwrap_or(usize::MAX).min(self.size.max(len));
        let mut buffer = vec![0; want];
        match file.read_exact_at(&mut buffer, offset) {
            Ok(()) => {}
            // The file is shorter than it was said to be: nothing good is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        (self.bytes, self.start) = (buffer.into(), offset);
        Ok(Some(self.bytes.slice(..len)))
    }
}
