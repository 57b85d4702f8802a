//! What a new process does between its making and its program: enters cgroups, lets go of everything it must not have, and
//! becomes the command. It may share its parent's memory, so it allocates nothing, frees nothing and changes nothing but its own
//! stack and the one place where a failure is told.
#![expect(unsafe_code, reason = "system calls between clone and exec")]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;

use super::kernel;
use super::landlock;
use super::seccomp;
use super::step::{Record, Step};
use crate::config::RunAs;

/// Everything a child needs, prepared by its parent.
pub(crate) struct Plan<'a> {
    /// Paths to try, in order.
    pub(crate) programs: &'a [*const c_char],
    /// NULL-terminated.
    pub(crate) argv: &'a [*const c_char],
    /// NULL-terminated.
    pub(crate) env: &'a [*const c_char],
    /// `cgroup.procs` files of the cgroups that it enters by itself.
    pub(crate) joins: &'a [CString],
    pub(crate) directory: &'a CStr,
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
    /// Both are its terminal, which becomes its session's and its standard input.
    pub(crate) terminal: bool,
    /// Where a failure is told; closed by a successful exec. None if memory is shared.
    pub(crate) status: Option<RawFd>,
    /// Where a failure is told if memory is shared.
    pub(crate) failure: Cell<Option<(Step, c_int)>>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) run_as: Option<&'a RunAs>,
    /// Landlock's rules.
    pub(crate) rules: Option<RawFd>,
    /// The system call filter.
    pub(crate) filter: Option<&'a [libc::sock_filter]>,
}

/// The score that makes the kernel, short of memory, end a command before the server.
const OOM_SCORE: &[u8] = b"500";

/// The entry of a child.
///
/// # Safety
/// `plan` points at a [`Plan`] whose pointers are live, in a process that was just made by a process with one thread.
pub(crate) unsafe extern "C" fn enter(plan: *mut c_void) -> ! {
    // SAFETY: the caller's promise.
    let plan = unsafe { &*plan.cast::<Plan<'_>>() };
    // SAFETY: the same promise.
    let (step, errno) = unsafe { become_command(plan) };
    plan.failure.set(Some((step, errno)));
    if let Some(status) = plan.status {
        let record = Record::Failed { step, errno }.to_bytes();
        // SAFETY: the record is live; there is nobody left to tell if this fails.
        unsafe { libc::write(status, record.as_ptr().cast(), record.len()) };
    }
    kernel::leave(127)
}

/// Enters cgroups by writing to their `cgroup.procs`.
///
/// # Safety
/// As for [`enter`].
pub(crate) unsafe fn join(cgroups: &[CString]) -> Result<(), (Step, c_int)> {
    for procs in cgroups {
        // SAFETY: both strings are live.
        if !unsafe { write_file(procs, b"0") } {
            return Err((Step::EnterCgroup, errno()));
        }
    }
    Ok(())
}

/// Returns only if it failed.
unsafe fn become_command(plan: &Plan<'_>) -> (Step, c_int) {
    // SAFETY: every pointer in the plan is live, and the calls touch only this process.
    unsafe {
        if let Err(failure) = join(plan.joins) {
            return failure;
        }
        libc::setsid();
        write_file(c"/proc/self/oom_score_adj", OOM_SCORE);
        if plan.terminal && (libc::ioctl(plan.stdout, libc::TIOCSCTTY, 0) != 0 || libc::dup2(plan.stdout, 0) < 0) {
            return (Step::Descriptors, errno());
        }
        if libc::dup2(plan.stdout, 1) < 0 || libc::dup2(plan.stderr, 2) < 0 {
            return (Step::Descriptors, errno());
        }
        // Everything is closed on exec already; this holds even if somebody forgets. It fails only on kernels before 5.11.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for (resource, limit) in [(libc::RLIMIT_NOFILE, plan.open_files), (libc::RLIMIT_FSIZE, plan.file_bytes)] {
            let Some(limit) = limit else { continue };
            let mut current = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(resource, &raw mut current);
            let lowered = current.rlim_max.min(limit as libc::rlim_t);
            let asked = libc::rlimit { rlim_cur: lowered, rlim_max: lowered };
            if libc::setrlimit(resource, &raw const asked) != 0 {
                return (Step::ResourceLimit, errno());
            }
        }
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return (Step::Privileges, errno());
        }
        if let Some(run_as) = plan.run_as
            && let Err(failure) = drop_privileges(run_as)
        {
            return failure;
        }
        // After the change of user, so that a directory which that user cannot enter is a failure here and not a riddle later.
        if libc::chdir(plan.directory.as_ptr()) != 0 {
            return (Step::EnterDirectory, errno());
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if plan.rules.is_some_and(|rules| landlock::restrict(rules).is_err())
            || plan.filter.is_some_and(|filter| seccomp::install(filter).is_err())
        {
            return (Step::Confine, errno());
        }
        (Step::Execute, execute(plan))
    }
}

/// Tries every path, as a shell does: one that is not there is passed over, one that is forbidden is remembered.
unsafe fn execute(plan: &Plan<'_>) -> c_int {
    let (mut last, mut forbidden) = (libc::ENOENT, false);
    for program in plan.programs {
        // SAFETY: program, arguments and environment are live C strings in NULL-terminated arrays.
        unsafe { libc::execve(*program, plan.argv.as_ptr(), plan.env.as_ptr()) };
        last = errno();
        match last {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => forbidden = true,
            _ => return last,
        }
    }
    if forbidden { libc::EACCES } else { last }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Becomes another user for good, as a command does.
pub(crate) fn become_user(run_as: &RunAs) -> io::Result<()> {
    // SAFETY: the list of groups is live; the calls touch only this process.
    unsafe { drop_privileges(run_as) }.map_err(|(_, errno)| io::Error::from_raw_os_error(errno))
}

/// Raw calls: the C library's own would try to reach other threads.
unsafe fn drop_privileges(run_as: &RunAs) -> Result<(), (Step, c_int)> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = CapabilityHeader { version: VERSION_3, pid: 0 };
    let nothing = [0u32; 6];
    // SAFETY: the arrays are live and of the stated lengths; the calls touch only this process.
    unsafe {
        // Nothing can come back through a file's capabilities either. The first number that does not exist ends the list.
        let mut capability = 0;
        while libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) == 0 {
            capability += 1;
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if libc::syscall(libc::SYS_setgroups, run_as.groups.len(), run_as.groups.as_ptr()) != 0
            || libc::syscall(libc::SYS_setresgid, run_as.gid, run_as.gid, run_as.gid) != 0
            || libc::syscall(libc::SYS_setresuid, run_as.uid, run_as.uid, run_as.uid) != 0
        {
            return Err((Step::User, errno()));
        }
        if libc::syscall(libc::SYS_capset, &raw const header, nothing.as_ptr()) != 0 {
            return Err((Step::Privileges, errno()));
        }
    }
    Ok(())
}

unsafe fn write_file(path: &CStr, bytes: &[u8]) -> bool {
    // SAFETY: path and bytes are live, and the descriptor is closed by whoever opened it.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return false;
        }
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len()) >= 0;
        let error = errno();
        libc::close(fd);
        *libc::__errno_location() = error;
        written
    }
}

fn errno() -> c_int {
    // SAFETY: the C library's own address of this thread's error number.
    unsafe { *libc::__errno_location() }
}
