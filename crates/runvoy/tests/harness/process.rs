//! Processes as the kernel shows them.
#![expect(unsafe_code, reason = "signals are sent with libc")]

use std::fs;

/// Sends a signal to a process that this test started.
pub fn signal(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).expect("a pid");
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(pid, signal) };
}

/// Pids of live processes (zombies left out) whose environment holds this text.
pub fn with_env(text: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(text.len()).any(|window| window == text.as_bytes())
    };
    all().into_iter().filter(has).collect()
}

/// Every pid there is.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("a proc file system");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A field of `/proc/PID/status` in bytes, such as `VmRSS`.
pub fn memory(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field is there");
    let kib: u64 = line.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// Forgets the largest size that a process had: `VmHWM` counts from here on.
pub fn reset_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
}

/// The CPU time that a process has taken, in seconds.
pub fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // The name of the program may hold anything but is followed by the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

/// How many descriptors a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process lives").count()
}

/// Direct children of a process and their states.
pub fn children(pid: u32) -> Vec<(u32, char)> {
    let stat = |child: u32| {
        let text = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let rest = text.rsplit_once(") ")?.1.to_owned();
        let mut fields = rest.split_ascii_whitespace();
        let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse::<u32>().ok()?);
        (parent == pid).then_some((child, state))
    };
    all().into_iter().filter_map(stat).collect()
}
