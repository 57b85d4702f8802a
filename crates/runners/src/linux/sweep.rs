//! Ends what earlier starts left running: their spawners, the cgroups under our own name, and processes that were written down.
//! It signals only what it can prove to be ours, and takes work directories away only when nothing uses them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cgroup;
use super::directory;
use super::handle::Handle;
use super::hierarchy::{PARENT, PROBE};
use super::message::Rung;
use super::tree;
use crate::command::is_attempt_name;

/// Where the spawners of this work root are written down, one line of JSON each.
const JOURNAL: &str = ".spawners";
/// The ending of the file that holds the handle of a command without a cgroup.
const HANDLE: &str = ".handle";
/// The ending of the directory that a command sees as `/tmp`.
pub(crate) const TMP: &str = ".tmp";
/// How long a spawner whose worker is gone may take to end by itself.
const SPAWNER_PATIENCE: Duration = Duration::from_secs(2);
/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// One spawner and where it puts commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spawner {
    pub(crate) handle: Handle,
    pub(crate) cgroups: Vec<PathBuf>,
}

/// The records of one work root.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    pub(crate) work_root: PathBuf,
    pub(crate) instance: String,
}

impl Records {
    /// Writes down a spawner before it is asked for anything.
    pub(crate) fn add_spawner(&self, spawner: &Spawner) -> io::Result<()> {
        let mut line = serde_json::to_vec(spawner)?;
        line.push(b'\n');
        private().append(true).open(self.work_root.join(JOURNAL))?.write_all(&line)
    }

    /// Writes down a command that no cgroup holds.
    pub(crate) fn add_command(&self, name: &str, handle: &str) -> io::Result<()> {
        private().truncate(true).open(self.handle_path(name))?.write_all(handle.as_bytes())
    }

    /// Forgets a command and takes its work directory away.
    pub(crate) fn remove_command(&self, name: &str, had_handle: bool) -> io::Result<()> {
        if had_handle {
            drop(fs::remove_file(self.handle_path(name)));
        }
        let removed = directory::remove(&self.work_root, &format!("{name}{TMP}"));
        directory::remove(&self.work_root, name).and(removed)
    }

    /// Ends everything that is not the current spawner's or chosen to be kept. Returns how many commands were found running.
    pub(crate) fn sweep(&self, current: &Spawner, keep: impl Fn(&str) -> bool) -> Result<usize, String> {
        let mut roots: BTreeSet<PathBuf> = current.cgroups.iter().cloned().collect();
        for spawner in self.spawners().into_iter().filter(|spawner| spawner.handle != current.handle) {
            // Until it is gone it may still start what its worker asked for last.
            end_spawner(&spawner.handle)?;
            roots.extend(spawner.cgroups);
        }
        let roots: Vec<PathBuf> = roots.into_iter().collect();
        let found = self.end(&roots, |name| !keep(name))?;
        self.remove_stale(&keep).map_err(|error| format!("{} could not be read: {error}", self.work_root.display()))?;
        self.rewrite(current).map_err(|error| format!("{} could not be written: {error}", self.work_root.join(JOURNAL).display()))?;
        Ok(found)
    }

    /// Kills the chosen commands in these cgroups and among those written down, and waits until they are gone. Returns how many ran.
    pub(crate) fn end(&self, roots: &[PathBuf], choose: impl Fn(&str) -> bool) -> Result<usize, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut found = BTreeSet::new();
        loop {
            let left = self.end_once(roots, &choose, &mut found);
            if left.is_empty() {
                return Ok(found.len());
            }
            if Instant::now() > deadline {
                let names: Vec<String> = left.into_iter().collect();
                return Err(format!("commands of an earlier start cannot be killed: {} (kill them by hand)", names.join(", ")));
            }
            sleep(Duration::from_millis(2));
        }
    }

    fn end_once(&self, roots: &[PathBuf], choose: &impl Fn(&str) -> bool, found: &mut BTreeSet<String>) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        for root in roots.iter().filter(|root| self.is_ours(root)) {
            for directory in cgroup::children(root) {
                let Some(name) = file_name(&directory) else { continue };
                if name.starts_with(PROBE) {
                    cgroup::remove(&directory);
                    continue;
                }
                if !is_attempt_name(name) || !choose(name) || cgroup::remove(&directory) {
                    continue;
                }
                if !cgroup::members(&directory).is_empty() {
                    found.insert(name.to_owned());
                }
                cgroup::kill(&directory);
                if !cgroup::remove(&directory) {
                    left.insert(name.to_owned());
                }
            }
        }
        for (name, handle) in self.commands().filter(|(name, _)| choose(name)) {
            let Some(process) = handle.process() else { continue };
            found.insert(name.clone());
            left.insert(name);
            if handle.containment == Rung::Weak {
                tree::kill_below(process.pid);
                // The init process above them leaves by itself once it sees that they are gone.
                drop(tree::send(&process, libc::SIGCONT));
            } else {
                drop(tree::send(&process, libc::SIGKILL));
            }
        }
        left
    }

    /// A record may be old or damaged: nothing is killed in a directory that does not carry our name.
    fn is_ours(&self, root: &Path) -> bool {
        root.ends_with(Path::new(PARENT).join(&self.instance)) && root.join("cgroup.procs").exists()
    }

    fn remove_stale(&self, keep: &impl Fn(&str) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.work_root)? {
            let file = entry?.file_name();
            let Some(file) = file.to_str() else { continue };
            let name = file.strip_suffix(HANDLE).or_else(|| file.strip_suffix(TMP)).unwrap_or(file);
            if is_attempt_name(name)
                && !keep(name)
                && let Err(error) = directory::remove(&self.work_root, file)
            {
                let path = self.work_root.join(file);
                tracing::warn!(%error, path = %path.display(), "a work directory could not be removed; remove it by hand");
            }
        }
        Ok(())
    }

    fn spawners(&self) -> Vec<Spawner> {
        let journal = fs::read_to_string(self.work_root.join(JOURNAL)).unwrap_or_default();
        // A line that a crash cut short has no spawner behind it: it is written before the first request.
        journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn commands(&self) -> impl Iterator<Item = (String, Handle)> {
        let entries = fs::read_dir(&self.work_root).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(HANDLE)?.to_owned();
            Some((name, serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?))
        })
    }

    fn rewrite(&self, current: &Spawner) -> io::Result<()> {
        let new = self.work_root.join(format!("{JOURNAL}.new"));
        let mut file: File = private().truncate(true).open(&new)?;
        serde_json::to_writer(&mut file, current)?;
        file.write_all(b"\n")?;
        fs::rename(new, self.work_root.join(JOURNAL))
    }

    fn handle_path(&self, name: &str) -> PathBuf {
        self.work_root.join(format!("{name}{HANDLE}"))
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn end_spawner(handle: &Handle) -> Result<(), String> {
    let start = Instant::now();
    while let Some(process) = handle.process() {
        if start.elapsed() > SPAWNER_PATIENCE {
            drop(tree::send(&process, libc::SIGKILL));
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("the spawner of an earlier start, pid {}, cannot be killed (kill it by hand)", process.pid));
        }
        sleep(Duration::from_millis(2));
    }
    Ok(())
}
