//! The system call filter of isolated commands: a deny list of calls that only administer the machine or open much of the kernel to attack.
//! A denied call fails with `EPERM`, so that programs can fall back. Everything else is allowed.
#![expect(unsafe_code, reason = "installs a filter in the calling process")]

use std::ffi::c_long;
use std::io;

use libc::sock_filter;

/// Calls that are denied whatever their arguments are.
const DENIED: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const ARCH: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCH: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: Option<u32> = None;

/// On x86-64, calls from here on are those of another calling convention, with other numbers.
const FOREIGN_CALLS: u32 = 0x4000_0000;

const NEW_NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Where the kernel puts what a filter looks at.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;

/// The filter, or `None` on an architecture that it is not written for.
pub(crate) fn filter() -> Option<Vec<sock_filter>> {
    let (deny, unknown) = (ERROR | libc::EPERM.cast_unsigned(), ERROR | libc::ENOSYS.cast_unsigned());
    // 32-bit programs would bring other numbers with them.
    let mut program = vec![load(ARCHITECTURE), jump_equal(ARCH?, 1, 0), answer(unknown), load(NUMBER)];
    program.extend([jump(libc::BPF_JGE, FOREIGN_CALLS, 0, 1), answer(unknown)]);
    DENIED.iter().for_each(|call| program.extend([jump_equal(number(*call), 0, 1), answer(deny)]));
    // Its flags are in memory, where no filter can look; the C library falls back to `clone`.
    program.extend([jump_equal(number(libc::SYS_clone3), 0, 1), answer(unknown)]);
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let refuse = [load(FIRST_ARGUMENT), jump(libc::BPF_JSET, NEW_NAMESPACES.cast_unsigned(), 0, 1), answer(deny), answer(ALLOW)];
        program.push(jump_equal(number(call), 0, 4));
        program.extend(refuse);
    }
    program.push(answer(ALLOW));
    Some(program)
}

/// Installs a filter in this process for good. It must have no new privileges already, and nothing is allocated.
pub(crate) fn install(filter: &[sock_filter]) -> io::Result<()> {
    const MODE_FILTER: u32 = 1;
    /// Commands are not slowed by mitigations that they can ask for themselves.
    const SPEC_ALLOW: u32 = 1 << 2;
    let program = libc::sock_fprog { len: u16::try_from(filter.len()).unwrap_or(0), filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program is live and as long as stated; the kernel copies it.
    let code = unsafe { libc::syscall(libc::SYS_seccomp, MODE_FILTER, SPEC_ALLOW, &raw const program) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

fn answer(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

fn jump_equal(value: u32, if_true: u8, if_false: u8) -> sock_filter {
    jump(libc::BPF_JEQ, value, if_true, if_false)
}

fn jump(test: u32, value: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(libc::BPF_JMP | test | libc::BPF_K, value, jt, jf)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or(0), jt, jf, k }
}
