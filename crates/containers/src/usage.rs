//! What a container takes of CPU and memory, from the cgroup of its first process. The cgroup is gone with the container, so that it is
//! looked at while the container runs.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// The files that tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    cpu: Option<(PathBuf, CpuUnit)>,
    memory: Option<PathBuf>,
    peak: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CpuUnit {
    Nanoseconds,
    /// As a line `usage_usec N` among others.
    MicrosecondsInStat,
}

impl Gauges {
    /// Those of a process; none where the system has no cgroups or hides them.
    pub(crate) fn of(pid: u32) -> Self {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).map_or_else(|_| Self::default(), |text| Self::read(&text, Path::new(ROOT)))
    }

    fn read(text: &str, root: &Path) -> Self {
        let mut gauges = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
            // The cgroup of the whole machine tells nothing of a container.
            let path = path.trim_start_matches('/');
            if path.is_empty() {
                continue;
            }
            match controllers {
                "" => {
                    let group = root.join(path);
                    gauges.cpu.get_or_insert((group.join("cpu.stat"), CpuUnit::MicrosecondsInStat));
                    gauges.memory.get_or_insert(group.join("memory.current"));
                    gauges.peak.get_or_insert(group.join("memory.peak"));
                }
                names => {
                    let group = root.join(names).join(path);
                    if names.split(',').any(|name| name == "cpuacct") {
                        gauges.cpu = Some((group.join("cpuacct.usage"), CpuUnit::Nanoseconds));
                    }
                    if names == "memory" {
                        gauges.memory = Some(group.join("memory.usage_in_bytes"));
                        gauges.peak = Some(group.join("memory.max_usage_in_bytes"));
                    }
                }
            }
        }
        gauges
    }

    /// CPU time so far.
    pub(crate) fn cpu_ms(&self) -> Option<u64> {
        let (path, unit) = self.cpu.as_ref()?;
        let text = fs::read_to_string(path).ok()?;
        match unit {
            CpuUnit::Nanoseconds => text.trim().parse::<u64>().ok().map(|nanos| nanos / 1_000_000),
            CpuUnit::MicrosecondsInStat => {
                let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                line.trim().parse::<u64>().ok().map(|micros| micros / 1_000)
            }
        }
    }

    /// Memory now.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        number(self.memory.as_deref()?)
    }

    /// The most memory so far.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        self.peak.as_deref().and_then(number).or_else(|| self.memory_bytes())
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hierarchies_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        write("cpu,cpuacct/docker/a/cpuacct.usage", "2500000\n");
        write("memory/docker/a/memory.max_usage_in_bytes", "4096\n");
        let old = Gauges::read("5:cpu,cpuacct:/docker/a\n3:memory:/docker/a\n0::/\n", root.path());
        assert_eq!((old.cpu_ms(), old.peak_bytes(), old.memory_bytes()), (Some(2), Some(4096), None));
        write("system.slice/b/cpu.stat", "usage_usec 7000\nuser_usec 1\n");
        write("system.slice/b/memory.current", "10\n");
        let new = Gauges::read("0::/system.slice/b\n", root.path());
        assert_eq!((new.cpu_ms(), new.memory_bytes(), new.peak_bytes()), (Some(7), Some(10), Some(10)));
        assert_eq!(Gauges::read("0::/\n", root.path()), Gauges::default());
    }
}
