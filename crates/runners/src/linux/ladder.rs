//! The ways to hold a command so that a kill reaches all of it, surest first; which of them works on this machine; and the
//! cgroups of each command. It starts no command.
#![expect(unsafe_code, reason = "tries whether processes can be made as each way wants")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use runvoy_ports::runner::Limits;

use super::cgroup::{self, Group};
use super::child;
use super::clone::{Clone, Entry};
use super::hierarchy::{Controller, Hierarchies, LEAF, PARENT, PROBE};
use super::init;
use super::kernel;
use super::limit;
use super::message::{Failure, Rung};
use super::step::Step;

/// What this machine offers and what of it is used.
pub(crate) struct Ladder {
    pub(crate) rung: Rung,
    instance: String,
    hierarchies: Hierarchies,
    /// Whether a process can be born in a version 2 cgroup; where a filter hides that call, it enters by itself.
    pub(crate) born_inside: bool,
    /// Whether an init process is above every command.
    pub(crate) has_init: bool,
    /// The hierarchy of version 1 that holds commands.
    freezer: &'static str,
    /// Where limits of each kind go; filled when first asked for, because controllers make every cgroup dearer.
    bases: HashMap<&'static str, Result<Base, String>>,
}

/// A directory that holds one cgroup per command.
#[derive(Debug, Clone)]
struct Base {
    path: PathBuf,
    v2: bool,
}

impl Ladder {
    /// Finds the surest way that works, or says why the demanded one does not.
    pub(crate) fn find(instance: &str, demanded: Option<Rung>) -> Result<Self, String> {
        let hierarchies = Hierarchies::read();
        let freezer = if hierarchies.v1("freezer").is_some() { "freezer" } else { "pids" };
        let instance = instance.to_owned();
        let mut ladder =
            Self { rung: Rung::Weak, instance, hierarchies, born_inside: true, has_init: false, freezer, bases: HashMap::new() };
        if let Some(rung) = demanded {
            ladder.climb(rung).map_err(|error| format!("containment {rung:?} was asked for and does not work here: {error}"))?;
            ladder.settle(rung);
            return Ok(ladder);
        }
        let works = [Rung::CgroupV2, Rung::CgroupV1, Rung::PidNamespace].into_iter().find(|rung| ladder.climb(*rung).is_ok());
        ladder.settle(works.unwrap_or(Rung::Weak));
        Ok(ladder)
    }

    fn settle(&mut self, rung: Rung) {
        self.rung = rung;
        self.has_init = matches!(rung, Rung::PidNamespace | Rung::Weak);
    }

    /// The directory that holds the cgroup by which each command is killed.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        match self.rung {
            Rung::CgroupV2 => self.hierarchies.v2.as_deref().map(|own| self.root(own)),
            Rung::CgroupV1 => self.hierarchies.v1(self.freezer).map(|own| self.root(own)),
            Rung::PidNamespace | Rung::Weak => None,
        }
    }

    /// Every directory that may hold cgroups of ours, for a later sweep.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let v1 = ["freezer", "pids", "memory", "cpu"].into_iter().filter_map(|name| self.hierarchies.v1(name));
        let mut roots: Vec<PathBuf> = self.hierarchies.v2.as_deref().into_iter().chain(v1).map(|own| self.root(own)).collect();
        roots.dedup();
        roots
    }

    /// Takes the directories away that are empty; another server's are not.
    pub(crate) fn retire(&self) {
        for root in self.roots() {
            if fs::remove_dir(&root).is_ok()
                && let Some(parent) = root.parent()
            {
                drop(fs::remove_dir(parent));
            }
        }
    }

    /// Makes the cgroups of a command. Nothing is left when it fails.
    pub(crate) fn make(&mut self, name: &str, limits: &Limits) -> Result<Group, Failure> {
        let mut group = Group::default();
        self.fill(&mut group, name, limits).inspect_err(|_| {
            group.remove();
        })?;
        Ok(group)
    }

    fn root(&self, own: &Path) -> PathBuf {
        own.join(PARENT).join(&self.instance)
    }

    fn fill(&mut self, group: &mut Group, name: &str, limits: &Limits) -> Result<(), Failure> {
        if let Some(root) = self.home() {
            make_in(group, &root, name, self.rung == Rung::CgroupV2)
                .map_err(|error| Failure::new(Step::MakeCgroup, &error, root.display().to_string()))?;
        }
        for controller in Controller::ALL {
            let Some(mut limit) = limit::asked(limits, controller) else { continue };
            if controller == Controller::Pids && self.has_init {
                // The init process above the command is a member too.
                limit = limit.saturating_add(1);
            }
            self.set(group, name, controller, limit)?;
        }
        Ok(())
    }

    fn set(&mut self, group: &mut Group, name: &str, controller: Controller, limit: u64) -> Result<(), Failure> {
        let fail = |error: &io::Error, why: &str| Failure::new(Step::SetLimit, error, format!("{}: {why}", controller.name()));
        let base = self.base(controller).map_err(|why| fail(&io::Error::from_raw_os_error(libc::ENOTSUP), &why))?;
        let path = make_in(group, &base.path, name, base.v2).map_err(|error| fail(&error, "its cgroup could not be created"))?;
        for setting in limit::settings(controller, limit, base.v2) {
            if let Err(error) = cgroup::write(&path.join(setting.file), &setting.value)
                && setting.required
            {
                return Err(fail(&error, &format!("{} could not be set to {}", setting.file, setting.value)));
            }
        }
        if controller == Controller::Memory {
            group.count_memory(&path);
        }
        Ok(())
    }

    /// Whether commands can be held this way.
    fn climb(&mut self, rung: Rung) -> Result<(), String> {
        match rung {
            Rung::CgroupV2 => {
                let own = self.hierarchies.v2.clone().ok_or("cgroup v2 is not mounted")?;
                let root = self.root(&own);
                make_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
                if !root.join("cgroup.kill").exists() {
                    return Err("the kernel has no cgroup.kill (Linux 5.14)".to_owned());
                }
                self.enter(&root).map_err(|error| format!("no process can be started in {}: {error}", root.display()))
            }
            Rung::CgroupV1 => {
                let own = self.hierarchies.v1(self.freezer).ok_or("no freezer or pids hierarchy of cgroup v1 is mounted")?;
                let root = self.root(own);
                make_all(&root).map_err(|error| format!("{}: {error}", root.display()))
            }
            Rung::PidNamespace => attempt(Clone { namespaces: namespaces(), ..Clone::default() }, || init::map_ids(id_map()))
                .map_err(|error| error.to_string()),
            Rung::Weak => Ok(()),
        }
    }

    /// Tries to put a process into a cgroup: a directory can be ours to make and still not ours to fill.
    fn enter(&mut self, root: &Path) -> io::Result<()> {
        // Directories that hand controllers down take no processes, so this needs one of its own.
        let probe = root.join(format!("{PROBE}{}", std::process::id()));
        cgroup::remove(&probe);
        let mut group = Group::default();
        group.add(probe.clone(), true)?;
        let directory = File::open(probe)?;
        let mut result = attempt(Clone { cgroup: Some(directory.as_fd()), ..Clone::default() }, || Ok(()));
        if result.is_err() {
            let joins = group.joins(false);
            // SAFETY: runs in a process that was just made by a process with one thread.
            let join = || unsafe { child::join(&joins) }.map_err(|(_, errno)| io::Error::from_raw_os_error(errno));
            result = attempt(Clone::default(), join).inspect(|()| self.born_inside = false);
        }
        group.remove();
        result
    }

    /// The directory where limits of this kind go.
    fn base(&mut self, controller: Controller) -> Result<Base, String> {
        if let Some(known) = self.bases.get(controller.name()) {
            return known.clone();
        }
        let base = self.find_base(controller);
        self.bases.insert(controller.name(), base.clone());
        base
    }

    fn find_base(&self, controller: Controller) -> Result<Base, String> {
        if let Some(own) = self.hierarchies.v1(controller.name()) {
            let path = self.root(own);
            make_all(&path).map_err(|error| format!("{} cannot be created: {error}", path.display()))?;
            return Ok(Base { path, v2: false });
        }
        let own = self.hierarchies.v2.as_deref().ok_or("this machine has no cgroups that runvoy can use")?;
        let path = self.root(own);
        make_all(&path).map_err(|error| format!("{} cannot be created: {error}", path.display()))?;
        self.enable(own, controller)?;
        Ok(Base { path, v2: true })
    }

    /// Hands a version 2 controller down to the cgroups of commands.
    fn enable(&self, own: &Path, controller: Controller) -> Result<(), String> {
        let offered = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        if !offered.split_ascii_whitespace().any(|name| name == controller.name()) {
            return Err(format!("the {} controller is not delegated to {} (systemd: Delegate=yes)", controller.name(), own.display()));
        }
        let wish = format!("+{}", controller.name());
        let parent = own.join(PARENT);
        if let Err(error) = cgroup::write(&own.join("cgroup.subtree_control"), &wish) {
            // A cgroup that hands controllers down must have no processes of its own.
            let busy = error.raw_os_error() == Some(libc::EBUSY);
            let moved = busy && self.move_into_leaf(&parent).is_ok();
            if !moved || cgroup::write(&own.join("cgroup.subtree_control"), &wish).is_err() {
                let why = if busy { "other processes share its cgroup" } else { "permission is missing" };
                return Err(format!("the {} controller of {} cannot be used: {why}", controller.name(), own.display()));
            }
        }
        for directory in [parent.clone(), parent.join(&self.instance)] {
            cgroup::write(&directory.join("cgroup.subtree_control"), &wish)
                .map_err(|error| format!("the {} controller stops at {}: {error}", controller.name(), directory.display()))?;
        }
        Ok(())
    }

    fn move_into_leaf(&self, parent: &Path) -> io::Result<()> {
        let leaf = parent.join(format!("{}{LEAF}", self.instance));
        make_all(&leaf)?;
        for pid in [kernel::parent(), std::process::id().cast_signed()] {
            cgroup::write(&leaf.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }
}

/// The namespaces that a command is put into: without root a user namespace is what permits the others.
pub(crate) fn namespaces() -> i32 {
    let user = if kernel::ids().0 == 0 { 0 } else { libc::CLONE_NEWUSER };
    libc::CLONE_NEWPID | libc::CLONE_NEWNS | user
}

/// User and group to keep in a user namespace, where one is made.
pub(crate) fn id_map() -> Option<(u32, u32)> {
    let ids = kernel::ids();
    (ids.0 != 0).then_some(ids)
}

fn make_in(group: &mut Group, root: &Path, name: &str, v2: bool) -> io::Result<PathBuf> {
    let made = group.add(root.join(name), v2).map(Path::to_owned);
    match made {
        // A stopping server of another instance may have taken the shared parent away.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_all(root)?;
            group.add(root.join(name), v2).map(Path::to_owned)
        }
        made => made,
    }
}

/// `create_dir_all` that outlives somebody who takes the shared parent away in between.
fn make_all(path: &Path) -> io::Result<()> {
    let mut result = fs::create_dir_all(path);
    for _ in 0..10 {
        match &result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => result = fs::create_dir_all(path),
            _ => break,
        }
    }
    result
}

/// Makes a process that does one thing and leaves, and says whether that worked.
pub(crate) fn attempt(how: Clone<'_>, mut task: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    unsafe extern "C" fn enter<F: FnMut() -> io::Result<()>>(task: *mut c_void) -> ! {
        // SAFETY: the argument given below, in this process's copy of the memory.
        let task = unsafe { &mut *task.cast::<F>() };
        kernel::leave(task().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0))
    }
    fn entry<F: FnMut() -> io::Result<()>>(_: &F) -> Entry {
        enter::<F>
    }
    let entry = entry(&task);
    // SAFETY: the spawner has one thread, and the task lives until the child has left.
    let pid = unsafe { how.start(entry, (&raw mut task).cast()) }?;
    match kernel::exit_code(pid) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
