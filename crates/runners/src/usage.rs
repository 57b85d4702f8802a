//! How full the disk under the work directories is, and how much of it one directory takes.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runvoy_ports::runner::DiskSpace;

/// No more files are looked at in one walk: a measure must end.
const MAX_FILES: usize = 1_000_000;

/// The disk that a directory is on; the file that is set aside counts where it is on the same one.
pub(crate) fn space(directory: &Path, set_aside: Option<&Path>) -> Option<DiskSpace> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    let device = fs::metadata(directory).ok().map(|directory| directory.dev());
    let file = set_aside.and_then(|path| fs::metadata(path).ok()).filter(|file| Some(file.dev()) == device);
    let set_aside_bytes = file.map_or(0, |file| file.blocks().saturating_mul(512));
    Some(DiskSpace { free_bytes: bytes(stat.f_bavail), total_bytes: bytes(stat.f_blocks), set_aside_bytes })
}

/// What the files in these directories take, each once. Links are not followed and other file systems not entered; what goes away meanwhile does not count.
/// `u64::MAX` where a directory is so deep that no path leads to it: whatever is there must not escape a limit.
pub(crate) async fn usage(directories: Vec<PathBuf>) -> u64 {
    let walk = move || {
        let mut linked = HashSet::new();
        directories.iter().fold(0, |bytes: u64, directory| bytes.saturating_add(walk(directory, &mut linked)))
    };
    tokio::task::spawn_blocking(walk).await.unwrap_or(0)
}

fn walk(top: &Path, linked: &mut HashSet<u64>) -> u64 {
    let Ok(device) = fs::symlink_metadata(top).map(|top| top.dev()) else { return 0 };
    let (mut bytes, mut files, mut waiting) = (0, 0, vec![top.to_owned()]);
    while let Some(directory) = waiting.pop() {
        let entries = fs::read_dir(&directory);
        if entries.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENAMETOOLONG)) {
            return u64::MAX;
        }
        for entry in entries.into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            files += 1;
            if files > MAX_FILES {
                return bytes;
            }
            if found.dev() != device || (!found.is_dir() && found.nlink() > 1 && !linked.insert(found.ino())) {
                continue;
            }
            bytes += found.blocks() * 512;
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

    use super::*;

    #[tokio::test]
    async fn what_no_path_leads_to_is_more_than_any_limit() {
        let dir = tempfile::tempdir().unwrap();
        let (name, flags) = ("d".repeat(250), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC);
        let mut above = open(dir.path(), flags, Mode::empty()).unwrap();
        for _ in 0..20 {
            mkdirat(&above, name.as_str(), Mode::RWXU).unwrap();
            above = openat(&above, name.as_str(), flags, Mode::empty()).unwrap();
        }
        assert_eq!(usage(vec![dir.path().to_owned(), dir.path().to_owned()]).await, u64::MAX);
    }

    #[tokio::test]
    async fn files_count_once_and_what_links_lead_to_does_not() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("in/file"), vec![1; 300_000]).unwrap();
        fs::hard_link(dir.path().join("in/file"), dir.path().join("again")).unwrap();
        fs::write(other.path().join("large"), vec![1; 3_000_000]).unwrap();
        std::os::unix::fs::symlink(other.path(), dir.path().join("link")).unwrap();
        // Blocks may be counted only once they are written.
        fs::File::open(dir.path().join("again")).unwrap().sync_all().unwrap();
        let used = usage(vec![dir.path().to_owned(), dir.path().join("none")]).await;
        assert!((300_000..600_000).contains(&used), "{used}");
        let file = dir.path().join("set aside");
        fs::write(&file, [1; 10_000]).expect("written");
        let on_disk = fs::metadata(&file).expect("a file").blocks() * 512;
        let set_aside = |path: &Path| space(dir.path(), Some(path)).expect("a disk").set_aside_bytes;
        assert_eq!((set_aside(&file), set_aside(&dir.path().join("none"))), (on_disk, 0));
        assert_eq!(set_aside(Path::new("/proc/self/status")), 0, "it is on another file system");
        assert!(space(dir.path(), None).is_some_and(|space| space.free_bytes <= space.total_bytes));
        assert_eq!(space(&dir.path().join("none"), None), None);
    }
}
