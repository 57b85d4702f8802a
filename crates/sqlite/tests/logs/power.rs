//! Power loss: what was flushed is there, what was not may be gone, half there, or all there, each file and each name by itself. An
//! image of such a disk is made before every flush, opened, and must hold everything acknowledged by then.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, LogStore};
use runvoy_sqlite::logs::{Config, FileLogStore, Flush, Seams};

use crate::kit::{Dice, append, count, id, lines, open, read_all, run, small, whole};

const LOGS: usize = 4;

/// A file or directory, told apart from a later one that got the same number.
type Node = (u64, i64, i64);

fn node(meta: &Metadata) -> Node {
    let born = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    (meta.ino(), born.as_secs() as i64, i64::from(born.subsec_nanos()))
}

/// What is on stable storage, whatever the page cache says.
#[derive(Default)]
struct Stable {
    files: HashMap<Node, Vec<u8>>,
    names: HashMap<Node, Vec<(OsString, Node, bool)>>,
}

struct Power {
    root: PathBuf,
    stable: Mutex<Stable>,
    dice: Mutex<Dice>,
    acknowledged: Mutex<[u64; LOGS]>,
    images: Mutex<Vec<(tempfile::TempDir, [u64; LOGS])>>,
    one_in: u64,
}

fn list(dir: &Path) -> io::Result<Vec<(OsString, Node, bool)>> {
    std::fs::read_dir(dir)?
        .map(|item| {
            let item = item?;
            let meta = item.metadata()?;
            Ok((item.file_name(), node(&meta), meta.is_dir()))
        })
        .collect()
}

impl Power {
    fn new(root: &Path, seed: u64, one_in: u64) -> Self {
        let dice = Mutex::new(Dice(seed * 7919));
        Self { root: root.to_owned(), stable: Mutex::default(), dice, acknowledged: Mutex::default(), images: Mutex::default(), one_in }
    }

    /// Maybe cuts the power: keeps the image and what had been acknowledged.
    fn maybe_cut(&self) {
        let mut dice = self.dice.lock().expect("dice");
        if dice.below(self.one_in) != 0 {
            return;
        }
        let target = tempfile::tempdir().expect("dir");
        let root = node(&std::fs::metadata(&self.root).expect("root"));
        self.image(root, Some(&self.root), target.path(), &mut dice);
        self.images.lock().expect("images").push((target, *self.acknowledged.lock().expect("acknowledged")));
    }

    fn image(&self, dir: Node, now: Option<&Path>, target: &Path, dice: &mut Dice) {
        let stable = self.stable.lock().expect("stable");
        let current = now.and_then(|path| list(path).ok());
        let flushed = stable.names.get(&dir).cloned().unwrap_or_default();
        let names = if dice.below(2) == 0 { flushed } else { current.clone().unwrap_or(flushed) };
        let mut deeper = Vec::new();
        for (name, child, is_dir) in names {
            let path = now.map(|dir| dir.join(&name)).filter(|path| std::fs::metadata(path).is_ok_and(|meta| node(&meta) == child));
            let copy = target.join(&name);
            if is_dir {
                std::fs::create_dir(&copy).expect("create");
                deeper.push((child, path, copy));
                continue;
            }
            let flushed = stable.files.get(&child).cloned().unwrap_or_default();
            let current = path.and_then(|path| std::fs::read(path).ok()).unwrap_or_else(|| flushed.clone());
            let bytes = match dice.below(3) {
                0 => flushed,
                1 => current,
                _ => {
                    let least = flushed.len().min(current.len());
                    let len = least + dice.below((current.len() - least) as u64 + 1) as usize;
                    current[..len].to_vec()
                }
            };
            std::fs::write(copy, bytes).expect("write");
        }
        drop(stable);
        for (child, path, copy) in deeper {
            self.image(child, path.as_deref(), &copy, dice);
        }
    }
}

impl Flush for Power {
    fn data(&self, file: &File) -> io::Result<()> {
        self.maybe_cut();
        let bytes = std::fs::read(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        self.stable.lock().expect("stable").files.insert(node(&file.metadata()?), bytes);
        Ok(())
    }

    fn directory(&self, dir: &Path) -> io::Result<()> {
        self.maybe_cut();
        let names = list(dir)?;
        self.stable.lock().expect("stable").names.insert(node(&std::fs::metadata(dir)?), names);
        Ok(())
    }
}

async fn history(power: Arc<Power>, seed: u64) {
    let config = Config { journal_bytes: 1 << 30, ..small() };
    let seams = || Seams { flush: power.clone(), ..Seams::default() };
    let mut store = FileLogStore::open_with(&power.root, config.clone(), seams()).expect("opens");
    let mut dice = Dice(seed);
    let mut written = [0u64; LOGS];
    for _ in 0..60 {
        let log = dice.below(LOGS as u64) as usize;
        match dice.below(12) {
            0..=5 => {
                let more = 1 + dice.below(60);
                let text = lines(written[log] + 1, more);
                store.append(id(log as u64), append(1, Some(written[log] + 1), &text)).await.expect("appends");
                written[log] += more;
            }
            6..=8 => {
                let extent = store.sync(id(log as u64)).await.expect("syncs");
                power.acknowledged.lock().expect("acknowledged")[log] = extent.next_line - 1;
            }
            9 => {
                store.seal(id(log as u64), written[log]).await.expect("seals");
                // One thing at a time, so that an image is of one instant.
                store.settle();
            }
            10 => store.compact().expect("compacts"),
            _ => {
                drop(store);
                store = FileLogStore::open_with(&power.root, config.clone(), seams()).expect("opens");
                store.settle();
            }
        }
    }
}

async fn survives(dir: &Path, acknowledged: [u64; LOGS], what: &str) {
    for round in ["first", "second"] {
        let store = open(dir);
        for (log, acknowledged) in acknowledged.into_iter().enumerate() {
            let (read, error) = read_all(&store, id(log as u64), 1, 10_000).await;
            assert!(read.len() as u64 >= acknowledged, "{what}, {round} start, log {log}: {} of {acknowledged}, {error:?}", read.len());
            assert_eq!(read.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), lines(1, read.len() as u64), "{what}, log {log}");
            assert!(matches!(error, None | Some(LogError::Damaged { .. })), "{what}, {round} start, log {log}: {error:?}");
        }
        store.compact().expect("compacts");
        store.settle();
    }
}

#[test]
fn what_was_synced_survives_a_power_loss_at_any_moment() {
    run(async {
        let wanted = count(150, 10_000);
        let (mut images, mut seed) = (0, 1);
        while images < wanted {
            let dir = tempfile::tempdir().expect("dir");
            let power = Arc::new(Power::new(dir.path(), seed, 4));
            history(power.clone(), seed).await;
            let cuts = std::mem::take(&mut *power.images.lock().expect("images"));
            for (n, (image, acknowledged)) in cuts.into_iter().enumerate() {
                survives(image.path(), acknowledged, &format!("history {seed}, image {n}")).await;
                images += 1;
            }
            seed += 1;
        }
    });
}

#[test]
fn a_log_that_retention_takes_is_whole_or_gone_after_a_power_loss() {
    run(async {
        for seed in 1..=count(30, 1000) as u64 {
            let dir = tempfile::tempdir().expect("dir");
            let power = Arc::new(Power::new(dir.path(), seed, 1));
            let config = Config { journal_bytes: 1 << 30, ..small() };
            let store = FileLogStore::open_with(&power.root, config, Seams { flush: power.clone(), ..Seams::default() }).expect("opens");
            // All begin in one pack, and the first two end in another.
            for log in 0..LOGS as u64 {
                store.append(id(log), append(1, Some(1), &lines(1, 5))).await.expect("appends");
            }
            store.compact().expect("compacts");
            for log in 0..2 {
                store.append(id(log), append(1, Some(6), &lines(6, 2))).await.expect("appends");
                store.seal(id(log), 7).await.expect("seals");
            }
            store.compact().expect("compacts");
            power.images.lock().expect("images").clear();
            assert_eq!(store.prune(UnixMs(i64::MAX)).await.expect("prunes").logs, 2);
            power.maybe_cut();
            let cuts = std::mem::take(&mut *power.images.lock().expect("images"));
            assert!(cuts.len() >= 4, "{}", cuts.len());
            for (n, (image, _)) in cuts.into_iter().enumerate() {
                for round in 0..2 {
                    let store = open(image.path());
                    for log in 0..LOGS as u64 {
                        let what = format!("history {seed}, image {n}, round {round}, log {log}");
                        let (sealed, text) = (store.extent(id(log)).await.expect("extent").sealed, whole(&store, id(log)).await);
                        let is_gone = !sealed && text.is_empty();
                        let is_whole = if log < 2 { sealed && text == lines(1, 7) } else { !sealed && text == lines(1, 5) };
                        assert!(is_whole || (log < 2 && is_gone), "{what}: {sealed} {text:?}");
                        assert!(round == 0 || is_gone == (log < 2), "{what}");
                    }
                    store.prune(UnixMs(i64::MAX)).await.expect("prunes");
                }
            }
        }
    });
}
