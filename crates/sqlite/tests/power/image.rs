//! What a disk may hold after the power went: everything that was synced, and any part of what was not, down to single sectors.

use std::path::{Path, PathBuf};

use crate::recorder::{FileKind, Op};

const SECTOR: usize = 512;

/// The two files as the disk knows them.
pub struct Disk {
    files: [File; 2],
    dice: u64,
}

#[derive(Default)]
struct File {
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate(usize),
}

/// Images are many and short-lived: in memory where the system has a place for that.
pub fn place() -> PathBuf {
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() }
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        Self { files: [File::default(), File::default()], dice: seed }
    }

    /// A disk that holds a database already.
    pub fn holding(seed: u64, database: Vec<u8>) -> Self {
        let mut disk = Self::new(seed);
        disk.file(FileKind::Database).durable = database;
        disk
    }

    /// What the store did.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { file, offset, bytes } => {
                self.file(*file).unsynced.push(Change::Write { offset: *offset, bytes: bytes.clone() });
            }
            Op::Truncate { file, len } => self.file(*file).unsynced.push(Change::Truncate(*len)),
            Op::Sync(file) => {
                let File { durable, unsynced } = self.file(*file);
                unsynced.drain(..).for_each(|change| change.apply(durable));
            }
            Op::Acknowledged { .. } => {}
        }
    }

    pub fn has_unsynced(&self) -> bool {
        self.files.iter().any(|file| !file.unsynced.is_empty())
    }

    /// Writes one of the many states that the disk may be in now.
    pub fn write_image(&mut self, directory: &Path) {
        for (i, name) in ["store.db", "store.db-wal"].into_iter().enumerate() {
            let mut image = self.files[i].durable.clone();
            // Sometimes all of it arrives, sometimes nothing, mostly any part.
            let chance = [0, 25, 50, 75, 95, 100][self.roll(6)];
            let mut dice = self.dice;
            for change in &self.files[i].unsynced {
                match change {
                    Change::Truncate(_) if roll(&mut dice, 100) >= chance => {}
                    Change::Truncate(len) => Change::Truncate(*len).apply(&mut image),
                    Change::Write { offset, bytes } => write_sectors(&mut image, *offset, bytes, || roll(&mut dice, 100) < chance),
                }
            }
            self.dice = dice;
            std::fs::write(directory.join(name), image).expect("an image");
        }
    }

    fn file(&mut self, file: FileKind) -> &mut File {
        &mut self.files[match file {
            FileKind::Database => 0,
            FileKind::Log => 1,
        }]
    }

    fn roll(&mut self, below: usize) -> usize {
        roll(&mut self.dice, below)
    }
}

impl Change {
    fn apply(self, file: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => write(file, offset, &bytes),
            Self::Truncate(len) => file.truncate(len),
        }
    }
}

/// Writes those sectors of a change that arrive.
fn write_sectors(file: &mut Vec<u8>, offset: usize, bytes: &[u8], mut arrives: impl FnMut() -> bool) {
    let mut from = 0;
    while from < bytes.len() {
        let to = bytes.len().min(from + SECTOR - (offset + from) % SECTOR);
        if arrives() {
            write(file, offset + from, &bytes[from..to]);
        }
        from = to;
    }
}

fn write(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// Numbers that look random and are the same at every run.
fn roll(dice: &mut u64, below: usize) -> usize {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 33) as usize % below
}
