//! Jobs of no-ops beside the same tasks submitted one by one: fan-outs with a fan-in of growing size, and a chain. A chain one by one is
//! a client that waits for each before it submits the next.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::http::{Connection, Endpoint};
use crate::server::Home;
use crate::table::{Goal, Quantity, Row};
use crate::{cpu, load};

const POLL: Duration = Duration::from_millis(20);
const MS: f64 = 1_000.0;

/// Fan-outs up to `most` tasks, from a hundredth of it on, and a chain of a tenth of it.
pub fn measure(binary: &Path, most: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for tasks in [most / 100, most / 10, most] {
        rows.push(fan(binary, tasks)?);
    }
    rows.push(chain(binary, most / 10)?);
    rows.push(memory(binary, most)?);
    Ok(rows)
}

fn fan(binary: &Path, tasks: usize) -> Result<Row> {
    let job = job_of(binary, &fan_body(tasks))?;
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    warm_up(&server.endpoint)?;
    let start = Instant::now();
    load::submit(&server.endpoint, "true", tasks)?;
    load::drain(&server.endpoint)?;
    let single = start.elapsed();
    server.stop()?;
    let name = format!("job of {tasks} tasks, out and in");
    Ok(row(name, job, single, tasks))
}

fn chain(binary: &Path, steps: usize) -> Result<Row> {
    let job = job_of(binary, &chain_body(steps))?;
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    warm_up(&server.endpoint)?;
    let mut connection = server.endpoint.connect()?;
    let start = Instant::now();
    for _ in 0..steps {
        run_and_wait(&mut connection)?;
    }
    let single = start.elapsed();
    server.stop()?;
    Ok(row(format!("job of a chain of {steps}"), job, single, steps))
}

/// Runs one no-op and waits for its end.
pub fn run_and_wait(connection: &mut Connection) -> Result<()> {
    let submitted = connection.post("/api/v1/run", json!({"command": "true"}).to_string().as_bytes())?.json(202)?;
    let id = submitted["execution_id"].as_str().context("no id")?.to_owned();
    loop {
        let execution = connection.get(&format!("/api/v1/executions/{id}/wait?timeout=30"))?.json(200)?;
        match execution["status"].as_str() {
            Some("SUCCEEDED") => return Ok(()),
            Some("PENDING" | "STARTING" | "RUNNING") => {}
            other => bail!("an execution ended {other:?}"),
        }
    }
}

fn row(name: String, job: Duration, single: Duration, tasks: usize) -> Row {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / tasks as f64;
    Row {
        name,
        ours: Quantity { value: job.as_secs_f64() * MS, unit: "ms" },
        limit: Some(Quantity { value: single.as_secs_f64() * MS, unit: "ms" }),
        goal: Goal::Times(1.3),
        note: format!("{:.0} µs a task, one by one {:.0} µs", each(job), each(single)),
    }
}

/// How much more memory a server has at its most while it takes and runs a job of so many tasks.
fn memory(binary: &Path, tasks: usize) -> Result<Row> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    warm_up(&server.endpoint)?;
    let before = cpu::peak_mb(server.pid())?;
    let mut connection = server.endpoint.connect()?;
    connection.post("/api/v1/jobs", fan_body(tasks).to_string().as_bytes())?.json(201)?;
    let after = cpu::peak_mb(server.pid())?;
    server.stop()?;
    Ok(Row {
        name: format!("memory to take a job of {tasks} tasks"),
        ours: Quantity { value: after - before, unit: "MB" },
        limit: None,
        goal: Goal::Below(50.0),
        note: format!("{:.0} MB at its most before", before),
    })
}

/// From the submit of a job to its completion, on a server of its own.
fn job_of(binary: &Path, body: &Value) -> Result<Duration> {
    let home = Home::new(binary)?;
    let server = home.start(&[])?;
    warm_up(&server.endpoint)?;
    let mut connection = server.endpoint.connect()?;
    let start = Instant::now();
    run_job(&mut connection, body)?;
    let elapsed = start.elapsed();
    server.stop()?;
    Ok(elapsed)
}

/// Submits a job and waits until it is completed.
pub fn run_job(connection: &mut Connection, body: &Value) -> Result<()> {
    let made = connection.post("/api/v1/jobs", body.to_string().as_bytes())?.json(201)?;
    let path = format!("/api/v1/jobs/{}?tasks=0", made["jobId"].as_str().context("no id")?);
    loop {
        match connection.get(&path)?.json(200)?["status"].as_str() {
            Some("COMPLETED") => return Ok(()),
            Some("RUNNING") => thread::sleep(POLL),
            other => bail!("the job ended {other:?}"),
        }
    }
}

fn warm_up(endpoint: &Endpoint) -> Result<()> {
    load::submit(endpoint, "true", 100)?;
    load::drain(endpoint)
}

/// One task, then all but two at once, then one that waits for all of those.
pub fn fan_body(tasks: usize) -> Value {
    let (first, middle) = ("first".to_owned(), tasks.saturating_sub(2).max(1));
    let mut list = vec![json!({"taskId": first})];
    list.extend((0..middle).map(|n| json!({"taskId": format!("t{n}"), "dependsOn": [first]})));
    let last: Vec<String> = (0..middle).map(|n| format!("t{n}")).collect();
    list.push(json!({"taskId": "last", "dependsOn": last}));
    json!({"defaults": {"command": "true"}, "tasks": list})
}

fn chain_body(steps: usize) -> Value {
    let list: Vec<Value> = (0..steps)
        .map(|n| match n {
            0 => json!({"taskId": "t0"}),
            n => json!({"taskId": format!("t{n}"), "dependsOn": [format!("t{}", n - 1)]}),
        })
        .collect();
    json!({"defaults": {"command": "true"}, "tasks": list})
}
