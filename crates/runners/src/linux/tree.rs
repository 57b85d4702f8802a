//! The processes below a process, read from `/proc`. A signal goes to a process only if it is still the one that was seen.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;

use super::kernel::{self, Pid};

/// A process as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    /// In ticks since the machine started.
    pub(crate) start_time: u64,
    pub(crate) zombie: bool,
}

/// Looks at one process.
pub(crate) fn look(pid: Pid) -> Option<Process> {
    // The fields that matter are at its start; one read is enough, and this is done for every command.
    let mut buffer = [0; 512];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
    parse(&buffer[..length])
}

/// The processes below a process, zombies left out.
pub(crate) fn below(root: Pid) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    // A dead process may still have living children for the blink of an eye, so zombies are only left out at the end.
    found.retain(|process| !process.zombie);
    found
}

/// Sends a signal to every process below a process.
pub(crate) fn signal_below(root: Pid, signal: i32) {
    below(root).iter().for_each(|process| drop(send(process, signal)));
}

/// Kills what is below a process now. They are stopped first, so that none can fork while the others die; what still got away is
/// found by the next call.
pub(crate) fn kill_below(root: Pid) {
    const ROUNDS: usize = 32;
    let mut seen = HashSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<Process> = below(root).into_iter().filter(|process| seen.insert((process.pid, process.start_time))).collect();
        if fresh.is_empty() {
            break;
        }
        fresh.iter().for_each(|process| drop(send(process, libc::SIGSTOP)));
    }
    signal_below(root, libc::SIGKILL);
}

/// Sends a signal to this very process, never to a later one with its number.
pub(crate) fn send(process: &Process, signal: i32) -> io::Result<()> {
    let fd = kernel::open_process(process.pid)?;
    if look(process.pid).is_none_or(|now| now.start_time != process.start_time) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    kernel::signal_process(fd.as_fd(), signal)
}

/// The uids, of any kind, that living processes have.
pub(crate) fn uids() -> HashSet<u32> {
    let status = |process: Process| fs::read_to_string(format!("/proc/{}/status", process.pid)).ok();
    let line = |status: String| status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::to_owned));
    let lines = all().filter_map(status).filter_map(line);
    lines.flat_map(|line| line.split_ascii_whitespace().filter_map(|uid| uid.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(look)
}

/// The name of a process may hold spaces and parentheses, so fields are counted from its last one.
fn parse(stat: &[u8]) -> Option<Process> {
    let text = String::from_utf8_lossy(stat);
    let (start, rest) = text.rsplit_once(')')?;
    let pid = start.split_once(' ')?.0.parse().ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, start_time, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_confuse_the_fields() {
        let stat = b"42 (a) Z 1 (b) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 2000";
        assert_eq!(parse(stat), Some(Process { pid: 42, parent: 7, start_time: 987_654, zombie: false }));
    }

    #[test]
    fn this_process_is_found_and_has_a_start_time() {
        let me = look(std::process::id().cast_signed()).expect("/proc shows this process");
        assert!(me.start_time > 0 && !me.zombie);
    }

    #[test]
    fn the_uids_of_living_processes_are_found() {
        assert!(uids().contains(&kernel::ids().0));
    }

    #[test]
    fn a_signal_for_another_start_time_is_not_sent() {
        let me = look(std::process::id().cast_signed()).expect("/proc shows this process");
        assert!(send(&Process { start_time: me.start_time + 1, ..me }, libc::SIGKILL).is_err());
        assert!(send(&me, 0).is_ok());
    }
}
