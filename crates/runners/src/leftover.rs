//! Reads what a command left in its work directory. The command may be hostile and the reader may be root: links are not followed, pipes
//! and devices are not opened, nothing is read that the directory's owner does not own alone, and never more than was asked for.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use runvoy_ports::runner::Unread;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use rustix::io::Errno;

/// Reads a file of this name directly in the work directory.
pub(crate) async fn read(directory: &Path, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
    let (directory, name) = (directory.to_owned(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || read_now(&directory, &name, limit)).await;
    read.unwrap_or_else(|error| Err(Unread::Failed(error.to_string())))
}

fn read_now(directory: &Path, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return Err(Unread::NotAFile);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let directory = open(directory, flags | OFlags::DIRECTORY, Mode::empty()).map_err(unread)?;
    let owner = fstat(&directory).map_err(unread)?;
    // Looked at before it is opened: to open a device may already do something.
    let seen = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread)?;
    check(&seen, &owner)?;
    let file = openat(&directory, name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()).map_err(unread)?;
    // And looked at again: it may be another one by now.
    let opened = fstat(&file).map_err(unread)?;
    check(&opened, &owner)?;
    let size = usize::try_from(opened.st_size).unwrap_or(usize::MAX);
    if size > limit { Err(Unread::TooLarge { limit }) } else { bounded(file, size, limit) }
}

/// A file of the owner's own, on the directory's own disk, that has no second name: with one it could be a file from elsewhere that the
/// owner may not read.
fn check(file: &Stat, directory: &Stat) -> Result<(), Unread> {
    let ordinary = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
    let own = file.st_uid == directory.st_uid && file.st_dev == directory.st_dev && file.st_nlink == 1;
    if ordinary && own { Ok(()) } else { Err(Unread::NotAFile) }
}

/// Reads a file of this size. It may have become larger since.
fn bounded(file: OwnedFd, size: usize, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::with_capacity(size.saturating_add(1));
    let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::from(file).take(more).read_to_end(&mut bytes).map_err(|error| Unread::Failed(error.to_string()))?;
    if bytes.len() > limit { Err(Unread::TooLarge { limit }) } else { Ok(bytes) }
}

fn unread(errno: Errno) -> Unread {
    match errno {
        Errno::NOENT => Unread::Missing,
        Errno::LOOP | Errno::NOTDIR => Unread::NotAFile,
        errno => Unread::Failed(io::Error::from(errno).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn an_ordinary_file_is_read_up_to_its_limit() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "12345").unwrap();
        assert_eq!(read(root.path(), "a", 5).await, Ok(b"12345".to_vec()));
        assert_eq!(read(root.path(), "a", 4).await, Err(Unread::TooLarge { limit: 4 }));
        assert_eq!(read(root.path(), "b", 4).await, Err(Unread::Missing));
        assert_eq!(read(&root.path().join("gone"), "b", 4).await, Err(Unread::Missing));
    }

    #[tokio::test]
    async fn nothing_else_is_read_or_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(root.path().join("treasure"), "gold").unwrap();
        symlink(root.path().join("treasure"), work.join("link")).unwrap();
        fs::hard_link(root.path().join("treasure"), work.join("hard")).unwrap();
        fs::create_dir(work.join("directory")).unwrap();
        assert!(Command::new("mkfifo").arg(work.join("pipe")).status().unwrap().success());
        for name in ["link", "hard", "directory", "pipe", "../treasure", "..", ".", ""] {
            assert_eq!(read(&work, name, 100).await, Err(Unread::NotAFile), "{name}");
        }
        symlink(root.path(), root.path().join("way")).unwrap();
        assert_eq!(read(&root.path().join("way"), "treasure", 100).await, Err(Unread::NotAFile));
    }

    #[tokio::test]
    async fn a_huge_file_costs_no_memory() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("a")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(root.path(), "a", 10).await, Err(Unread::TooLarge { limit: 10 }));
    }
}
