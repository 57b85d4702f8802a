//! What a spawner has to tell its worker, in order. Telling never waits: a worker that is frozen reads nothing, and its commands have to be watched all the
//! more. What waits here is at most a few packets for each command: a worker that reads nothing asks for nothing new either.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::kernel;
use super::message::Report;
use super::socket::{self, Wait};

/// Reports on their way.
#[derive(Default)]
pub(crate) struct Reports {
    /// Reused for every report.
    packet: Vec<u8>,
    unsent: VecDeque<Vec<u8>>,
    /// The last try failed, and not for want of room in the socket: the kernel will not say when to try again.
    failed: bool,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// It is on its way, or nobody is there to get it: of that the next poll tells.
    Done,
    /// There is no room for it now.
    NoRoom,
    /// The kernel could not take it, for want of memory perhaps.
    Failed,
}

impl Reports {
    /// Sends a report, or keeps it until there is room.
    pub(crate) fn give(&mut self, worker: BorrowedFd<'_>, report: &Report) {
        report.encode(&mut self.packet);
        if self.unsent.is_empty() {
            let sent = send(worker, &self.packet);
            self.failed = sent == Sent::Failed;
            if sent == Sent::Done {
                return;
            }
        }
        self.unsent.push_back(self.packet.clone());
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn send(&mut self, worker: BorrowedFd<'_>) {
        self.failed = false;
        while let Some(packet) = self.unsent.front() {
            match send(worker, packet) {
                Sent::Done => drop(self.unsent.pop_front()),
                Sent::NoRoom => return,
                Sent::Failed => {
                    self.failed = true;
                    return;
                }
            }
        }
    }

    /// Whether something waits that is to be tried again after a while.
    pub(crate) fn try_again(&self) -> bool {
        self.failed
    }

    /// What to wait for on the socket: requests, and room where something waits for it.
    pub(crate) fn watch(&self, worker: BorrowedFd<'_>) -> libc::pollfd {
        let mut fd = kernel::readable(worker.as_raw_fd());
        if !self.unsent.is_empty() && !self.failed {
            fd.events |= libc::POLLOUT;
        }
        fd
    }
}

fn send(worker: BorrowedFd<'_>, packet: &[u8]) -> Sent {
    match socket::send(worker, packet, &[], Wait::Never).map_err(|error| error.kind()) {
        Ok(()) | Err(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected) => Sent::Done,
        Err(ErrorKind::WouldBlock) => Sent::NoRoom,
        Err(_) => Sent::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_worker_that_does_not_read_keeps_nobody_waiting_and_gets_everything_in_order() {
        let (spawner, worker) = socket::pair().unwrap();
        let mut reports = Reports::default();
        let mut given = 0;
        while reports.unsent.len() < 3 {
            given += 1;
            reports.give(spawner.as_fd(), &Report::Started { id: given, pid: 1, start_time: 2 });
        }
        assert_ne!(reports.watch(spawner.as_fd()).events & libc::POLLOUT, 0);
        let mut buffer = [0; 64];
        for id in 1..=given {
            let length = socket::receive(worker.as_fd(), &mut buffer, &mut Vec::new(), Wait::Never).unwrap();
            assert_eq!(Report::decode(&buffer[..length]), Some(Report::Started { id, pid: 1, start_time: 2 }));
            reports.send(spawner.as_fd());
        }
        assert_eq!(reports.watch(spawner.as_fd()).events & libc::POLLOUT, 0);
    }

    #[test]
    fn what_the_kernel_could_not_take_is_kept_and_tried_again_and_nobody_waits_for_room() {
        let (spawner, worker) = socket::pair().unwrap();
        let no_socket = std::fs::File::open("/dev/null").unwrap();
        let (mut reports, report) = (Reports::default(), Report::Started { id: 7, pid: 1, start_time: 2 });
        reports.give(no_socket.as_fd(), &report);
        reports.send(no_socket.as_fd());
        assert!(reports.try_again());
        assert_eq!(reports.watch(spawner.as_fd()).events & libc::POLLOUT, 0);
        reports.send(spawner.as_fd());
        assert!(!reports.try_again());
        let mut buffer = [0; 64];
        let length = socket::receive(worker.as_fd(), &mut buffer, &mut Vec::new(), Wait::Never).unwrap();
        assert_eq!(Report::decode(&buffer[..length]), Some(report));
    }

    #[test]
    fn nothing_is_kept_for_a_worker_that_is_gone() {
        let (spawner, worker) = socket::pair().unwrap();
        drop(worker);
        let mut reports = Reports::default();
        reports.give(spawner.as_fd(), &Report::Started { id: 7, pid: 1, start_time: 2 });
        assert!(reports.unsent.is_empty() && !reports.try_again());
    }
}
