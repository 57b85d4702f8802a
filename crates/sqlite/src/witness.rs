//! Checkpoints outside the database: a file of signed lines beside it, which only grows. A line that a crash cut short is cut off; a line
//! that was changed is never taken for one. Copies of the file elsewhere prove what this one cannot: that it was not put back together
//! with the store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::chain::AuditKey;
use runvoy_model::witness::Witness;
use runvoy_ports::trail::{WitnessError, Witnesses};

use crate::open::sync_directory;
use crate::reserve::DiskReserve;

/// No line of ours is longer.
const LONGEST_LINE: u64 = 4096;

/// The file.
#[derive(Debug, Clone)]
pub struct WitnessFile {
    path: Arc<PathBuf>,
    /// Also held by work that nobody waits for any more.
    alone: Arc<Mutex<()>>,
    key: AuditKey,
    reserve: DiskReserve,
}

impl WitnessFile {
    /// Names the file; it is made with its first line.
    pub fn new(path: impl Into<PathBuf>, key: AuditKey) -> Self {
        Self { path: Arc::new(path.into()), alone: Arc::default(), key, reserve: DiskReserve::default() }
    }

    /// With what is given up when the disk is full.
    #[must_use]
    pub fn with_reserve(self, reserve: DiskReserve) -> Self {
        Self { reserve, ..self }
    }

    fn read_last(&self) -> io::Result<Option<Witness>> {
        let Some(mut file) = absent(File::open(self.path.as_path()))? else { return Ok(None) };
        let end = whole_lines(&mut file)?;
        // The last line and the break before it lie within two lines of the end.
        let from = end.saturating_sub(2 * LONGEST_LINE);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(end - from).read_to_end(&mut tail)?;
        let last = tail.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next());
        let Some(line) = last else { return Ok(None) };
        let witness = Witness::from_line(line, &self.key);
        witness.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its last line does not match its signature"))
    }

    /// Adds those that are not there yet: whoever tells again does not always know what was heard.
    fn append(&self, witnesses: &[Witness]) -> io::Result<()> {
        let last = match self.read_last() {
            Ok(last) => last.map_or(0, |last| last.number),
            // Somebody changed it: the proof of that stays, and what comes is added all the same.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
            Err(error) => return Err(error),
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.path.as_path())?;
        let end = whole_lines(&mut file)?;
        file.set_len(end)?;
        let mut lines = String::new();
        for witness in witnesses.iter().filter(|witness| witness.number > last) {
            lines.push_str(&witness.to_line(&self.key));
            lines.push('\n');
        }
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        if end == 0 { sync_directory(&self.path) } else { Ok(()) }
    }

    async fn with_file<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, WitnessError> {
        let own = self.clone();
        let error = |source: Box<dyn std::error::Error + Send + Sync>| WitnessError {
            message: format!("cannot {what} the exported checkpoints in {}", self.path.display()),
            source: Some(source),
        };
        let done = tokio::task::spawn_blocking(move || {
            let _alone = own.alone.lock();
            work(&own)
        });
        let done = done.await;
        done.map_err(|join| error(Box::new(join)))?.map_err(|io| error(Box::new(io)))
    }
}

#[async_trait]
impl Witnesses for WitnessFile {
    async fn last(&self) -> Result<Option<Witness>, WitnessError> {
        self.with_file("read", Self::read_last).await
    }

    async fn tell(&self, witnesses: Vec<Witness>) -> Result<(), WitnessError> {
        self.with_file("write", move |file| {
            file.reserve.with_room(|| file.append(&witnesses), |error| error.kind() == io::ErrorKind::StorageFull)
        })
        .await
    }
}

/// The lines of a file, one after the other.
pub(crate) struct Lines<'k> {
    key: &'k AuditKey,
    reader: BufReader<File>,
    number: u64,
    offset: u64,
}

/// A line.
pub(crate) struct Line {
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    /// Where it begins.
    pub(crate) offset: u64,
    /// What it says; `None` where it is not as it was signed.
    pub(crate) witness: Option<Witness>,
}

impl<'k> Lines<'k> {
    /// The lines of this file; `None` where there is none.
    pub(crate) fn open(path: &Path, key: &'k AuditKey) -> io::Result<Option<Self>> {
        Ok(absent(File::open(path))?.map(|file| Self { key, reader: BufReader::new(file), number: 0, offset: 0 }))
    }

    /// The next whole line.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        let cut_short = !line.ends_with(b"\n") && (read as u64) < LONGEST_LINE;
        if read == 0 || cut_short {
            return Ok(None);
        }
        let offset = self.offset;
        self.offset += read as u64;
        self.number += 1;
        let witness = line.strip_suffix(b"\n").and_then(|line| Witness::from_line(line, self.key));
        Ok(Some(Line { number: self.number, offset, witness }))
    }
}

/// How long the file is without a line that was cut short.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let end = file.metadata()?.len();
    let from = end.saturating_sub(LONGEST_LINE);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(end - from).read_to_end(&mut tail)?;
    Ok(match tail.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => from + last as u64 + 1,
        None => from,
    })
}

fn absent<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::time::UnixMs;

    use super::*;

    fn witness(number: u64) -> Witness {
        Witness { number, time: UnixMs(1), up_to: number * 2, leaves: number, root: [3; 32] }
    }

    #[test]
    fn lines_come_back_and_one_that_was_cut_short_is_cut_off() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("checkpoints.ndjson");
        let (key, other) = (AuditKey::new([7; 32]), AuditKey::new([8; 32]));
        let file = WitnessFile::new(&path, key.clone());
        assert_eq!(file.read_last().expect("none yet"), None);
        file.append(&[witness(1), witness(2)]).expect("written");
        assert_eq!(file.read_last().expect("read"), Some(witness(2)));
        let whole = std::fs::read(&path).expect("the file");
        for cut in 1..whole.len() / 2 {
            std::fs::write(&path, &whole[..whole.len() - cut]).expect("cut");
            assert_eq!(file.read_last().expect("read"), Some(witness(1)), "{cut}");
            file.append(&[witness(2)]).expect("written");
            assert_eq!(std::fs::read(&path).expect("the file"), whole, "{cut}");
        }
        file.append(&[witness(1), witness(2)]).expect("nothing new");
        assert_eq!(std::fs::read(&path).expect("the file"), whole, "told twice, written once");
        assert!(WitnessFile::new(&path, other).read_last().is_err());
        let mut lines = Lines::open(&path, &key).expect("opened").expect("there");
        assert_eq!(lines.next().expect("read").expect("a line").witness, Some(witness(1)));
        assert_eq!(lines.next().expect("read").expect("a line").witness, Some(witness(2)));
        assert!(lines.next().expect("read").is_none());
    }
}
