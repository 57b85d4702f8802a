//! docs/prove.md: which promise was proved, how often, when and on which machine: a table for each machine. Rows are merged by
//! promise and name, so that a single promise can be proved anew, there or elsewhere.

use std::fmt;
use std::fs;

/// One line of the table, as a promise's test printed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number of the promise.
    pub number: u32,
    name: String,
    count: String,
    result: String,
    date: String,
}

impl Row {
    /// Reads `PROMISE nr | name | count | result`, which may follow other text: libtest prints the test's name first.
    pub fn read(line: &str, date: &str) -> Option<Row> {
        let (_, rest) = line.split_once("PROMISE ")?;
        let cells: Vec<&str> = rest.split('|').map(str::trim).collect();
        let [number, name, count, result] = cells.as_slice() else { return None };
        Some(Row {
            number: number.parse().ok()?,
            name: (*name).to_owned(),
            count: (*count).to_owned(),
            result: (*result).to_owned(),
            date: date.to_owned(),
        })
    }

    fn parse(line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [number, name, count, result, date] = cells.as_slice() else { return None };
        Row::read(&format!("PROMISE {number} | {name} | {count} | {result}"), date)
    }
}

/// What the numbers were measured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine(String);

impl Machine {
    /// This machine: cores, memory, processor and kernel.
    pub fn here() -> Machine {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let field = |path: &str, name: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let value =
                text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start_matches([':', ' ', '\t']).trim());
            value.unwrap_or("unknown").to_owned()
        };
        let memory = field("/proc/meminfo", "MemTotal:");
        let memory = memory
            .strip_suffix(" kB")
            .and_then(|kib| kib.parse::<f64>().ok())
            .map_or(memory.clone(), |kib| format!("{:.1} GiB", kib / 1024.0 / 1024.0));
        let kernel = field("/proc/sys/kernel/osrelease", "");
        Machine(format!("{cores} cores ({}), {memory} memory, kernel {kernel}", field("/proc/cpuinfo", "model name")))
    }
}

/// All tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    tables: Vec<(Machine, Vec<Row>)>,
}

impl Report {
    /// Reads what was written before.
    pub fn parse(text: &str) -> Report {
        let mut tables: Vec<(Machine, Vec<Row>)> = Vec::new();
        for line in text.lines() {
            if let Some(machine) = line.strip_prefix("Machine: ") {
                tables.push((Machine(machine.trim_end_matches('.').to_owned()), Vec::new()));
            } else if let (Some(row), Some((_, rows))) = (Row::parse(line), tables.last_mut()) {
                rows.push(row);
            }
        }
        Report { tables }
    }

    /// Puts `rows` in, replacing older ones of the same promise and name, whatever machine they were of.
    pub fn add(&mut self, machine: &Machine, rows: Vec<Row>) {
        for (_, old) in &mut self.tables {
            old.retain(|old| !rows.iter().any(|row| (old.number, &old.name) == (row.number, &row.name)));
        }
        match self.tables.iter_mut().find(|(of, _)| of == machine) {
            Some((_, table)) => table.extend(rows),
            None => self.tables.push((machine.clone(), rows)),
        }
        self.tables.retain(|(_, rows)| !rows.is_empty());
        for (_, rows) in &mut self.tables {
            rows.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "# Proofs\n\nSee which reliability promise was tested how often, with which result, when and on which machine.")?;
        writeln!(out, "`cargo xtask prove` runs all of them at full counts and writes this file.")?;
        for (Machine(machine), rows) in &self.tables {
            writeln!(out, "\nMachine: {machine}.\n")?;
            writeln!(out, "| promise | what | count | result | date |\n|---|---|---|---|---|")?;
            for Row { number, name, count, result, date } in rows {
                writeln!(out, "| {number} | {name} | {count} | {result} | {date} |")?;
            }
        }
        Ok(())
    }
}

/// The UTC date, `YYYY-MM-DD`, of a Unix time in seconds.
pub fn date(unix_s: u64) -> String {
    // Days to civil date in eras of 400 years that begin on 1 March, so that the leap day is the last of its year.
    let day = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str, date: &str) -> Row {
        Row::read(line, date).expect("the line is a row")
    }

    #[test]
    fn a_row_is_found_behind_the_name_of_its_test() {
        let found = row("test promise_01_x ... PROMISE 1 | acknowledged work survives | 1000 cycles | 0 lost", "2026-01-02");
        assert_eq!(
            (found.number, found.name.as_str(), found.count.as_str(), found.result.as_str()),
            (1, "acknowledged work survives", "1000 cycles", "0 lost")
        );
        assert_eq!(Row::read("PROMISE 1 | too | short", ""), None);
        assert_eq!(Row::read("no row", ""), None);
    }

    fn machine(name: &str) -> Machine {
        Machine(name.to_owned())
    }

    #[test]
    fn a_report_reads_what_it_wrote() {
        let mut report = Report::default();
        let rows = vec![row("PROMISE 2 | b | 5 | ok", "2026-01-02"), row("PROMISE 1 | a | 9 | ok", "2026-01-02")];
        report.add(&machine("2 cores, 4.0 GiB"), rows);
        report.add(&machine("8 cores"), vec![row("PROMISE 3 | c | 1 | ok", "2026-01-03")]);
        assert_eq!(Report::parse(&report.to_string()), report);
        let numbers = |table: usize| report.tables[table].1.iter().map(|row| row.number).collect::<Vec<_>>();
        assert_eq!((numbers(0), numbers(1)), (vec![1, 2], vec![3]));
    }

    #[test]
    fn a_new_proof_replaces_the_old_one_and_keeps_the_others() {
        let (here, there) = (machine("here"), machine("there"));
        let mut report = Report::default();
        report.add(&here, vec![row("PROMISE 1 | a | 9 | old", "2026-01-01"), row("PROMISE 2 | b | 5 | ok", "2026-01-01")]);
        report.add(&here, vec![row("PROMISE 1 | a | 9 | new", "2026-01-02")]);
        let b = row("PROMISE 2 | b | 5 | ok", "2026-01-01");
        assert_eq!(report.tables, [(here.clone(), vec![row("PROMISE 1 | a | 9 | new", "2026-01-02"), b.clone()])]);
        report.add(&there, vec![row("PROMISE 1 | a | 9 | newer", "2026-01-03")]);
        assert_eq!(report.tables, [(here, vec![b]), (there.clone(), vec![row("PROMISE 1 | a | 9 | newer", "2026-01-03")])]);
        report.add(&there, vec![row("PROMISE 2 | b | 5 | ok", "2026-01-04")]);
        assert_eq!(report.tables.iter().map(|(machine, rows)| (machine, rows.len())).collect::<Vec<_>>(), [(&there, 2)]);
    }

    #[test]
    fn dates_are_right_around_leap_days_and_year_ends() {
        for (unix_s, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_767_225_599, "2025-12-31"),
        ] {
            assert_eq!(date(unix_s), expected);
        }
    }
}
