//! The system calls that the standard library does not offer, each as one safe function.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

pub(crate) type Pid = libc::pid_t;

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: Pid,
    /// As `wait` reports it.
    pub(crate) status: i32,
    pub(crate) cpu_us: u64,
    pub(crate) max_rss_kib: u64,
}

/// What a wait without waiting found.
pub(crate) enum Waited {
    Reaped(Reaped),
    /// There are children, and none has ended.
    Running,
    /// There are none.
    Childless,
}

/// Reaps one child of any kind, without waiting.
pub(crate) fn reap() -> Waited {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of a plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid for the call.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, &raw mut usage) };
        match pid {
            0 => return Waited::Running,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Waited::Childless,
            pid => {
                let cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
                return Waited::Reaped(Reaped { pid, status, cpu_us, max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0) });
            }
        }
    }
}

/// Waits for one child and returns its exit code, or a number that is none if a signal ended it.
pub(crate) fn exit_code(pid: Pid) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is valid for the call; every signal is blocked, so it is not interrupted.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid && libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::EIO }
}

fn micros(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

/// Blocks every signal that can be blocked and sets each back to its default, so that children start with clean dispositions
/// and this process is ended by nothing but `SIGKILL` and its own will. Returns a descriptor that is readable when a child has ended.
pub(crate) fn take_signals() -> io::Result<OwnedFd> {
    // The kernel's own structure; all zero is the default disposition, which runs no code. The C library would refuse two of them.
    let default = [0u64; 4];
    for signal in 1..=64 {
        if ![libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGBUS].contains(&signal) {
            // SAFETY: the structure is live and at least as large as the kernel reads; eight is the size of its signal set.
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), 8) };
        }
    }
    // SAFETY: the set is a plain value that the calls initialise before it is used.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    owned(fd)
}

/// Forgets the signals that a descriptor of [`take_signals`] has told.
pub(crate) fn clear_signals(signals: BorrowedFd<'_>) {
    let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
    // SIGCHLD does not queue, so one read empties it.
    // SAFETY: the buffer is as long as stated.
    unsafe { libc::read(signals.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
}

/// Time since the machine's start, also what it slept through.
pub(crate) fn boot_time() -> Duration {
    // SAFETY: an all-zero timespec is a valid value of a plain C struct.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call, which no kernel of ours refuses.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Waits for events; `None` waits for ever. Errors read as "nothing happened".
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout_ms: Option<i32>) {
    let count = fds.len() as libc::nfds_t;
    // SAFETY: the slice is live and as long as stated.
    if unsafe { libc::poll(fds.as_mut_ptr(), count, timeout_ms.unwrap_or(-1)) } < 0 {
        fds.iter_mut().for_each(|fd| fd.revents = 0);
    }
}

/// An entry for [`poll`] that waits until there is something to read.
pub(crate) fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// A pipe, closed on exec: read end, write end. Reading never waits.
pub(crate) fn status_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for the two descriptors that the call writes.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so both are open and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Makes reads fail instead of wait.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes plain numbers.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads without the standard library's buffering; 0 is the end.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the buffer is live and as long as stated.
        let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(count) {
            Ok(count) => return Ok(count),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// A file in memory, closed on exec.
pub(crate) fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: the name is a valid C string.
    owned(unsafe { libc::memfd_create(c"runvoy-start".as_ptr(), libc::MFD_CLOEXEC) })
}

/// Puts a copy of a descriptor in the place of another.
pub(crate) fn replace(from: BorrowedFd<'_>, place: RawFd) -> io::Result<()> {
    // SAFETY: dup2 touches only the descriptor table; the callers own the place they name.
    if unsafe { libc::dup2(from.as_raw_fd(), place) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor but the first three and those to keep.
pub(crate) fn close_others(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for last in keep.into_iter().map(|fd| fd.checked_sub(1)).chain([Some(u32::MAX)]) {
        let Some(last) = last.filter(|last| *last >= first) else {
            first = last.map_or(first, |last| first.max(last + 2));
            continue;
        };
        // SAFETY: callers do this before they own any descriptor but those to keep, or in a process that will never use the others.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        first = last.saturating_add(2);
    }
}

/// Sends a signal to a child that has not been reaped, whose pid can therefore not be anybody else's.
pub(crate) fn signal_child(pid: Pid, signal: i32) {
    // SAFETY: sending a signal touches no memory.
    unsafe { libc::kill(pid, signal) };
}

/// Sends a signal to every other process of the PID namespace that this process is the init of.
pub(crate) fn signal_namespace(signal: i32) {
    // SAFETY: sending a signal touches no memory.
    unsafe { libc::kill(-1, signal) };
}

/// A descriptor that means this process and never a later one with its number.
pub(crate) fn open_process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    owned(RawFd::try_from(fd).unwrap_or(-1))
}

/// Sends a signal to the process that the descriptor means.
pub(crate) fn signal_process(process: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is what the call documents for a plain signal.
    let code = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, none, 0) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves the terminal and process group of whoever started this process.
pub(crate) fn new_session() {
    // SAFETY: no memory is touched. It fails only for a group leader, which then already has what is wanted.
    unsafe { libc::setsid() };
}

/// Becomes the parent of all orphans below.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: no memory is touched.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The name that `ps` shows.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the name is a valid C string; the kernel copies at most 16 bytes of it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Files that this process and its children make are for their owner alone.
pub(crate) fn private_umask() {
    // SAFETY: no memory is touched.
    unsafe { libc::umask(0o077) };
}

/// Effective user and group.
pub(crate) fn ids() -> (u32, u32) {
    // SAFETY: these calls cannot fail and touch no memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// The parent's process id.
pub(crate) fn parent() -> Pid {
    // SAFETY: the call cannot fail and touches no memory.
    unsafe { libc::getppid() }
}

/// A private view of the mounts, with a `/proc` that shows this PID namespace. Where that is not permitted everything stays as it was.
pub(crate) fn mount_proc() {
    let none = std::ptr::null();
    // SAFETY: all strings are valid C strings or null where the call permits it.
    unsafe {
        // Without this the mount below would be seen by the whole machine.
        if libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_SLAVE, none.cast()) == 0 {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, none.cast());
        }
    }
}

/// No program that this process starts gains privileges.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: no memory is touched.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends this process at once.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: nothing of this process is used afterwards.
    unsafe { libc::_exit(code) }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call that made it succeeded, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
