//! Files that processes have deleted and keep open: they take space that no directory shows.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};

use super::kernel::Pid;

/// No more open files are looked at in one measure: it must end.
const MAX_OPEN_FILES: usize = 100_000;

/// What deleted files on the file system of a directory take while these processes keep them open, each once.
pub(super) fn bytes(processes: &[Pid], directory: &Path) -> u64 {
    let Some(device) = look(directory).as_ref().map(device_of) else { return 0 };
    let mut seen = HashSet::new();
    let open = processes.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let deleted = open.take(MAX_OPEN_FILES).filter_map(|file| look(&file.path())).filter(|file| {
        file.stx_nlink == 0
            && FileType::from_raw_mode(file.stx_mode.into()) == FileType::RegularFile
            && device_of(file) == device
            && seen.insert(file.stx_ino)
    });
    deleted.map(|file| file.stx_blocks * 512).sum()
}

fn device_of(file: &Statx) -> (u32, u32) {
    (file.stx_dev_major, file.stx_dev_minor)
}

/// Takes what the kernel knows already: a file system that hangs must not stop the disk watch.
fn look(path: &Path) -> Option<Statx> {
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn open_files_count_once_after_their_deletion() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 300_000]).expect("written");
        let file = File::open(&path).expect("it opens");
        // Blocks may be counted only once they are written.
        file.sync_all().expect("synced");
        let own = [std::process::id().cast_signed()];
        assert_eq!(bytes(&own, dir.path()), 0, "a directory shows it");
        let again = file.try_clone().expect("a second descriptor");
        fs::remove_file(&path).expect("removed");
        let found = bytes(&own, dir.path());
        assert!((300_000..600_000).contains(&found), "{found}");
        assert_eq!(bytes(&own, Path::new("/proc")), 0, "it is on another file system");
        drop((file, again));
        assert_eq!(bytes(&own, dir.path()), 0);
    }
}
