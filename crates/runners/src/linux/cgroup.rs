//! One command's cgroups: who is in them, ending all of them, and taking the directories away. Everything here works on plain
//! directories of the cgroup file system; it is used by the spawner for its own commands and by a sweep for those of others.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::kernel::{self, Pid};
use super::limit;

/// The cgroups of one command.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Every directory that was made, by version.
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    v2: bool,
    counts_memory: bool,
}

impl Group {
    /// Makes a directory, or finds the one that was made for another purpose.
    pub(crate) fn add(&mut self, path: PathBuf, v2: bool) -> io::Result<&Path> {
        let place = match self.directories.iter().position(|directory| directory.path == path) {
            Some(place) => place,
            None => {
                fs::create_dir(&path)?;
                self.directories.push(Directory { path, v2, counts_memory: false });
                self.directories.len() - 1
            }
        };
        Ok(&self.directories[place].path)
    }

    /// Notes that kills for memory are counted in the directory at this path.
    pub(crate) fn count_memory(&mut self, path: &Path) {
        self.directories.iter_mut().filter(|directory| directory.path == path).for_each(|directory| directory.counts_memory = true);
    }

    /// The version 2 directory, which a process can be born in.
    pub(crate) fn birthplace(&self) -> Option<&Path> {
        self.directories.iter().find(|directory| directory.v2).map(|directory| directory.path.as_path())
    }

    /// The `cgroup.procs` files of the directories that a process must enter by itself.
    pub(crate) fn joins(&self, born_inside: bool) -> Vec<CString> {
        let entered = self.directories.iter().filter(|directory| !(directory.v2 && born_inside));
        entered.filter_map(|directory| CString::new(directory.path.join("cgroup.procs").as_os_str().as_bytes()).ok()).collect()
    }

    /// Whether the kernel killed a member for going over its memory limit.
    pub(crate) fn oom_killed(&self) -> bool {
        self.directories.iter().filter(|directory| directory.counts_memory).any(|directory| {
            fs::read_to_string(directory.path.join(limit::oom_file(directory.v2))).is_ok_and(|text| limit::has_oom_kill(&text))
        })
    }

    /// Sends `SIGTERM` to every member.
    pub(crate) fn terminate(&self) {
        if let Some(directory) = self.directories.first() {
            signal_members(&directory.path, libc::SIGTERM);
        }
    }

    /// Kills every member there is now. What forks meanwhile in version 1 is found by the next call.
    pub(crate) fn kill(&self) {
        self.directories.iter().for_each(|directory| kill(&directory.path));
    }

    /// Takes the directories away; true once none is left. Fails while there are members.
    pub(crate) fn remove(&mut self) -> bool {
        self.directories.retain(|directory| !remove(&directory.path));
        self.directories.is_empty()
    }
}

/// Writes to a file that exists already: in the cgroup file system all of them do.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Kills every member of a cgroup and of those below it.
pub(crate) fn kill(directory: &Path) {
    if write(&directory.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let state = directory.join("freezer.state");
    let frozen = write(&state, "FROZEN").is_ok();
    if frozen {
        // Nothing frozen can fork. A member in an uninterruptible wait may keep the others waiting, so this does not insist.
        for _ in 0..20 {
            if fs::read_to_string(&state).is_ok_and(|state| state.trim() == "FROZEN") {
                break;
            }
            sleep(Duration::from_micros(250));
        }
    }
    signal_members(directory, libc::SIGKILL);
    if frozen {
        drop(write(&state, "THAWED"));
    }
}

/// Takes a cgroup and those below it away; true if it is gone.
pub(crate) fn remove(directory: &Path) -> bool {
    match fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(_) => {
            let children = children(directory);
            !children.is_empty() && children.iter().all(|child| remove(child)) && fs::remove_dir(directory).is_ok()
        }
    }
}

/// The members of a cgroup and of those below it.
pub(crate) fn members(directory: &Path) -> Vec<Pid> {
    let own = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut members: Vec<Pid> = own.lines().filter_map(|line| line.parse().ok()).collect();
    children(directory).iter().for_each(|child| members.extend(self::members(child)));
    members
}

/// The cgroups directly below a cgroup.
pub(crate) fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// A pid is signalled only if it was still a member after a descriptor held it, so never one that was given to somebody else.
fn signal_members(directory: &Path, signal: i32) {
    let held: Vec<_> = members(directory).into_iter().filter_map(|pid| Some((pid, kernel::open_process(pid).ok()?))).collect();
    if held.is_empty() {
        return;
    }
    let still: HashSet<Pid> = members(directory).into_iter().collect();
    for (_, process) in held.iter().filter(|(pid, _)| still.contains(pid)) {
        drop(kernel::signal_process(process.as_fd(), signal));
    }
}
