//! What was counted, as tables of the documentation.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::life::LIVES;
use super::log::{FIRST_APPEND, LINE, SEAL};
use super::play::WAKE_UP;
use crate::emulator::count::Tally;

/// One line an operation.
pub fn operations(rows: &[(String, Tally)]) -> String {
    let mut text = "| operation | calls | items read | KB | read units | items written | index entries | KB | write units |\n".to_owned();
    text.push_str("|---|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (name, tally) in rows {
        let calls = tally.calls.iter().map(|(call, count)| if *count == 1 { call.clone() } else { format!("{count} {call}") });
        let calls = calls.collect::<Vec<_>>().join(", ");
        let line = writeln!(
            text,
            "| {name} | {calls} | {} | {} | {} | {} | {} | {} | {} |",
            tally.items_read,
            kilobytes(tally.bytes_read),
            tenths(tally.read_halves * 5),
            tally.items_written,
            tally.entries_written,
            kilobytes(tally.bytes_written),
            tally.written()
        );
        line.expect("a string takes all");
    }
    text
}

/// Where the units of one execution go, by table and index. The parts of `events` are told apart by the beginning of their keys.
pub fn places(lives: &Lives) -> String {
    let mut text = heading("of one execution");
    let each = |of: u64| tenths((of * 10).div_ceil(LIVES));
    let all = |count: &dyn Fn(&Tally) -> u64| lives.each_ref().map(|life| each(count(life)));
    let names: BTreeSet<&String> = lives.iter().flat_map(|life| life.write_units.keys()).collect();
    for name in names {
        line(&mut text, &format!("write units of `{name}`"), all(&|life| life.write_units.get(name).copied().unwrap_or(0)));
        if name == "events" {
            for (part, what) in
                [("JOURNAL#", "the journal"), ("SEGMENT#", "segments"), ("TASK#", "rows"), ("TENANT#", "the contract's items")]
            {
                line(&mut text, &format!("– of these {what}"), all(&|life| units(life, name, part).into_iter().sum()));
            }
        }
    }
    line(&mut text, "**all write units**", all(&Tally::written));
    line(&mut text, "**all read units**", lives.each_ref().map(|life| read_units(life).to_string()));
    line(&mut text, "events on the bus", all(&|life| life.events));
    for name in ["PutEvents", "TransactWriteItems"] {
        line(&mut text, &format!("`{name}`"), all(&|life| life.calls.get(name).copied().unwrap_or(0)));
    }
    text
}

/// What a million executions cost in dollars, each with a log of one append, sealed and mirrored.
pub fn million(rows: &[(String, Tally)], lives: &Lives) -> String {
    let row = |name: &str| &rows.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("no {name} was counted")).1;
    let logs = [row(FIRST_APPEND), row(SEAL)];
    let requests = ["SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch"].map(|call| row(WAKE_UP).calls[call]);
    let of_life = |count: u64| count as f64 / LIVES as f64;
    let parts: [(&str, [f64; 4]); 5] = [
        (
            "write units, $0.625 a million",
            lives.each_ref().map(|life| 0.625 * (of_life(life.written()) + logs.iter().map(|log| log.written() as f64).sum::<f64>())),
        ),
        (
            "read units, $0.125 a million",
            [0, 1, 2, 3].map(|place| {
                let wake_up = if place < 2 { 0 } else { row(WAKE_UP).read_halves };
                let halves = logs.iter().map(|log| log.read_halves).sum::<u64>() + wake_up;
                0.125 * (read_units(&lives[place]) as f64 + halves as f64 / 2.0)
            }),
        ),
        (
            "SQS, $0.40 a million requests",
            [0, 1, 2, 3].map(|place| if place < 2 { 0.0 } else { 0.4 * requests.iter().sum::<u64>() as f64 }),
        ),
        ("EventBridge, $1.00 a million events", lives.each_ref().map(|life| of_life(life.events))),
        // A hundred lines, each with the 26 bytes that CloudWatch adds; a million times so many kilobytes are so many gigabytes.
        ("CloudWatch Logs, $0.50 a GB", [0.5 * 100.0 * (LINE as f64 - 1.0 + 26.0) / 1000.0; 4]),
    ];
    let mut text = heading("a million executions, in dollars");
    for (name, dollars) in &parts {
        line(&mut text, name, dollars.map(|dollars| format!("{dollars:.2}")));
    }
    let sum = [0, 1, 2, 3].map(|place| format!("**{:.2}**", parts.iter().map(|(_, dollars)| dollars[place]).sum::<f64>()));
    line(&mut text, "**all**", sum);
    text
}

/// At how many executions a second a partition, or a table, has no more room.
pub fn rates(lives: &Lives) -> String {
    let mut text = heading("executions a second at which it is full");
    let mut full = |name: &str, limit: u64, count: &dyn Fn(&Tally) -> u64| {
        let rate = |life: &Tally| match count(life) {
            0 => "–".to_owned(),
            units => (limit * LIVES / units).to_string(),
        };
        line(&mut text, name, lives.each_ref().map(rate));
    };
    let sum = |life: &Tally, place: &str, part: &str| units(life, place, part).into_iter().sum::<u64>();
    full("`events`: the contract's items of a tenant", PARTITION, &|life| sum(life, "events", "TENANT#"));
    for index in 2..=7 {
        let name = format!("events/GSI{index}-index");
        full(&format!("`{name}`: the fullest partition"), PARTITION, &|life| units(life, &name, "").into_iter().max().unwrap_or(0));
    }
    full("`events`: the segments, one partition at a time", PARTITION, &|life| sum(life, "events", "SEGMENT#"));
    full("`events`: the journal, 16 partitions", 16 * PARTITION, &|life| sum(life, "events", "JOURNAL#"));
    full("`events`: the table's quota", TABLE, &|life| life.write_units["events"]);
    full("`executions/standing-index`: a queue's with workers, 4 shards", 4 * PARTITION, &|life| {
        sum(life, "executions/standing-index", "active#")
    });
    full("`executions/standing-index`: a queue's waiting, 4 shards", 4 * PARTITION, &|life| {
        sum(life, "executions/standing-index", "ready#")
    });
    full("`executions/status-index`: running, 4 shards", 4 * PARTITION, &|life| sum(life, "executions/status-index", "RUNNING#"));
    full("`executions/day-index` and `user-index`: of a day and a user, 4 shards", 4 * PARTITION, &|life| {
        sum(life, "executions/day-index", "")
    });
    full("`executions`: the table's quota", TABLE, &|life| life.write_units["executions"]);
    full("`events/kind-index`: one type of event, 8 shards", 8 * PARTITION, &|life| sum(life, "events/kind-index", "Task Pending"));
    full("`marks`: the table's quota", TABLE, &|life| life.write_units["marks"]);
    text
}

/// Begun in the step that submits or queued, each in both layouts.
pub type Lives = [Tally; 4];

/// Units a second that a partition takes.
const PARTITION: u64 = 1_000;
/// Units a second that a table takes before somebody asks for more.
const TABLE: u64 = 40_000;

fn heading(what: &str) -> String {
    format!("| {what} | `seed` | `sharded` | `seed`, queued | `sharded`, queued |\n|---|---:|---:|---:|---:|\n")
}

fn line(text: &mut String, name: &str, of: [String; 4]) {
    writeln!(text, "| {name} | {} |", of.join(" | ")).expect("a string takes all");
}

/// The read units of one execution, to the nearest: which partitions of the journal steps without a receipt come to is drawn, and with that how full
/// those are when they are read.
fn read_units(life: &Tally) -> u64 {
    (life.read_halves + LIVES) / (2 * LIVES)
}

/// The units of each partition of a table or an index whose key begins like this.
fn units(life: &Tally, place: &str, beginning: &str) -> Vec<u64> {
    let of = life.partitions.iter().filter(|((of, partition), _)| of == place && partition.starts_with(beginning));
    of.map(|(_, units)| *units).collect()
}

/// To the next tenth.
fn kilobytes(bytes: u64) -> String {
    tenths((bytes * 10).div_ceil(1024))
}

fn tenths(tenths: u64) -> String {
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// Compares a table with the one between its marks in the documentation, or writes it there.
pub fn write_or_compare(mark: &str, table: &str) {
    println!("{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/aws.md");
    let text = std::fs::read_to_string(&path).expect("docs/aws.md");
    let (begin, end) = (format!("<!-- counted: {mark} -->\n"), format!("<!-- end: {mark} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("docs/aws.md has no {begin}"));
    let (documented, after) = rest.split_once(&end).unwrap_or_else(|| panic!("docs/aws.md has no {end}"));
    if std::env::var_os("RUNVOY_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).expect("docs/aws.md is written");
        return;
    }
    let differ = documented.lines().zip(table.lines()).find(|(documented, counted)| documented != counted);
    assert!(documented == table, "docs/aws.md says otherwise than was counted, first {differ:?}; RUNVOY_WRITE_DOCS=1 writes it anew");
}
