//! A walk through several parts of an index of jobs as if they were one, in the order of their ids. Each stretch of it is complete: nothing that the
//! parts hold, or that was just written and they do not hold yet, is passed over on the way to its end.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use futures_util::future::try_join_all;
use runvoy_model::id::JobId;

use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Read, s};
use crate::table::Table;

pub(super) const FIRST: JobId = JobId::from_bytes([0; 16]);
pub(super) const LAST: JobId = JobId::from_bytes([0xff; 16]);
/// Of no part more are asked for at once.
const MOST: usize = 1_000;

/// A part of an index of jobs, in the order of their ids.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub index: &'static str,
    pub hash: &'static str,
    pub value: String,
}

/// Where the walk has come to.
pub(super) struct Walk<'d> {
    dynamo: &'d Dynamo,
    parts: Vec<Part>,
    newest_first: bool,
    /// What is left lies between these, both included; nothing is left where there is none.
    left: Option<(JobId, JobId)>,
    /// What is to be met on the way though no part may hold it yet.
    extra: BTreeSet<JobId>,
}

impl<'d> Walk<'d> {
    pub fn new(dynamo: &'d Dynamo, parts: Vec<Part>, bounds: RangeInclusive<JobId>, newest_first: bool, extra: BTreeSet<JobId>) -> Self {
        let left = (bounds.start() <= bounds.end()).then(|| bounds.into_inner());
        Self { dynamo, parts, newest_first, left, extra }
    }

    /// The next stretch, in order; `None` at the end. It goes as far as the part with the most in it was looked through: `most` jobs of each.
    pub async fn next(&mut self, most: usize) -> Result<Option<Vec<JobId>>, Fault> {
        let Some((low, high)) = self.left else { return Ok(None) };
        let most = most.clamp(1, MOST);
        let found = try_join_all(self.parts.iter().map(|part| self.look(part, low, high, most))).await?;
        let ends = found.iter().filter(|ids| ids.len() == most).filter_map(|ids| ids.last().copied());
        let end = if self.newest_first { ends.max() } else { ends.min() };
        let (low, high) = if self.newest_first { (end.unwrap_or(low), high) } else { (low, end.unwrap_or(high)) };
        let mut stretch: BTreeSet<JobId> = found.into_iter().flatten().filter(|id| (low..=high).contains(id)).collect();
        stretch.extend(self.extra.range(low..=high));
        let rest = self.left.take().zip(end);
        self.left =
            rest.and_then(
                |((first, last), end)| {
                    if self.newest_first { before(end).map(|last| (first, last)) } else { after(end).map(|first| (first, last)) }
                },
            );
        self.left = self.left.filter(|(low, high)| low <= high);
        Ok(Some(if self.newest_first { stretch.into_iter().rev().collect() } else { stretch.into_iter().collect() }))
    }

    async fn look(&self, part: &Part, low: JobId, high: JobId, most: usize) -> Result<Vec<JobId>, Fault> {
        let bounds = vec![(":low", s(low.to_string())), (":high", s(high.to_string()))];
        let query =
            Query::of(Table::Jobs, part.hash, s(&part.value)).index(part.index).range("job_id", "#r BETWEEN :low AND :high", bounds);
        let query = if self.newest_first { query.descending() } else { query };
        let items = self.dynamo.query(query.limit(most)).await?;
        let id = |text: &str| text.parse().map_err(|error| Fault::Damaged(format!("an index names job {text}: {error}")));
        items.iter().map(|item| id(item.text("job_id")?)).collect()
    }
}

/// The last id before this one.
pub(super) fn before(id: JobId) -> Option<JobId> {
    u128::from_be_bytes(*id.as_bytes()).checked_sub(1).map(|id| JobId::from_bytes(id.to_be_bytes()))
}

/// The first id after this one.
fn after(id: JobId) -> Option<JobId> {
    u128::from_be_bytes(*id.as_bytes()).checked_add(1).map(|id| JobId::from_bytes(id.to_be_bytes()))
}
