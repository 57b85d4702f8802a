//! What keeps the commands of one spawner apart, found once at its start: what is asked for and works here is used, and everything is reported.

use std::fs;
use std::path::{Path, PathBuf};

use libc::sock_filter;
use runvoy_ports::runner::{Limits, Protection, ProtectionState};

use super::clone::Clone;
use super::hierarchy::PROBE;
use super::ladder::{self, Ladder};
use super::mounts::{self, View};
use super::{directory, kernel, landlock, seccomp};
use crate::config::{Isolation, IsolationLevel, User};

/// What a private view of the machine needs.
pub(crate) const NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// What is in force.
#[derive(Default)]
pub(crate) struct Protections {
    /// Commands have PID, mount and IPC namespaces of their own.
    pub(crate) namespaces: bool,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) filter: Option<Vec<sock_filter>>,
    /// The version of Landlock.
    pub(crate) landlock: Option<i64>,
    pub(crate) writable: Vec<PathBuf>,
    memory_bytes: Option<u64>,
    pids: Option<u64>,
    pub(crate) report: Vec<Protection>,
}

impl Protections {
    /// Tries what is asked for.
    pub(crate) fn find(user: &User, asked: Isolation, work_root: &Path, ladder: &mut Ladder) -> Self {
        let mut found = Self::default();
        if !matches!(user, User::Each(_)) {
            return found;
        }
        let (some, all) = (asked.level != IsolationLevel::Off, asked.level == IsolationLevel::Strict);
        let scratch = format!("{PROBE}{}", std::process::id());
        let view = View { work_dir: work_root.to_owned(), tmp: work_root.join(&scratch), hidden: asked.hidden.clone() };
        let namespaces = || {
            fs::create_dir_all(&view.tmp).map_err(|error| error.to_string())?;
            ladder::attempt(Clone { namespaces: NAMESPACES, ..Clone::default() }, || mounts::enter(&view))
                .map_err(|error| error.to_string())
        };
        found.namespaces = found.take("namespaces", some, namespaces).is_some();
        drop(directory::remove(work_root, &scratch));
        found.filter = found.take("seccomp", all, find_filter);
        found.landlock = found.take("landlock", all, landlock::abi);
        ladder.has_init |= found.namespaces;
        let mut limit =
            |name: &str, limits: Limits| ladder.make(&format!("{PROBE}{name}-{}", std::process::id()), &limits).map_err(|f| f.detail);
        let pids = asked.pids.map(|pids| Limits { pids: Some(pids), ..Limits::default() });
        let memory = asked.memory_bytes.map(|bytes| Limits { memory_bytes: Some(bytes), ..Limits::default() });
        let works = |limits: Option<Limits>, limit: &mut dyn FnMut(Limits) -> Result<super::cgroup::Group, String>| {
            limits.map_or(Ok(()), |limits| {
                limit(limits).map(|mut group| {
                    group.remove();
                })
            })
        };
        let pids = works(pids, &mut |limits| limit("pids", limits));
        found.pids = found.take("pid limit", asked.pids.is_some(), || pids).and(asked.pids);
        let memory = works(memory, &mut |limits| limit("memory", limits));
        found.memory_bytes = found.take("memory limit", asked.memory_bytes.is_some(), || memory).and(asked.memory_bytes);
        (found.hidden, found.writable) = (asked.hidden, asked.writable);
        found
    }

    fn take<T>(&mut self, name: &str, wanted: bool, find: impl FnOnce() -> Result<T, String>) -> Option<T> {
        let (state, value) = match wanted.then(find) {
            None => (ProtectionState::Off, None),
            Some(Ok(value)) => (ProtectionState::On, Some(value)),
            Some(Err(why)) => (ProtectionState::Unsupported(why), None),
        };
        self.report.push(Protection { name: name.to_owned(), state });
        value
    }

    /// The limits of a command: its own, else the default ones.
    pub(crate) fn limits(&self, asked: &Limits) -> Limits {
        Limits { memory_bytes: asked.memory_bytes.or(self.memory_bytes), pids: asked.pids.or(self.pids), ..*asked }
    }
}

fn find_filter() -> Result<Vec<sock_filter>, String> {
    let filter = seccomp::filter().ok_or("no filter is written for this processor")?;
    let install = || kernel::no_new_privileges().and_then(|()| seccomp::install(&filter));
    ladder::attempt(Clone::default(), install).map_err(|error| error.to_string())?;
    Ok(filter)
}
