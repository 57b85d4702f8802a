//! Disks that fail: flushes that return an error, file systems that are full.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::time::Duration;

use runvoy_model::log::Stream;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, LogStore, PLATFORM_ROOM_BYTES};
use runvoy_sqlite::logs::{Config, FileLogStore, Flush, Seams};

use crate::kit::{Line, NEW, OLD, append, count, id, id_at, lines, open, quick, run, small, whole};

/// Fails once, at the `fail_at`th flush, and counts.
struct Failing {
    fail_at: usize,
    calls: AtomicUsize,
}

impl Failing {
    fn flush(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if call == self.fail_at { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl Flush for Failing {
    fn data(&self, _: &File) -> io::Result<()> {
        self.flush()
    }
    fn directory(&self, _: &Path) -> io::Result<()> {
        self.flush()
    }
}

#[test]
fn a_failed_flush_is_fatal_and_never_tried_again() {
    run(async {
        for fail_at in 1..count(12, 50) {
            let dir = tempfile::tempdir().expect("dir");
            let failing = Arc::new(Failing { fail_at, calls: AtomicUsize::new(0) });
            let store = match FileLogStore::open_with(dir.path(), small(), Seams { flush: failing.clone(), ..Seams::default() }) {
                Ok(store) => store,
                Err(LogError::Storage(_)) => continue,
                Err(other) => panic!("{other:?}"),
            };
            let mut acknowledged = 0;
            loop {
                let written = acknowledged + 1;
                let text = lines(written, 1);
                let appended = store.append(id(1), append(1, Some(written), &text)).await;
                let synced = if appended.is_ok() { store.sync(id(1)).await.map(|extent| extent.next_line - 1) } else { Ok(0) };
                match (appended, synced) {
                    (Ok(_), Ok(line)) if line == written => acknowledged = written,
                    (Err(LogError::Storage(_)), _) | (Ok(_), Err(LogError::Storage(_))) => break,
                    other => panic!("flush {fail_at}: {other:?}"),
                }
                assert!(acknowledged < 500, "the failure never came");
            }
            store.settle();
            let calls = failing.calls.load(Ordering::SeqCst);
            for _ in 0..3 {
                assert!(matches!(store.append(id(2), append(1, Some(1), &lines(1, 1))).await, Err(LogError::Storage(_))));
                assert!(matches!(store.sync(id(1)).await, Err(LogError::Storage(_))));
                assert!(matches!(store.sync(id(2)).await, Err(LogError::Storage(_))));
                assert!(matches!(store.seal(id(1), 1).await, Err(LogError::Storage(_))));
            }
            assert_eq!(failing.calls.load(Ordering::SeqCst), calls, "no flush after the failed one");
            assert!(whole(&store, id(1)).await.len() as u64 >= acknowledged, "what was acknowledged can be read");
        }
    });
}

/// Holds the first flush of data until it is let go, and counts.
struct Gate {
    calls: AtomicU64,
    open: Mutex<mpsc::Receiver<()>>,
}

impl Flush for Gate {
    fn data(&self, _: &File) -> io::Result<()> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            self.open.lock().expect("gate").recv().expect("opened");
        }
        Ok(())
    }
    fn directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn calls_that_wait_at_the_same_time_share_a_flush() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let (sender, receiver) = mpsc::channel();
        let gate = Arc::new(Gate { calls: AtomicU64::new(0), open: Mutex::new(receiver) });
        let store =
            Arc::new(FileLogStore::open_with(dir.path(), small(), Seams { flush: gate.clone(), ..Seams::default() }).expect("opens"));
        let asked = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for log in 0..64 {
            let (store, asked) = (store.clone(), asked.clone());
            tasks.push(tokio::spawn(async move {
                store.append(id(log), append(1, Some(1), &lines(1, 1))).await.expect("appends");
                asked.fetch_add(1, Ordering::SeqCst);
                store.sync(id(log)).await.expect("syncs").next_line
            }));
        }
        while asked.load(Ordering::SeqCst) < 64 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        sender.send(()).expect("open the gate");
        for task in tasks {
            assert_eq!(task.await.expect("task"), 2);
        }
        let calls = gate.calls.load(Ordering::SeqCst);
        assert!(calls <= 4, "64 callers, {calls} flushes");
    });
}

/// A small file system of its own, gone when dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("dir").keep();
        let option = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs"]).arg(&dir).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(dir));
        }
        std::fs::remove_dir(&dir).expect("remove");
        assert!(std::env::var_os("RUNVOY_PROVE").is_none(), "mounting a tmpfs needs root, and this proof needs a tmpfs");
        eprintln!("not run: mounting a tmpfs needs root");
        None
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        if unmounted.is_ok_and(|status| status.success()) {
            let _ = std::fs::remove_dir(&self.0);
        }
    }
}

/// A block that does not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut dice = crate::kit::Dice(seed + 1);
    (0..len).map(|_| dice.below(256) as u8).collect()
}

async fn fill_until_refused(store: &FileLogStore, logs: &mut [Vec<Line>], seed: &mut u64) {
    loop {
        *seed += 1;
        let log = (*seed % logs.len() as u64) as usize;
        let more = vec![Line::new(*seed as i64, noise(*seed, 3000)), Line::new(*seed as i64, noise(*seed, 50))];
        match store.append(id(log as u64), append(1, Some(logs[log].len() as u64 + 1), &more)).await {
            Ok(_) => logs[log].extend(more),
            Err(LogError::NoSpace) => return,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_full_disk_is_told_and_forgotten_when_there_is_space_again() {
    let Some(disk) = Tmpfs::mount("6m") else { return };
    run(async {
        let dir = disk.0.join("logs");
        let config = Config { spill_bytes: 64 << 10, journal_bytes: 8 << 20, segment_bytes: 256 << 10, ..small() };
        let reopen = || FileLogStore::open_with(&dir, config.clone(), quick()).expect("opens");
        let mut store = reopen();
        let mut logs = vec![Vec::new(); 8];
        let mut seed = 0;
        for cycle in 0..count(8, 100) {
            let ballast = disk.0.join("ballast");
            let used = 60_000 * (count(8, 100) - cycle) / count(8, 100) * 40;
            std::fs::write(&ballast, vec![0; used]).ok();
            fill_until_refused(&store, &mut logs, &mut seed).await;
            if cycle % 3 == 2 {
                drop(store);
                std::fs::remove_file(&ballast).expect("remove");
                store = reopen();
            } else {
                std::fs::remove_file(&ballast).expect("remove");
            }
            for (log, text) in logs.iter().enumerate() {
                assert_eq!(whole(&store, id(log as u64)).await.len(), text.len(), "cycle {cycle}, log {log}");
            }
        }
        for (log, text) in logs.iter().enumerate() {
            assert_eq!(&whole(&store, id(log as u64)).await, text, "log {log}");
        }
        assert!(store.verify().expect("verifies").damage.is_empty(), "no torn bytes are left in the files");
        drop(store);
        for (log, text) in logs.iter().enumerate() {
            assert_eq!(&whole(&reopen(), id(log as u64)).await, text, "opened again, log {log}");
        }
    });
}

#[test]
fn logs_leave_the_reserve_to_the_store() {
    let Some(disk) = Tmpfs::mount("8m") else { return };
    run(async {
        let dir = disk.0.join("logs");
        let config = Config { reserve_bytes: 3 << 20, spill_bytes: 64 << 10, journal_bytes: 8 << 20, ..small() };
        let store = FileLogStore::open_with(&dir, config, quick()).expect("opens");
        let ballast = disk.0.join("ballast");
        std::fs::write(&ballast, vec![0; 2 << 20]).expect("write");
        let mut logs = vec![Vec::new(); 3];
        let mut seed = 0;
        fill_until_refused(&store, &mut logs, &mut seed).await;
        std::fs::write(disk.0.join("database"), vec![1; 1 << 20]).expect("the store itself can still write");
        store.seal(id(0), logs[0].len() as u64).await.expect("an ended execution can still be sealed");
        std::fs::remove_file(disk.0.join("database")).expect("remove");
        std::fs::remove_file(&ballast).expect("remove");
        let before = logs[1].len() as u64;
        store.append(id(1), append(1, Some(before + 1), &lines(1, 1))).await.expect("appends again without hands");
    });
}

#[test]
fn retention_makes_room_on_a_full_disk() {
    let Some(disk) = Tmpfs::mount("6m") else { return };
    run(async {
        let config = Config { journal_bytes: 8 << 20, ..small() };
        let store = FileLogStore::open_with(&disk.0.join("logs"), config, quick()).expect("opens");
        let write = async |logs: std::ops::Range<u64>, seals: bool| {
            for log in logs {
                store.append(id_at(OLD, log), append(1, Some(1), &[Line::new(OLD, noise(log, 3000))])).await.expect("appends");
                if seals {
                    store.seal(id_at(OLD, log), 1).await.expect("seals");
                }
            }
        };
        write(0..50, false).await;
        store.compact().expect("compacts");
        store.seal(id_at(OLD, 0), 1).await.expect("seals");
        store.compact().expect("compacts");
        write(100..300, true).await;
        store.compact().expect("compacts");
        // Ended, and still in the journal.
        write(300..301, true).await;
        let mut ballast = File::create(disk.0.join("ballast")).expect("create");
        while std::io::Write::write(&mut ballast, &[0; 4096]).is_ok() {}

        // Neither the journal can be emptied nor a beginning taken out, for that writes; what needs no writing goes and makes room for it.
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 200);
        assert!(store.extent(id_at(OLD, 0)).await.expect("extent").sealed);
        assert_eq!(store.prune(UnixMs(NEW)).await.expect("prunes").logs, 2);
        for log in 0..50 {
            let lines = whole(&store, id_at(OLD, log)).await;
            assert_eq!(lines.len(), usize::from(log > 0), "log {log}");
        }
        let usage = store.usage().expect("usage");
        assert_eq!((usage.packs, usage.big_logs, usage.journal_logs), (1, 0, 0), "{usage:?}");
    });
}

#[test]
fn a_log_that_is_full_says_so_and_stays_readable() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { max_log_bytes: 20_000, ..small() }, quick()).expect("opens");
        let mut written = 0;
        loop {
            match store.append(id(1), append(1, Some(written + 1), &lines(written + 1, 20))).await {
                Ok(_) => written += 20,
                Err(LogError::Full { limit_bytes: 20_000 }) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
        assert!(written > 100);
        assert_eq!(whole(&store, id(1)).await, lines(1, written));
        store.seal(id(1), written).await.expect("seals");
        store.append(id(2), append(1, Some(1), &lines(1, 1))).await.expect("others go on");
    });
}

#[test]
fn the_platforms_lines_find_room_in_a_full_log_but_no_attempt_brings_them_without_bound() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        let store = FileLogStore::open_with(dir.path(), Config { max_log_bytes: 20_000, ..small() }, quick()).expect("opens");
        let line = || [Line { stream: Stream::Platform, ..Line::new(1000, "#".repeat(50_000)) }];
        let mut written = 0;
        while written < 1_000 {
            match store.append(id(1), append(1, Some(written + 1), &line())).await {
                Ok(_) => written += 1,
                Err(LogError::Full { limit_bytes: 20_000 }) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
        let most = (PLATFORM_ROOM_BYTES + 20_000) / 50_000;
        assert!((2..=most).contains(&written), "{written} of at most {most}");
        store.append(id(1), append(0, None, &line())).await.expect("the server itself is always heard");
    });
}

#[test]
fn a_second_store_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let first = open(dir.path());
    let error = FileLogStore::open(dir.path(), small()).err().expect("refused");
    assert!(std::error::Error::source(&error).expect("a cause").to_string().contains("used by another process"));
    drop(first);
    drop(FileLogStore::open(dir.path(), small()).expect("free again"));
}

#[test]
fn a_store_that_is_open_keeps_others_out_and_one_that_is_closed_does_not() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let first = FileLogStore::open(dir.path(), small()).expect("opens");
    assert!(FileLogStore::open(dir.path(), small()).is_err());
    first.close().expect("closes");
    FileLogStore::open(dir.path(), small()).expect("the next one need not wait for the last reader of the first");
    drop(first);
}

/// Holds up flushes of directories, once it has got the store, until that is closing.
struct HeldUp {
    store: OnceLock<Weak<FileLogStore>>,
    begun: Mutex<mpsc::Sender<()>>,
    over: AtomicBool,
}

impl Flush for HeldUp {
    fn data(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
    fn directory(&self, _: &Path) -> io::Result<()> {
        if let Some(store) = self.store.get().and_then(Weak::upgrade) {
            self.begun.lock().expect("one at a time").send(()).expect("somebody waits for it");
            while store.alive().is_ok() {
                std::thread::yield_now();
            }
            // So a close that waits for nobody is back before.
            std::thread::sleep(Duration::from_millis(50));
            self.over.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[test]
fn a_close_waits_for_a_prune() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (begun, wait_begun) = mpsc::channel();
    let held_up = Arc::new(HeldUp { store: OnceLock::new(), begun: Mutex::new(begun), over: AtomicBool::new(false) });
    let seams = Seams { flush: held_up.clone(), ..Seams::default() };
    let store = Arc::new(FileLogStore::open_with(dir.path(), small(), seams).expect("opens"));
    run(async {
        store.append(id(1), append(1, Some(1), &lines(1, 5))).await.expect("appends");
        store.seal(id(1), 5).await.expect("seals");
    });
    store.settle();
    store.compact().expect("compacts");
    held_up.store.set(Arc::downgrade(&store)).expect("once");
    let theirs = Arc::clone(&store);
    let prune = std::thread::spawn(move || run(theirs.prune(UnixMs(i64::MAX))).map(|pruned| pruned.logs));
    wait_begun.recv().expect("the prune takes the pack away");
    store.close().expect("closes");
    assert!(held_up.over.load(Ordering::SeqCst), "it came back while files were changed");
    assert_eq!(prune.join().expect("it does not panic").expect("prunes"), 1);
}
