//! A walk through several parts of an index as if they were one, in the order of their sort keys. Each stretch of it is complete: nothing
//! that the parts hold, or that this process wrote and they do not hold yet, is passed over on the way to its end.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use runvoy_model::id::ExecutionId;

use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, s};
use crate::table::Table;

/// So many requests are under way at once.
pub(crate) const AT_ONCE: usize = 16;

/// A part of an index of executions.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub index: &'static str,
    pub hash: (&'static str, String),
    pub range: &'static str,
}

impl Part {
    /// A part of an index whose sort key is the id.
    pub const fn by_id(index: &'static str, hash: &'static str, value: String) -> Self {
        Self { index, hash: (hash, value), range: "execution_id" }
    }

    /// A line of a queue.
    pub const fn line(partition: String) -> Self {
        Self { index: "standing-index", hash: ("stand", partition), range: "stand_sort" }
    }

    pub fn query(&self) -> Query {
        Query::of(Table::Executions, self.hash.0, s(&self.hash.1)).index(self.index)
    }

    /// Those between two sort keys, both included.
    pub fn between(&self, low: &str, high: &str) -> Query {
        self.query().range(self.range, "#r BETWEEN :low AND :high", vec![(":low", s(low)), (":high", s(high))])
    }
}

/// Where the walk has come to.
#[derive(Debug)]
pub(crate) struct Walk {
    dynamo: Dynamo,
    parts: Vec<Part>,
    descending: bool,
    /// What is left lies between these, both included.
    low: String,
    high: String,
    /// Except for this, where the walk has been.
    passed: Option<String>,
    /// What is to be met on the way though no part may hold it yet.
    extra: BTreeMap<String, ExecutionId>,
    is_over: bool,
}

/// The bounds of a walk, both included.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub low: String,
    pub high: String,
    /// The walk goes on after this one.
    pub after: Option<String>,
    pub descending: bool,
}

impl Walk {
    pub fn new(dynamo: &Dynamo, parts: Vec<Part>, bounds: Bounds, extra: BTreeMap<String, ExecutionId>) -> Self {
        let Bounds { mut low, mut high, after, descending } = bounds;
        if let Some(after) = &after {
            if descending && *after < high {
                high.clone_from(after);
            } else if !descending && *after > low {
                low.clone_from(after);
            }
        }
        let is_over = low > high;
        Self { dynamo: dynamo.clone(), parts, descending, low, high, passed: after, extra, is_over }
    }

    /// The next stretch, in order, each with its sort key; `None` at the end. Of no part more than `most` are looked at, so that a stretch
    /// can be empty only at the end.
    pub async fn next(&mut self, most: usize) -> Result<Option<Vec<(String, ExecutionId)>>, Fault> {
        if self.is_over {
            return Ok(None);
        }
        // The one that was passed is met again.
        let most = most.clamp(1, 1_000) + 1;
        let asked =
            self.parts.iter().map(|part| {
                let (dynamo, range) = (self.dynamo.clone(), part.range);
                let mut query = part.between(&self.low, &self.high).limit(most);
                query.descending = self.descending;
                async move {
                    dynamo.query(query).await?.iter().map(|item| Ok::<_, Fault>((item.text(range)?.to_owned(), id_of(item)?))).collect()
                }
            });
        // Collected first: a stream over borrowed parts cannot be sent to another thread.
        let asked: Vec<_> = asked.collect();
        let found: Vec<Vec<(String, ExecutionId)>> = stream::iter(asked).buffer_unordered(AT_ONCE).try_collect().await?;
        let ends = found.iter().filter(|part| part.len() >= most).filter_map(|part| part.last()).map(|(sort, _)| sort.clone());
        let end = if self.descending { ends.max() } else { ends.min() };
        let mut stretch: BTreeMap<String, ExecutionId> = found.into_iter().flatten().collect();
        stretch.extend(self.extra.range(self.low.clone()..=self.high.clone()).map(|(sort, id)| (sort.clone(), *id)));
        let is_before = |sort: &String| end.as_ref().is_none_or(|end| if self.descending { sort >= end } else { sort <= end });
        let mut stretch: Vec<_> = stretch.into_iter().filter(|(sort, _)| is_before(sort) && self.passed.as_ref() != Some(sort)).collect();
        if self.descending {
            stretch.reverse();
        }
        match end {
            None => self.is_over = true,
            Some(end) => {
                if self.descending {
                    self.high.clone_from(&end);
                } else {
                    self.low.clone_from(&end);
                }
                self.passed = Some(end);
            }
        }
        Ok(Some(stretch))
    }
}

/// The id in an item or a key.
pub(crate) fn id_of(item: &Item) -> Result<ExecutionId, Fault> {
    let text = item.text("execution_id")?;
    text.parse().map_err(|error| Fault::Damaged(format!("an index names execution {text}: {error}")))
}
