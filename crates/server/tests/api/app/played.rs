//! A worker that the test plays by hand: it leases, writes lines and finishes through the engine's own seam.

use std::sync::Arc;

use runvoy_engine::LocalLeases;
use runvoy_model::command::{EndAttempt, Extend, Fence, Outcome};
use runvoy_model::execution::Execution;
use runvoy_model::job::Payload;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock as _;
use runvoy_ports::lease::{LeaseError, Leases as _, Materials};
use serde_json::Value;

use super::TestApp;

/// An execution that the test runs.
pub struct Played {
    leases: LocalLeases,
    pub execution: Execution,
    fence: Fence,
    next_seq: u64,
    /// The clock of its worker.
    pub at: UnixMs,
}

impl TestApp {
    /// Leases the oldest execution that waits.
    pub async fn play(&self) -> Played {
        let leases = LocalLeases::new(Arc::clone(&self.engine));
        let execution = leases.lease(1).await.expect("a memory store").pop().expect("something waits");
        let lease = execution.lease.as_ref().expect("it was leased");
        let fence = Fence { execution: execution.id, attempt: execution.attempt, lease: lease.id };
        Played { leases, fence, execution, next_seq: 1, at: self.clock.now() }
    }

    /// Submits as a role what is given up after two attempts, and returns the id.
    pub async fn given_up(&self, role: Role, mut body: Value) -> String {
        body["retries"] = 1.into();
        let id = self.submit_as(role, body).await;
        for _ in 0..2 {
            let ended = self.play().await.exit(69).await;
            assert_eq!(ended.id.to_string(), id, "another one was first in line");
            self.clock.advance(600_000);
        }
        id
    }

    /// Submits, runs and ends a command that wrote these lines to its standard output; returns its id.
    pub async fn ran(&self, lines: &[&str]) -> String {
        let id = self.submit("true").await;
        let mut played = self.play().await;
        played.write(lines).await;
        played.exit(0).await;
        id
    }
}

impl Played {
    pub async fn write(&mut self, lines: &[&str]) {
        let records: Vec<_> = lines.iter().map(|line| (Stream::Stdout, false, true, line.as_bytes())).collect();
        self.write_records(&records).await;
    }

    /// Writes records of (stream, cont, eol, bytes) as one block.
    pub async fn write_records(&mut self, records: &[(Stream, bool, bool, &[u8])]) {
        let mut block = BlockBuilder::default();
        for (stream, cont, eol, bytes) in records {
            block.push(Record { at: self.at, stream: *stream, cont: *cont, eol: *eol, bytes });
        }
        self.next_seq = self.leases.append(self.fence, self.next_seq, block.take()).await.expect("a memory log");
    }

    /// What a worker gets for the attempt: the values of its secrets.
    pub async fn materials(&self) -> Result<Materials, LeaseError> {
        self.leases.materials(self.fence).await
    }

    pub async fn extend(&self) {
        let extend = Extend {
            fence: self.fence,
            ttl_ms: 30_000,
            process_id: Some(7),
            rss_bytes: None,
            last_output_at: None,
            activity: None,
            preparing: None,
        };
        self.leases.extend(extend).await.expect("a lease that holds");
    }

    pub async fn exit(self, code: i32) -> Execution {
        self.end(code, None).await
    }

    /// Ends well, with this output.
    pub async fn gives(self, output: serde_json::Value) -> Execution {
        self.end(0, Some(Payload::Inline(output))).await
    }

    /// Ends well, with an output that lies in the blob store.
    pub async fn gives_large(self, output: &serde_json::Value) -> Execution {
        let kept = self.leases.put_blob(self.fence, output.to_string().into_bytes()).await.expect("a memory store");
        self.end(0, Some(kept)).await
    }

    async fn end(self, code: i32, output: Option<Payload>) -> Execution {
        let outcome = Outcome::Exited { code, after_kill: false };
        let (fence, process_id) = (self.fence, None);
        let ended = EndAttempt {
            fence,
            outcome,
            log_end: 0,
            duration_ms: 1_500,
            process_id,
            cost_micro_usd: 0,
            output,
            said: None,
            usage: None,
            remark: None,
        };
        self.leases.finish(ended).await.expect("a lease that holds")
    }
}
