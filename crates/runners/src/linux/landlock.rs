//! Landlock: an isolated command writes only in its own places, wherever else the file system would let it, and reaches no abstract
//! socket and signals no process outside of itself. Reading is left to permissions and to the private view of the file system.
#![expect(unsafe_code, reason = "the C library has no calls for Landlock")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The first version that lets files be renamed between directories.
const OLDEST_ABI: i64 = 2;

const WRITE_FILE: u64 = 1 << 1;
/// Remove, make and rename.
const CHANGE: u64 = 0b11_1111_1111 << 4;
const TRUNCATE: u64 = 1 << 14;
const SCOPES: u64 = 0b11;

#[repr(C)]
struct Ruleset {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathRule {
    allowed: u64,
    parent: RawFd,
}

/// The version that this kernel has, if it is new enough.
pub(crate) fn abi() -> Result<i64, String> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory.
    match unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Ruleset>(), 0, VERSION) } {
        abi if abi >= OLDEST_ABI => Ok(abi),
        abi if abi >= 0 => Err("the kernel's Landlock is too old (Linux 5.19)".to_owned()),
        _ => Err(format!("the kernel has no Landlock: {}", io::Error::last_os_error())),
    }
}

/// A set of rules under which files are written only below these directories, in `/dev` and in `/proc`. What is not there is left out.
pub(crate) fn rules<'a>(abi: i64, writable: impl IntoIterator<Item = &'a Path>) -> io::Result<OwnedFd> {
    let truncate = if abi >= 3 { TRUNCATE } else { 0 };
    let all = WRITE_FILE | CHANGE | truncate;
    let set = Ruleset { handled_fs: all, handled_net: 0, scoped: if abi >= 6 { SCOPES } else { 0 } };
    let size = if abi >= 6 { 24 } else { 8 };
    // SAFETY: the structure is live and at least as large as stated.
    let fd = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const set, size, 0) };
    let rules = owned(RawFd::try_from(fd).unwrap_or(-1))?;
    for path in writable {
        allow(&rules, path, all)?;
    }
    ["/dev", "/proc"].iter().try_for_each(|path| allow(&rules, Path::new(path), WRITE_FILE | truncate))?;
    Ok(rules)
}

/// Puts this process under the rules for good. It must have no new privileges already, and nothing is allocated.
pub(crate) fn restrict(rules: RawFd) -> io::Result<()> {
    // SAFETY: the call takes plain numbers.
    if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn allow(rules: &OwnedFd, path: &Path, allowed: u64) -> io::Result<()> {
    const PATH_BENEATH: u32 = 1;
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a live C string.
    let Ok(parent) = owned(unsafe { libc::open(name.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) }) else { return Ok(()) };
    let rule = PathRule { allowed, parent: parent.as_raw_fd() };
    // SAFETY: the rule is live, and of the kind that is stated.
    match unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call that made it succeeded, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
