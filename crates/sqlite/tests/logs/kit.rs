//! What the tests of log files share: small limits, easy records, reading a whole log, copying a directory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, LogError, LogStore};
use runvoy_sqlite::logs::{Config, FileLogStore, Flush, Seams};

/// A record that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at: i64,
    pub stream: Stream,
    pub cont: bool,
    pub eol: bool,
    pub bytes: Vec<u8>,
}

impl Line {
    pub fn new(at: i64, bytes: impl Into<Vec<u8>>) -> Self {
        Self { at, stream: Stream::Stdout, cont: false, eol: true, bytes: bytes.into() }
    }

    pub fn raw_len(&self) -> u64 {
        self.record().raw_len()
    }

    pub fn record(&self) -> Record<'_> {
        Record { at: UnixMs(self.at), stream: self.stream, cont: self.cont, eol: self.eol, bytes: &self.bytes }
    }
}

impl From<Record<'_>> for Line {
    fn from(record: Record<'_>) -> Self {
        Self { at: record.at.0, stream: record.stream, cont: record.cont, eol: record.eol, bytes: record.bytes.to_vec() }
    }
}

/// Lines as a log keeps them: their times never go back.
pub fn in_order(lines: &[Line]) -> Vec<Line> {
    let mut latest = i64::MIN;
    let keep = |line: &Line| {
        latest = latest.max(line.at);
        Line { at: latest, ..line.clone() }
    };
    lines.iter().map(keep).collect()
}

pub fn block(lines: &[Line]) -> Block {
    let mut builder = BlockBuilder::default();
    for line in lines {
        builder.push(line.record());
    }
    builder.take()
}

pub fn append(attempt: u32, first_seq: Option<u64>, lines: &[Line]) -> Append {
    Append { attempt, first_seq, late: false, block: block(lines) }
}

/// Numbered lines `from..from + count` with a text that tells which they are.
pub fn lines(from: u64, count: u64) -> Vec<Line> {
    (from..from + count).map(|n| Line::new(1000 + n as i64, format!("line {n}"))).collect()
}

/// Long ago, and long after that.
pub const OLD: i64 = 1_600_000_000_000;
pub const NEW: i64 = 1_700_000_000_000;

/// Lines written at a time.
pub fn text(at: i64, count: u64) -> Vec<Line> {
    (0..count).map(|n| Line::new(at + n as i64, format!("line {n}"))).collect()
}

/// The id of the `n`th execution, made at `ms`.
pub fn id_at(ms: i64, n: u64) -> ExecutionId {
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6] = 0x70;
    bytes[8..].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    ExecutionId::from_bytes(bytes)
}

pub fn id(n: u64) -> ExecutionId {
    id_at(1_700_000_000_000 + n as i64, n)
}

/// Limits so small that every kind of file appears in a short test.
pub fn small() -> Config {
    Config {
        journal_bytes: 16 << 10,
        spill_bytes: 6 << 10,
        segment_bytes: 8 << 10,
        reserve_bytes: 0,
        tail_bytes: 4 << 10,
        tails_bytes: 16 << 10,
        open_logs: 4,
        remembered_logs: 8,
        ..Config::default()
    }
}

/// Stable storage that is not waited for: a copy of the directory is what a killed process leaves, and that is what these tests look at.
pub struct NoFlush;

impl Flush for NoFlush {
    fn data(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
    fn directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

pub fn quick() -> Seams {
    Seams { flush: Arc::new(NoFlush), ..Seams::default() }
}

pub fn open(dir: &Path) -> FileLogStore {
    FileLogStore::open_with(dir, small(), quick()).expect("opens")
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime").block_on(future)
}

/// All records from a line on, read in steps of `max_bytes`, and the error that ended it, if one did. Checks the numbering.
pub async fn read_all(store: &FileLogStore, id: ExecutionId, from: u64, max_bytes: usize) -> (Vec<(u64, Line)>, Option<LogError>) {
    let mut out = Vec::new();
    let mut line = from;
    loop {
        let chunks = match store.read(id, line, max_bytes).await {
            Ok(chunks) => chunks,
            Err(error) => return (out, Some(error)),
        };
        if chunks.is_empty() {
            return (out, None);
        }
        for chunk in chunks {
            assert_eq!(chunk.first_line, line, "chunks follow each other");
            for record in chunk.block.records() {
                out.push((line, record.expect("only good records are served").into()));
                line += 1;
            }
            assert_eq!(line, chunk.next_line(), "the count is true");
        }
    }
}

pub async fn whole(store: &FileLogStore, id: ExecutionId) -> Vec<Line> {
    let (read, error) = read_all(store, id, 1, 64 << 10).await;
    assert!(error.is_none(), "{error:?}");
    read.into_iter().map(|(_, line)| line).collect()
}

pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("create");
    for item in std::fs::read_dir(from).expect("list") {
        let item = item.expect("item");
        let target = to.join(item.file_name());
        if item.file_type().expect("type").is_dir() {
            copy_dir(&item.path(), &target);
        } else {
            std::fs::copy(item.path(), target).expect("copy");
        }
    }
}

/// Every file below a directory, in order, without the lock.
pub fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(dir).expect("list") {
        let path = item.expect("item").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "lock") {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn with_extension(dir: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    files(dir).into_iter().filter(|path| path.extension().is_some_and(|e| e == extension)).collect()
}

/// The full count when proving, else the reduced one.
pub fn count(reduced: usize, full: usize) -> usize {
    if std::env::var_os("RUNVOY_PROVE").is_some_and(|value| value == "1") { full } else { reduced }
}

/// A small generator, so that a failing case is the same every time.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

/// The `n`th log of old; their ids rise with their numbers.
pub fn old(n: u64) -> ExecutionId {
    id_at(OLD + n as i64, n)
}

/// The packs with beginnings of logs that go on, and those with logs that have ended.
pub fn packs(dir: &Path) -> (Vec<std::path::PathBuf>, Vec<std::path::PathBuf>) {
    with_extension(dir, "pack").into_iter().partition(|path| path.to_string_lossy().ends_with("-open.pack"))
}

fn flip(path: &Path, place: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).expect("reads");
    let at = place(bytes.len());
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("writes");
}

/// Damages what comes first in a pack.
pub fn spoil_first_frame(path: &Path) {
    flip(path, |_| 20);
}

/// Damages what tells where everything is in a pack.
pub fn spoil_footer(path: &Path) {
    flip(path, |len| len - 40);
}

/// Logs of old begin, with two lines.
pub async fn begin(store: &FileLogStore, logs: impl IntoIterator<Item = u64>) {
    for log in logs {
        store.append(old(log), append(1, Some(1), &text(OLD, 2))).await.expect("appends");
    }
}

/// They end, with a third.
pub async fn end(store: &FileLogStore, logs: impl IntoIterator<Item = u64>) {
    for log in logs {
        store.append(old(log), append(1, Some(3), &text(OLD + 2, 1))).await.expect("appends");
        store.seal(old(log), 3).await.expect("seals");
    }
}

pub async fn next_line(store: &FileLogStore, log: u64) -> u64 {
    store.extent(old(log)).await.expect("extent").next_line
}
