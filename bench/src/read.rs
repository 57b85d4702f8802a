//! Reads per second of the API (one status, one list), beside a bare route of the same server.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::http::Endpoint;
use crate::server::{Home, Server};
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

    let paths = ["/api/v1/health".to_owned(), format!("/api/v1/executions/{id}/status"), "/api/v1/executions?limit=10".to_owned()];
    let mut rates = [Rate::default(); 3];
    // In turns, so that what else the machine does meets all of them.
    for _ in 0..seconds {
        for (path, rate) in paths.iter().zip(&mut rates) {
            rate.measure(&server, path)?;
        }
    }
    server.stop()?;
    let [bare, status, list] = rates;
    let row = |name: &str, ours: Rate| Row {
        name: format!("read: {name}"),
        ours: Quantity { value: ours.without_client(), unit: "req/s" },
        limit: Some(Quantity { value: bare.without_client(), unit: "req/s" }),
        goal: Goal::Share(0.5),
        note: format!(
            "{:.0} against {:.0} with the client's CPU; {:.0} against {:.0} µs of the server's CPU each",
            ours.seen(),
            bare.seen(),
            ours.server_us(),
            bare.server_us()
        ),
    };
    Ok(vec![row("status", status), row("list of 10", list)])
}

/// What was measured of one route so far.
#[derive(Clone, Copy, Default)]
struct Rate {
    count: f64,
    elapsed: Duration,
    client: Duration,
    server: Duration,
}

impl Rate {
    /// Reads a route for another second.
    fn measure(&mut self, server: &Server, path: &str) -> Result<()> {
        let (client_before, server_before) = (cpu::of_client()?, cpu::of_tree(server.pid())?);
        let start = Instant::now();
        let end = start + Duration::from_secs(1);
        let count: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| read_until(&server.endpoint, path, end))).collect();
            threads.into_iter().map(|one| one.join().expect("reading does not panic")).sum::<Result<u32>>()
        })?;
        self.elapsed += start.elapsed();
        self.client += cpu::of_client()?.saturating_sub(client_before);
        self.server += cpu::of_tree(server.pid())?.saturating_sub(server_before);
        self.count += f64::from(count);
        Ok(())
    }

    fn seen(&self) -> f64 {
        self.count / self.elapsed.as_secs_f64()
    }

    fn without_client(&self) -> f64 {
        self.count / cpu::without_client(self.elapsed, self.client).as_secs_f64()
    }

    /// The server's own CPU per request: the same figure from the other side, and one that other programs on the machine do not change.
    fn server_us(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.count
    }
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
