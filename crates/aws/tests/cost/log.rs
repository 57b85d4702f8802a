//! What a log costs while it is written, mirrored, sealed and read.

use runvoy_aws::{DynamoLogStore, LogConfig, Mirror, MirrorConfig};
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_ports::log::{Append, LogStore};

use super::play::{NOW, Play};

/// Lines of so many bytes with their end.
pub const LINE: usize = 100;
pub const FIRST_APPEND: &str = "log: first append, 100 lines of 100 bytes";
pub const SEAL: &str = "log: seal of 200 lines";

/// Lines as programs write them.
fn lines(first: u64, count: u64) -> Block {
    let mut builder = BlockBuilder::default();
    for number in first..first + count {
        let mut text = format!("2027-01-15T08:00:00.000Z INFO step {number:06}: customer {:08x} done", number.wrapping_mul(0x9e37_79b9));
        while text.len() < LINE - 1 {
            text.push_str(" and so on");
        }
        text.truncate(LINE - 1);
        builder.push(Record { at: NOW, stream: Stream::Stdout, cont: false, eol: true, bytes: text.as_bytes() });
    }
    builder.take()
}

fn append(first: u64, count: u64) -> Append {
    Append { attempt: 1, first_seq: Some(first), late: false, block: lines(first, count) }
}

impl Play {
    fn log_store(&self, mirror: Option<Mirror>) -> DynamoLogStore {
        DynamoLogStore::open(&self.clients, &self.config, LogConfig::default(), mirror).expect("opened")
    }

    pub async fn logs(&mut self) {
        let (store, id) = (self.log_store(None), ExecutionId::from_bytes(self.fresh()));
        self.begin();
        store.append(id, append(1, 100)).await.expect("an append");
        self.count(FIRST_APPEND);
        store.append(id, append(101, 100)).await.expect("an append");
        self.count("log: another append of 100 lines");
        store.seal(id, 200).await.expect("a seal");
        store.settled().await;
        self.count(SEAL);
        assert!(!self.log_store(None).read(id, 1, 64 << 10).await.expect("a read").is_empty());
        self.count("log: read of 200 lines");

        let large = ExecutionId::from_bytes(self.fresh());
        for first in (1..10_001).step_by(1_000) {
            store.append(large, append(first, 1_000)).await.expect("an append");
        }
        self.begin();
        store.seal(large, 10_000).await.expect("a seal");
        store.settled().await;
        self.count("log: seal of 10,000 lines in 10 appends");

        let mirror = Mirror::start(&self.clients, &self.config, MirrorConfig::default()).expect("a mirror");
        let store = self.log_store(Some(mirror.clone()));
        let warm = ExecutionId::from_bytes(self.fresh());
        store.append(warm, append(1, 100)).await.expect("an append");
        mirror.idle().await;
        let mirrored = ExecutionId::from_bytes(self.fresh());
        self.begin();
        store.append(mirrored, append(1, 100)).await.expect("an append");
        mirror.idle().await;
        self.count("log: first append of 100 lines, mirrored");
    }
}
