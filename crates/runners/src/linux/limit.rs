//! What a limit means in the files of a cgroup. Pure.

use runvoy_ports::runner::Limits;

use super::hierarchy::Controller;

/// A file of a cgroup and what goes into it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) file: &'static str,
    pub(crate) value: String,
    /// The limit holds only with it.
    pub(crate) required: bool,
}

fn setting(file: &'static str, value: impl ToString) -> Setting {
    Setting { file, value: value.to_string(), required: true }
}

/// The limit that a controller is asked for, if any.
pub(crate) fn asked(limits: &Limits, controller: Controller) -> Option<u64> {
    match controller {
        Controller::Memory => limits.memory_bytes,
        Controller::Pids => limits.pids,
        Controller::Cpu => limits.cpu_millis,
    }
}

/// The settings for a limit in a cgroup of version 2 or 1.
pub(crate) fn settings(controller: Controller, limit: u64, v2: bool) -> Vec<Setting> {
    // Swap is part of the limit wherever the kernel counts it.
    let optional = |file, value| Setting { required: false, ..setting(file, value) };
    match (controller, v2) {
        (Controller::Memory, true) => vec![setting("memory.max", limit), optional("memory.swap.max", 0)],
        (Controller::Memory, false) => vec![setting("memory.limit_in_bytes", limit), optional("memory.memsw.limit_in_bytes", limit)],
        (Controller::Pids, _) => vec![setting("pids.max", limit)],
        (Controller::Cpu, v2) => {
            let (quota, period) = cpu_quota(limit);
            if v2 {
                vec![setting("cpu.max", format!("{quota} {period}"))]
            } else {
                vec![setting("cpu.cfs_period_us", period), setting("cpu.cfs_quota_us", quota)]
            }
        }
    }
}

/// Microseconds of CPU per period. The kernel takes no quota below 1 ms, so a small share gets a long period.
fn cpu_quota(millis: u64) -> (u64, u64) {
    let period: u64 = if millis < 10 { 1_000_000 } else { 100_000 };
    (millis.saturating_mul(period / 1000), period)
}

/// The file that counts the kernel's kills for memory, by version.
pub(crate) fn oom_file(v2: bool) -> &'static str {
    if v2 { "memory.events" } else { "memory.oom_control" }
}

/// Whether that file says that something was killed.
pub(crate) fn has_oom_kill(text: &str) -> bool {
    text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_of_a_core_gets_a_period_that_the_kernel_takes() {
        assert_eq!(cpu_quota(1500), (150_000, 100_000));
        assert_eq!(cpu_quota(10), (1000, 100_000));
        assert_eq!(cpu_quota(1), (1000, 1_000_000));
    }

    #[test]
    fn settings_speak_the_language_of_their_version() {
        assert_eq!(settings(Controller::Cpu, 500, true), [setting("cpu.max", "50000 100000")]);
        assert_eq!(settings(Controller::Cpu, 500, false), [setting("cpu.cfs_period_us", 100_000), setting("cpu.cfs_quota_us", 50_000)]);
        assert_eq!(settings(Controller::Memory, 4096, true)[0], setting("memory.max", 4096));
        assert!(!settings(Controller::Memory, 4096, false)[1].required);
    }

    #[test]
    fn a_kill_for_memory_is_seen_in_both_versions() {
        assert!(has_oom_kill("low 0\noom 3\noom_kill 1\n"));
        assert!(!has_oom_kill("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"));
        assert!(!has_oom_kill(""));
    }
}
