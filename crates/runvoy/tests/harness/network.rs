//! Machines that are apart: a network namespace each, on one switch whose links can be cut. It takes root and iproute2; without them a test fails
//! and says so.
#![expect(unsafe_code, reason = "a thread moves to another machine with libc")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

/// How a link ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Packets vanish, and nobody is told.
    Silent,
    /// The cable is out: both ends know.
    Carrier,
}

/// Some machines on one switch. Processes on them are the test's own affair.
pub struct Network {
    name: String,
    machines: usize,
}

const SWITCH: &str = "switch";

impl Network {
    /// So many machines, all connected.
    pub fn new(machines: usize) -> Self {
        sweep();
        let this = Self { name: format!("{PREFIX}{}", std::process::id()), machines };
        let switch = this.namespace(SWITCH);
        ip(&["netns", "add", &switch]);
        ip(&["-n", &switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
        ip(&["-n", &switch, "link", "set", "br0", "up"]);
        for machine in 0..machines {
            let (port, namespace) = (port(machine), this.namespace(&machine.to_string()));
            ip(&["netns", "add", &namespace]);
            ip(&["-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &namespace]);
            ip(&["-n", &switch, "link", "set", &port, "master", "br0", "up"]);
            ip(&["-n", &namespace, "addr", "add", &format!("{}/24", this.address(machine)), "dev", "eth0"]);
            ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        }
        this
    }

    /// The address of a machine; it means nothing elsewhere.
    pub fn address(&self, machine: usize) -> String {
        format!("10.77.0.{}", machine + 1)
    }

    /// What a program must run under to be on a machine. Unlike `ip netns exec` this leaves `/sys`, and with it the cgroups, as they are.
    pub fn wrapper(&self, machine: usize) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.path(machine).display()), "--".to_owned()]
    }

    /// Moves this thread, and whatever it starts from now on, to a machine.
    pub fn enter(&self, machine: usize) {
        let place = File::open(self.path(machine)).expect("the namespace");
        // SAFETY: setns changes the network of this thread only, and has no memory effects.
        let moved = unsafe { libc::setns(place.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(moved, 0, "cannot move to a namespace: {}", std::io::Error::last_os_error());
    }

    /// Cuts a machine off.
    pub fn cut(&self, machine: usize, how: Cut) {
        let (switch, port) = (self.namespace(SWITCH), port(machine));
        match how {
            Cut::Silent => ip(&["-n", &switch, "link", "set", &port, "nomaster"]),
            Cut::Carrier => ip(&["-n", &switch, "link", "set", &port, "down"]),
        }
    }

    /// Connects a machine again, however it was cut off.
    pub fn heal(&self, machine: usize) {
        ip(&["-n", &self.namespace(SWITCH), "link", "set", &port(machine), "master", "br0", "up"]);
    }

    /// The processes on a machine. A thread that has moved there is none.
    pub fn processes(&self, machine: usize) -> Vec<u32> {
        let own = inode(self.path(machine)).expect("the namespace");
        let is_there = |pid: &u32| inode(format!("/proc/{pid}/ns/net").into()) == Some(own);
        super::process::all().into_iter().filter(is_there).collect()
    }

    /// What a machine's processes see as their network.
    pub fn identity(&self, machine: usize) -> String {
        format!("net:[{}]", inode(self.path(machine)).expect("the namespace"))
    }

    fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.name)
    }

    fn path(&self, machine: usize) -> PathBuf {
        PathBuf::from(NAMESPACES).join(self.namespace(&machine.to_string()))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let machines = (0..self.machines).map(|machine| machine.to_string());
        for machine in machines.chain([SWITCH.to_owned()]) {
            // One that was never made cannot be removed.
            Command::new("ip").args(["netns", "del", &self.namespace(&machine)]).output().ok();
        }
    }
}

const NAMESPACES: &str = "/run/netns";
const PREFIX: &str = "runvoy-test-";

fn inode(path: PathBuf) -> Option<u64> {
    std::fs::metadata(path).ok().map(|entry| entry.ino())
}

fn port(machine: usize) -> String {
    format!("port{machine}")
}

/// Removes what tests left that were killed.
fn sweep() {
    let names = std::fs::read_dir(NAMESPACES).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    for name in names {
        let Some(pid) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            Command::new("ip").args(["netns", "del", &name]).output().ok();
        }
    }
}

fn ip(args: &[&str]) {
    let said = match Command::new("ip").args(args).output() {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    panic!("machines cannot be separated here: `ip {}`: {said}; it takes root and iproute2", args.join(" "));
}
