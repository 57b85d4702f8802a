//! The same work on an empty store and on one with a long history, in turns: what is old must cost nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::http::Connection;
use crate::jobs::{fan_body, run_and_wait, run_job};
use crate::load;
use crate::server::{Home, Server};
use crate::table::{Goal, Quantity, Row};

/// Nobody takes from this queue: what is submitted to it is history.
const UNSERVED: &str = "archive";
/// A submit leaves this many events.
const EVENTS_EACH: usize = 2;
/// The fastest of so many rounds counts, on both sides.
const ROUNDS: usize = 5;
const READS: usize = 500;
const RUNS: usize = 100;
const TASKS: usize = 300;

type Work = fn(&mut Connection) -> Result<()>;

/// What is measured, by name.
const WORK: [(&str, Work); 7] = [
    ("runs one by one", |connection| (0..RUNS).try_for_each(|_| run_and_wait(connection).map(|_| ()))),
    ("a job", |connection| run_job(connection, &fan_body(TASKS))),
    ("status", |connection| {
        let id = newest(connection)?;
        read(connection, &format!("/api/v1/executions/{id}/status"))
    }),
    ("list of 10", |connection| read(connection, "/api/v1/executions?limit=10")),
    ("events of an execution", |connection| {
        let id = newest(connection)?;
        read(connection, &format!("/api/v1/events?entity=TASK:{id}&limit=100"))
    }),
    ("newest events of a type", |connection| read(connection, "/api/v1/events?type=Task%20Completed&limit=20")),
    ("newest events", |connection| read(connection, "/api/v1/events?limit=20")),
];

/// Fills a store with `events` old ones and measures it beside an empty one.
pub fn measure(binary: &Path, events: usize) -> Result<Vec<Row>> {
    let (old, new) = (Home::new(binary)?, Home::new(binary)?);
    let filling = old.start(&["--no-worker"])?;
    load::submit_body(&filling.endpoint, &json!({"command": "true", "queue": UNSERVED}), events / EVENTS_EACH)?;
    filling.stop()?;
    let (old, new) = (old.start(&[])?, new.start(&[])?);
    let mut rows = Vec::new();
    for (name, work) in WORK {
        let mut best = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            for (server, best) in [&old, &new].into_iter().zip(&mut best) {
                *best = (*best).min(timed(server, work)?);
            }
        }
        let quantity = |time: Duration| Quantity { value: time.as_secs_f64() * 1_000.0, unit: "ms" };
        rows.push(Row {
            name: format!("{name}, {events} old events"),
            ours: quantity(best[0]),
            limit: Some(quantity(best[1])),
            goal: Goal::Times(1.2),
            note: "beside an empty store".to_owned(),
        });
    }
    old.stop()?;
    new.stop()?;
    Ok(rows)
}

fn timed(server: &Server, work: Work) -> Result<Duration> {
    let mut connection = server.endpoint.connect()?;
    let start = Instant::now();
    work(&mut connection)?;
    Ok(start.elapsed())
}

fn read(connection: &mut Connection, path: &str) -> Result<()> {
    (0..READS).try_for_each(|_| connection.get(path)?.json(200).map(|_| ()))
}

fn newest(connection: &mut Connection) -> Result<String> {
    let list = connection.get("/api/v1/executions?limit=1&status=SUCCEEDED")?.json(200)?;
    list[0]["execution_id"].as_str().map(str::to_owned).context("nothing ran yet")
}
