//! What processes cost, as /proc tells: CPU of a process with all that descends from it, CPU of ourselves, memory.
//!
//! Commands that ended are in the `cutime` and `cstime` of who waited for them, so nothing is lost between two looks.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux shows ticks of 1/100 s on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// CPU of `pid`, of its live descendants, and of every process that one of them waited for.
pub fn of_tree(pid: u32) -> Result<Duration> {
    let stats: HashMap<u32, Stat> = pids()?.into_iter().filter_map(|pid| Some((pid, read(&pid.to_string())?))).collect();
    Ok(TICK * tree(&stats, pid).map(|stat| stat.own_ticks + stat.waited_ticks).sum())
}

/// CPU of this very process, without its children: what a client costs.
pub fn of_client() -> Result<Duration> {
    Ok(TICK * read("self").context("cannot read /proc/self/stat")?.own_ticks)
}

/// CPU of this very process and of the children it waited for: what a bare loop costs.
pub fn of_self_and_children() -> Result<Duration> {
    let stat = read("self").context("cannot read /proc/self/stat")?;
    Ok(TICK * (stat.own_ticks + stat.waited_ticks))
}

/// The resident memory of a process.
pub fn resident_mb(pid: u32) -> Result<f64> {
    memory_mb(pid, "VmRSS:")
}

/// The most resident memory that a process ever had.
pub fn peak_mb(pid: u32) -> Result<f64> {
    memory_mb(pid, "VmHWM:")
}

fn memory_mb(pid: u32, field: &str) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix(field)).and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kib: f64 = kib.and_then(|kib| kib.parse().ok()).with_context(|| format!("{path} has no {field}"))?;
    Ok(kib * 1024.0 / 1e6)
}

/// What a process has had written to the disk, a page counted whole.
pub fn written_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/io");
    let io = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).and_then(|bytes| bytes.parse().ok());
    bytes.with_context(|| format!("{path} has no write_bytes"))
}

/// The wall time that is left when the client's share of the cores is taken out of it.
pub fn without_client(elapsed: Duration, client: Duration) -> Duration {
    elapsed.saturating_sub(client / cores())
}

/// How many cores we may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own_ticks: u32,
    waited_ticks: u32,
}

fn pids() -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").context("cannot read /proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

fn read(pid: &str) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Stat> {
    // The name stands in parentheses and may hold anything, also spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some(Stat { parent: number(1)?, own_ticks: number(11)? + number(12)?, waited_ticks: number(13)? + number(14)? })
}

fn tree(stats: &HashMap<u32, Stat>, root: u32) -> impl Iterator<Item = &Stat> {
    let descends = move |mut pid: u32| {
        // A parent that vanished between two reads ends the walk.
        while pid != root {
            match stats.get(&pid) {
                Some(stat) if stat.parent != 0 => pid = stat.parent,
                _ => return false,
            }
        }
        true
    };
    stats.iter().filter(move |(pid, _)| descends(**pid)).map(|(_, stat)| stat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) (b c) S 7 42 42 0 -1 4194304 99 0 0 0 10 20 300 400 20 0 1 0 92803 3133440 369";
        assert_eq!(parse(line), Some(Stat { parent: 7, own_ticks: 30, waited_ticks: 700 }));
        assert_eq!(parse("42 (a) S"), None);
    }

    #[test]
    fn a_tree_is_the_root_and_all_that_descends_from_it() {
        let stat = |parent, own_ticks| Stat { parent, own_ticks, waited_ticks: 0 };
        let stats = HashMap::from([(1, stat(0, 1)), (10, stat(1, 10)), (11, stat(10, 100)), (12, stat(11, 1_000)), (20, stat(1, 10_000))]);
        assert_eq!(tree(&stats, 10).map(|stat| stat.own_ticks).sum::<u32>(), 1_110);
    }

    #[test]
    fn the_client_is_left_out_by_its_share_of_the_cores() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(without_client(elapsed, Duration::from_secs(4) * cores()), Duration::from_secs(6));
    }
}
