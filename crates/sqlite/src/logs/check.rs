//! Reads every byte of every log file and says what is damaged. It changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_ports::log::LogError;

use super::core::Core;
use super::data_file::DataFile;
use super::format::{ENTRY_HEADER, Kind, Sealed};
use super::framed::Framed;
use super::keeper::big_directories;
use super::scan::{Depth, scan};
use super::trouble::Trouble;

/// A damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, where.
    pub what: String,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files read.
    pub files: u64,
    /// Good entries in them.
    pub entries: u64,
    /// Everything that is not as it was written.
    pub damage: Vec<Damage>,
}

impl Verified {
    fn spoil(&mut self, path: &Path, what: impl Into<String>) {
        self.damage.push(Damage { path: path.to_owned(), what: what.into() });
    }

    /// Turns damage into a finding; what hinders reading stays an error.
    fn note<T>(&mut self, result: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Trouble::Corrupt { path, what }) => {
                self.spoil(&path, what);
                Ok(None)
            }
            Err(Trouble::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(other) => Err(other),
        }
    }
}

impl Core {
    /// Checks all files. Nothing is moved meanwhile; appends go on.
    pub(crate) fn verify(&self) -> Result<Verified, LogError> {
        let _alone = self.maintenance.lock();
        let mut verified = Verified::default();
        let journals = self.journals.lock().files();
        for file in journals {
            check_plain(&file, &mut verified)?;
        }
        let journal_dir = self.journals.lock().dir().to_owned();
        for path in files_in(&journal_dir)? {
            if path.extension().is_some_and(|extension| extension == "damaged") {
                verified.spoil(&path, "set aside because it is damaged");
            }
        }
        for name in self.packs.names() {
            check_framed(&self.packs.path(name), &mut verified)?;
        }
        for (id, dir) in big_directories(&self.big_root)? {
            // A file that is being written is checked as far as it is: its last bytes may be on their way at this moment.
            let written = id
                .and_then(|id| self.registry.peek(id))
                .and_then(|cell| cell.state.lock().as_ref().and_then(|state| state.big.as_ref().map(|big| big.plain_files())));
            self.verify_big(&dir, &written.unwrap_or_default(), &mut verified)?;
        }
        Ok(verified)
    }

    fn verify_big(&self, dir: &Path, written: &[Arc<DataFile>], verified: &mut Verified) -> Result<(), Trouble> {
        for path in files_in(dir)? {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("seg") => match written.iter().find(|file| file.path() == path) {
                    Some(file) => check_plain(file, verified)?,
                    None => {
                        let opened = verified.note(DataFile::open(&self.medium, &path, Kind::Segment, Vec::new()))?;
                        if let Some(file) = opened.flatten() {
                            check_plain(&file, verified)?;
                        }
                    }
                },
                Some("segz") => check_framed(&path, verified)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn check_plain(file: &DataFile, verified: &mut Verified) -> Result<(), Trouble> {
    let len = file.written();
    let mut entries = 0;
    let scanned = scan(file.file(), len, file.salt(), Depth::Payloads, |_, _| entries += 1).map_err(Trouble::io("read", file.path()))?;
    verified.files += 1;
    verified.entries += entries;
    for hole in scanned.holes {
        verified.spoil(file.path(), format!("bytes {} to {}", hole.start, hole.end));
    }
    if scanned.end < len {
        verified.spoil(file.path(), format!("bytes {} to the end", scanned.end));
    }
    Ok(())
}

fn check_framed(path: &Path, verified: &mut Verified) -> Result<(), Trouble> {
    let Some(framed) = verified.note(Framed::open(path))? else { return Ok(()) };
    verified.files += 1;
    for index in 0..framed.frames() {
        let Some(frame) = framed.frame(index)? else {
            verified.spoil(path, format!("frame {index}"));
            continue;
        };
        let mut rest = &frame[..];
        while !rest.is_empty() {
            let entry = Sealed::decode(rest, 0).filter(|entry| entry.header.stored_len() <= rest.len() as u64);
            let Some(entry) = entry.filter(|entry| entry.fits(&rest[ENTRY_HEADER..][..entry.header.payload_len as usize])) else {
                verified.spoil(path, format!("an entry in frame {index}"));
                break;
            };
            rest = &rest[ENTRY_HEADER + entry.header.payload_len as usize..];
            verified.entries += 1;
        }
    }
    Ok(())
}

/// The files of a directory, in order of their names; none if it is gone.
pub(crate) fn files_in(dir: &Path) -> Result<Vec<PathBuf>, Trouble> {
    let items = match std::fs::read_dir(dir) {
        Ok(items) => items,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Trouble::io("list", dir)(error)),
    };
    let mut files = items.map(|item| item.map(|item| item.path())).collect::<Result<Vec<_>, _>>().map_err(Trouble::io("list", dir))?;
    files.sort_unstable();
    Ok(files)
}
