//! The programs of the system that tests call (strace to fail an fsync, faketime to move a clock, git to clone, ip to
//! separate machines, Docker to run images, Node and a browser for the web page). On a machine with apt, and as root, what is missing is installed; elsewhere it is only named.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::tool;

/// Programs of which one is enough, and the Debian package that has it.
const NEEDED: [(&[&str], &str); 15] = [
    (&["strace"], "strace"),
    (&["faketime"], "faketime"),
    (&["git"], "git"),
    (&["ip"], "iproute2"),
    (&["nsenter"], "util-linux"),
    (&["sqlite3"], "sqlite3"),
    (&["node"], "nodejs"),
    (&["npm"], "npm"),
    (&["chromium", "chromium-browser", "google-chrome"], "chromium"),
    (&["dockerd"], "docker.io"),
    (&["containerd"], "containerd"),
    (&["runc"], "runc"),
    (&["iptables"], "iptables"),
    (&["busybox"], "busybox-static"),
    (&["docker-registry"], "docker-registry"),
];

/// The brokers that the queue is measured beside. Each benchmark starts its own; none needs to run.
const BROKERS: [(&[&str], &str); 2] = [(&["rabbitmq-server"], "rabbitmq-server"), (&["nats-server"], "nats-server")];

/// What makes a virtual environment where the system keeps that apart from Python itself.
const VENV: [&str; 2] = ["python3", "python3-venv"];

/// Installs what is missing, or says what to install. A machine where that is not possible is no error here: the
/// tests that need the program fail and say so.
pub fn provide() -> Result<()> {
    let missing = missing(&NEEDED, |program| tool::find(program).is_some());
    if missing.is_empty() {
        eprintln!("every program that tests call is there");
    }
    provide_packages(&missing);
    Ok(())
}

/// The same for the brokers that a benchmark runs.
pub fn provide_brokers() {
    provide_packages(&missing(&BROKERS, |program| tool::find(program).is_some()));
}

/// The same for what makes a virtual environment of Python.
pub fn provide_venv() {
    let probe = Command::new("python3").args(["-c", "import ensurepip, venv"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        provide_packages(&VENV);
    }
}

fn provide_packages(missing: &[&str]) {
    if missing.is_empty() {
        return;
    }
    let list = missing.join(" ");
    if !is_root() || tool::find("apt-get").is_none() {
        eprintln!("missing: {list}; some tests or benchmarks need them: `apt-get install {list}`");
        return;
    }
    eprintln!("missing: {list}; running `apt-get install {list}`");
    if install(missing).is_err() {
        // Most often the package lists are absent or old.
        tool::run(&mut apt(&["update", "-qq"])).and_then(|()| install(missing)).unwrap_or_else(|error| {
            eprintln!("could not install {list}: {error:#}; what needs them will fail");
        });
    }
}

fn missing(needed: &[(&[&str], &'static str)], is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    needed.iter().filter(|(programs, _)| !programs.iter().any(|program| is_there(program))).map(|(_, package)| *package).collect()
}

fn install(packages: &[&str]) -> Result<()> {
    tool::run(apt(&["install", "-qq", "--yes", "--no-install-recommends"]).args(packages))
}

fn apt(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Uid:")).is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_absent_is_named() {
        assert_eq!(missing(&NEEDED, |program| !["git", "npm"].contains(&program)), ["git", "npm"]);
        assert!(missing(&NEEDED, |program| !["chromium", "google-chrome"].contains(&program)).is_empty());
        assert!(missing(&NEEDED, |_| true).is_empty());
    }
}
