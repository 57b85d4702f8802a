//! Where this process sits in each cgroup hierarchy of the machine. Pure but for [`Hierarchies::read`]; it makes nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory under our own cgroup that holds everything of ours.
pub(crate) const PARENT: &str = "runvoy";
/// The ending of the leaf that worker and spawner move into where controllers want inner cgroups empty.
pub(crate) const LEAF: &str = ".self";

/// How the cgroups begin in which a spawner tries whether it can hold commands.
pub(crate) const PROBE: &str = "probe-";

/// A resource that a limit can be set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// Our own cgroup in each hierarchy, as directories.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    pub(crate) v2: Option<PathBuf>,
    v1: Vec<(String, PathBuf)>,
}

impl Hierarchies {
    /// Reads the state of this process.
    pub(crate) fn read() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::parse(&mounts, &own)
    }

    /// Our own cgroup in the version 1 hierarchy of a controller.
    pub(crate) fn v1(&self, controller: &str) -> Option<&Path> {
        self.v1.iter().find(|(name, _)| name == controller).map(|(_, path)| path.as_path())
    }

    fn parse(mounts: &str, own: &str) -> Self {
        let mut found = Self::default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            if mount.version == 2 {
                found.v2 = found.v2.or_else(|| own_path(own, "").and_then(|path| mount.directory(path)));
                continue;
            }
            for controller in mount.options.split(',') {
                if found.v1(controller).is_none()
                    && let Some(directory) = own_path(own, controller).and_then(|path| mount.directory(path))
                {
                    found.v1.push((controller.to_owned(), directory));
                }
            }
        }
        found
    }
}

struct Mount<'a> {
    version: u8,
    root: &'a str,
    point: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let version = match right.next()? {
            "cgroup2" => 2,
            "cgroup" => 1,
            _ => return None,
        };
        let mut left = left.split(' ').skip(3);
        Some(Self { version, root: left.next()?, point: left.next()?, options: right.nth(1)? })
    }

    /// The directory of a cgroup, if this mount shows it.
    fn directory(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix(self.root.trim_end_matches('/'))?;
        if below.split('/').any(|part| part == "..") || !(below.is_empty() || below.starts_with('/')) {
            return None;
        }
        let directory = Path::new(self.point).join(below.trim_start_matches('/'));
        Some(outside_leaf(&directory).unwrap_or(directory))
    }
}

/// A spawner that is started anew is born in the leaf that its predecessor moved the worker into; what it wants is the cgroup above.
fn outside_leaf(directory: &Path) -> Option<PathBuf> {
    let leaf = directory.file_name()?.to_str()?;
    let parent = directory.parent()?;
    (leaf.ends_with(LEAF) && parent.file_name()? == PARENT).then(|| parent.parent().map(Path::to_owned))?
}

/// The path of this process in the hierarchy of a controller; the unified one has no name.
fn own_path<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_unified_machine_has_one_directory() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let found = Hierarchies::parse(mounts, "0::/system.slice/runvoy.service\n");
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/system.slice/runvoy.service")));
        assert_eq!(found.v1("memory"), None);
    }

    #[test]
    fn a_hybrid_machine_has_one_per_controller() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = Hierarchies::parse(mounts, "5:cpu,cpuacct:/a/b\n0::/\n");
        assert_eq!(found.v1("cpu"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct/a/b")));
        assert_eq!(found.v1("cpuacct"), found.v1("cpu"));
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified/")));
    }

    #[test]
    fn a_container_sees_its_own_part_only() {
        let mounts = "30 25 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(Hierarchies::parse(mounts, "5:memory:/docker/abc\n").v1("memory"), Some(Path::new("/sys/fs/cgroup/memory/")));
        assert_eq!(Hierarchies::parse(mounts, "5:memory:/docker/abcdef\n").v1("memory"), None);
        assert_eq!(Hierarchies::parse(mounts, "5:memory:/../x\n").v1("memory"), None);
    }

    #[test]
    fn a_new_spawner_climbs_out_of_the_leaf_of_the_old_one() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let found = Hierarchies::parse(mounts, "0::/a.service/runvoy/main.self\n");
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/a.service")));
        let found = Hierarchies::parse(mounts, "0::/a.service/other/main.self\n");
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/a.service/other/main.self")));
    }
}
