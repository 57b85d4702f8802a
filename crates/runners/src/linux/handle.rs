//! What is needed to find a process again after a restart: its number, and what proves that the number still means the same process.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::kernel::Pid;
use super::message::Rung;
use super::tree::{self, Process};

/// A process of this machine. As JSON it is the handle that the runner port speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handle {
    pub(crate) pid: u32,
    /// The start of the machine that the numbers belong to.
    pub(crate) boot_id: String,
    /// In ticks since then.
    pub(crate) start_time: u64,
    pub(crate) containment: Rung,
    /// Where its cgroup is, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) cgroup: Option<PathBuf>,
}

impl Handle {
    /// The process, if it is still there and nobody else has its number.
    pub(crate) fn process(&self) -> Option<Process> {
        (self.boot_id == boot_id()).then_some(())?;
        tree::look(Pid::try_from(self.pid).ok()?).filter(|process| process.start_time == self.start_time && !process.zombie)
    }
}

/// The name of this start of the machine.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Handle {
        let pid = std::process::id();
        let start_time = tree::look(pid.cast_signed()).expect("/proc shows this process").start_time;
        Handle { pid, boot_id: boot_id(), start_time, containment: Rung::Weak, cgroup: None }
    }

    #[test]
    fn a_process_is_found_again() {
        let text = serde_json::to_string(&own()).unwrap();
        assert!(serde_json::from_str::<Handle>(&text).unwrap().process().is_some());
    }

    #[test]
    fn a_number_of_another_boot_or_start_is_nobody() {
        assert_eq!(Handle { boot_id: "other".to_owned(), ..own() }.process(), None);
        assert_eq!(Handle { start_time: own().start_time + 1, ..own() }.process(), None);
    }
}
