//! Everything that looks for jobs other than by their id. Indexes may lag: they only name candidates, which are read as they are now and judged again;
//! and what this process has just written is a candidate too, so that it reads its own writes. Nothing here changes a job.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::id::JobId;
use runvoy_model::job::{Job, JobStatus};
use runvoy_model::time::UnixMs;
use runvoy_ports::job::JobQuery;

use super::walk::{FIRST, LAST, Part, Walk, before};
use super::{ATTENTION, STAGED, SUFFIX_DIGITS, day_part, read, read_all, stand_part, user_part};
use crate::day::Day;
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{item, s};
use crate::table::Table;

/// The mark of the days on which there are jobs. A day is added before the first job of it is written.
pub(crate) const DAYS: &str = "days#jobs";
/// The digits of an id.
const DIGITS: usize = 32;
/// So many parts of an index are asked in one round: when too little is found, the next round goes over more days.
const MOST_PARTS: usize = 64;
/// A user has no longer name: an index would refuse it.
const MOST_USER: usize = 1_024;
/// So many candidates are looked at at once, at least.
const LEAST: usize = 16;

/// The mark of the days on which a user has jobs.
pub(crate) fn user_days(user: &str) -> String {
    format!("{DAYS}#{user}")
}

/// What it takes to look for jobs.
pub(crate) struct JobLists<'s> {
    pub dynamo: &'s Dynamo,
    pub shards: u32,
    /// What this process has just written.
    pub recent: Vec<Job>,
}

impl JobLists<'_> {
    /// A page of jobs, newest first by id.
    pub async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, Fault> {
        let mut last = LAST;
        if let Some(after) = query.after {
            // Where to go on after one that is not there nobody knows.
            let is_known = read(self.dynamo, after).await?.is_some();
            let Some(next) = before(after).filter(|_| is_known) else { return Ok(Vec::new()) };
            last = next;
        }
        let wanted = |job: &Job| query.wants(job.status) && query.owner.as_ref().is_none_or(|owner| job.created_by == *owner);
        match &query.owner {
            Some(owner) if owner.len() > MOST_USER => Ok(Vec::new()),
            Some(owner) => {
                let part = |day, shard| Part { index: "user-index", hash: "user_day_shard", value: user_part(owner, day, shard) };
                self.day_by_day(&user_days(owner), part, (FIRST, last), query.limit, &wanted).await
            }
            None => self.day_by_day(DAYS, of_day, (FIRST, last), query.limit, &wanted).await,
        }
    }

    /// Jobs whose id begins or ends with these hex digits, newest first.
    pub async fn find(&self, digits: &str, max: usize) -> Result<Vec<JobId>, Fault> {
        let digits = digits.to_ascii_lowercase();
        if digits.len() > DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(Vec::new());
        }
        let fits = |job: &Job| {
            let text = job.id.to_string();
            text.starts_with(&digits) || text.ends_with(&digits)
        };
        let bound = |fill: &str| -> JobId {
            let text = digits.clone() + &fill.repeat(DIGITS - digits.len());
            text.parse().expect("32 hex digits are an id")
        };
        // No index has ids by so short an end: all are looked through.
        let is_short = digits.len() < SUFFIX_DIGITS;
        let bounds = if is_short { (FIRST, LAST) } else { (bound("0"), bound("f")) };
        let mut found: BTreeSet<JobId> = self.day_by_day(DAYS, of_day, bounds, max, &fits).await?.into_iter().map(|job| job.id).collect();
        if !is_short {
            let part = Part { index: "suffix-index", hash: "suffix", value: digits[digits.len() - SUFFIX_DIGITS..].to_owned() };
            found.extend(self.walk(vec![part], (FIRST, LAST), true, max, &fits).await?.into_iter().map(|job| job.id));
        }
        Ok(found.into_iter().rev().take(max).collect())
    }

    /// Jobs that an agent has something to do for, oldest first.
    pub async fn attention(&self, max: usize) -> Result<Vec<JobId>, Fault> {
        self.standing(ATTENTION, max, &Job::needs_attention).await
    }

    /// Jobs that were begun before this time and never opened, oldest first.
    pub async fn staged_before(&self, at: UnixMs, max: usize) -> Result<Vec<JobId>, Fault> {
        self.standing(STAGED, max, &|job| job.status == JobStatus::Staged && job.created_at < at).await
    }

    async fn standing(&self, stand: &str, max: usize, fits: &(dyn Fn(&Job) -> bool + Sync)) -> Result<Vec<JobId>, Fault> {
        let part = |shard| Part { index: "standing-index", hash: "stand", value: stand_part(stand, shard) };
        let parts = (0..self.shards.max(1)).map(part).collect();
        Ok(self.walk(parts, (FIRST, LAST), false, max, fits).await?.into_iter().map(|job| job.id).collect())
    }

    /// Goes through the days under a mark, from the newest.
    async fn day_by_day(
        &self,
        mark: &str,
        part: impl Fn(Day, u32) -> Part + Sync,
        (first, last): (JobId, JobId),
        limit: usize,
        fits: &(dyn Fn(&Job) -> bool + Sync),
    ) -> Result<Vec<Job>, Fault> {
        let shards = self.shards.max(1);
        let most_together = (MOST_PARTS / usize::try_from(shards).unwrap_or(MOST_PARTS)).max(1);
        let days = self.days(mark).await?;
        let mut left: Vec<Day> = days.range(Day::of_id(first.0)..=Day::of_id(last.0)).copied().collect();
        let (mut found, mut together) = (Vec::new(), 1);
        while !left.is_empty() && found.len() < limit {
            let group = left.split_off(left.len().saturating_sub(together));
            let parts = group.iter().flat_map(|day| (0..shards).map(|shard| part(*day, shard))).collect();
            let (low, high) = (JobId(group[0].first_id()).max(first), JobId(group[group.len() - 1].last_id()).min(last));
            found.extend(self.walk(parts, (low, high), true, limit - found.len(), fits).await?);
            together = (together * 2).min(most_together);
        }
        Ok(found)
    }

    /// The jobs of these parts that fit as they are now, in order.
    async fn walk(
        &self,
        parts: Vec<Part>,
        (low, high): (JobId, JobId),
        newest_first: bool,
        limit: usize,
        fits: &(dyn Fn(&Job) -> bool + Sync),
    ) -> Result<Vec<Job>, Fault> {
        let extra = self.recent.iter().filter(|job| fits(job)).map(|job| job.id).collect();
        let mut walk = Walk::new(self.dynamo, parts, low..=high, newest_first, extra);
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(ids) = walk.next((limit - found.len()).max(LEAST)).await?
        {
            found.extend(read_all(self.dynamo, &ids).await?.into_iter().filter(|job| fits(job)));
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn days(&self, mark: &str) -> Result<BTreeSet<Day>, Fault> {
        let found = self.dynamo.get(Table::Marks, item([("mark", s(mark))])).await?;
        let names = match found.as_ref().and_then(|found| found.get("days")) {
            Some(AttributeValue::Ss(names)) => names.as_slice(),
            _ => &[],
        };
        names.iter().map(|text| text.parse().map_err(|error| Fault::Damaged(format!("mark {mark} names {text}: {error}")))).collect()
    }
}

fn of_day(day: Day, shard: u32) -> Part {
    Part { index: "day-index", hash: "day_shard", value: day_part(day, shard) }
}
