//! Lists and events against the plainest way to have them: take everything and filter.

use runvoy_model::command::{Kill, Submit};
use runvoy_model::event::{Entity, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, ExecutionStore, ListQuery, StoredEvent};
use runvoy_sqlite::SqliteStore;

use crate::fixture::{START, end_of, lease_to, open, step_at, submit};

const HOUR: i64 = 3_600_000;

/// Executions of three users with two locks in most statuses, submitted while the clock went forward and back.
async fn varied(store: &SqliteStore) -> Vec<Execution> {
    let hours = [0, 0, 1, 2, 2, 5, 3, 3, 0, 4, 9, 9];
    for i in 0..72usize {
        let at = START + hours[i % hours.len()] * HOUR + i as i64;
        let mut asked = Submit { created_by: format!("user{}@example.com", i % 3), ..submit("true") };
        if i % 4 == 0 {
            asked.spec.lock = Some(Name::new(["infra", "data"][i / 4 % 2]).expect("a name"));
            asked.spec.lock_wait_ms = Some(1_000);
        }
        asked.lease_to = (i % 5 < 2).then(lease_to);
        let (execution, _) = store.submit(step_at(at), asked).await.expect("taken");
        match i % 7 {
            0 => drop(store.kill(step_at(at + 5), Kill { execution: execution.id, force: false }).await.expect("a kill")),
            1 | 2 if execution.lease.is_some() => {
                store.end_attempt(step_at(at + 9), end_of(&execution)).await.expect("an end");
            }
            _ => {}
        }
    }
    let all = store.list(ListQuery { limit: 1000, ..ListQuery::default() }).await.expect("a list");
    assert_eq!(all.len(), 72);
    all
}

fn matches(execution: &Execution, query: &ListQuery) -> bool {
    (query.statuses.is_empty() || query.statuses.contains(&execution.status))
        && query.owner.as_ref().is_none_or(|owner| execution.owned_by.contains(owner))
        && query.created_by.as_ref().is_none_or(|user| execution.created_by == *user)
        && query.lock.as_ref().is_none_or(|lock| execution.spec.lock.as_ref() == Some(lock))
        && query.since.is_none_or(|since| execution.submitted_at >= since)
        && query.until.is_none_or(|until| execution.submitted_at < until)
}

fn list_queries() -> Vec<ListQuery> {
    let statuses = [
        vec![],
        vec![Status::Pending],
        vec![Status::Succeeded],
        vec![Status::Running, Status::Terminating],
        vec![Status::Stopped, Status::Pending, Status::Stopped],
    ];
    let users = [None, Some("user1@example.com".to_owned())];
    let locks = [None, Some(Name::new("infra").expect("a name"))];
    let times = [(None, None), (Some(START + HOUR), None), (None, Some(START + 3 * HOUR)), (Some(START + HOUR), Some(START + 4 * HOUR))];
    let mut queries = Vec::new();
    for statuses in &statuses {
        for user in &users {
            for lock in &locks {
                for (since, until) in times {
                    let time = ListQuery { since: since.map(UnixMs), until: until.map(UnixMs), ..ListQuery::default() };
                    let query = ListQuery { statuses: statuses.clone(), lock: lock.clone(), limit: 7, ..time };
                    queries.push(ListQuery { owner: user.clone(), ..query.clone() });
                    queries.push(ListQuery { created_by: user.clone(), ..query });
                }
            }
        }
    }
    queries
}

#[tokio::test]
async fn every_list_is_the_whole_list_filtered_page_by_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let all = varied(&store).await;
    for query in list_queries() {
        let expected: Vec<_> = all.iter().filter(|execution| matches(execution, &query)).cloned().collect();
        let mut found: Vec<Execution> = Vec::new();
        loop {
            let after = found.last().map(|execution| execution.id);
            let page = store.list(ListQuery { after, ..query.clone() }).await.expect("a page");
            assert!(page.len() <= query.limit);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found, expected, "{query:?}");
    }
}

#[tokio::test]
async fn every_page_of_events_is_the_whole_log_filtered() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let entity = Entity::task(varied(&store).await[40].id);
    let all = store.events(EventQuery { limit: 10_000, ..EventQuery::default() }).await.expect("events");
    let places: Vec<_> = all.iter().map(|stored| stored.place).collect();
    assert_eq!(places, (1..=all.len() as u64).collect::<Vec<_>>());
    for entity in [None, Some(entity)] {
        for kind in [None, Some(EventType::TaskPending), Some(EventType::TaskStopped), Some(EventType::TaskTimeout)] {
            for (from, to) in [(None, None), (Some(START + 2 * HOUR), None), (Some(START), Some(START + 3 * HOUR + 50))] {
                for descending in [false, true] {
                    let (from, to) = (from.map(UnixMs), to.map(UnixMs));
                    let query = EventQuery { entity: entity.clone(), kind, from, to, descending, after: None, limit: 9 };
                    let wanted = |stored: &&StoredEvent| {
                        entity.as_ref().is_none_or(|entity| stored.event.entity == *entity)
                            && kind.is_none_or(|kind| stored.event.kind == kind)
                            && from.is_none_or(|from| stored.event.at >= from)
                            && to.is_none_or(|to| stored.event.at < to)
                    };
                    let mut expected: Vec<_> = all.iter().filter(wanted).cloned().collect();
                    if descending {
                        expected.reverse();
                    }
                    assert_eq!(pages(&store, &query).await, expected, "{query:?}");
                }
            }
        }
    }
}

async fn pages(store: &SqliteStore, query: &EventQuery) -> Vec<StoredEvent> {
    let mut found: Vec<StoredEvent> = Vec::new();
    loop {
        let after = found.last().map(|stored| stored.place);
        let page = store.events(EventQuery { after, ..query.clone() }).await.expect("a page");
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

#[tokio::test]
async fn a_part_of_an_id_is_found_at_either_end_and_only_hex_digits_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    let all = varied(&store).await;
    let text = all[5].id.to_string();
    for digits in [&text[..], &text.to_uppercase(), &text[25..], &text[24..], &text[..31]] {
        assert_eq!(store.find(digits, 10).await.expect("a search"), [all[5].id], "{digits}");
    }
    let shared = &text[..9];
    assert_eq!(store.find(shared, 1000).await.expect("a search").len(), 72);
    assert_eq!(store.find(shared, 10).await.expect("a search").len(), 10);
    for nothing in ["", "xyz", "%", "_", "0123456789abcdef0123456789abcdef0", "ééé"] {
        assert_eq!(store.find(nothing, 10).await.expect("a search"), [], "{nothing}");
    }
}
