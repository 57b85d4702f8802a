//! The private view of the file system that an isolated command has: its own `/tmp`, `/var/tmp`, `/dev/shm`, `/dev/mqueue` and `/proc`, and
//! nothing of the server's own directory but its work directory. It is called by pid 1 of new mount, PID and IPC namespaces.
#![expect(unsafe_code, reason = "mount, openat and mkdirat")]

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// What a command sees.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) work_dir: PathBuf,
    /// The directory that it sees as `/tmp` and `/var/tmp`.
    pub(crate) tmp: PathBuf,
    /// Directories that it sees empty, but for its work directory.
    pub(crate) hidden: Vec<PathBuf>,
}

const QUIET: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV;

/// Gives this process, and what it starts, the view.
pub(crate) fn enter(view: &View) -> io::Result<()> {
    // Held open before anything covers them.
    let (work, tmp) = (open(libc::AT_FDCWD, &c_string(&view.work_dir)?)?, open(libc::AT_FDCWD, &c_string(&view.tmp)?)?);
    // Without this every mount below would be seen by the whole machine.
    mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE, None)?;
    mount(Some(c"proc"), c"/proc", Some(c"proc"), QUIET | libc::MS_NOEXEC, None)?;
    if Path::new("/dev/shm").is_dir() {
        mount(Some(c"tmpfs"), c"/dev/shm", Some(c"tmpfs"), QUIET, Some(c"mode=1777"))?;
    }
    if Path::new("/dev/mqueue").is_dir() {
        mount(Some(c"mqueue"), c"/dev/mqueue", Some(c"mqueue"), QUIET | libc::MS_NOEXEC, None)?;
    }
    for place in [c"/tmp", c"/var/tmp"] {
        if Path::new(std::ffi::OsStr::from_bytes(place.to_bytes())).is_dir() {
            bind(&tmp, place)?;
        }
    }
    for hidden in view.hidden.iter().filter(|hidden| hidden.is_dir()) {
        mount(Some(c"tmpfs"), &c_string(hidden)?, Some(c"tmpfs"), QUIET, Some(c"mode=0711,size=64k,nr_inodes=64"))?;
    }
    let held = fs::metadata(in_proc(&work))?;
    if !fs::metadata(&view.work_dir).is_ok_and(|seen| (seen.dev(), seen.ino()) == (held.dev(), held.ino())) {
        let place = make_path(&view.work_dir)?;
        bind(&work, &c_string(&in_proc(&place))?)?;
    }
    Ok(())
}

/// Makes the directories of a path that are missing. Links are not followed: an earlier command of the attempt may have left some.
fn make_path(path: &Path) -> io::Result<OwnedFd> {
    let mut above = open(libc::AT_FDCWD, c"/")?;
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        let name = c_string(Path::new(name))?;
        above = match open(above.as_raw_fd(), &name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // SAFETY: the name is a live C string, and the directory above is held open.
                unsafe {
                    if libc::mkdirat(above.as_raw_fd(), name.as_ptr(), 0o711) != 0
                        || libc::fchmodat(above.as_raw_fd(), name.as_ptr(), 0o711, 0) != 0
                    {
                        return Err(io::Error::last_os_error());
                    }
                }
                open(above.as_raw_fd(), &name)?
            }
            opened => opened?,
        };
    }
    Ok(above)
}

fn bind(from: &OwnedFd, to: &CStr) -> io::Result<()> {
    mount(Some(&c_string(&in_proc(from))?), to, None, libc::MS_BIND, None)
}

fn in_proc(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

fn open(above: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name is a live C string.
    let fd = unsafe { libc::openat(above, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong, data: Option<&CStr>) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all strings are live C strings, or null where the call permits it.
    let code = unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(data).cast()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}
