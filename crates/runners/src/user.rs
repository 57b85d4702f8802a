//! Finds a user of this machine by name. It reads the user database and changes nothing.
#![expect(unsafe_code, reason = "the user database is only reachable through the C library")]

use std::ffi::{CStr, CString};
use std::io;

use crate::config::RunAs;

/// A user that commands cannot run as.
#[derive(Debug, thiserror::Error)]
pub enum UnknownUser {
    /// The user database has no such name.
    #[error("no such user: {0} (create it, or choose another with --run-as)")]
    Missing(String),
    /// The user database could not be read.
    #[error("the user database could not be read")]
    Database(#[source] io::Error),
}

/// Looks up a user with its primary and supplementary groups.
pub fn lookup_user(name: &str) -> Result<RunAs, UnknownUser> {
    let missing = || UnknownUser::Missing(name.to_owned());
    let c_name = CString::new(name).map_err(|_| missing())?;
    let (uid, gid) = ids(&c_name).map_err(UnknownUser::Database)?.ok_or_else(missing)?;
    Ok(RunAs { uid, gid, groups: groups(&c_name, gid) })
}

fn ids(name: &CStr) -> io::Result<Option<(u32, u32)>> {
    let mut buffer = vec![0u8; 4096];
    loop {
        // SAFETY: an all-zero passwd is a valid value of a plain C struct.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call and the length is that of the buffer.
        let code = unsafe { libc::getpwnam_r(name.as_ptr(), &raw mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &raw mut found) };
        match code {
            0 if found.is_null() => return Ok(None),
            0 => return Ok(Some((entry.pw_uid, entry.pw_gid))),
            libc::ERANGE => buffer.resize(buffer.len() * 2, 0),
            libc::ENOENT | libc::ESRCH => return Ok(None),
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// macOS declares these ids as `int`, Linux as `gid_t`.
#[cfg(target_os = "macos")]
type Group = libc::c_int;
#[cfg(not(target_os = "macos"))]
type Group = libc::gid_t;

fn groups(name: &CStr, gid: u32) -> Vec<u32> {
    let mut count: libc::c_int = 64;
    loop {
        let asked = count;
        let mut list: Vec<Group> = vec![0; usize::try_from(asked).unwrap_or(64)];
        // SAFETY: the list has room for `count` groups, and the call writes at most that many.
        let code = unsafe { libc::getgrouplist(name.as_ptr(), gid as Group, list.as_mut_ptr(), &raw mut count) };
        if code >= 0 {
            list.truncate(usize::try_from(count).unwrap_or(0));
            return list.into_iter().map(|group| group as libc::gid_t).collect();
        }
        // The C library of macOS does not say how many there are.
        count = if count > asked { count } else { asked * 2 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_zero() {
        let root = lookup_user("root").expect("every machine has root");
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0));
    }

    #[test]
    fn an_unknown_user_is_named_in_the_error() {
        let error = lookup_user("no-such-user-here").expect_err("nobody has this name");
        assert!(error.to_string().contains("no-such-user-here"), "{error}");
    }

    #[test]
    fn a_name_with_a_nul_is_unknown() {
        assert!(matches!(lookup_user("ro\0ot"), Err(UnknownUser::Missing(_))));
    }
}
