//! What the tests of logs stand on: an installation, stores on it, records to append and the log as it is read back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_aws::{Clients, Config, DynamoLogStore, LogConfig, set_up};
use runvoy_conformance::harness::Opener;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogStore};

use crate::emulator::fault::Faults;
use crate::emulator::{Emulator, clients, clients_through};

/// Everything is packed, in small objects.
pub fn packing() -> LogConfig {
    LogConfig { pack_from_bytes: 0, part_bytes: 8 << 10, ..LogConfig::default() }
}

pub async fn installation(emulator: &Emulator) -> (Clients, Config) {
    let (clients, config) = (clients(emulator).await, emulator.config());
    set_up(&clients, &config).await.expect("everything is made");
    (clients, config)
}

pub fn open(clients: &Clients, config: &Config, logs: LogConfig) -> DynamoLogStore {
    DynamoLogStore::open(clients, config, logs, None).expect("opened")
}

pub async fn harness(emulator: &Emulator, logs: LogConfig) -> Opener<dyn LogStore> {
    let (clients, config) = installation(emulator).await;
    harness_of(clients, config, logs).await
}

/// The same through a network that loses answers, is throttled, and lags with indexes.
pub async fn faulty_harness(emulator: &Emulator, logs: LogConfig, seed: u64) -> Opener<dyn LogStore> {
    let (_, config) = installation(emulator).await;
    harness_of(clients_through(emulator, &Faults::everything(seed)).await, config, logs).await
}

async fn harness_of(clients: Clients, config: Config, logs: LogConfig) -> Opener<dyn LogStore> {
    Opener::new(move || {
        let store: Arc<dyn LogStore> = Arc::new(open(&clients, &config, logs.clone()));
        async move { store }
    })
    .await
}

/// An execution that no other test has.
pub fn execution() -> ExecutionId {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("randomness");
    bytes[15] = NEXT.fetch_add(1, Ordering::Relaxed);
    // The version of every execution: another one is the log of its job events, which is not mirrored.
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    ExecutionId::from_bytes(bytes)
}

/// Lines on standard output, a millisecond apart.
pub fn block(first_at: i64, lines: &[Vec<u8>]) -> Block {
    let mut builder = BlockBuilder::default();
    for (at, bytes) in (first_at..).zip(lines) {
        builder.push(Record { at: UnixMs(at), stream: Stream::Stdout, cont: false, eol: true, bytes });
    }
    builder.take()
}

/// Lines that differ, of this length, and that no compressor makes small.
pub fn lines(first: u64, count: u64, len: usize) -> Vec<Vec<u8>> {
    let line = |number: u64| {
        let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bytes = format!("line {number} ").into_bytes();
        bytes.resize_with(len.max(bytes.len()), || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random.to_le_bytes()[3]
        });
        bytes
    };
    (first..first + count).map(line).collect()
}

pub fn numbered(attempt: u32, first_seq: u64, block: Block) -> Append {
    Append { attempt, first_seq: Some(first_seq), late: false, block }
}

/// Appends lines one by one to an attempt's output, from 1.
pub async fn write(store: &dyn LogStore, id: ExecutionId, count: u64, len: usize) -> Appended {
    let mut appended = None;
    for seq in 1..=count {
        let block = block(i64::try_from(seq * 10).expect("small"), &lines(seq, 1, len));
        appended = Some(store.append(id, numbered(1, seq, block)).await.expect("an append"));
    }
    appended.expect("there are lines")
}

/// The lines from a number on, in order and without a hole: number, time, attempt, late, bytes.
pub async fn read_from(store: &dyn LogStore, id: ExecutionId, from: u64, max_bytes: usize) -> Vec<Line> {
    let (mut read, mut next) = (Vec::new(), from);
    loop {
        let chunks = store.read(id, next, max_bytes).await.expect("a read");
        if chunks.is_empty() {
            return read;
        }
        for chunk in chunks {
            assert_eq!(chunk.first_line, next);
            for record in chunk.block.records() {
                let record = record.expect("a good record");
                read.push((next, record.at, chunk.attempt, chunk.late, record.bytes.to_vec()));
                next += 1;
            }
        }
    }
}

pub type Line = (u64, UnixMs, u32, bool, Vec<u8>);

pub async fn read_all(store: &dyn LogStore, id: ExecutionId) -> Vec<Line> {
    read_from(store, id, 1, 64 << 10).await
}

/// The items of a log in the table, without its head.
pub async fn items(clients: &Clients, config: &Config, id: ExecutionId) -> Vec<HashMap<String, AttributeValue>> {
    let request = clients
        .dynamo
        .query()
        .table_name(format!("{}-logs", config.prefix))
        .consistent_read(true)
        .key_condition_expression("execution_id = :id AND line > :head")
        .expression_attribute_values(":id", AttributeValue::S(id.to_string()))
        .expression_attribute_values(":head", AttributeValue::N("0".to_owned()));
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let answer = request.clone().set_exclusive_start_key(after).send().await.expect("a query");
        found.extend(answer.items.unwrap_or_default());
        after = answer.last_evaluated_key;
        if after.is_none() {
            return found;
        }
    }
}

/// The names of the objects of a log.
pub async fn objects(clients: &Clients, config: &Config, id: ExecutionId) -> Vec<String> {
    let request = clients.s3.list_objects_v2().bucket(&config.bucket).prefix(format!("logs/{id}/"));
    let page = request.send().await.expect("a list");
    page.contents().iter().filter_map(|object| object.key()).map(str::to_owned).collect()
}
