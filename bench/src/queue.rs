//! The queue's cycle, enqueue → lease → finish over RPC, every step synced before its answer, beside what durable brokers do with the same
//! messages and what the disk can do with the same bytes. With nothing and with many executions waiting before.

mod amqp;
mod commit;
mod cycle;
mod nats;
mod process;
mod rabbit;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::cpu;
use crate::queue::amqp::Amqp;
use crate::queue::cycle::{Broker, Lap};
use crate::queue::nats::Nats;
use crate::queue::rabbit::Rabbit;
use crate::table::Row;

/// How many cycles are open at once.
const IN_FLIGHT: [u64; 3] = [1, 32, 1_000];

/// Measures each rate for `seconds`, with up to `waiting` executions in the queue before.
pub fn measure(_binary: &Path, seconds: u64, waiting: u64) -> Result<Vec<Row>> {
    let time = Duration::from_secs(seconds);
    let body = vec![b'x'; 150];
    let dir = tempfile::Builder::new().prefix("runvoy-bench-").tempdir()?;
    for in_flight in IN_FLIGHT {
        println!("commit {in_flight}: {:.0}/s", commit::measure(dir.path(), 15_000, in_flight, time)?);
    }
    {
        let dir = tempfile::Builder::new().prefix("runvoy-bench-").tempdir()?;
        let rabbit = Rabbit::start(dir.path())?;
        for kind in ["classic", "quorum"] {
            for waiting in [0, waiting / 10, waiting] {
                let queue = format!("{kind}-{waiting}");
                let mut client = Amqp::open(&rabbit.address, &queue, kind)?;
                let filled = std::time::Instant::now();
                cycle::fill(&mut client, &body, waiting)?;
                println!("filled {:?}", filled.elapsed());
                client.consume(1000)?;
                for in_flight in IN_FLIGHT {
                    print("rabbit", kind, in_flight, waiting, lap(&mut client, rabbit.pid(), &body, in_flight, time)?);
                }
            }
        }
    }
    let dir = tempfile::Builder::new().prefix("runvoy-bench-").tempdir()?;
    let (nats, address) = nats::start(dir.path())?;
    let mut client = Nats::open(&address)?;
    client.consume(1000)?;
    for in_flight in IN_FLIGHT {
        print("nats", "", in_flight, 0, lap(&mut client, nats.pid(), &body, in_flight, time)?);
    }
    Ok(Vec::new())
}

fn print(what: &str, kind: &str, in_flight: u64, waiting: u64, lap: Lap) {
    println!("{what} {kind} {in_flight} in flight, {waiting} waiting: {:.0}/s, {:.0}/s without client, {:.0} us server", lap.seen(), lap.without_client(), lap.server_us());
}

fn lap(broker: &mut impl Broker, pid: u32, body: &[u8], in_flight: u64, time: Duration) -> Result<Lap> {
    cycle::turn(broker, body, in_flight, Duration::from_secs(1))?;
    let (client, server, start) = (cpu::of_client()?, cpu::of_tree(pid)?, std::time::Instant::now());
    let count = cycle::turn(broker, body, in_flight, time)?;
    let elapsed = start.elapsed();
    Ok(Lap { count, elapsed, client: cpu::of_client()?.saturating_sub(client), server: cpu::of_tree(pid)?.saturating_sub(server) })
}
