//! Reads per second of the API (one status, one list), beside a bare route of the same server.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::http::Endpoint;
use crate::server::Home;
use crate::table::{Goal, Quantity, Row};
use crate::{cpu, load};

/// Connections that read at once.
const CONNECTIONS: usize = 8;
/// Executions in the store, so that a list has something to show.
const STORED: usize = 200;

/// Reads each route for `seconds`.
pub fn measure(binary: &Path, seconds: u64) -> Result<Vec<Row>> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    load::submit(&server.endpoint, "true", STORED)?;
    let body = json!({ "command": "true" }).to_string();
    let answer = server.endpoint.connect()?.post("/api/v1/run", body.as_bytes())?.json(202)?;
    let id = answer["execution_id"].as_str().context("the answer has no execution_id")?;
    load::drain(&server.endpoint)?;

    let bare = rate(&server.endpoint, "/api/v1/health", seconds)?;
    let mut rows = Vec::new();
    for (name, path) in [("status", format!("/api/v1/executions/{id}/status")), ("list of 10", "/api/v1/executions?limit=10".to_owned())] {
        let ours = rate(&server.endpoint, &path, seconds)?;
        rows.push(Row {
            name: format!("read: {name}"),
            ours: Quantity { value: ours.without_client, unit: "req/s" },
            limit: Some(Quantity { value: bare.without_client, unit: "req/s" }),
            goal: Goal::Share(0.5),
            note: format!("{:.0} against {:.0} with the client's CPU", ours.seen, bare.seen),
        });
    }
    server.stop()?;
    Ok(rows)
}

struct Rate {
    seen: f64,
    without_client: f64,
}

fn rate(endpoint: &Endpoint, path: &str, seconds: u64) -> Result<Rate> {
    let client_before = cpu::of_client()?;
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let count: u32 = thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| read_until(endpoint, path, end))).collect();
        threads.into_iter().map(|one| one.join().expect("reading does not panic")).sum::<Result<u32>>()
    })?;
    let elapsed = start.elapsed();
    let client_cpu = cpu::of_client()?.saturating_sub(client_before);
    let count = f64::from(count);
    Ok(Rate { seen: count / elapsed.as_secs_f64(), without_client: count / cpu::without_client(elapsed, client_cpu).as_secs_f64() })
}

fn read_until(endpoint: &Endpoint, path: &str, end: Instant) -> Result<u32> {
    let mut connection = endpoint.connect()?;
    let mut count = 0;
    while Instant::now() < end {
        let response = connection.get(path)?;
        anyhow::ensure!(response.status == 200, "{path} answered {}: {}", response.status, String::from_utf8_lossy(&response.body));
        count += 1;
    }
    Ok(count)
}
