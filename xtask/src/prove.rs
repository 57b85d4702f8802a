//! `cargo xtask prove [FILTER]`: the reliability promises at full counts, and the fuzz targets for a minute each, which `fuzz` as the filter
//! runs alone. Their rows go into docs/prove.md, which is committed. A promise that ran and left no row fails the run: a proof nobody can read is none.

use std::collections::BTreeSet;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::emulator::Emulators;
use crate::report::{Machine, Report, Row, date};
use crate::suite::{PROMISE, Runner};
use crate::{need, tee, tool};

/// The filter that chooses the fuzz targets alone.
const FUZZ: &str = "fuzz";

/// Runs the promises whose names hold the first of `args` (all, if there is none) and writes the table.
pub fn run(args: &[String]) -> Result<()> {
    need::provide()?;
    let today = date(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs());
    let filter = args.first().map_or("", String::as_str);
    let mut rows = Vec::new();
    let mut ran = BTreeSet::new();
    let emulators = Emulators::start();
    let runner = Runner::pick();
    let promises = (filter != FUZZ).then(|| runner.promises(filter));
    let fuzz = (filter.is_empty() || filter == FUZZ).then(|| runner.fuzz());
    let mut holds = true;
    for mut command in promises.into_iter().chain(fuzz) {
        emulators.tell(&mut command);
        let status = tee::run(&mut command, |line| {
            rows.extend(Row::read(line, &today));
            ran.extend(promise_number(line));
        })?;
        holds &= status.success();
    }
    let silent: Vec<u32> = ran.iter().copied().filter(|number| !rows.iter().any(|row| row.number == *number)).collect();
    write(rows)?;
    if !holds {
        bail!("a promise does not hold; docs/prove.md has the rows of those that ended");
    }
    if !silent.is_empty() {
        bail!("promises {silent:?} ran without printing a `PROMISE nr | name | count | result` line");
    }
    Ok(())
}

fn write(rows: Vec<Row>) -> Result<()> {
    let path = tool::root().join("docs/prove.md");
    let mut report = fs::read_to_string(&path).map(|text| Report::parse(&text)).unwrap_or_default();
    report.add(&Machine::here(), rows);
    fs::write(&path, report.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote docs/prove.md");
    Ok(())
}

/// The number of the promise whose test `line` names as having run.
fn promise_number(line: &str) -> Option<u32> {
    let is_result = line.starts_with("test ") || line.trim_start().starts_with("PASS [");
    let (_, rest) = line.split_once(PROMISE)?;
    rest.get(..2).filter(|_| is_result)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_read_from_the_results_of_both_runners_only() {
        assert_eq!(promise_number("test crash::promise_01_acknowledged_work_survives ... ok"), Some(1));
        assert_eq!(promise_number("        PASS [   1.002s] runvoy::crash promise_22_a_stop_is_graceful"), Some(22));
        assert_eq!(promise_number("   Compiling runvoy (promise_01)"), None);
        assert_eq!(promise_number("test promise_é"), None);
    }
}
