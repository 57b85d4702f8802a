//! What lists, pages and searches by id promise.

use std::collections::BTreeSet;

use runvoy_model::command::Command;
use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_ports::store::ListQuery;

use crate::harness::Executions;
use crate::stage::{Stage, exit, in_line, name};

/// Newest first.
pub async fn a_list_is_newest_first(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    assert!(stage.list(ListQuery::default()).await.is_empty());
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(stage.submit(|_| ()).await);
    }
    ids.reverse();
    assert_eq!(stage.list(ListQuery::default()).await, ids);
    assert_eq!(stage.list(ListQuery { limit: 2, ..ListQuery::default() }).await, ids[..2]);
    assert_eq!(stage.list(ListQuery { after: Some(ids[2]), ..ListQuery::default() }).await, ids[3..]);
}

/// A list by status is true after every change.
pub async fn a_list_by_status_follows_every_change(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let done = stage.running(|_| ()).await;
    stage.end(done, exit(0)).await;
    let failed = stage.running(|_| ()).await;
    stage.end(failed, exit(1)).await;
    let stopping = stage.running(|_| ()).await;
    stage.kill(stopping.execution).await;
    let running = stage.running(|_| ()).await;
    stage.submit(|_| ()).await;
    let starting = stage.lease_one().await;
    let pending = stage.submit(|_| ()).await;
    let stopped = stage.submit(|_| ()).await;
    stage.kill(stopped).await;
    for (status, id) in [
        (Status::Pending, pending),
        (Status::Starting, starting.execution),
        (Status::Running, running.execution),
        (Status::Terminating, stopping.execution),
        (Status::Succeeded, done.execution),
        (Status::Failed, failed.execution),
        (Status::Stopped, stopped),
    ] {
        assert_eq!(stage.list(ListQuery { statuses: vec![status], ..ListQuery::default() }).await, [id], "{status:?}");
    }
    let both = ListQuery { statuses: vec![Status::Failed, Status::Stopped], ..ListQuery::default() };
    assert_eq!(stage.list(both).await, [stopped, failed.execution]);
    let counts = stage.store().counts().await.expect("counts");
    assert_eq!((counts.pending, counts.active, counts.executions), (1, 3, 7));
}

/// By owner, submitter, lock and time, alone and together.
pub async fn filters_combine(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut made = Vec::new();
    for (user, lock) in [("ann@x", None), ("bob@x", Some("prod")), ("ann@x", Some("prod")), ("ann@x", Some("other"))] {
        let mut submit = stage.new_submit(in_line);
        submit.spec.lock = lock.map(name);
        submit.created_by = user.into();
        made.push((submit.id, stage.now));
        stage.play(Command::Submit(submit)).await;
        stage.pass_ms(1_000);
    }
    let ids: Vec<_> = made.iter().map(|(id, _)| *id).collect();
    let query = ListQuery::default;
    let owner = |user: &str| Some(user.to_owned());
    assert_eq!(stage.list(ListQuery { created_by: owner("ann@x"), ..query() }).await, [ids[3], ids[2], ids[0]]);
    assert_eq!(stage.list(ListQuery { owner: owner("bob@x"), ..query() }).await, [ids[1]]);
    assert_eq!(stage.list(ListQuery { owner: owner("bob"), ..query() }).await, []);
    assert_eq!(stage.list(ListQuery { lock: Some(name("prod")), ..query() }).await, [ids[2], ids[1]]);
    assert_eq!(stage.list(ListQuery { since: Some(made[2].1), ..query() }).await, [ids[3], ids[2]]);
    assert_eq!(stage.list(ListQuery { until: Some(made[2].1), ..query() }).await, [ids[1], ids[0]]);
    let window = ListQuery { since: Some(made[1].1), until: Some(made[3].1), owner: owner("ann@x"), lock: Some(name("prod")), ..query() };
    assert_eq!(stage.list(window).await, [ids[2]]);
    let waiting = ListQuery { statuses: vec![Status::Pending], lock: Some(name("prod")), after: Some(ids[2]), limit: 1, ..query() };
    assert_eq!(stage.list(waiting).await, [ids[1]]);
}

/// Pages cover everything that was there when they began, without gap or repeat, while new ones arrive.
pub async fn pages_have_no_gap_and_no_repeat_while_new_ones_arrive(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut there = BTreeSet::new();
    for number in 0..23u8 {
        let user = if number % 3 == 0 { "bob@x" } else { "ann@x" };
        let mut submit = stage.new_submit(|_| ());
        submit.created_by = user.into();
        if user == "ann@x" {
            there.insert(submit.id);
        }
        stage.play(Command::Submit(submit)).await;
    }
    let mut seen: Vec<ExecutionId> = Vec::new();
    loop {
        let page = ListQuery { created_by: Some("ann@x".into()), after: seen.last().copied(), limit: 4, ..ListQuery::default() };
        let page = stage.list(page).await;
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 4);
        seen.extend(page);
        stage.submit(|_| ()).await;
    }
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), there);
}

/// By the beginning or the end of an id, `max` at most.
pub async fn an_id_is_found_by_its_beginning_or_end(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = |text: &str| text.parse::<ExecutionId>().expect("an id");
    let ids = [
        id("0192aaaa000070008000000000abcdef"),
        id("0192aaaa000070008000000000abcdee"),
        id("0192bbbb000070008000000001abcdef"),
        id("abcdef00000070008000000000000001"),
        id("0192aaaa000070008000000001abcdef"),
    ];
    for id in ids {
        let mut submit = stage.new_submit(|_| ());
        submit.id = id;
        stage.play(Command::Submit(submit)).await;
    }
    let find = |digits: &'static str, max| {
        let store = stage.store();
        async move {
            let found = store.find(digits, max).await.expect("a search");
            assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "each once");
            found.into_iter().collect::<BTreeSet<_>>()
        }
    };
    assert_eq!(find("0192aa", 9).await, [ids[0], ids[1], ids[4]].into());
    assert_eq!(find("0192aaa", 9).await, [ids[0], ids[1], ids[4]].into(), "an odd number of digits");
    assert_eq!(find("abcdef", 9).await, [ids[0], ids[2], ids[3], ids[4]].into(), "at either end");
    assert_eq!(find("1abcdef", 9).await, [ids[2], ids[4]].into());
    assert_eq!(find("0192aaaa000070008000000000abcdef", 9).await, [ids[0]].into());
    assert_eq!(find("ffffff", 9).await, [].into());
    assert_eq!(find("00700080", 9).await, [].into(), "not in the middle");
    assert_eq!(find("0192aa", 2).await.len(), 2);
}
