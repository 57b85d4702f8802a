//! Whether everything in a data directory is the server's own: owned by its user, closed to others, and no link that leads elsewhere. A server
//! trusts these files with its keys and its history, so what somebody else could have put or changed there is refused at the start.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::data_dir::{DataDir, OWN_FILES};

/// Others may read these, but not write them: the operator writes the settings, and the commands' users pass through the work directories.
const READABLE: [&str; 3] = ["server.yaml", "wanted", "work"];
/// The bits of a mode that concern others than the owner.
const OTHERS: u32 = 0o077;
const WRITE_OF_OTHERS: u32 = 0o022;
/// How many paths an error names; its command has all of them.
const MOST_SHOWN: usize = 10;

/// Refuses a directory that belongs to another user: also root, whose files that user could not read, and whose commands would run with root's rights.
/// Where root would make the directory, the place for it must be root's.
pub fn check_owner(data: &DataDir) -> Result<()> {
    let (path, own) = (data.path(), own_uid());
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(path);
    let owner = fs::metadata(place).with_context(|| format!("cannot read the data directory {}", path.display()))?.uid();
    let is_foreign = if place == path { owner != own } else { own == 0 && owner != 0 };
    if is_foreign {
        let missing = if place == path { String::new() } else { format!("would be created in {}, which ", place.display()) };
        bail!(
            "the data directory {} {missing}belongs to the user with id {owner}, but this command runs as {own}: \
             run this as that user (sudo -u '#{owner}' runvoy …), or choose another directory with --data-dir",
            path.display()
        );
    }
    Ok(())
}

/// Checks everything that a server keeps in its data directory. What others put beside it is none
/// of its business. Where nobody else gets, because a directory above is closed to others, files
/// and directories with too wide a mode are closed: a server that was started with another umask
/// made them. What others could have changed is refused, all of it at once.
pub fn check_all(data: &DataDir) -> Result<()> {
    check_owner(data)?;
    let mode = fs::metadata(data.path()).with_context(|| format!("cannot read {}", data.path().display()))?.permissions().mode();
    let mut check = Check { repairs: true, found: Vec::new() };
    let reach = Reach { is_open: mode & OTHERS != 0, is_told: false };
    for name in OWN_FILES {
        let path = data.path().join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let below = check.one(&path, &metadata, READABLE.contains(&name), reach)?;
        // What is below `work` belongs to the users of commands.
        if metadata.is_dir() && name != "work" {
            check.below(&path, name != "keys", below)?;
        }
    }
    check.finish()
}

/// Checks a directory and everything below it, and repairs nothing.
pub fn check_tree(directory: &Path, readable: bool) -> Result<()> {
    let metadata = fs::metadata(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut check = Check { repairs: false, found: Vec::new() };
    let below = check.one(directory, &metadata, readable, Reach { is_open: true, is_told: false })?;
    check.below(directory, readable, below)?;
    check.finish()
}

/// Whether others than the owner get to a place, and whether a directory above it is named as too
/// open already.
#[derive(Debug, Clone, Copy)]
struct Reach {
    is_open: bool,
    is_told: bool,
}

/// A file or directory that others have access to.
#[derive(Debug)]
struct TooOpen {
    path: PathBuf,
    mode: u32,
    readable: bool,
    /// Closing the directory above it closes it too.
    is_below: bool,
}

/// A look at many files: what is wrong with their modes is told at its end.
struct Check {
    /// Closes what nobody else gets to.
    repairs: bool,
    found: Vec<TooOpen>,
}

impl Check {
    /// Checks every file and directory below a directory. Where that is closed to others, modes
    /// below it may let others read: nobody gets there.
    fn below(&mut self, directory: &Path, readable: bool, reach: Reach) -> Result<()> {
        for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
            let path = entry?.path();
            let metadata = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                metadata => metadata.with_context(|| format!("cannot read {}", path.display()))?,
            };
            let below = self.one(&path, &metadata, readable, reach)?;
            if metadata.is_dir() {
                self.below(&path, readable, below)?;
            }
        }
        Ok(())
    }

    /// Checks one, and gives who gets to what is in it.
    fn one(&mut self, path: &Path, metadata: &Metadata, readable: bool, reach: Reach) -> Result<Reach> {
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
        let (mode, others) = (metadata.permissions().mode(), if readable { WRITE_OF_OTHERS } else { OTHERS });
        let below = Reach { is_open: reach.is_open && mode & OTHERS != 0, ..reach };
        // The mode of a socket says who may connect; the server makes it anew.
        if mode & others == 0 || kind.is_socket() {
            return Ok(below);
        }
        if self.repairs && !reach.is_open {
            let closed = Permissions::from_mode(mode & 0o7777 & !others);
            fs::set_permissions(path, closed).with_context(|| format!("cannot close {shown} to others"))?;
            return Ok(below);
        }
        self.found.push(TooOpen { path: path.to_owned(), mode: mode & 0o7777, readable, is_below: reach.is_told });
        Ok(Reach { is_told: reach.is_told || !readable, ..below })
    }

    /// Refuses all that others could have changed or read, with the command that closes it.
    fn finish(self) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> =
            self.found.iter().take(MOST_SHOWN).map(|one| format!("{} (its mode is {:o})", one.path.display(), one.mode)).collect();
        let more = match self.found.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        bail!(
            "others than its owner have access to {}{more}: what they could write may have been changed, and what they could read is known; \
             if that is harmless, close it and start again: {}",
            shown.join(", "),
            closing(&self.found)
        );
    }
}

/// The command that closes all of these.
fn closing(found: &[TooOpen]) -> String {
    let chmod = |change: &str, readable: bool| {
        let paths = found.iter().filter(|one| one.readable == readable && !one.is_below).map(|one| quoted(&one.path));
        let paths: Vec<String> = paths.collect();
        (!paths.is_empty()).then(|| format!("chmod {change} {}", paths.join(" ")))
    };
    [chmod("go=", false), chmod("go-w", true)].into_iter().flatten().collect::<Vec<_>>().join(" && ")
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The user that this process acts as.
#[expect(unsafe_code, reason = "geteuid has no safe form in std")]
pub fn own_uid() -> u32 {
    // SAFETY: it takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_closes_all_that_others_get_to() {
        let at = |path: &str, readable, is_below| TooOpen { path: path.into(), mode: 0o666, readable, is_below };
        let found = [at("/d/runvoy.db", false, false), at("/d/it's here", false, false), at("/d/logs", false, false)];
        let below = [at("/d/logs/1", true, true), at("/d/server.yaml", true, false)];
        let all: Vec<TooOpen> = found.into_iter().chain(below).collect();
        assert_eq!(closing(&all), r"chmod go= /d/runvoy.db '/d/it'\''s here' /d/logs && chmod go-w /d/server.yaml");
    }
}
