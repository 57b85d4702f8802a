//! Finds the entries of an append-only file after a restart: where they begin, where a torn tail has to be cut, and
//! where there is damage in the middle. It changes nothing.

use std::fs::File;
use std::io;
use std::ops::Range;

use memchr::memmem;

use super::format::{ENTRY_HEADER, ENTRY_MAGIC, FILE_HEADER, Header, Sealed};
use super::window::Window;

const WINDOW: usize = 1 << 20;

/// What a scan found besides the entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Behind the last good entry: whatever follows is a torn tail.
    pub(crate) end: u64,
    /// Places in the middle that hold no good entry.
    pub(crate) holes: Vec<Range<u64>>,
}

/// How thoroughly to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Headers only; payloads are judged when they are read.
    Headers,
    /// Headers and payloads.
    Payloads,
}

/// Calls `found` for every entry with a good header, in order. An entry whose header is good and whose payload is not is
/// also reported as a hole: its place in the log is known, so that readers can say where the damage is.
pub(crate) fn scan(file: &File, len: u64, salt: u32, depth: Depth, mut found: impl FnMut(u64, &Header)) -> io::Result<Scanned> {
    let mut eye = Eye { file, len, salt, window: Window::new(WINDOW) };
    let mut scanned = Scanned { end: FILE_HEADER.min(len), holes: Vec::new() };
    let mut offset = FILE_HEADER;
    while offset < len {
        let entry = eye.header(offset)?;
        let next = match entry {
            Some(entry) => {
                let next = offset + entry.header.stored_len();
                if depth == Depth::Headers || eye.payload_fits(offset, &entry)? {
                    found(offset, &entry.header);
                    (scanned.end, offset) = (next, next);
                    continue;
                }
                match eye.whole_entry(next)? {
                    true => {
                        found(offset, &entry.header);
                        Some(next)
                    }
                    false => eye.next_whole_entry(offset + 1)?,
                }
            }
            None => eye.next_whole_entry(offset + 1)?,
        };
        let Some(next) = next else { break };
        scanned.holes.push(offset..next);
        (scanned.end, offset) = (next, next);
    }
    Ok(scanned)
}

struct Eye<'a> {
    file: &'a File,
    len: u64,
    salt: u32,
    window: Window,
}

impl Eye<'_> {
    /// A good header at `offset` whose payload ends inside the file.
    fn header(&mut self, offset: u64) -> io::Result<Option<Sealed>> {
        let bytes = self.window.take(self.file, offset, ENTRY_HEADER, self.len)?;
        let entry = bytes.and_then(|bytes| Sealed::decode(&bytes, self.salt));
        Ok(entry.filter(|entry| offset + entry.header.stored_len() <= self.len))
    }

    fn payload_fits(&mut self, offset: u64, entry: &Sealed) -> io::Result<bool> {
        let start = offset + ENTRY_HEADER as u64;
        let payload = self.window.take(self.file, start, entry.header.payload_len as usize, self.len)?;
        Ok(payload.is_some_and(|payload| entry.fits(&payload)))
    }

    fn whole_entry(&mut self, offset: u64) -> io::Result<bool> {
        match self.header(offset)? {
            Some(entry) => self.payload_fits(offset, &entry),
            None => Ok(false),
        }
    }

    /// Where the next entry begins that is good in every byte.
    fn next_whole_entry(&mut self, mut from: u64) -> io::Result<Option<u64>> {
        let finder = memmem::Finder::new(&ENTRY_MAGIC);
        while from + ENTRY_HEADER as u64 <= self.len {
            let size = usize::try_from(self.len - from).unwrap_or(usize::MAX).min(WINDOW);
            let Some(bytes) = Window::new(size).take(self.file, from, size, self.len)? else { return Ok(None) };
            for at in finder.find_iter(&bytes) {
                let candidate = from + at as u64;
                if self.whole_entry(candidate)? {
                    return Ok(Some(candidate));
                }
            }
            if from + size as u64 >= self.len {
                return Ok(None);
            }
            // The magic may lie across the border.
            from += (size - (ENTRY_MAGIC.len() - 1)) as u64;
        }
        Ok(None)
    }
}
