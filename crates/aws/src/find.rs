//! Finding executions by the beginning or the end of their id. An id never changes, so that whatever an index names is right; what has
//! just been written is looked through as well.

use std::collections::{BTreeMap, BTreeSet};

use runvoy_model::id::ExecutionId;
use runvoy_ports::store::StoreError;

use crate::day::Day;
use crate::execution::{self, SUFFIX_DIGITS};
use crate::known;
use crate::list::{FIRST_ID, LAST_ID};
use crate::lists::Lists;
use crate::table::Table;
use crate::walk::{Bounds, Part, Walk};

/// The digits of an id.
const DIGITS: usize = 32;
/// So many days are looked through at once.
const DAYS_AT_ONCE: usize = 8;
/// So many ids are taken from a part at once, at least.
const LEAST: usize = 64;

impl Lists {
    /// Executions whose id begins or ends with these hex digits, the first `max` by id.
    pub async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let digits = digits.to_ascii_lowercase();
        if max == 0 || digits.len() > DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(Vec::new());
        }
        let bound = |fill: &str| -> ExecutionId {
            let text = digits.clone() + &fill.repeat(DIGITS - digits.len());
            text.parse().expect("32 hex digits are an id")
        };
        if digits.len() == DIGITS {
            let id = bound("");
            let item = self.dynamo.get(Table::Executions, execution::key(id)).await?;
            return Ok(item.into_iter().map(|_| id).collect());
        }
        let begins = |id: ExecutionId| id.to_string().starts_with(&digits);
        let ends = |id: ExecutionId| id.to_string().ends_with(&digits);
        if digits.len() < SUFFIX_DIGITS {
            // No index has ids by so short an end: all are looked through.
            return self.find_between(FIRST_ID, LAST_ID, max, &|id| begins(id) || ends(id)).await;
        }
        let mut found: BTreeSet<_> = self.find_between(bound("0"), bound("f"), max, &begins).await?.into_iter().collect();
        let part = Part::by_id("suffix-index", "suffix", digits[digits.len() - SUFFIX_DIGITS..].to_owned());
        found.extend(self.find_in(vec![part], (FIRST_ID, LAST_ID), max, &ends).await?);
        Ok(found.into_iter().take(max).collect())
    }

    /// Day by day, from the first.
    async fn find_between(
        &self,
        first: ExecutionId,
        last: ExecutionId,
        max: usize,
        fits: &(dyn Fn(ExecutionId) -> bool + Sync),
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let days = known::days(&self.dynamo, known::ALL_DAYS).await?.days;
        let days: Vec<Day> = days.range(Day::of_id(first.0)..=Day::of_id(last.0)).copied().collect();
        let mut found = Vec::new();
        for group in days.chunks(DAYS_AT_ONCE) {
            let part = |day: &Day, shard| Part::by_id("day-index", "day_shard", format!("{day}#{shard}"));
            let parts = group.iter().flat_map(|day| self.shards().map(move |shard| part(day, shard))).collect();
            let low = first.max(ExecutionId(group[0].first_id()));
            let high = last.min(ExecutionId(group[group.len() - 1].last_id()));
            found.extend(self.find_in(parts, (low, high), max - found.len(), fits).await?);
            if found.len() >= max {
                break;
            }
        }
        Ok(found)
    }

    async fn find_in(
        &self,
        parts: Vec<Part>,
        (first, last): (ExecutionId, ExecutionId),
        max: usize,
        fits: &(dyn Fn(ExecutionId) -> bool + Sync),
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let bounds = Bounds { low: first.to_string(), high: last.to_string(), after: None, descending: false };
        let written = self.recent.executions(|execution| fits(execution.id).then_some(execution.id));
        let extra: BTreeMap<_, _> = written.into_iter().map(|id| (id.to_string(), id)).collect();
        let mut walk = Walk::new(&self.dynamo, parts, bounds, extra);
        let mut found = Vec::new();
        while found.len() < max
            && let Some(stretch) = walk.next(max.max(LEAST)).await?
        {
            found.extend(stretch.into_iter().map(|(_, id)| id).filter(|id| fits(*id)));
        }
        found.truncate(max);
        Ok(found)
    }
}
