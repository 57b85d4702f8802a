//! The queue's cycle, enqueue → lease → finish over RPC, every step synced before its answer, beside what durable brokers do with messages of the
//! same size and what the disk can do with the same bytes. With nothing and with many executions waiting before.

mod amqp;
mod commit;
mod cycle;
mod nats;
mod ours;
mod process;
mod rabbit;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use runvoy_rpc::buffa::Message as _;
use tempfile::TempDir;

use crate::cpu;
use crate::queue::amqp::Amqp;
use crate::queue::cycle::{Broker, Lap};
use crate::queue::nats::Nats;
use crate::queue::ours::{Calls, Ours};
use crate::queue::rabbit::Rabbit;
use crate::table::{Goal, Quantity, Row};

/// How many cycles are open at once.
const IN_FLIGHT: [u64; 3] = [1, 32, 1_000];
/// Before each measurement, so that nobody is measured cold.
const WARM_UP: Duration = Duration::from_secs(1);

/// One number of cycles in flight, for everybody.
struct Side {
    rabbit: Lap,
    quorum: Lap,
    nats: Lap,
}

/// Measures each rate for `seconds`, with up to `most` executions in the queue before.
pub fn measure(binary: &Path, seconds: u64, most: u64) -> Result<Vec<Row>> {
    let time = Duration::from_secs(seconds);
    let mut waiting = vec![0, most / 10, most];
    waiting.dedup();
    let body = ours::job().encode_to_vec();
    let mut rows = Vec::new();
    for waiting in waiting {
        let peers = peers(&body, waiting, time)?;
        let ours = Ours::start(binary, *IN_FLIGHT.last().expect("there are some"))?;
        ours.fill(waiting)?;
        for (in_flight, side) in IN_FLIGHT.into_iter().zip(&peers) {
            for calls in [Calls::Single, Calls::Batched] {
                if calls == Calls::Batched && in_flight == 1 {
                    continue;
                }
                rows.push(row(&ours, calls, (in_flight, waiting), side, time)?);
            }
        }
    }
    Ok(rows)
}

/// Every peer with so many messages in its queue, by how many cycles are open.
fn peers(body: &[u8], waiting: u64, time: Duration) -> Result<Vec<Side>> {
    let classic = rabbit_laps("classic", body, waiting, time)?;
    let quorum = rabbit_laps("quorum", body, waiting, time)?;
    let dir = directory()?;
    let (nats, address) = nats::start(dir.path())?;
    let mut client = Nats::open(&address)?;
    cycle::fill(&mut client, body, waiting)?;
    client.consume(1_000)?;
    let nats = laps(&mut client, nats.pid(), body, time)?;
    let sides = classic.into_iter().zip(quorum).zip(nats);
    Ok(sides.map(|((rabbit, quorum), nats)| Side { rabbit, quorum, nats }).collect())
}

fn rabbit_laps(queue_type: &str, body: &[u8], waiting: u64, time: Duration) -> Result<Vec<Lap>> {
    let dir = directory()?;
    let rabbit = Rabbit::start(dir.path())?;
    let mut client = Amqp::open(&rabbit.address, "bench", queue_type)?;
    cycle::fill(&mut client, body, waiting)?;
    client.consume(1_000)?;
    laps(&mut client, rabbit.pid(), body, time)
}

fn laps(broker: &mut impl Broker, pid: u32, body: &[u8], time: Duration) -> Result<Vec<Lap>> {
    let lap = |in_flight| lap(pid, time, |time| cycle::turn(broker, body, in_flight, time));
    IN_FLIGHT.into_iter().map(lap).collect()
}

fn lap(pid: u32, time: Duration, mut turn: impl FnMut(Duration) -> Result<u64>) -> Result<Lap> {
    turn(WARM_UP)?;
    let (client, server, start) = (cpu::of_client()?, cpu::of_tree(pid)?, Instant::now());
    let count = turn(time)?;
    let elapsed = start.elapsed();
    let (client, server) = (cpu::of_client()?.saturating_sub(client), cpu::of_tree(pid)?.saturating_sub(server));
    Ok(Lap { count, elapsed, client, server })
}

fn row(ours: &Ours, calls: Calls, (in_flight, waiting): (u64, u64), side: &Side, time: Duration) -> Result<Row> {
    let written = cpu::written_bytes(ours.pid())?;
    let mut count = 0;
    let lap = lap(ours.pid(), time, |time| {
        let turned = ours.turn(calls, in_flight, time)?;
        count += turned;
        Ok(turned)
    })?;
    let bytes = (cpu::written_bytes(ours.pid())? - written) / count.max(1);
    let dir = directory()?;
    let commit = commit::measure(dir.path(), bytes, in_flight, time)?;
    let how = if calls == Calls::Batched { ", batched calls" } else { "" };
    let rabbit = [side.rabbit, side.quorum].into_iter().map(|lap| lap.without_client()).fold(0.0, f64::max);
    Ok(Row {
        name: format!("queue cycle, {in_flight} in flight, {waiting} waiting{how}"),
        ours: Quantity { value: lap.without_client(), unit: "/s" },
        limit: Some(Quantity { value: rabbit, unit: "/s" }),
        goal: Goal::Share(2.0),
        note: format!(
            "beside the faster of RabbitMQ's queues: classic {:.0}, quorum {:.0}; NATS JetStream, no sync for each: {:.0}; {:.0} bare commits of {bytes} bytes; \
             with the client's CPU {:.0} against {:.0}, {:.0}, {:.0}; {:.0} µs of the server's CPU against {:.0}, {:.0}, {:.0}",
            side.rabbit.without_client(),
            side.quorum.without_client(),
            side.nats.without_client(),
            commit,
            lap.seen(),
            side.rabbit.seen(),
            side.quorum.seen(),
            side.nats.seen(),
            lap.server_us(),
            side.rabbit.server_us(),
            side.quorum.server_us(),
            side.nats.server_us(),
        ),
    })
}

fn directory() -> Result<TempDir> {
    tempfile::Builder::new().prefix("runvoy-bench-").tempdir().context("cannot make a temporary directory")
}
