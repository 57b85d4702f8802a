//! What was changed behind the store's back is told and never served.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, LogStore, Search};
use runvoy_ports::search::Stop;

use super::stage::{execution, installation, items, objects, open, packing, write};
use crate::emulator::Emulator;

async fn told(store: &dyn LogStore, id: runvoy_model::id::ExecutionId, line: u64, at: UnixMs) -> Vec<u64> {
    let search = Search { pattern: "line".into(), regex: false, from_line: 1, limit: 10, stream: None, stop: Stop::default() };
    let answers = [
        store.read(id, line, 1).await.map(drop),
        store.line_at(id, at).await.map(drop),
        store.raw_place(id, (line - 1) * 1_001).await.map(drop),
        store.search(id, search).await.map(drop),
    ];
    let after = |answer: Result<(), LogError>| match answer {
        Err(LogError::Damaged { after_line }) => after_line,
        other => panic!("no damage: {other:?}"),
    };
    answers.map(after).to_vec()
}

#[tokio::test]
async fn a_damaged_piece_is_told_and_what_is_before_it_is_served() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, id) = (open(&clients, &config, packing()), execution());
    write(&store, id, 4, 1_000).await;
    let mut piece = items(&clients, &config, id).await.remove(2);
    let AttributeValue::B(data) = &piece["data"] else { panic!("no data: {piece:?}") };
    let mut data = data.as_ref().to_vec();
    let last = data.len() - 1;
    data[last] ^= 1;
    piece.insert("data".to_owned(), AttributeValue::B(Blob::new(data)));
    clients.dynamo.put_item().table_name(format!("{}-logs", config.prefix)).set_item(Some(piece)).send().await.expect("a put");
    let good = store.read(id, 1, 1 << 20).await.expect("what is good");
    assert_eq!(good.iter().map(|chunk| chunk.block.count).sum::<u32>(), 2);
    assert_eq!(told(&store, id, 3, UnixMs(30)).await, [2, 2, 2, 2]);
    // Packing stops before it: nothing is removed that was not packed.
    store.seal(id, 4).await.expect("a seal");
    store.settled().await;
    assert_eq!(items(&clients, &config, id).await.len(), 4);
    assert_eq!(store.prune(UnixMs(1_000)).await.expect("pruning").logs, 1, "it goes when it is old");
    assert!(items(&clients, &config, id).await.is_empty());
}

#[tokio::test]
async fn a_damaged_or_missing_object_is_told() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let (store, id) = (open(&clients, &config, packing()), execution());
    write(&store, id, 40, 1_000).await;
    store.seal(id, 40).await.expect("a seal");
    store.settled().await;
    let name = objects(&clients, &config, id).await.into_iter().find(|name| !name.contains("/1-")).expect("a second object");
    let (first, _) = name.rsplit_once('/').expect("a prefix").1.split_once('-').expect("lines");
    let first: u64 = first.parse().expect("a line");
    let whole = clients.s3.get_object().bucket(&config.bucket).key(&name).send().await.expect("an object");
    let mut bytes = whole.body.collect().await.expect("bytes").to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    clients.s3.put_object().bucket(&config.bucket).key(&name).body(ByteStream::from(bytes)).send().await.expect("a put");
    let at = UnixMs(i64::try_from(first * 10).expect("small"));
    // What another store has at hand is not this one's.
    for _ in 0..2 {
        let store = open(&clients, &config, packing());
        assert_eq!(told(&store, id, first, at).await, [first - 1; 4]);
        let good = store.read(id, 1, 1 << 20).await.expect("what is good");
        assert_eq!(good.iter().map(|chunk| u64::from(chunk.block.count)).sum::<u64>(), first - 1);
        clients.s3.delete_object().bucket(&config.bucket).key(&name).send().await.expect("removed");
    }
}
