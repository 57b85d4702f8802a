//! Takes work directories away, whatever a command left in them: symlinks are removed and never followed, mounts are never entered
//! (a bind mount of `/` must not empty the machine), unreadable directories are opened up, and any depth takes two descriptors.
#![expect(unsafe_code, reason = "openat2, unlinkat and renameat work on directories that are held open")]

use std::ffi::{CString, OsStr};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How many entries are looked at before any is removed.
const BATCH: usize = 1024;

/// Removes a directory that no process uses any more. One that is not there is fine.
pub(crate) fn remove(root: &Path, name: &str) -> io::Result<()> {
    match fs::remove_dir(root.join(name)) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return fs::remove_file(root.join(name)),
        Err(_) => {}
    }
    let above = File::open(root)?;
    let top = Held::open(above.as_raw_fd(), OsStr::new(name))?;
    let mut moved = 0;
    loop {
        let (mut progress, mut last_error) = (false, None);
        let batch = top.entries()?;
        if batch.is_empty() {
            return unlink(above.as_raw_fd(), OsStr::new(name), libc::AT_REMOVEDIR);
        }
        for (entry, is_directory) in batch {
            let removed = if is_directory { flatten(&top, &entry, &mut moved) } else { unlink(top.raw(), &entry, 0) };
            match removed {
                Ok(()) => progress = true,
                Err(error) => last_error = Some(error),
            }
        }
        if let Some(error) = last_error.filter(|_| !progress) {
            return Err(error);
        }
    }
}

/// Removes a directory of the top after moving the directories in it up beside it, so that depth never needs a stack.
fn flatten(top: &Held, name: &OsStr, moved: &mut u64) -> io::Result<()> {
    if unlink(top.raw(), name, libc::AT_REMOVEDIR).is_ok() {
        return Ok(());
    }
    let directory = Held::open(top.raw(), name)?;
    loop {
        let batch = directory.entries()?;
        if batch.is_empty() {
            return unlink(top.raw(), name, libc::AT_REMOVEDIR);
        }
        for (entry, is_directory) in batch {
            if !is_directory {
                unlink(directory.raw(), &entry, 0)?;
            } else if unlink(directory.raw(), &entry, libc::AT_REMOVEDIR).is_err() {
                // Opened first, which makes it ours to move.
                drop(Held::open(directory.raw(), &entry)?);
                move_up(&directory, &entry, top, moved)?;
            }
        }
    }
}

fn move_up(from: &Held, entry: &OsStr, top: &Held, moved: &mut u64) -> io::Result<()> {
    let old = c_string(entry)?;
    loop {
        *moved += 1;
        let new = c_string(OsStr::new(&format!(".removed-{moved}")))?;
        // SAFETY: both names are live C strings and both directories are held open.
        if unsafe { libc::renameat(from.raw(), old.as_ptr(), top.raw(), new.as_ptr()) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // The name is taken; the next is as good.
        if !matches!(error.raw_os_error(), Some(libc::EEXIST | libc::ENOTEMPTY | libc::ENOTDIR)) {
            return Err(error);
        }
    }
}

/// A directory that is held open.
struct Held(OwnedFd);

impl Held {
    /// Opens a directory in another without following links or entering mounts, and makes it ours to read and change.
    fn open(above: RawFd, name: &OsStr) -> io::Result<Self> {
        let pinned = open_in(above, name, libc::O_PATH)?;
        // Through /proc the mode changes of the very directory that is pinned; it fails only for what is not ours.
        drop(fs::set_permissions(in_proc(pinned.as_raw_fd()), Permissions::from_mode(0o700)));
        open_in(above, name, libc::O_RDONLY).map(Self)
    }

    fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Some of its entries, and whether each is a directory.
    fn entries(&self) -> io::Result<Vec<(std::ffi::OsString, bool)>> {
        let entries = fs::read_dir(in_proc(self.raw()))?.take(BATCH);
        entries.map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?.is_dir())))).collect()
    }
}

fn in_proc(fd: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{fd}"))
}

fn open_in(above: RawFd, name: &OsStr, mode: i32) -> io::Result<OwnedFd> {
    let name = c_string(name)?;
    let flags = mode | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: an all-zero open_how is a valid one.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from(flags.cast_unsigned());
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_XDEV;
    // SAFETY: name and how are live, and the size is that of how.
    let fd = unsafe { libc::syscall(libc::SYS_openat2, above, name.as_ptr(), &raw const how, size_of::<libc::open_how>()) };
    let fd = match RawFd::try_from(fd) {
        Ok(fd) if fd >= 0 => fd,
        // A container's filter may hide the call. Then at least no other file system is entered.
        _ if matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            // SAFETY: the name is a live C string.
            unsafe { libc::openat(above, name.as_ptr(), flags) }
        }
        _ => -1,
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is open and nobody else owns it.
    let opened = unsafe { OwnedFd::from_raw_fd(fd) };
    if fs::metadata(in_proc(fd))?.dev() != fs::metadata(in_proc(above))?.dev() {
        return Err(io::Error::from_raw_os_error(libc::EXDEV));
    }
    Ok(opened)
}

fn unlink(above: RawFd, name: &OsStr, flags: i32) -> io::Result<()> {
    let name = c_string(name)?;
    // SAFETY: the name is a live C string.
    if unsafe { libc::unlinkat(above, name.as_ptr(), flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn symlinks_are_removed_and_what_they_point_at_stays() {
        let root = tempfile::tempdir().unwrap();
        let treasure = root.path().join("treasure");
        fs::create_dir(&treasure).unwrap();
        fs::write(treasure.join("gold"), "x").unwrap();
        let work = root.path().join("work");
        fs::create_dir_all(work.join("deep/er")).unwrap();
        symlink(&treasure, work.join("link")).unwrap();
        symlink(&treasure, work.join("deep/er/link")).unwrap();
        symlink("/etc/passwd", work.join("file")).unwrap();
        fs::write(work.join(".removed-1"), "in the way").unwrap();
        remove(root.path(), "work").unwrap();
        assert!(!work.exists());
        assert_eq!(fs::read_to_string(treasure.join("gold")).unwrap(), "x");
    }

    #[test]
    fn a_work_directory_that_became_a_symlink_is_not_entered() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("treasure")).unwrap();
        fs::write(root.path().join("treasure/gold"), "x").unwrap();
        symlink(root.path().join("treasure"), root.path().join("work")).unwrap();
        remove(root.path(), "work").unwrap();
        assert!(root.path().join("treasure/gold").exists());
        assert!(fs::symlink_metadata(root.path().join("work")).is_err());
    }

    #[test]
    fn depth_and_locked_directories_do_not_stop_it() {
        let root = tempfile::tempdir().unwrap();
        let mut path = root.path().join("work");
        for depth in 0..200 {
            path.push("d");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("f"), depth.to_string()).unwrap();
        }
        fs::set_permissions(root.path().join("work/d/d"), Permissions::from_mode(0o000)).unwrap();
        remove(root.path(), "work").unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        remove(root.path(), "work").unwrap();
    }
}
