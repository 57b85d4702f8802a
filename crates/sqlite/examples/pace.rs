//! How fast the store is on this machine: whole lives of executions from concurrent submitters, single reads, and what the commits cost.
//! `cargo run --release -p runvoy-sqlite --example pace -- [DIRECTORY] [SUBMITTERS] [LIVES]`

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/store/fixture.rs"]
mod fixture;

use std::sync::Arc;
use std::time::Instant;

use runvoy_ports::store::{ExecutionStore, ListQuery};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().unwrap_or_else(|| ".".into());
    let submitters: usize = arguments.next().map_or(Ok(32), |text| text.parse())?;
    let lives: usize = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let directory = tempfile::tempdir_in(base)?;
    let store = Arc::new(fixture::open(&directory.path().join("store.db")));

    let begun = Instant::now();
    let tasks: Vec<_> = (0..submitters)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut waits = Vec::new();
                for _ in 0..lives / submitters {
                    let asked = Instant::now();
                    fixture::cycle(&store, "true").await?;
                    waits.push(asked.elapsed());
                }
                anyhow::Ok(waits)
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await??);
    }
    let took = begun.elapsed();
    waits.sort_unstable();
    println!("{} lives by {submitters} submitters: {:.0} steps/s", waits.len(), 2.0 * waits.len() as f64 / took.as_secs_f64());
    println!("a life: p50 {:?}, p99 {:?}", waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    println!("{:?}", store.stats());

    let page = store.list(ListQuery { limit: 100, ..ListQuery::default() }).await?;
    let begun = Instant::now();
    for i in 0..5_000 {
        store.get(page[i % page.len()].id).await?;
    }
    println!("get: {:?}", begun.elapsed() / 5_000);
    let begun = Instant::now();
    for _ in 0..500 {
        store.list(ListQuery { limit: 20, ..ListQuery::default() }).await?;
    }
    println!("list of 20: {:?}", begun.elapsed() / 500);
    println!("{:?}", store.counts().await?);
    store.close().await?;
    Ok(())
}
