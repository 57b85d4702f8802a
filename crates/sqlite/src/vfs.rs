//! A layer under SQLite that does three things. It stamps every page of the database file when it is written and checks it when it is read
//! ([`crate::page`]), so that a changed byte is an error (`SQLITE_IOERR_DATA`) and never an answer; a WAL has checksums of its own. It gathers what is
//! written to the WAL until it is synced, for SQLite writes each page and the few bytes before it apart ([`Gathered`]). And it
//! syncs the WAL with `fdatasync`, where SQLite as it is built here calls `fsync`: a WAL is written over and over in place, so its size rarely
//! changes, and leaving out the other metadata makes a commit several times faster. Everything else is passed on as it is.
#![expect(unsafe_code, reason = "a VFS is a table of C functions; SQLite has no safe way to add one")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use rusqlite::{Connection, ffi};

use crate::page;

/// The name that connections ask for.
pub(crate) const NAME: &CStr = c"runvoy-checked";

/// Makes the layer known to SQLite, above whatever VFS is the default at the first call. Later calls do nothing.
pub(crate) fn register() -> Result<(), rusqlite::Error> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    let code = *REGISTERED.get_or_init(|| {
        // SAFETY: a null name asks for the default VFS, which lives as long as the process.
        let below = unsafe { ffi::sqlite3_vfs_find(null()) };
        if below.is_null() {
            return ffi::SQLITE_ERROR;
        }
        // SAFETY: `below` was checked; the table is leaked on purpose, because SQLite keeps the pointer for good.
        unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(table(below))), 0) }
    });
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)) }
}

/// Reserves the room for checksums in a database that has no page yet.
pub(crate) fn reserve(conn: &Connection) -> Result<(), rusqlite::Error> {
    let mut bytes = c_int::try_from(page::RESERVED).expect("a small constant");
    // SAFETY: the handle is open for the life of `conn`, and this file control reads and writes one int.
    let code = unsafe {
        ffi::sqlite3_file_control(conn.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, (&raw mut bytes).cast::<c_void>())
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)) }
}

/// A file as SQLite sees it; the file below lies right behind it in the same allocation.
#[repr(C)]
struct Layer {
    base: ffi::sqlite3_file,
    /// A WAL's own handle for syncing. No lock is ever taken on a WAL, so closing this drops none.
    handle: Option<File>,
    /// The VFS below has synced it once, and the directory with it.
    is_known: bool,
    /// What is on its way to a WAL.
    gathered: Gathered,
}

/// Bytes for a WAL that were not passed on yet. Nobody else can miss them: other connections read a WAL only as far as its last commit, a commit is told to
/// them after its sync, and the sync passes on what is here first; so does every other call on this file. Where a write or a sync fails SQLite rolls back, and
/// nothing of it may reach the file later: a commit that was refused would be found there by the next start.
#[derive(Default)]
struct Gathered {
    offset: i64,
    bytes: Vec<u8>,
}

/// So much is gathered at most: SQLite's own VFS keeps only 17 bits of the length of a write, and takes 0 for a full disk.
const MOST_GATHERED: usize = (1 << 17) - 1;

impl Gathered {
    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn end(&self) -> i64 {
        self.offset + i64::try_from(self.bytes.len()).expect("far below")
    }
}

const DATABASE: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Version 2 has no memory mapping, which would go past the checks.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read_page),
    xWrite: Some(write_page),
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
static DATABASE_METHODS: ffi::sqlite3_io_methods = DATABASE;
static WAL_METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    xRead: Some(read_wal),
    xWrite: Some(write_wal),
    xTruncate: Some(truncate_wal),
    xSync: Some(sync_wal),
    xFileSize: Some(wal_size),
    ..DATABASE
};

/// # Safety
/// `below` must point to a VFS that lives as long as the process.
unsafe fn table(below: *mut ffi::sqlite3_vfs) -> ffi::sqlite3_vfs {
    // SAFETY: as the caller promises.
    let (file_size, max_path) = unsafe { ((*below).szOsFile, (*below).mxPathname) };
    ffi::sqlite3_vfs {
        iVersion: 2,
        szOsFile: file_size + c_int::try_from(size_of::<Layer>()).expect("a few words"),
        mxPathname: max_path,
        pNext: null_mut(),
        zName: NAME.as_ptr(),
        pAppData: below.cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_ms),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes our own table and `szOsFile` bytes of memory for the file; the VFS below gets the part it asked for.
    unsafe {
        let below = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
        let open_below = (*below).xOpen.expect("every VFS can open");
        let is_wal = flags & ffi::SQLITE_OPEN_WAL != 0;
        if flags & ffi::SQLITE_OPEN_MAIN_DB == 0 && !is_wal {
            return open_below(below, name, file, flags, out_flags);
        }
        let base = ffi::sqlite3_file { pMethods: null() };
        file.cast::<Layer>().write(Layer { base, handle: None, is_known: false, gathered: Gathered::default() });
        let code = open_below(below, name, inner(file), flags, out_flags);
        if code == ffi::SQLITE_OK {
            (*file).pMethods = if is_wal { &raw const WAL_METHODS } else { &raw const DATABASE_METHODS };
            // Another VFS than SQLite's own may want to see every sync.
            if is_wal && !name.is_null() && CStr::from_ptr((*below).zName) == c"unix" {
                let path = std::ffi::OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                (*file.cast::<Layer>()).handle = File::open(path).ok();
            }
        }
        code
    }
}

/// # Safety
/// `file` must have been given to [`open`] as a database or a WAL.
unsafe fn inner(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: `szOsFile` counts both parts.
    unsafe { file.cast::<Layer>().add(1).cast() }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file that `open` opened, and only once.
    unsafe {
        let layer = &mut *file.cast::<Layer>();
        drop(layer.handle.take());
        // What is here was not committed.
        drop(std::mem::take(&mut layer.gathered));
        let below = inner(file);
        (*(*below).pMethods).xClose.expect("every file can be closed")(below)
    }
}

unsafe extern "C" fn sync_wal(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls this for a file that `open` opened.
    unsafe {
        let code = pass_on(file);
        let layer = &mut *file.cast::<Layer>();
        if code != ffi::SQLITE_OK {
            layer.gathered.clear();
            return code;
        }
        match &layer.handle {
            // The handle is older than every write, so it is told of every one that failed.
            Some(handle) if layer.is_known => match handle.sync_data() {
                Ok(()) => ffi::SQLITE_OK,
                Err(_) => ffi::SQLITE_IOERR_FSYNC,
            },
            _ => {
                let code = sync(file, flags);
                layer.is_known = code == ffi::SQLITE_OK;
                code
            }
        }
    }
}

/// Writes what was gathered to the file below.
///
/// # Safety
/// `file` must have been given to [`open`] as a WAL.
unsafe fn pass_on(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as the caller promises; `write` reads the bytes and keeps no pointer to them.
    unsafe {
        let gathered = &mut (*file.cast::<Layer>()).gathered;
        if gathered.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        let len = c_int::try_from(gathered.bytes.len()).expect("so much is not gathered");
        let code = write(file, gathered.bytes.as_ptr().cast(), len, gathered.offset);
        if code == ffi::SQLITE_OK {
            gathered.clear();
        }
        code
    }
}

unsafe extern "C" fn write_wal(file: *mut ffi::sqlite3_file, buffer: *const c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this for a WAL that `open` opened, with a buffer of `len` bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), usize::try_from(len).unwrap_or(0));
        let gathered = &(*file.cast::<Layer>()).gathered;
        if offset != gathered.end() || gathered.bytes.len() + bytes.len() > MOST_GATHERED {
            let code = pass_on(file);
            if code != ffi::SQLITE_OK {
                (*file.cast::<Layer>()).gathered.clear();
                return code;
            }
        }
        let gathered = &mut (*file.cast::<Layer>()).gathered;
        if gathered.bytes.is_empty() {
            gathered.offset = offset;
        }
        gathered.bytes.extend_from_slice(bytes);
        ffi::SQLITE_OK
    }
}

/// Functions of a WAL before which everything that was gathered is passed on.
macro_rules! pass_on_first {
    ($($name:ident = $then:ident($($arg:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> c_int {
            // SAFETY: SQLite calls this for a WAL that `open` opened; the arguments are passed on as they are.
            unsafe {
                match pass_on(file) {
                    ffi::SQLITE_OK => $then(file, $($arg),*),
                    code => code,
                }
            }
        }
    )*};
}

pass_on_first! {
    read_wal = read(buffer: *mut c_void, len: c_int, offset: i64);
    truncate_wal = truncate(size: i64);
    wal_size = file_size(size: *mut i64);
}

unsafe extern "C" fn read_page(file: *mut ffi::sqlite3_file, buffer: *mut c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this for a file that `open` opened, with a buffer of `len` bytes.
    unsafe {
        let code = read(file, buffer, len, offset);
        let len = usize::try_from(len).unwrap_or(0);
        if code != ffi::SQLITE_OK || !page::is_page(len, offset) {
            return code;
        }
        let page = std::slice::from_raw_parts(buffer.cast::<u8>(), len);
        if page::is_sound(page, offset) { code } else { ffi::SQLITE_IOERR_DATA }
    }
}

unsafe extern "C" fn write_page(file: *mut ffi::sqlite3_file, buffer: *const c_void, len: c_int, offset: i64) -> c_int {
    thread_local! {
        static STAMPED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // SAFETY: SQLite calls this for a file that `open` opened, with a buffer of `len` bytes.
    unsafe {
        let size = usize::try_from(len).unwrap_or(0);
        if !page::is_page(size, offset) {
            return write(file, buffer, len, offset);
        }
        // The buffer belongs to SQLite's page cache, so the stamp goes on a copy.
        STAMPED.with_borrow_mut(|copy| {
            copy.clear();
            copy.extend_from_slice(std::slice::from_raw_parts(buffer.cast::<u8>(), size));
            page::stamp(copy, offset);
            write(file, copy.as_ptr().cast(), len, offset)
        })
    }
}

/// File functions that only pass on to the file below.
macro_rules! pass_to_file {
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

pass_to_file! {
    read = xRead(buffer: *mut c_void, len: c_int, offset: i64) -> c_int;
    write = xWrite(buffer: *const c_void, len: c_int, offset: i64) -> c_int;
    truncate = xTruncate(size: i64) -> c_int;
    sync = xSync(flags: c_int) -> c_int;
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

/// Functions of the table that only pass on to the VFS below.
macro_rules! pass_to_vfs {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut ffi::sqlite3_vfs, $($arg: $type),*) -> c_int {
            // SAFETY: SQLite passes our own table, whose application data is the VFS below.
            unsafe {
                let below = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
                (*below).$method.expect("the VFS below is complete")(below, $($arg),*)
            }
        }
    )*};
}

pass_to_vfs! {
    delete = xDelete(name: *const c_char, sync_dir: c_int);
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int);
    full_pathname = xFullPathname(name: *const c_char, len: c_int, out: *mut c_char);
    randomness = xRandomness(len: c_int, out: *mut c_char);
    sleep = xSleep(microseconds: c_int);
    current_time = xCurrentTime(out: *mut f64);
    last_error = xGetLastError(len: c_int, out: *mut c_char);
    current_time_ms = xCurrentTimeInt64(out: *mut i64);
}
