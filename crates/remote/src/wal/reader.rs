//! Frames of a file, read back one after another through a buffer of bounded size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{self, Frame, HEADER};

const READ_BYTES: u64 = 256 << 10;

/// Reads frames of a file up to an end.
pub(super) struct Reader<'a> {
    file: &'a File,
    end: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a File, end: u64) -> Self {
        Self { file, end, start: 0, buffer: Vec::new() }
    }

    /// The frame at an offset; `None` where there is no whole one.
    pub(super) fn frame(&mut self, offset: u64) -> io::Result<Option<Frame<'_>>> {
        let Some(length) = frame::length(self.bytes(offset, HEADER as u64)?) else { return Ok(None) };
        Ok(frame::decode(self.bytes(offset, length as u64)?))
    }

    /// What stands at an offset: at least so many bytes, where the file has them.
    pub(super) fn bytes(&mut self, offset: u64, wanted: u64) -> io::Result<&[u8]> {
        let wanted = wanted.min(self.end.saturating_sub(offset));
        let is_there = offset >= self.start && offset + wanted <= self.start + self.buffer.len() as u64;
        if !is_there {
            let length = wanted.max(READ_BYTES).min(self.end.saturating_sub(offset));
            self.buffer.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
            self.start = offset;
            if let Err(error) = self.file.read_exact_at(&mut self.buffer, offset) {
                self.buffer.clear();
                return Err(error);
            }
        }
        let begin = usize::try_from(offset - self.start).map_err(io::Error::other)?;
        Ok(&self.buffer[begin..])
    }
}
