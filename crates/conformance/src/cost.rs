//! The promises about the counters of costs: a stretch of the event log is added to them once, together with the place up to which it goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use runvoy_model::cost::{Cost, CostKey, Day, Dimension};
use runvoy_ports::cost::{CostFold, CostQuery, MAX_COUNTERS};

use crate::harness::{Records, TransactionalStore};

fn key(day: u32, name: &str) -> CostKey {
    CostKey { owner: None, dimension: Dimension::User, day: Day(day), name: name.into() }
}

const fn cost(executions: u64, micro_usd: u64) -> Cost {
    Cost { executions, micro_usd }
}

fn fold(after: u64, up_to: u64, added: &[(CostKey, Cost)]) -> CostFold {
    CostFold { after, up_to, added: added.iter().cloned().collect() }
}

async fn count(harness: Records<'_>, fold: CostFold) -> u64 {
    harness.store().count(fold).await.expect("counted")
}

async fn costs(harness: Records<'_>, owner: Option<&str>, dimension: Dimension, since: u32) -> Vec<(u32, String, Cost)> {
    let query = CostQuery { owner: owner.map(str::to_owned), dimension, since: Day(since) };
    let found = harness.store().costs(query).await.expect("counters");
    found.into_iter().map(|(day, name, cost)| (day.0, name, cost)).collect()
}

async fn of_users(harness: Records<'_>) -> Vec<(u32, String, Cost)> {
    costs(harness, None, Dimension::User, 0).await
}

/// Counters are listed from a day on, by day and then by name, also after a reopen.
pub async fn counters_are_read_back_by_day_and_name(harness: Records<'_>) {
    assert_eq!(harness.store().counted().await.expect("a place"), 0);
    assert_eq!(of_users(harness).await, []);
    let added = [
        (key(20_002, "b"), cost(1, 5)),
        (key(20_001, "é#/ "), cost(2, 0)),
        (key(20_002, "a"), cost(3, 1 << 40)),
        (key(9, "old"), cost(1, 1)),
    ];
    assert_eq!(count(harness, fold(0, 12, &added)).await, 12);
    harness.reopen().await;
    assert_eq!(harness.store().counted().await.expect("a place"), 12);
    let all = [(9, "old", cost(1, 1)), (20_001, "é#/ ", cost(2, 0)), (20_002, "a", cost(3, 1 << 40)), (20_002, "b", cost(1, 5))];
    let all = all.map(|(day, name, cost)| (day, name.to_owned(), cost));
    assert_eq!(of_users(harness).await, all);
    assert_eq!(costs(harness, None, Dimension::User, 10).await, all[1..]);
    assert_eq!(costs(harness, None, Dimension::User, 20_002).await, all[2..]);
    assert_eq!(costs(harness, None, Dimension::User, 20_003).await, []);
}

/// What a later fold adds is added to what an earlier one did.
pub async fn counters_add_up_over_folds(harness: Records<'_>) {
    for step in 0..5 {
        let added = [(key(1, "a"), cost(1, 10)), (key(1, &format!("n{step}")), cost(2, step))];
        assert_eq!(count(harness, fold(step * 7, (step + 1) * 7, &added)).await, (step + 1) * 7);
    }
    let mut expected = vec![(1, "a".to_owned(), cost(5, 50))];
    expected.extend((0..5).map(|step| (1, format!("n{step}"), cost(2, step))));
    assert_eq!(of_users(harness).await, expected);
}

/// A repeat of a fold is answered and adds nothing.
pub async fn a_fold_counts_once(harness: Records<'_>) {
    for after in [0, 3] {
        for _ in 0..3 {
            assert_eq!(count(harness, fold(after, after + 3, &[(key(1, "a"), cost(1, 2))])).await, after + 3);
        }
    }
    assert_eq!(of_users(harness).await, [(1, "a".to_owned(), cost(2, 4))]);
}

/// A fold that does not begin where the counters end adds nothing, and is told where that is.
pub async fn a_fold_from_another_place_changes_nothing(harness: Records<'_>) {
    count(harness, fold(0, 5, &[(key(1, "a"), cost(1, 2))])).await;
    for after in [0, 4, 6, 1_000] {
        assert_eq!(count(harness, fold(after, 2_000, &[(key(1, "a"), cost(1, 2))])).await, 5);
    }
    assert_eq!(of_users(harness).await, [(1, "a".to_owned(), cost(1, 2))]);
}

/// Whoever meets another server may be told to try again.
async fn until_answered(store: &Arc<dyn TransactionalStore>, fold: CostFold) -> u64 {
    for _ in 0..1_000 {
        match store.count(fold.clone()).await {
            Err(error) if error.is_retryable() => tokio::task::yield_now().await,
            answer => return answer.expect("counted"),
        }
    }
    panic!("a fold was never answered")
}

/// Several servers count the same stretch at the same time: it is counted once.
pub async fn of_many_folds_of_one_stretch_one_counts(harness: Records<'_>) {
    for after in [0, 1, 2] {
        let folds: Vec<_> = (0..8)
            .map(|_| {
                let store = harness.store();
                tokio::spawn(async move { until_answered(&store, fold(after, after + 1, &[(key(1, "a"), cost(1, 2))])).await })
            })
            .collect();
        for fold in folds {
            assert_eq!(fold.await.expect("no panic"), after + 1);
        }
    }
    assert_eq!(of_users(harness).await, [(1, "a".to_owned(), cost(3, 6))]);
}

/// Each owner and dimension has counters of its own.
pub async fn owners_and_dimensions_do_not_mix(harness: Records<'_>) {
    let owners = [None, Some("ana@example.com"), Some("ana")];
    let all = owners.iter().flat_map(|owner| Dimension::ALL.map(|dimension| (owner.map(str::to_owned), dimension)));
    let added: BTreeMap<CostKey, Cost> =
        all.zip(1..).map(|((owner, dimension), number)| (CostKey { owner, dimension, ..key(1, "") }, cost(number, number))).collect();
    count(harness, CostFold { after: 0, up_to: 1, added: added.clone() }).await;
    for (key, cost) in added {
        assert_eq!(costs(harness, key.owner.as_deref(), key.dimension, 0).await, [(1, String::new(), cost)], "{key:?}");
    }
    assert_eq!(costs(harness, Some("ben"), Dimension::Total, 0).await, []);
}

/// A fold of as many counters as it may have is kept whole.
pub async fn the_largest_fold_is_one_step(harness: Records<'_>) {
    let added: Vec<_> = (0..MAX_COUNTERS).map(|number| (key(1, &format!("{number:03}")), cost(1, 1))).collect();
    assert_eq!(count(harness, fold(0, 90, &added)).await, 90);
    assert_eq!(of_users(harness).await.len(), MAX_COUNTERS);
}
