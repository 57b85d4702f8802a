//! One command of a spawner from its making to its last descendant. It makes the process, and knows how to stop it and when all of
//! it is gone; what is said to the worker about it is the spawner's.
#![expect(unsafe_code, reason = "makes processes")]

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runvoy_ports::runner::{Exit, ExitStatus};

use super::cgroup::Group;
use super::child::{self, Plan};
use super::clone::{Clone, Stack};
use super::directory;
use super::init::{self, InitPlan};
use super::isolation::{NAMESPACES, Protections};
use super::kernel::{self, Pid, Reaped};
use super::ladder::{self, Ladder};
use super::landlock;
use super::message::{Failure, Rung, StartRequest};
use super::mounts::View;
use super::socket::{self, Wait};
use super::step::{RECORD, Record, Step};
use super::sweep::TMP;
use super::tree;
use crate::config::{RunAs, User};

/// What all commands of one spawner share.
pub(crate) struct Ground {
    pub(crate) work_root: PathBuf,
    pub(crate) user: User,
    pub(crate) ladder: Ladder,
    pub(crate) protections: Protections,
    /// For children that share memory, where that works.
    pub(crate) stack: Option<Stack>,
}

impl Ground {
    /// Who a command runs as. Nothing runs as somebody that this spawner was not told of when it was made.
    fn run_as(&self, request: &StartRequest<'_>) -> Result<Option<RunAs>, Failure> {
        match (&self.user, request.uid) {
            (User::Worker, None) => Ok(None),
            (User::One(run_as), None) => Ok(Some(run_as.clone())),
            (User::Each(range), Some(uid)) if range.contains(uid) => Ok(Some(RunAs { uid, gid: uid, groups: Vec::new() })),
            _ => Err(Failure::new(Step::User, &io::Error::from_raw_os_error(libc::EINVAL), "")),
        }
    }
}

/// A command that has a process.
pub(crate) struct Running {
    pub(crate) id: u64,
    /// The command's own process, or the init process above it.
    pub(crate) pid: Pid,
    rung: Rung,
    group: Group,
    /// The work directory, if this command was the first in it.
    new_dir: Option<PathBuf>,
    /// Its terminal, which does not end before the last of it, even where nobody holds it for a while.
    terminal: Option<OwnedFd>,
    /// A pipe that ends at exec, or the channel to an init process. A child that shares our memory needs none.
    status: Option<OwnedFd>,
    pub(crate) phase: Phase,
    failure: Option<Failure>,
    killed: bool,
    /// When it is killed unless the worker says otherwise before, by the clock that goes on while the machine sleeps.
    live_until: Option<Duration>,
    /// What an init process said about the command's own end.
    ended: Option<Exit>,
}

/// How far the start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is not known yet whether the program runs.
    Starting,
    /// It does.
    Executed,
    /// It does not; the process is about to be reaped.
    Failed,
}

/// How it all ended, once nothing is left.
pub(crate) type Outcome = Result<Exit, Failure>;

impl Running {
    /// Makes work directory, cgroups and process. Nothing is left when it fails.
    pub(crate) fn start(ground: &mut Ground, request: &StartRequest<'_>, files: &[OwnedFd]) -> Result<Self, Failure> {
        let [stdout, stderr, ..] = files else {
            return Err(Failure::new(Step::Prepare, &io::Error::from_raw_os_error(libc::EMFILE), "output pipes"));
        };
        let name = request.name.to_str().map_err(|_| Failure::new(Step::Prepare, &io::Error::from_raw_os_error(libc::EINVAL), "name"))?;
        let run_as = ground.run_as(request)?;
        // Whoever owns a pipe may open it by its name, as `echo x > /dev/stdout` does.
        hand_over([stdout, stderr], run_as.as_ref())?;
        let terminal = request.terminal.then(|| keep_terminal(stdout)).transpose()?;
        let work_dir = ground.work_root.join(name);
        let new_dir = request.files.is_some().then(|| work_dir.clone());
        if let Some(files) = &request.files {
            make_work_dir(&work_dir, run_as.as_ref(), files)?;
            if ground.protections.namespaces {
                make_work_dir(&private_tmp(&work_dir), run_as.as_ref(), &[]).inspect_err(|_| discard(Some(&work_dir)))?;
            }
        }
        let limits = ground.protections.limits(&request.limits);
        let mut group = ground.ladder.make(name, &limits).inspect_err(|_| discard(new_dir.as_deref()))?;
        let making = Making { ground, request, stdout, stderr, group: &group, work_dir: &work_dir, run_as: run_as.as_ref() };
        match making.process() {
            Ok(Made { pid, status, failure }) => {
                let (id, rung) = (request.id, ground.ladder.rung);
                let phase = match (&failure, &status) {
                    (Some(_), _) => Phase::Failed,
                    (None, Some(_)) => Phase::Starting,
                    (None, None) => Phase::Executed,
                };
                let live_until = request.live_for.and_then(until);
                Ok(Self { id, pid, rung, group, new_dir, terminal, status, phase, failure, killed: false, live_until, ended: None })
            }
            Err(failure) => {
                group.remove();
                discard(new_dir.as_deref());
                Err(failure)
            }
        }
    }

    /// The descriptor that says whether the program runs, while that is open.
    pub(crate) fn awaited(&self) -> Option<i32> {
        self.status.as_ref().filter(|_| self.phase == Phase::Starting).map(AsRawFd::as_raw_fd)
    }

    /// Reads what there is to read on the status channel.
    pub(crate) fn read_status(&mut self) {
        while let Some(status) = &self.status {
            let mut bytes = [0; RECORD];
            match kernel::read(status.as_fd(), &mut bytes) {
                Ok(0) => {
                    self.status = None;
                    if self.phase == Phase::Starting {
                        self.phase = Phase::Executed;
                    }
                }
                Ok(length) => match Record::from_bytes(&bytes[..length]) {
                    Some(Record::Executed) => self.phase = Phase::Executed,
                    Some(Record::Failed { step, errno }) => {
                        self.phase = Phase::Failed;
                        self.failure = Some(Failure { step, errno, detail: String::new() });
                    }
                    Some(Record::Ended { status, cpu_us, max_rss_kib }) => {
                        self.ended = Some(exit(&Reaped { pid: self.pid, status, cpu_us, max_rss_kib }));
                    }
                    None => {}
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.status = None,
            }
        }
    }

    /// Sends `SIGTERM` to every process of the command.
    pub(crate) fn terminate(&self) {
        match (self.rung, &self.status) {
            (Rung::CgroupV2 | Rung::CgroupV1, _) => self.group.terminate(),
            (_, Some(control)) => drop(socket::send(control.as_fd(), init::TERMINATE, &[], Wait::Never)),
            (_, None) => {}
        }
    }

    /// Kills the command now and for as long as there is anything of it.
    pub(crate) fn kill_on(&mut self) {
        self.killed = true;
        self.kill();
    }

    /// Kills it after this time, unless it is told another one before.
    pub(crate) fn live_for(&mut self, time: Duration) {
        self.live_until = until(time);
    }

    /// How long it may live at this time since the machine's start, where that is said and it is not over already.
    pub(crate) fn lives_for(&self, now: Duration) -> Option<Duration> {
        self.live_until.filter(|_| !self.killed).map(|until| until.saturating_sub(now))
    }

    /// Whether it is to be killed for as long as there is anything of it.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed
    }

    /// Kills every process of the command that there is now.
    pub(crate) fn kill(&self) {
        match self.rung {
            Rung::CgroupV2 | Rung::CgroupV1 => self.group.kill(),
            Rung::PidNamespace => kernel::signal_child(self.pid, libc::SIGKILL),
            Rung::Weak => {
                tree::kill_below(self.pid);
                // The command may have stopped the init process above it.
                kernel::signal_child(self.pid, libc::SIGCONT);
            }
        }
    }

    /// The process was reaped: what is left of the command ends now.
    pub(crate) fn end(mut self, reaped: &Reaped) -> Ending {
        self.read_status();
        let mut exit = self.ended.unwrap_or_else(|| exit(reaped));
        if self.ended.is_none() && self.rung == Rung::Weak {
            // Somebody killed the init process; how the command itself ended is anybody's guess.
            exit.status = ExitStatus::Lost;
        }
        let strays = self.rung == Rung::Weak && self.ended.is_none();
        Ending {
            id: self.id,
            group: self.group,
            strays,
            new_dir: self.new_dir,
            _terminal: self.terminal,
            exit,
            failure: self.failure,
            killed: false,
        }
    }
}

/// So long from now, since the machine's start; `None` is never.
fn until(time: Duration) -> Option<Duration> {
    kernel::boot_time().checked_add(time)
}

/// A command whose main process is gone.
pub(crate) struct Ending {
    pub(crate) id: u64,
    group: Group,
    /// Descendants may have become children of the spawner.
    strays: bool,
    new_dir: Option<PathBuf>,
    _terminal: Option<OwnedFd>,
    exit: Exit,
    failure: Option<Failure>,
    killed: bool,
}

impl Ending {
    /// Kills what is left; the outcome once that is nothing. `mains` are the processes of living commands.
    pub(crate) fn advance(&mut self, mains: impl Fn(Pid) -> bool) -> Option<Outcome> {
        if !self.killed {
            // Read while the cgroup is there; most commands leave nothing behind and end here.
            self.exit.oom_killed = self.group.oom_killed();
        }
        if self.strays && kill_strays(mains) || !self.group.remove() {
            self.group.kill();
            self.killed = true;
            return None;
        }
        Some(match self.failure.take() {
            Some(failure) => {
                discard(self.new_dir.as_deref());
                Err(failure)
            }
            None => Ok(self.exit),
        })
    }
}

/// Kills our children that are no living command's own process, and all below them; true if there were any.
fn kill_strays(mains: impl Fn(Pid) -> bool) -> bool {
    let me = std::process::id().cast_signed();
    let strays: Vec<_> = tree::below(me).into_iter().filter(|process| process.parent == me && !mains(process.pid)).collect();
    for stray in &strays {
        tree::kill_below(stray.pid);
        drop(tree::send(stray, libc::SIGKILL));
    }
    !strays.is_empty()
}

fn exit(reaped: &Reaped) -> Exit {
    let status = if libc::WIFEXITED(reaped.status) {
        ExitStatus::Code(libc::WEXITSTATUS(reaped.status))
    } else {
        ExitStatus::Signal(libc::WTERMSIG(reaped.status))
    };
    Exit { status, oom_killed: false, cpu_ms: reaped.cpu_us / 1000, max_rss_bytes: reaped.max_rss_kib * 1024 }
}

/// Makes the command's output pipes, or its terminal, the property of the user that the command runs as.
fn hand_over(outputs: [&OwnedFd; 2], owner: Option<&RunAs>) -> Result<(), Failure> {
    let Some(owner) = owner else { return Ok(()) };
    let owned = outputs.into_iter().try_for_each(|output| fchown(output, Some(owner.uid), Some(owner.gid)));
    owned.map_err(|error| Failure::new(Step::Prepare, &error, "output"))
}

fn keep_terminal(terminal: &OwnedFd) -> Result<OwnedFd, Failure> {
    terminal.try_clone().map_err(|error| Failure::new(Step::Prepare, &error, "terminal"))
}

/// `mkdir` follows no symlink in its last part, and the directory above belongs to us.
fn make_work_dir(path: &Path, owner: Option<&RunAs>, files: &[(&CStr, &[u8])]) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::new(Step::MakeDirectory, &error, "");
    DirBuilder::new().mode(0o700).create(path).map_err(fail)?;
    fill_work_dir(path, owner, files).inspect_err(|_| discard(Some(path))).map_err(fail)
}

/// Only then does the directory become the other user's: until it does nobody else can put anything in the way.
fn fill_work_dir(path: &Path, owner: Option<&RunAs>, files: &[(&CStr, &[u8])]) -> io::Result<()> {
    let own = |path: &Path| owner.map_or(Ok(()), |owner| lchown(path, Some(owner.uid), Some(owner.gid)));
    for (name, contents) in files {
        let file = path.join(OsStr::from_bytes(name.to_bytes()));
        File::options().write(true).create_new(true).mode(0o600).open(&file)?.write_all(contents)?;
        own(&file)?;
    }
    own(path)
}

/// The directory that the command of a work directory sees as `/tmp`.
pub(super) fn private_tmp(work_dir: &Path) -> PathBuf {
    let mut name = work_dir.as_os_str().to_owned();
    name.push(TMP);
    name.into()
}

/// Takes a new work directory away again. What an earlier command left is not ours to remove.
fn discard(new_dir: Option<&Path>) {
    if let Some((root, name)) = new_dir.and_then(|path| Some((path.parent()?, path.file_name()?.to_str()?))) {
        drop(directory::remove(root, name));
        drop(directory::remove(root, &format!("{name}{TMP}")));
    }
}

struct Making<'a> {
    ground: &'a mut Ground,
    request: &'a StartRequest<'a>,
    stdout: &'a OwnedFd,
    stderr: &'a OwnedFd,
    group: &'a Group,
    work_dir: &'a Path,
    run_as: Option<&'a RunAs>,
}

/// A new process.
struct Made {
    pid: Pid,
    status: Option<OwnedFd>,
    failure: Option<Failure>,
}

impl Making<'_> {
    fn process(self) -> Result<Made, Failure> {
        let fail = |step| move |error: io::Error| Failure::new(step, &error, "");
        let (ladder, protections) = (&self.ground.ladder, &self.ground.protections);
        let tmp = private_tmp(self.work_dir);
        let shared: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
        let own = [self.work_dir, &tmp].into_iter().chain(shared.iter().map(Path::new));
        let landlock = protections.landlock.map(|abi| (abi, own.chain(protections.writable.iter().map(PathBuf::as_path)).collect()));
        let (rung, born_inside) = (ladder.rung, ladder.born_inside);
        let cgroup = self.group.birthplace().filter(|_| born_inside).map(File::open).transpose().map_err(fail(Step::MakeCgroup))?;
        let cgroup = cgroup.as_ref().map(AsFd::as_fd);
        let joins = self.group.joins(born_inside);
        let place = self.work_dir.join(OsStr::from_bytes(self.request.directory.to_bytes()));
        let directory = CString::new(place.into_os_string().into_vec()).map_err(|error| fail(Step::Prepare)(error.into()))?;
        let mut plan = Plan {
            programs: &self.request.programs,
            argv: &self.request.argv,
            env: &self.request.env,
            joins: &joins,
            directory: &directory,
            stdout: self.stdout.as_raw_fd(),
            stderr: self.stderr.as_raw_fd(),
            terminal: self.request.terminal,
            status: None,
            failure: Cell::new(None),
            open_files: self.request.limits.open_files,
            file_bytes: self.request.limits.file_bytes,
            run_as: self.run_as,
            rules: None,
            filter: protections.filter.as_deref(),
        };
        // Another user could stop the child between its change of user and its exec, and us with it if we shared memory.
        let stack = self.ground.stack.as_mut().filter(|_| self.run_as.is_none());
        let (pid, status) = if protections.namespaces {
            let view = View { work_dir: self.work_dir.to_owned(), tmp: tmp.clone(), hidden: protections.hidden.clone() };
            let init = Init { namespaces: NAMESPACES, map: None, view: Some(&view), landlock };
            start_init(plan, cgroup, init)?
        } else if matches!(rung, Rung::PidNamespace | Rung::Weak) {
            start_init(plan, cgroup, Init::of(rung, landlock))?
        } else if let Some(stack) = stack {
            // SAFETY: the spawner has one thread; the plan lives until the child has become the command or left.
            let pid = unsafe { Clone { cgroup, namespaces: 0, share: Some(stack) }.start(child::enter, (&raw mut plan).cast()) };
            let failure = plan.failure.get().map(|(step, errno)| Failure { step, errno, detail: String::new() });
            return Ok(Made { pid: pid.map_err(fail(Step::Clone))?, status: None, failure });
        } else {
            let (ours, theirs) = kernel::status_pipe().map_err(fail(Step::Prepare))?;
            plan.status = Some(theirs.as_raw_fd());
            let rules = landlock
                .map(|(abi, writable): (i64, Vec<&Path>)| landlock::rules(abi, writable))
                .transpose()
                .map_err(fail(Step::Confine))?;
            plan.rules = rules.as_ref().map(AsRawFd::as_raw_fd);
            // SAFETY: the spawner has one thread; the child has a copy of the plan.
            let pid = unsafe { Clone { cgroup, ..Clone::default() }.start(child::enter, (&raw mut plan).cast()) };
            (pid.map_err(fail(Step::Clone))?, ours)
        };
        Ok(Made { pid, status: Some(status), failure: None })
    }
}

/// What the init process above a command does for it.
struct Init<'a> {
    namespaces: i32,
    map: Option<(u32, u32)>,
    view: Option<&'a View>,
    landlock: Option<(i64, Vec<&'a Path>)>,
}

impl<'a> Init<'a> {
    fn of(rung: Rung, landlock: Option<(i64, Vec<&'a Path>)>) -> Self {
        let (namespaces, map) = if rung == Rung::PidNamespace { (ladder::namespaces(), ladder::id_map()) } else { (0, None) };
        Self { namespaces, map, view: None, landlock }
    }
}

/// Makes the init process above a command.
fn start_init(command: Plan<'_>, cgroup: Option<BorrowedFd<'_>>, init: Init<'_>) -> Result<(Pid, OwnedFd), Failure> {
    let fail = |step| move |error: io::Error| Failure::new(step, &error, "");
    let (ours, theirs) = socket::pair().map_err(fail(Step::Prepare))?;
    kernel::set_nonblocking(ours.as_fd()).map_err(fail(Step::Prepare))?;
    let Init { namespaces, map, view, landlock } = init;
    let mut plan = InitPlan { command, control: theirs.as_fd(), namespace: namespaces != 0, map, view, landlock };
    // SAFETY: the spawner has one thread; the child has a copy of the plan.
    let pid = unsafe { Clone { cgroup, namespaces, share: None }.start(init::enter, (&raw mut plan).cast()) };
    Ok((pid.map_err(fail(Step::Clone))?, ours))
}
