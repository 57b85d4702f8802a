//! A VFS below the store's own that records every write, truncation and sync of the files in one directory, in their order, and
//! refuses syncs when told to. Everything else is the system's own VFS.
#![expect(unsafe_code, reason = "a VFS is a table of C functions; SQLite has no safe way to add one")]

use std::ffi::{CStr, c_int, c_void};
use std::mem::size_of;
use std::path::Path;
use std::ptr::null;
use std::sync::{Mutex, MutexGuard, OnceLock};

use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use rusqlite::ffi;

/// So much of a write reaches a file at once.
const PIECE: usize = 2048;

/// Which of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Database,
    Log,
}

/// What happened.
pub enum Op {
    Write {
        file: FileKind,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: FileKind,
        len: usize,
    },
    Sync(FileKind),
    /// The store said that this execution is so, before whatever comes next.
    Acknowledged {
        id: ExecutionId,
        status: Status,
    },
}

/// Which syncs are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuse {
    Any,
    Only(FileKind),
}

#[derive(Default)]
struct Recording {
    directory: Option<String>,
    ops: Vec<Op>,
    syncs: usize,
    refuse: Option<(Refuse, usize)>,
    hold: Option<usize>,
}

fn recording() -> MutexGuard<'static, Recording> {
    static RECORDING: Mutex<Recording> = Mutex::new(Recording { directory: None, ops: Vec::new(), syncs: 0, refuse: None, hold: None });
    RECORDING.lock().expect("no panic while recording")
}

/// There is one recorder: whoever uses it is alone.
pub async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let guard = ALONE.lock().await;
    register();
    guard
}

/// Records what happens to the files in this directory that are opened from now on.
pub fn start(directory: &Path) {
    *recording() = Recording { directory: Some(directory.to_str().expect("a plain path").to_owned()), ..Recording::default() };
}

/// Ends the recording.
pub fn stop() -> Vec<Op> {
    std::mem::take(&mut *recording()).ops
}

/// Notes something between two things that the disk sees.
pub fn push(op: Op) {
    recording().ops.push(op);
}

/// Refuses the `number`th such sync from now on, and no other.
pub fn refuse(which: Refuse, number: usize) {
    recording().refuse = Some((which, number));
}

/// What a process says when it is held.
pub const HELD: &str = "held before the next thing that the disk sees";

/// Holds whoever comes to the `number`th thing that the disk sees from now on, for ever, and says so.
pub fn hold_at(number: usize) {
    recording().hold = Some(number);
}

fn pass() {
    let mut recording = recording();
    let Some(left) = &mut recording.hold else { return };
    *left -= 1;
    if *left > 0 {
        return;
    }
    drop(recording);
    println!("{HELD}");
    loop {
        std::thread::park();
    }
}

/// How many syncs there were.
pub fn syncs() -> usize {
    recording().syncs
}

#[repr(C)]
struct Layer {
    base: ffi::sqlite3_file,
    file: Option<FileKind>,
}

/// Puts the recorder below the store's own VFS: it becomes the default before any store is opened.
fn register() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // SAFETY: a null name asks for the default VFS, which lives as long as the process; the copy is leaked, as SQLite keeps it. The
        // copied functions ignore which table they are called through, except `xOpen`, which is replaced.
        let code = unsafe {
            let below = ffi::sqlite3_vfs_find(null());
            let mut table = *below;
            table.szOsFile += c_int::try_from(size_of::<Layer>()).expect("a few words");
            table.zName = c"recorder".as_ptr();
            table.pNext = std::ptr::null_mut();
            table.pAppData = below.cast();
            table.xOpen = Some(open);
            ffi::sqlite3_vfs_register(Box::leak(Box::new(table)), 1)
        };
        assert_eq!(code, ffi::SQLITE_OK);
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes our own table and `szOsFile` bytes of memory for the file.
    unsafe {
        let below = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
        let kind = match flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL) {
            ffi::SQLITE_OPEN_MAIN_DB => Some(FileKind::Database),
            ffi::SQLITE_OPEN_WAL => Some(FileKind::Log),
            _ => None,
        };
        let path = if name.is_null() { "" } else { CStr::from_ptr(name).to_str().unwrap_or("") };
        let ours = recording().directory.as_deref().is_some_and(|directory| path.starts_with(directory));
        file.cast::<Layer>().write(Layer { base: ffi::sqlite3_file { pMethods: null() }, file: kind.filter(|_| ours) });
        let code = (*below).xOpen.expect("every VFS can open")(below, name, inner(file), flags, out_flags);
        if code == ffi::SQLITE_OK {
            (*file).pMethods = &raw const METHODS;
        }
        code
    }
}

/// # Safety
/// `file` must have been given to [`open`].
unsafe fn inner(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: `szOsFile` counts both parts.
    unsafe { file.cast::<Layer>().add(1).cast() }
}

/// # Safety
/// `file` must have been given to [`open`].
unsafe fn kind(file: *mut ffi::sqlite3_file) -> Option<FileKind> {
    // SAFETY: as the caller promises.
    unsafe { (*file.cast::<Layer>()).file }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, buffer: *const c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this for a file that `open` opened, with a buffer of `len` bytes.
    unsafe {
        let Some(kind) = kind(file) else { return write_below(file, buffer, len, offset) };
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), usize::try_from(len).expect("a length"));
        // A large write reaches a file piece by piece, and whoever is killed in it has written some of them.
        let mut offset = offset;
        for piece in bytes.chunks(PIECE) {
            pass();
            let at = usize::try_from(offset).expect("an offset");
            recording().ops.push(Op::Write { file: kind, offset: at, bytes: piece.to_vec() });
            let len = c_int::try_from(piece.len()).expect("a short one");
            let code = write_below(file, piece.as_ptr().cast(), len, offset);
            if code != ffi::SQLITE_OK {
                return code;
            }
            offset += i64::from(len);
        }
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite calls this for a file that `open` opened.
    unsafe {
        if let Some(file) = kind(file) {
            pass();
            recording().ops.push(Op::Truncate { file, len: usize::try_from(size).expect("a length") });
        }
        truncate_below(file, size)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls this for a file that `open` opened.
    unsafe {
        if let Some(kind) = kind(file) {
            pass();
            let mut recording = recording();
            recording.syncs += 1;
            if let Some((which, left)) = &mut recording.refuse
                && (*which == Refuse::Any || *which == Refuse::Only(kind))
            {
                *left -= 1;
                if *left == 0 {
                    recording.refuse = None;
                    return ffi::SQLITE_IOERR_FSYNC;
                }
            }
            recording.ops.push(Op::Sync(kind));
        }
        sync_below(file, flags)
    }
}

/// File functions that only pass on to the file below.
macro_rules! pass_on {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> $result {
            // SAFETY: SQLite calls this for a file that `open` opened; the arguments are passed on as they are.
            unsafe {
                let below = inner(file);
                (*(*below).pMethods).$method.expect("the VFS below is complete")(below, $($arg),*)
            }
        }
    )*};
}

pass_on! {
    close = xClose() -> c_int;
    read = xRead(buffer: *mut c_void, len: c_int, offset: i64) -> c_int;
    write_below = xWrite(buffer: *const c_void, len: c_int, offset: i64) -> c_int;
    truncate_below = xTruncate(size: i64) -> c_int;
    sync_below = xSync(flags: c_int) -> c_int;
    file_size = xFileSize(size: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(out: *mut c_int) -> c_int;
    file_control = xFileControl(op: c_int, arg: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, n: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}
