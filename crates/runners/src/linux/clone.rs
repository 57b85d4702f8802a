//! Makes a process: straight into a cgroup, in new namespaces, or sharing its parent's memory until it becomes another program.
//!
//! Sharing (as `vfork` does) saves the copy of the page tables and the faults after it, about a tenth of the cost of a small
//! command. The parent waits meanwhile, so a child that another user may stop must not share: it would stop the parent too.
#![expect(unsafe_code, reason = "the C library has no call that enters a cgroup, and its vfork cannot be called from Rust")]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::kernel::{self, Pid};

/// What a new process runs, with the argument it was given.
pub(crate) type Entry = unsafe extern "C" fn(*mut c_void) -> !;

/// The `libc` crate has it in a type that is too narrow.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

const STACK_BYTES: usize = 64 * 1024;

/// The stack of children that share memory. One is enough: the parent waits for each.
pub(crate) struct Stack(Box<[u128; STACK_BYTES / 16]>);

impl Stack {
    /// A stack, if this machine can make children that share memory.
    pub(crate) fn new() -> Option<Self> {
        unsafe extern "C" fn leave(_: *mut c_void) -> ! {
            kernel::leave(0)
        }
        let mut stack = Self(Box::new([0; STACK_BYTES / 16]));
        // SAFETY: the spawner has one thread, and the child does nothing.
        let pid = unsafe { Clone { share: Some(&mut stack), ..Clone::default() }.start(leave, std::ptr::null_mut()) }.ok()?;
        (kernel::exit_code(pid) == 0).then_some(stack)
    }
}

/// How a process is made.
#[derive(Default)]
pub(crate) struct Clone<'a> {
    /// The cgroup v2 directory it starts in.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// `CLONE_NEW…` flags.
    pub(crate) namespaces: i32,
    /// Share memory until it becomes another program.
    pub(crate) share: Option<&'a mut Stack>,
}

impl Clone<'_> {
    /// Makes the process and returns its pid.
    ///
    /// # Safety
    /// This process has one thread. `argument` is what `entry` expects and stays valid until the child has left or become another
    /// program; with `share`, `entry` changes nothing that this process uses afterwards.
    pub(crate) unsafe fn start(self, entry: Entry, argument: *mut c_void) -> io::Result<Pid> {
        // SAFETY: an all-zero clone_args is a valid one.
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        args.flags = u64::from(self.namespaces.cast_unsigned());
        args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        if let Some(cgroup) = self.cgroup {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        if let Some(stack) = self.share {
            args.flags |= u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
            args.stack = stack.0.as_mut_ptr() as u64;
            args.stack_size = STACK_BYTES as u64;
            // SAFETY: the stack is used by this child alone while its parent waits; the rest is the caller's promise.
            let result = unsafe { arch::clone_on_stack(&args, entry, argument) };
            return match Pid::try_from(result) {
                Ok(pid) if pid > 0 => Ok(pid),
                _ => Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EIO))),
            };
        }
        // SAFETY: without a stack of its own the child has a copy of everything, as after fork.
        let mut pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
        if pid < 0 && self.cgroup.is_none() && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            // SAFETY: the same without clone3, which a container's filter may hide.
            pid = unsafe { libc::syscall(libc::SYS_clone, self.namespaces | libc::SIGCHLD, 0, 0, 0, 0) };
        }
        match pid {
            // SAFETY: this is the child, and the argument is what the caller promised.
            0 => unsafe { entry(argument) },
            pid if pid > 0 => Pid::try_from(pid).map_err(io::Error::other),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;
    use std::ffi::c_void;

    use super::Entry;

    /// Calls `clone3`; the child goes on in `entry` on the stack that `args` names, the parent returns here.
    pub(super) unsafe fn clone_on_stack(args: &libc::clone_args, entry: Entry, argument: *mut c_void) -> isize {
        let result;
        // SAFETY: the child never returns from `entry` and has its own stack and registers, so the parent sees an ordinary call.
        unsafe {
            asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "xor ebp, ebp",
                "mov rdi, r13",
                "call r12",
                "ud2",
                "2:",
                inlateout("rax") libc::SYS_clone3 as isize => result,
                in("rdi") std::ptr::from_ref(args),
                in("rsi") size_of::<libc::clone_args>(),
                in("r12") entry as *const (),
                in("r13") argument,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        result
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;
    use std::ffi::c_void;

    use super::Entry;

    /// Calls `clone3`; the child goes on in `entry` on the stack that `args` names, the parent returns here.
    pub(super) unsafe fn clone_on_stack(args: &libc::clone_args, entry: Entry, argument: *mut c_void) -> isize {
        let result;
        // SAFETY: the child never returns from `entry` and has its own stack and registers, so the parent sees an ordinary call.
        unsafe {
            asm!(
                "svc #0",
                "cbnz x0, 2f",
                "mov x29, xzr",
                "mov x0, x22",
                "blr x21",
                "brk #1",
                "2:",
                in("x8") libc::SYS_clone3,
                inlateout("x0") std::ptr::from_ref(args) => result,
                in("x1") size_of::<libc::clone_args>(),
                in("x21") entry as *const (),
                in("x22") argument,
            );
        }
        result
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use std::ffi::c_void;

    use super::Entry;

    pub(super) unsafe fn clone_on_stack(_: &libc::clone_args, _: Entry, _: *mut c_void) -> isize {
        -(libc::ENOSYS as isize)
    }
}
