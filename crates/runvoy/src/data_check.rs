//! Whether everything in a data directory is the server's own: owned by its user, closed to others, and no link that leads elsewhere. A server
//! trusts these files with its keys and its history, so what somebody else could have put or changed there is refused at the start.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::data_dir::{DataDir, OWN_FILES};

/// Others may read these, but not write them: the operator writes the settings, and the commands' users pass through the work directories.
const READABLE: [&str; 3] = ["server.yaml", "wanted", "work"];

/// Refuses a directory that belongs to another user: also root, whose files that user could not read, and whose commands would run with root's rights.
/// Where root would make the directory, the place for it must be root's.
pub fn check_owner(data: &DataDir) -> Result<()> {
    let (path, own) = (data.path(), own_uid());
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(path);
    let owner = fs::metadata(place).with_context(|| format!("cannot look at the data directory {}", path.display()))?.uid();
    let is_foreign = if place == path { owner != own } else { own == 0 && owner != 0 };
    if is_foreign {
        let missing = if place == path { String::new() } else { format!("would be made in {}, which ", place.display()) };
        bail!(
            "the data directory {} {missing}belongs to the user with id {owner}, and this one has {own}: \
             run this as that user (sudo -u '#{owner}' runvoy …), or name another directory with --data-dir",
            path.display()
        );
    }
    Ok(())
}

/// What to do with a file of our own that others have access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooOpen {
    /// Refuse it: somebody may have changed it.
    Refuse,
    /// Close it: nobody else could get there.
    Repair,
}

/// Checks everything that a server keeps in its data directory. What others put beside it is none of its business. In a directory that is closed to others,
/// files and directories with too wide a mode are closed: a server that was started with another umask made them.
pub fn check_all(data: &DataDir) -> Result<()> {
    check_owner(data)?;
    let mode = fs::metadata(data.path()).with_context(|| format!("cannot look at {}", data.path().display()))?.permissions().mode();
    let too_open = if mode & 0o077 == 0 { TooOpen::Repair } else { TooOpen::Refuse };
    for name in OWN_FILES {
        let path = data.path().join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let readable = READABLE.contains(&name);
        check_one(&path, &metadata, readable, too_open)?;
        // What is below `work` belongs to the users of commands.
        if metadata.is_dir() && name != "work" {
            check_below(&path, name != "keys", too_open)?;
        }
    }
    Ok(())
}

/// Checks a directory and everything below it, as [`check_below`] does.
pub fn check_tree(directory: &Path, readable: bool) -> Result<()> {
    let metadata = fs::metadata(directory).with_context(|| format!("cannot look at {}", directory.display()))?;
    check_one(directory, &metadata, readable, TooOpen::Refuse)?;
    check_below(directory, readable, TooOpen::Refuse)
}

/// Checks every file and directory below a directory. Where that is closed to others, modes below it may let others read: nobody gets there.
fn check_below(directory: &Path, readable: bool, too_open: TooOpen) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot look into {}", directory.display()))? {
        let path = entry?.path();
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.with_context(|| format!("cannot look at {}", path.display()))?,
        };
        check_one(&path, &metadata, readable, too_open)?;
        if metadata.is_dir() {
            check_below(&path, readable, too_open)?;
        }
    }
    Ok(())
}

fn check_one(path: &Path, metadata: &Metadata, readable: bool, too_open: TooOpen) -> Result<()> {
    let (kind, shown) = (metadata.file_type(), path.display());
    if kind.is_symlink() {
        bail!("{shown} is a symbolic link, and a server keeps files of its own there: put the file itself in its place");
    }
    if !(kind.is_file() || kind.is_dir() || kind.is_socket()) {
        bail!("{shown} is neither a file nor a directory: remove it");
    }
    let own = own_uid();
    if metadata.uid() != own {
        bail!(
            "{shown} belongs to the user with id {}, not to the server's ({own}): find out who put it there, then restore a backup, or chown it",
            metadata.uid()
        );
    }
    let (mode, others) = (metadata.permissions().mode(), if readable { 0o022 } else { 0o077 });
    // The mode of a socket says who may connect; the server makes it anew.
    if mode & others == 0 || kind.is_socket() {
        return Ok(());
    }
    if too_open == TooOpen::Refuse {
        let change = if readable { "go-w" } else { "go=" };
        bail!("others than its owner have access to {shown} (its mode is {:o}): chmod {change} {shown}", mode & 0o7777);
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !others)).with_context(|| format!("cannot close {shown} to others"))
}

/// The user that this process acts as.
#[expect(unsafe_code, reason = "geteuid has no safe form in std")]
pub fn own_uid() -> u32 {
    // SAFETY: it takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}
