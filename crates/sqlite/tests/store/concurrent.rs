//! Readers and the writer never get in each other's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runvoy_model::event::EventType;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery, Retention};

use crate::fixture::{START, cycle, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_read_and_no_write_is_ever_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(&directory.path().join("store.db")));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..6)
        .map(|i| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            tokio::spawn(async move {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) {
                    let page = store.list(ListQuery { limit: 20, ..ListQuery::default() }).await.expect("a list");
                    for execution in page {
                        assert!(store.get(execution.id).await.expect("a read").is_some());
                    }
                    let kind = (i % 2 == 0).then_some(EventType::TaskCompleted);
                    store.events(EventQuery { kind, limit: 50, descending: true, ..EventQuery::default() }).await.expect("events");
                    store.counts().await.expect("counts");
                    store.open_leases().await.expect("leases");
                    reads += 1;
                }
                reads
            })
        })
        .collect();
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..25 {
                    cycle(&store, "true").await.expect("a life");
                    let nothing = UnixMs(START - 1);
                    let retention = Retention { heartbeats_before: nothing, receipts_before: nothing, max_rows: 10 };
                    store.prune(retention).await.expect("a prune");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.expect("no panic") > 0);
    }
    assert_eq!(store.stats().failed_commits, 0);
    assert_eq!(store.counts().await.expect("counts").executions, 400);
}
