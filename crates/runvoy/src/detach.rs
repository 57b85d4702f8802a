//! Cuts a process loose from the one that starts it: a session of its own, and none of the starter's open files but the standard ones.
#![expect(unsafe_code, reason = "what happens between fork and exec has no safe form")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first descriptor that is none of the standard ones.
const FIRST: libc::c_int = 3;

/// Has the command start detached. Whoever waits for the end of a pipe or a terminal of the starter does not wait for it.
pub fn detach(command: &mut Command) {
    // SAFETY: the closure runs in the forked child; it makes only async-signal-safe calls and neither allocates nor takes locks.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() == -1 {
                return Err(io::Error::last_os_error());
            }
            keep_standard_files_only();
            Ok(())
        });
    }
}

/// Marks all other descriptors to be closed by the exec; until then the one that reports its failure is still needed.
fn keep_standard_files_only() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call marks descriptors and touches no memory.
        let marked = unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if marked == 0 {
            return;
        }
    }
    // SAFETY: both calls only look at and mark descriptors; those that are not open are refused, which is no harm.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
        for descriptor in FIRST..libc::c_int::try_from(most).unwrap_or(256) {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
