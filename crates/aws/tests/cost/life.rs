//! What becomes of events, and some executions from their submit until their events are published: where their units go.

use runvoy_model::command::{Command, Fence};

use super::play::Play;
use crate::emulator::count::Tally;

/// So many executions are one life's sample.
pub const LIVES: u64 = 30;

impl Play {
    /// Thirty events of fifteen submits, drained, and then published; and both where there is nothing.
    pub async fn events(&mut self, layout: &str) {
        let publisher = self.publisher();
        while publisher.turn().await.expect("a turn") > 0 {}
        let before = self.place().await;
        for _ in 0..15 {
            self.submit(|_| ()).await;
        }
        self.begin();
        self.settle().await;
        self.count("drain of 30 events");
        self.settle().await;
        self.count("drain of nothing");
        assert_eq!(self.place().await - before, 30, "a submit tells two events");
        publisher.turn().await.expect("a turn");
        self.begin();
        publisher.turn().await.expect("a turn");
        self.count("publish of nothing");
        for _ in 0..15 {
            self.submit(|_| ()).await;
        }
        self.settle().await;
        self.begin();
        assert_eq!(publisher.turn().await.expect("a turn"), 30);
        self.count(format!("publish of 30 events{layout}"));
    }

    async fn place(&self) -> u64 {
        use runvoy_ports::store::{EventQuery, ExecutionStore};
        let query = EventQuery { descending: true, limit: 1, ..EventQuery::default() };
        self.store.events(query).await.expect("an answer").first().map_or(0, |stored| stored.place)
    }

    /// Executions that begin in the step that submits them, or that are queued and leased by another server, end, and whose events are placed and
    /// published.
    pub async fn lives(&mut self, is_queued: bool) -> Tally {
        let publisher = self.publisher();
        while publisher.turn().await.expect("a turn") > 0 {}
        self.begin();
        for _ in 0..LIVES {
            let fence = if is_queued { self.queued().await } else { self.running(|_| ()).await };
            self.end(fence).await;
        }
        while publisher.turn().await.expect("a turn") > 0 {}
        let tally = self.counter.take();
        self.without_prefix(tally)
    }

    async fn queued(&mut self) -> Fence {
        self.submit(|_| ()).await;
        let fence = self.lease().await;
        self.work(Command::Begin(fence)).await;
        fence
    }
}
