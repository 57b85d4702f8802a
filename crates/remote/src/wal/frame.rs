//! One frame of a write-ahead log: a length, a checksum, a kind, a payload. Knows neither files nor what a payload means.

/// What stands before a payload.
pub(super) const HEADER: usize = 9;
/// The largest payload: far more than the records of one read, so that a damaged length is never believed.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the log is for: its first frame.
    Opening = 1,
    /// Records of the attempt.
    Records = 2,
    /// How the attempt ended: nothing follows.
    End = 3,
}

/// A frame in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) payload: &'a [u8],
}

impl Frame<'_> {
    /// How much room it takes.
    pub(super) fn len(&self) -> u64 {
        (HEADER + self.payload.len()) as u64
    }
}

/// Writes a frame.
pub(super) fn encode(kind: Kind, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let length_bytes = u32::try_from(length).expect("far below the largest").to_le_bytes();
    let mut frame = Vec::with_capacity(HEADER + length);
    frame.extend_from_slice(&length_bytes);
    frame.extend_from_slice(&checksum(kind, length_bytes, parts).to_le_bytes());
    frame.push(kind as u8);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

/// How long the frame is that the bytes begin with, by its header alone; `None` where there is none.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().expect("four bytes")) as usize;
    (bytes.len() >= HEADER && length <= MOST_BYTES).then_some(HEADER + length)
}

/// The frame that the bytes begin with, where it is whole.
pub(super) fn decode(bytes: &[u8]) -> Option<Frame<'_>> {
    let bytes = bytes.get(..length(bytes)?)?;
    let (header, payload) = bytes.split_at(HEADER);
    let kind = [Kind::Opening, Kind::Records, Kind::End].into_iter().find(|kind| *kind as u8 == header[8])?;
    let length: [u8; 4] = header[..4].try_into().expect("four bytes");
    let sum = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
    (sum == checksum(kind, length, &[payload])).then_some(Frame { kind, payload })
}

fn checksum(kind: Kind, length: [u8; 4], parts: &[&[u8]]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind as u8]);
    crc.update(&length);
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize()
}
