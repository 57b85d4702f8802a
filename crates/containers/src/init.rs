//! The first process of a container. With it ends every process of the container, so that a command can be ended although the daemon is gone
//! or hangs.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{sleep, timeout};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A handle that never means another process; nothing where the daemon runs containers out of sight, as in a virtual machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Init(Option<Arc<OwnedFd>>);

impl Init {
    /// The process with this id, if it belongs to this container.
    pub(crate) fn of(pid: u32, container: &str) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let opened = pid.and_then(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
        // Looked at after it was opened: a process that was given the id meanwhile has another cgroup.
        let is_own = |pid: Pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(container));
        Self(opened.filter(|(pid, _)| is_own(*pid)).map(|(_, process)| Arc::new(process)))
    }

    pub(crate) const fn is_visible(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it has ended; `false` also where it cannot be seen.
    pub(crate) fn has_ended(&self) -> bool {
        let Some(process) = &self.0 else { return false };
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    pub(crate) fn kill(&self) {
        if let Some(process) = &self.0 {
            pidfd_send_signal(process, Signal::KILL).ok();
        }
    }

    /// Kills it; whether it has ended within this time.
    pub(crate) async fn end(&self, within: Duration) -> bool {
        self.kill();
        let ended = async {
            while !self.has_ended() {
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(within, ended).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn only_a_process_of_the_container_is_seen_and_killed() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep runs");
        let cgroup = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).expect("its cgroup");
        let other = Init::of(child.id(), "0123456789abcdef");
        assert!(!other.is_visible() && !other.end(LOOK_EVERY).await);
        let own = Init::of(child.id(), cgroup.lines().next().expect("a line"));
        assert!(own.is_visible() && !own.has_ended());
        assert!(own.end(Duration::from_secs(10)).await && own.has_ended());
        assert!(!child.wait().expect("it ended").success());
    }
}
