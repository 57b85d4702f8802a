//! Packets with files, over a pair of connected sockets that no other program inherits.
#![expect(unsafe_code, reason = "files travel in control messages, which only the system call takes")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::unix::AsyncFd;

/// The most files one packet carries.
const FILES_MAX: usize = 3;
/// Room for the control message of that many, with its header and padding.
const CONTROL_BYTES: usize = 64;

#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A pair of connected packet sockets, closed on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for the two descriptors that the call writes.
    if unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so both are open and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Whether a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It waits until it can go on.
    Block,
    /// It fails with `WouldBlock` instead.
    Never,
}

impl Wait {
    fn flag(self) -> libc::c_int {
        if self == Self::Block { 0 } else { libc::MSG_DONTWAIT }
    }
}

/// Sends one packet, whole or not at all.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>], wait: Wait) -> io::Result<()> {
    assert!(files.len() <= FILES_MAX, "a packet carries at most {FILES_MAX} files");
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: an all-zero msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !files.is_empty() {
        let size = u32::try_from(size_of_val(files)).expect("a few descriptors");
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the macros only compute; the buffer is aligned and holds FILES_MAX descriptors with their header.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size) as _;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(message).cast::<RawFd>();
            for (i, file) in files.iter().enumerate() {
                data.add(i).write_unaligned(file.as_raw_fd());
            }
        }
    }
    loop {
        // SAFETY: the header points at live buffers of the stated lengths.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL | wait.flag()) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives one packet into a buffer. Returns its length, which is 0 when the other end is closed; files are appended, closed on exec.
/// Where not all of them find room among the files that this process may have open, none is: a packet without its files is for the caller to refuse.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], files: &mut Vec<OwnedFd>, wait: Wait) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: an all-zero msghdr is a valid, empty one.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    let received = loop {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: the header points at live buffers of the stated lengths.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC | wait.flag()) };
        match usize::try_from(received) {
            Ok(received) => break received,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    };
    let before = files.len();
    // SAFETY: the kernel filled in the header, and its walk stays inside the control buffer; every descriptor in it is new and ours.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                let bytes = (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                files.extend((0..bytes / size_of::<RawFd>()).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())));
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    if header.msg_flags & libc::MSG_TRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet was cut short"));
    }
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        files.truncate(before);
    }
    Ok(received)
}

/// Makes a socket known to the async runtime that this is called in.
pub(crate) fn register(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, so it stays open and the same for as long as the runtime has it.
    unsafe { AsyncFd::register(socket) }.map_err(|error| error.into_parts().1)
}

/// Closes both directions for every holder of this end.
pub(crate) fn shut_down(socket: impl AsFd) {
    // SAFETY: the descriptor is open for as long as it is borrowed.
    unsafe { libc::shutdown(socket.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_packet_keeps_its_edges_and_its_files() {
        let (left, right) = pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(left.as_fd(), b"one", &[writer.as_fd()], Wait::Never).unwrap();
        send(left.as_fd(), b"two", &[], Wait::Never).unwrap();
        drop(writer);
        let (mut buffer, mut files) = ([0; 16], Vec::new());
        assert_eq!(receive(right.as_fd(), &mut buffer, &mut files, Wait::Never).unwrap(), 3);
        assert_eq!(files.len(), 1);
        std::fs::File::from(files.remove(0)).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(receive(right.as_fd(), &mut buffer, &mut files, Wait::Never).unwrap(), 3);
        assert_eq!(&buffer[..3], b"two");
        assert_eq!(receive(right.as_fd(), &mut buffer, &mut files, Wait::Never).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(left);
        assert_eq!(receive(right.as_fd(), &mut buffer, &mut files, Wait::Block).unwrap(), 0);
    }
}
