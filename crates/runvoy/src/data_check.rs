//! Whether everything in a data directory is the server's own: owned by its user, closed to others, and no link that leads elsewhere. A server
//! trusts these files with its keys and its history, so what somebody else could have put or changed there is refused at the start.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::data_dir::{DataDir, OWN_FILES};

/// Others may read these, but not write them: the operator writes the settings, and the commands' users pass through the work directories.
const READABLE: [&str; 3] = ["server.yaml", "wanted", "work"];

/// Refuses a directory that belongs to another user: also root, whose files that user could not read, and whose commands would run with root's rights.
pub fn check_owner(data: &DataDir) -> Result<()> {
    let path = data.path();
    let owner = fs::metadata(path).with_context(|| format!("cannot look at the data directory {}", path.display()))?.uid();
    let own = own_uid();
    if owner != own {
        bail!(
            "the data directory {} belongs to the user with id {owner}, and this one has {own}: \
             start its server as that user (sudo -u '#{owner}' runvoy serve --data-dir {0}), or name another directory",
            path.display()
        );
    }
    Ok(())
}

/// Checks everything that a server keeps in its data directory. What others put beside it is none of its business.
pub fn check_all(data: &DataDir) -> Result<()> {
    check_owner(data)?;
    for name in OWN_FILES {
        let path = data.path().join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let readable = READABLE.contains(&name);
        check_one(&path, &metadata, readable)?;
        // What is below `work` belongs to the users of commands.
        if metadata.is_dir() && name != "work" {
            check_below(&path, name != "keys")?;
        }
    }
    Ok(())
}

/// Checks every file and directory below a directory. Where that is closed to others, modes below it may let others read: nobody gets there.
pub fn check_below(directory: &Path, readable: bool) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot look into {}", directory.display()))? {
        let path = entry?.path();
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.with_context(|| format!("cannot look at {}", path.display()))?,
        };
        check_one(&path, &metadata, readable)?;
        if metadata.is_dir() {
            check_below(&path, readable)?;
        }
    }
    Ok(())
}

fn check_one(path: &Path, metadata: &Metadata, readable: bool) -> Result<()> {
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
    let mode = metadata.permissions().mode();
    let too_open = if readable { mode & 0o022 } else { mode & 0o077 };
    // The mode of a socket says who may connect; the server makes it anew.
    if too_open != 0 && !kind.is_socket() {
        let change = if readable { "go-w" } else { "go=" };
        bail!("others than its owner have access to {shown} (its mode is {:o}): chmod {change} {shown}", mode & 0o7777);
    }
    Ok(())
}

/// The user that this process acts as.
#[expect(unsafe_code, reason = "geteuid has no safe form in std")]
pub fn own_uid() -> u32 {
    // SAFETY: it takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}
