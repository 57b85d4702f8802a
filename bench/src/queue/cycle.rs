//! What a broker is asked: enqueue and have it acknowledged, then take one and finish it, with so many cycles open at any time.
//!
//! A message is finished only when as many were confirmed, so that the steps of a cycle follow each other as they do with us, and
//! so that what waits in the queue before stays as much as it was.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cpu;

/// The client's side of a broker on one connection.
pub trait Broker {
    /// Puts a persistent message behind what is to be sent.
    fn publish(&mut self, body: &[u8]) -> Result<()>;
    /// Puts the acknowledgement of the oldest delivery that has none behind what is to be sent; says whether there was one.
    fn finish(&mut self) -> Result<bool>;
    /// Sends, waits until something comes, and says what did.
    fn exchange(&mut self) -> Result<Seen>;
}

/// What came from a broker.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    /// Messages that it says are stored.
    pub confirmed: u64,
    /// Finished messages that it says are so; where it never says, as many as were sent.
    pub finished: u64,
}

/// What a measurement of cycles came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lap {
    /// Cycles.
    pub count: u64,
    /// In this time.
    pub elapsed: Duration,
    /// The client's CPU in it.
    pub client: Duration,
    /// The other side's CPU in it.
    pub server: Duration,
}

impl Lap {
    /// Cycles per second.
    pub fn seen(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// Cycles per second, the client's share of the cores left out.
    pub fn without_client(&self) -> f64 {
        self.count as f64 / cpu::without_client(self.elapsed, self.client).as_secs_f64()
    }

    /// The other side's CPU for a cycle, in microseconds.
    pub fn server_us(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.count as f64
    }
}

/// Turns cycles for `time`, `in_flight` of them open at once, then lets those that are open end.
pub fn turn(broker: &mut impl Broker, body: &[u8], in_flight: u64, time: Duration) -> Result<u64> {
    let end = Instant::now() + time;
    let mut published = 0;
    let mut seen = Seen::default();
    let mut sent = 0;
    loop {
        let done = seen.confirmed.min(seen.finished);
        while published - done < in_flight && Instant::now() < end {
            broker.publish(body)?;
            published += 1;
        }
        if published == done {
            return Ok(done);
        }
        let news = broker.exchange()?;
        seen.confirmed += news.confirmed;
        seen.finished += news.finished;
        while sent < seen.confirmed && broker.finish()? {
            sent += 1;
        }
    }
}

/// Stores `count` messages that stay in the queue.
pub fn fill(broker: &mut impl Broker, body: &[u8], count: u64) -> Result<()> {
    /// Enough for a broker to have something to do always.
    const OPEN: u64 = 2_000;
    let (mut published, mut confirmed) = (0, 0);
    while confirmed < count {
        while published < count && published - confirmed < OPEN {
            broker.publish(body)?;
            published += 1;
        }
        confirmed += broker.exchange()?.confirmed;
    }
    Ok(())
}
