//! The process above a command where no cgroup can hold it: pid 1 of its own PID namespace, whose end ends everything inside, or
//! else a subreaper that hunts down what is left below it. It reaps orphans, and ends all when its spawner is gone.
#![expect(unsafe_code, reason = "runs between clone and exec, and makes the command's own process")]

use std::ffi::c_void;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::child::{self, Plan};
use super::clone::Clone;
use super::kernel::{self, Pid, Reaped, Waited};
use super::landlock;
use super::mounts::{self, View};
use super::socket::{self, Wait};
use super::step::{RECORD, Record, Step};
use super::tree;

/// The one thing that a spawner says to an init process: send `SIGTERM` to all.
pub(crate) const TERMINATE: &[u8] = b"T";

/// What an init process needs, prepared by the spawner.
pub(crate) struct InitPlan<'a> {
    /// The command. Its cgroups are entered by the init process, so that nothing is ever outside of them.
    pub(crate) command: Plan<'a>,
    /// This process's end of the channel to the spawner.
    pub(crate) control: BorrowedFd<'a>,
    /// Whether it is pid 1 of a new namespace.
    pub(crate) namespace: bool,
    /// User and group to keep in a new user namespace.
    pub(crate) map: Option<(u32, u32)>,
    /// What the command sees of the file system, where that is not everything.
    pub(crate) view: Option<&'a View>,
    /// The version of Landlock, and where it lets the command write.
    pub(crate) landlock: Option<(i64, Vec<&'a Path>)>,
}

/// The entry of an init process.
///
/// # Safety
/// `plan` points at an [`InitPlan`] in the process's own copy of its parent's memory.
pub(crate) unsafe extern "C" fn enter(plan: *mut c_void) -> ! {
    // SAFETY: the caller's promise.
    let plan = unsafe { &mut *plan.cast::<InitPlan<'_>>() };
    let control = plan.control;
    match begin(plan) {
        Ok(mut init) => init.serve(),
        Err((step, errno)) => {
            tell(control, Record::Failed { step, errno });
            kernel::leave(127)
        }
    }
}

fn tell(control: BorrowedFd<'_>, record: Record) {
    // If the spawner is gone the next poll says so.
    drop(socket::send(control, &record.to_bytes(), &[], Wait::Block));
}

fn begin<'a>(plan: &mut InitPlan<'a>) -> Result<Init<'a>, (Step, i32)> {
    let at = |step: Step| move |error: io::Error| (step, error.raw_os_error().unwrap_or(libc::EIO));
    kernel::set_name(c"runvoy-init");
    // SAFETY: this process was just made by a process with one thread.
    unsafe { child::join(plan.command.joins)? };
    plan.command.joins = &[];
    map_ids(plan.map).map_err(at(Step::Namespace))?;
    if let Some(view) = plan.view {
        mounts::enter(view).map_err(at(Step::Namespace))?;
    } else if plan.namespace {
        kernel::mount_proc();
    } else {
        kernel::become_subreaper().map_err(at(Step::Namespace))?;
    }
    let rules = plan.landlock.take().map(|(abi, writable)| landlock::rules(abi, writable)).transpose().map_err(at(Step::Confine))?;
    plan.command.rules = rules.as_ref().map(AsRawFd::as_raw_fd);
    let signals = kernel::take_signals().map_err(at(Step::Prepare))?;
    let (status, writer) = kernel::status_pipe().map_err(at(Step::Prepare))?;
    plan.command.status = Some(writer.as_raw_fd());
    // SAFETY: one thread; the plan lives until the child has a copy of it.
    let main = unsafe { Clone::default().start(child::enter, (&raw mut plan.command).cast()) }.map_err(at(Step::Clone))?;
    drop((writer, rules));
    // Above all the command's own pipes: they must end when the command does.
    kernel::close_others(&[plan.control.as_raw_fd(), signals.as_raw_fd(), status.as_raw_fd()]);
    Ok(Init { control: plan.control, signals, status: Some(status), main, ended: None, namespace: plan.namespace })
}

/// Keeps user and group what they were in a user namespace that was just made.
pub(crate) fn map_ids(ids: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = ids else { return Ok(()) };
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

struct Init<'a> {
    control: BorrowedFd<'a>,
    signals: OwnedFd,
    status: Option<OwnedFd>,
    main: Pid,
    ended: Option<Reaped>,
    namespace: bool,
}

impl Init<'_> {
    fn serve(&mut self) -> ! {
        let mut abandoned = false;
        loop {
            let status = self.status.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let control = if abandoned { -1 } else { self.control.as_raw_fd() };
            let mut fds = [kernel::readable(control), kernel::readable(self.signals.as_raw_fd()), kernel::readable(status)];
            let over = abandoned || self.ended.is_some();
            kernel::poll(&mut fds, over.then_some(2));
            if fds[0].revents & (libc::POLLHUP | libc::POLLERR) != 0 {
                abandoned = true;
            } else if fds[0].revents != 0 {
                self.obey();
            }
            if fds[2].revents != 0 {
                self.settle();
            }
            kernel::clear_signals(self.signals.as_fd());
            let childless = self.reap();
            if abandoned || self.ended.is_some() {
                self.finish(childless);
            }
        }
    }

    /// Ends this process if nothing is left below it, else kills what is.
    fn finish(&mut self, childless: bool) {
        if self.namespace || childless {
            // A failure to start is written before the process ends, so it is here to be read.
            self.settle();
            if let Some(Reaped { status, cpu_us, max_rss_kib, .. }) = self.ended {
                tell(self.control, Record::Ended { status, cpu_us, max_rss_kib });
            }
            kernel::leave(0);
        }
        tree::kill_below(std::process::id().cast_signed());
    }

    fn obey(&self) {
        let mut byte = [0; 8];
        if matches!(socket::receive(self.control, &mut byte, &mut Vec::new(), Wait::Never), Ok(1)) {
            if self.namespace {
                kernel::signal_namespace(libc::SIGTERM);
            } else {
                tree::signal_below(std::process::id().cast_signed(), libc::SIGTERM);
            }
        }
    }

    fn settle(&mut self) {
        let Some(status) = self.status.as_ref() else { return };
        let mut record = [0; RECORD];
        match kernel::read(status.as_fd(), &mut record) {
            Ok(0) => tell(self.control, Record::Executed),
            Ok(length) => Record::from_bytes(&record[..length]).into_iter().for_each(|record| tell(self.control, record)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {}
        }
        self.status = None;
    }

    /// Returns whether no child is left.
    fn reap(&mut self) -> bool {
        loop {
            match kernel::reap() {
                Waited::Reaped(reaped) if reaped.pid == self.main => self.ended = Some(reaped),
                Waited::Reaped(_) => {}
                Waited::Running => return false,
                Waited::Childless => return true,
            }
        }
    }
}
