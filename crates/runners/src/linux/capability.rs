//! What a spawner must be permitted to give commands users of their own, and whether it is. It changes nothing but a child of its own.

use std::fs;

use super::child;
use super::clone::Clone;
use super::kernel;
use super::ladder;
use super::message::Rung;
use crate::config::RunAs;
use crate::uid::UidRange;

/// Numbers and names: to hand over work directories and take them away again, to change users, and to end what they run.
const NEEDED: [(u32, &str); 7] = [
    (0, "CAP_CHOWN"),
    (1, "CAP_DAC_OVERRIDE"),
    (3, "CAP_FOWNER"),
    (5, "CAP_KILL"),
    (6, "CAP_SETGID"),
    (7, "CAP_SETUID"),
    (8, "CAP_SETPCAP"),
];

/// Says why commands cannot have these uids, if they cannot.
pub(crate) fn check(range: UidRange, rung: Rung) -> Result<(), String> {
    let uid = kernel::ids().0;
    let missing = missing(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(format!("commands cannot run as uids {range}: the worker, uid {uid}, lacks {missing} (run it as root)"));
    }
    if uid != 0 && rung == Rung::PidNamespace {
        let why = "without root and without cgroups they are put into a user namespace, which has no other users";
        return Err(format!("commands cannot run as uids {range}: {why} (run the worker as root)"));
    }
    // A container may have fewer users than there are numbers.
    for uid in [range.at(0), range.at(range.count() as u64 - 1)] {
        let run_as = RunAs { uid, gid: uid, groups: Vec::new() };
        ladder::attempt(Clone::default(), || child::become_user(&run_as)).map_err(|error| {
            format!("commands cannot run as uid {uid}: {error} (in a container, /proc/self/uid_map names those there are)")
        })?;
    }
    Ok(())
}

fn missing(status: &str) -> Vec<&'static str> {
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = held.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    NEEDED.iter().filter(|(number, _)| held & (1 << number) == 0).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(missing("CapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n"), [""; 0]);
        assert_eq!(missing("CapPrm:\t000001ffffffffff\nCapEff:\t000000000000016b\n"), ["CAP_SETUID"]);
        assert_eq!(missing("CapEff:\t0000000000000000\n").len(), NEEDED.len());
        assert_eq!(missing("").len(), NEEDED.len());
    }
}
