//! Jobs as items: what goes in comes out, and lists find what the reference would, also behind an index that lags.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::chain::ChainHead;
use runvoy_model::job::Counts;
use runvoy_model::time::UnixMs;
use runvoy_ports::job::JobQuery;

use super::list::{DAYS, JobLists, user_days};
use super::*;
use crate::clients::Clients;
use crate::dynamo::Change;
use crate::emulator::{Emulator, prefix};
use crate::setup::set_up;

/// The tables of an installation that no other test has.
pub(crate) async fn tables() -> (Dynamo, Arc<Config>) {
    let config = Arc::new(Config::new(&prefix()));
    let clients = Clients::new(&Emulator::ministack().settings().await);
    set_up(&clients, &config).await.expect("tables");
    (Dynamo::new(&clients, Arc::clone(&config)), config)
}

const NOON: i64 = 1_767_441_600_000;
const DAY: i64 = 86_400_000;

pub(crate) fn job_id(at: i64, number: u8) -> JobId {
    let mut bytes = [number; 16];
    bytes[..6].copy_from_slice(&at.to_be_bytes()[2..]);
    JobId::from_bytes(bytes)
}

pub(crate) fn job(id: JobId, status: JobStatus) -> Job {
    Job {
        id,
        name: Some("nightly é".into()),
        request_key: None,
        created_by: "ann@x".into(),
        created_by_request_id: "r1".into(),
        modified_by_request_id: "r2".into(),
        created_at: UnixMs(NOON),
        status,
        completed_at: None,
        cancelled_by: None,
        concurrency: Some(3),
        generation: 1,
        opening: None,
        resuming: false,
        counts: Counts { total: 2, ..Counts::default() },
        places: 2,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: ChainHead::default(),
        version: 4,
    }
}

#[test]
fn a_job_is_read_back_as_it_was_written() {
    let config = Config::new("t");
    let job = Job { completed_at: Some(UnixMs(NOON)), ..job(job_id(NOON, 7), JobStatus::Completed) };
    let item = to_item(&job, 9, &config);
    let seen = from_item(&item).expect("a job");
    assert_eq!((seen.job, seen.guard), (job, 9));
    assert_eq!(item["day_shard"], s("2026-01-03#3"));
    assert_eq!(item["user_day_shard"], s("ann@x#2026-01-03#3"));
    assert_eq!((&item["suffix"], &item["created_at"]), (&s("070707"), &s("2026-01-03T12:00:00.000Z")));
    assert!(!item.contains_key("stand"));
    let mut torn = item;
    torn.insert("status".into(), s("RUNNING"));
    assert!(matches!(from_item(&torn), Err(Fault::Damaged(_))));
}

#[test]
fn a_job_stands_where_somebody_looks_for_it() {
    let config = Config::new("t");
    let stand = |job: &Job| to_item(job, 1, &config).get("stand").cloned();
    let plain = job(job_id(NOON, 6), JobStatus::Running);
    assert_eq!(stand(&plain), None);
    assert_eq!(stand(&Job { attention: true, ..plain.clone() }), Some(s("attention#2")));
    let dying = Job { status: JobStatus::Cancelled, counts: Counts { active: 1, ..plain.counts }, ..plain.clone() };
    assert_eq!(stand(&dying), Some(s("attention#2")));
    assert_eq!(stand(&Job { status: JobStatus::Staged, ..plain }), Some(s("staged#2")));
}

struct Shelf {
    dynamo: Dynamo,
    config: Arc<Config>,
}

impl Shelf {
    async fn new() -> Self {
        let (dynamo, config) = tables().await;
        Self { dynamo, config }
    }

    fn lists(&self) -> JobLists<'_> {
        JobLists { dynamo: &self.dynamo, shards: self.config.shards, recent: Vec::new() }
    }

    async fn put(&self, job: &Job) {
        self.note(job).await;
        self.dynamo.put(Table::Jobs, to_item(job, 1, &self.config)).await.expect("a put");
    }

    /// Adds the day of a job.
    async fn note(&self, job: &Job) {
        for mark in [DAYS.to_owned(), user_days(&job.created_by)] {
            let day = AttributeValue::Ss(vec![Day::of_id(job.id.0).to_string()]);
            let change = Change { expression: "ADD #d :d", condition: None, names: vec![("#d", "days")], values: vec![(":d", day)] };
            self.dynamo.update(Table::Marks, item([("mark", s(mark))]), change).await.expect("a mark");
        }
    }

    /// Writes a job that no index knows yet.
    async fn put_unindexed(&self, job: &Job) {
        self.note(job).await;
        let mut item = to_item(job, 1, &self.config);
        for attribute in ["stand", "day_shard", "user_day_shard", "suffix"] {
            item.remove(attribute);
        }
        self.dynamo.put(Table::Jobs, item).await.expect("a put");
    }
}

fn ids(jobs: Vec<Job>) -> Vec<JobId> {
    jobs.into_iter().map(|job| job.id).collect()
}

#[tokio::test]
async fn jobs_are_listed_newest_first_over_days_and_shards() {
    let shelf = Shelf::new().await;
    let mut all = Vec::new();
    for (day, count) in [(0, 9), (1, 1), (40, 6), (41, 2)] {
        for number in 0..count {
            let status = if number % 2 == 0 { JobStatus::Running } else { JobStatus::Completed };
            let user = if number % 3 == 0 { "bob@x" } else { "ann@x" };
            let id = job_id(NOON + day * DAY + i64::from(number), number);
            all.push(Job { created_by: user.into(), ..job(id, status) });
        }
    }
    for job in &all {
        shelf.put(job).await;
    }
    shelf.put(&job(job_id(NOON + 41 * DAY + 50, 3), JobStatus::Staged)).await;
    all.reverse();
    let lists = shelf.lists();
    let wanted = |query: &JobQuery| -> Vec<JobId> {
        let mine = all.iter().filter(|job| query.wants(job.status) && query.owner.as_ref().is_none_or(|owner| job.created_by == *owner));
        let after = mine.filter(|job| query.after.is_none_or(|after| job.id < after));
        after.map(|job| job.id).take(query.limit).collect()
    };
    for (owner, statuses, after, limit) in [
        (None, vec![], None, 100),
        (None, vec![], None, 3),
        (None, vec![], Some(all[2].id), 3),
        (None, vec![JobStatus::Completed], None, 5),
        (Some("bob@x"), vec![], None, 100),
        (Some("bob@x"), vec![JobStatus::Completed], Some(all[4].id), 100),
        (Some("carl@x"), vec![], None, 100),
        (None, vec![], None, 0),
    ] {
        let query = JobQuery { owner: owner.map(str::to_owned), statuses, after, limit };
        assert_eq!(ids(lists.jobs(&query).await.expect("jobs")), wanted(&query), "{query:?}");
    }
    let unknown = JobQuery { after: Some(job_id(NOON + 50 * DAY, 1)), limit: 10, ..JobQuery::default() };
    assert!(lists.jobs(&unknown).await.expect("jobs").is_empty());
}

#[tokio::test]
async fn what_was_just_written_is_listed_though_no_index_knows_it() {
    let shelf = Shelf::new().await;
    let (old, new) = (job(job_id(NOON, 1), JobStatus::Running), job(job_id(NOON + DAY, 2), JobStatus::Running));
    let new = Job { attention: true, ..new };
    shelf.put(&old).await;
    shelf.put_unindexed(&new).await;
    let all = JobQuery { limit: 10, ..JobQuery::default() };
    assert_eq!(ids(shelf.lists().jobs(&all).await.expect("jobs")), [old.id]);
    let gone = job(job_id(NOON + DAY, 9), JobStatus::Running);
    let lists = JobLists { recent: vec![new.clone(), gone], ..shelf.lists() };
    assert_eq!(ids(lists.jobs(&all).await.expect("jobs")), [new.id, old.id]);
    assert_eq!(lists.attention(10).await.expect("jobs"), [new.id]);
    assert_eq!(lists.find(&new.id.to_string()[..20], 10).await.expect("jobs"), [new.id]);
}

#[tokio::test]
async fn an_index_that_lags_names_nobody_who_has_nothing_to_do() {
    let shelf = Shelf::new().await;
    let mut waiting = Vec::new();
    for number in 0..40 {
        let one = Job { attention: number % 2 == 0, ..job(job_id(NOON + i64::from(number), number), JobStatus::Running) };
        let mut item = to_item(&Job { attention: true, ..one.clone() }, 1, &shelf.config);
        item.insert("state".into(), json(&one));
        shelf.dynamo.put(Table::Jobs, item).await.expect("a put");
        waiting.extend(one.attention.then_some(one.id));
    }
    assert_eq!(shelf.lists().attention(100).await.expect("jobs"), waiting, "oldest first");
    assert_eq!(shelf.lists().attention(7).await.expect("jobs"), waiting[..7]);
}

#[tokio::test]
async fn jobs_that_were_never_opened_are_found_by_their_time() {
    let shelf = Shelf::new().await;
    let staged = |number: u8| Job {
        created_at: UnixMs(NOON + i64::from(number)),
        ..job(job_id(NOON + i64::from(number), number), JobStatus::Staged)
    };
    for number in 0..6 {
        shelf.put(&staged(number)).await;
    }
    shelf.put(&job(job_id(NOON, 9), JobStatus::Running)).await;
    let found = shelf.lists().staged_before(UnixMs(NOON + 4), 10).await.expect("jobs");
    assert_eq!(found, (0..4).map(|number| staged(number).id).collect::<Vec<_>>());
    assert_eq!(shelf.lists().staged_before(UnixMs(NOON + 4), 2).await.expect("jobs"), found[..2]);
}

#[tokio::test]
async fn jobs_are_found_by_the_beginning_and_the_end_of_their_id() {
    let shelf = Shelf::new().await;
    let jobs: Vec<_> = (0..5).map(|number| job(job_id(NOON + i64::from(number) * DAY, 0x10 + number), JobStatus::Running)).collect();
    for job in &jobs {
        shelf.put(job).await;
    }
    let lists = shelf.lists();
    let text = jobs[2].id.to_string();
    for digits in [&text[..], &text[..14], &text[18..], &text[26..], &text[29..]] {
        assert_eq!(lists.find(digits, 10).await.expect("jobs"), [jobs[2].id], "{digits}");
    }
    let all: Vec<_> = jobs.iter().rev().map(|job| job.id).collect();
    assert_eq!(lists.find(&text[..3], 10).await.expect("jobs"), all, "newest first");
    assert_eq!(lists.find("", 2).await.expect("jobs"), all[..2]);
    assert!(lists.find("xyz", 10).await.expect("jobs").is_empty());
}
