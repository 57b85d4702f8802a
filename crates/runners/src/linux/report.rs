//! What a spawner has to tell its worker, in order. Telling never waits: a worker that is frozen reads nothing, and its commands have to be watched all the
//! more. What waits here is at most a few packets for each command: a worker that reads nothing asks for nothing new either.

use std::collections::VecDeque;
use std::io;
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
}

impl Reports {
    /// Sends a report, or keeps it until there is room.
    pub(crate) fn give(&mut self, worker: BorrowedFd<'_>, report: &Report) {
        report.encode(&mut self.packet);
        if !self.unsent.is_empty() || !has_left(worker, &self.packet) {
            self.unsent.push_back(self.packet.clone());
        }
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn send(&mut self, worker: BorrowedFd<'_>) {
        while self.unsent.front().is_some_and(|packet| has_left(worker, packet)) {
            self.unsent.pop_front();
        }
    }

    /// What to wait for on the socket: requests, and room where something waits for it.
    pub(crate) fn watch(&self, worker: BorrowedFd<'_>) -> libc::pollfd {
        let mut fd = kernel::readable(worker.as_raw_fd());
        if !self.unsent.is_empty() {
            fd.events |= libc::POLLOUT;
        }
        fd
    }
}

/// Sends a packet; `false` if there is no room. Of a worker that is gone the next poll tells.
fn has_left(worker: BorrowedFd<'_>, packet: &[u8]) -> bool {
    !matches!(socket::send(worker, packet, &[], Wait::Never), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
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
}
