//! Submits executions over several connections at once and waits until none is open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::http::{Connection, Endpoint};

/// Connections that submit at once; enough for every commit of the store to hold several submits.
const CONNECTIONS: usize = 16;

/// Submits `command` `total` times. A server that says it is busy is asked again when it said so.
pub fn submit(endpoint: &Endpoint, command: &str, total: usize) -> Result<()> {
    submit_body(endpoint, &json!({ "command": command }), total)
}

/// Submits the same request `total` times.
pub fn submit_body(endpoint: &Endpoint, body: &Value, total: usize) -> Result<()> {
    let body = body.to_string();
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        let submit_some = || -> Result<()> {
            let mut connection = endpoint.connect()?;
            while taken.fetch_add(1, Ordering::Relaxed) < total {
                submit_one(&mut connection, body.as_bytes())?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(submit_some)).collect();
        threads.into_iter().try_for_each(|one| one.join().expect("submitting does not panic"))
    })
}

fn submit_one(connection: &mut Connection, body: &[u8]) -> Result<()> {
    loop {
        let response = connection.post("/api/v1/run", body)?;
        match response.status {
            429 => thread::sleep(response.retry_after.unwrap_or(Duration::from_millis(50))),
            _ => return response.json(202).map(|_| ()),
        }
    }
}

/// Waits until every execution has ended, and fails if one of them did not succeed.
pub fn drain(endpoint: &Endpoint) -> Result<()> {
    let mut connection = endpoint.connect()?;
    while any(&mut connection, "PENDING,STARTING,RUNNING,TERMINATING")? {
        thread::sleep(Duration::from_millis(20));
    }
    if any(&mut connection, "FAILED,STOPPED")? {
        bail!("an execution did not succeed");
    }
    Ok(())
}

fn any(connection: &mut Connection, statuses: &str) -> Result<bool> {
    let list = connection.get(&format!("/api/v1/executions?limit=1&status={statuses}"))?.json(200)?;
    Ok(list.as_array().is_some_and(|executions| !executions.is_empty()))
}
