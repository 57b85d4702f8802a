//! Everything that looks for executions other than by their id. Indexes may lag: they only name candidates, which are read as they are now
//! and judged again; and what this process has just written is a candidate too, so that it reads its own writes. Nothing here changes an
//! execution.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, future, stream};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;

use crate::config::Config;
use crate::count::Counted;
use crate::day::Day;
use crate::dynamo::Dynamo;
use crate::execution::{self, Restored};
use crate::fault::Fault;
use crate::item::{Item, Read};
use crate::known::{self, Known};
use crate::lost::{LeftOut, Unreadable};
use crate::recent::Recent;
use crate::table::Table;
use crate::walk::AT_ONCE;

/// So many items are read by one request.
const CHUNK: usize = 100;

/// What a store needs to look for executions.
pub(crate) struct Lists {
    pub dynamo: Dynamo,
    pub blobs: Arc<dyn BlobStore>,
    pub config: Arc<Config>,
    pub recent: Recent,
    pub known: Known,
    pub counted: Counted,
    pub unreadable: Unreadable,
    left_out: LeftOut,
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").finish_non_exhaustive()
    }
}

impl Lists {
    pub fn new(dynamo: Dynamo, blobs: Arc<dyn BlobStore>, config: Arc<Config>) -> Self {
        let unreadable = Unreadable::new(config.give_up_after);
        let (known, counted, left_out) = Default::default();
        Self { dynamo, blobs, config, recent: Recent::new(), known, counted, unreadable, left_out }
    }

    /// Before a new execution is committed: its day and queue can be looked for from now on.
    pub async fn note_new(&self, execution: &Execution) -> Result<(), StoreError> {
        let day = Day::of_id(execution.id.0);
        let is_odd = day.apart(Day::of(execution.submitted_at)) > 1;
        let user = known::user_days(&execution.created_by);
        let (known, dynamo) = (&self.known, &self.dynamo);
        let days = future::try_join(known.add_day(dynamo, known::ALL_DAYS, day, is_odd), known.add_day(dynamo, &user, day, is_odd));
        let others = future::try_join(known.add_queue(dynamo, &execution.spec.queue), self.counted.reopen(dynamo, day));
        future::try_join(days, others).await?;
        Ok(())
    }

    /// After an execution was committed.
    pub fn wrote(&self, execution: &Execution) {
        self.recent.wrote(execution);
    }

    /// Executions as they are now, each once and in the order of the ids; those that are not there are left out.
    pub async fn read(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        Ok(self.restored(ids).await?.into_iter().map(|restored| restored.execution).collect())
    }

    /// The same, with what could not be read of each. One of which nothing is left to show is left out, for it must not hide all others.
    pub async fn restored(&self, ids: &[ExecutionId]) -> Result<Vec<Restored>, StoreError> {
        // A key that is named twice would be refused.
        let mut seen = HashSet::new();
        let ids: Vec<ExecutionId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let chunks = ids.chunks(CHUNK).map(|chunk| {
            let (dynamo, blobs) = (self.dynamo.clone(), Arc::clone(&self.blobs));
            let keys = chunk.iter().map(|id| execution::key(*id)).collect();
            async move {
                let items = dynamo.get_all(Table::Executions, keys).await?;
                let decoded = items.into_iter().map(|item| restore(item, blobs.as_ref())).collect::<Vec<_>>();
                stream::iter(decoded).buffer_unordered(AT_ONCE).try_collect::<Vec<Shown>>().await
            }
        });
        let chunks: Vec<_> = chunks.collect();
        let read: Vec<Vec<Shown>> = stream::iter(chunks).buffer_unordered(AT_ONCE / 2).try_collect().await?;
        let read = read.into_iter().flatten();
        let read = read.filter_map(|one| one.map_err(|(id, fault)| self.left_out.say(&id, &fault)).ok());
        let mut by_id: HashMap<ExecutionId, Restored> = read.map(|restored| (restored.execution.id, restored)).collect();
        Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
    }

    /// The same without their specs: where they stand is known without what they run, and without the blob store.
    pub async fn read_states(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, StoreError> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let items =
            self.dynamo.get_parts(Table::Executions, ids.into_iter().map(execution::key).collect(), &["execution_id", "state"]).await?;
        let state = |item: &Item| {
            let unread = |fault: Fault| self.left_out.say(item.text_if("execution_id").unwrap_or("?"), &fault);
            item.json::<Execution>("state").map_err(unread).ok()
        };
        Ok(items.iter().filter_map(state).collect())
    }

    /// The numbers of all shards.
    pub fn shards(&self) -> std::ops::Range<u32> {
        0..self.config.shards.max(1)
    }
}

/// One of which nothing is left to show is known by its id, and why.
type Shown = Result<Restored, (String, Fault)>;

async fn restore(item: Item, blobs: &dyn BlobStore) -> Result<Shown, StoreError> {
    let id = item.text_if("execution_id").unwrap_or("?").to_owned();
    match execution::shown(item, blobs).await {
        Ok(restored) => Ok(Ok(restored)),
        Err(fault @ Fault::Damaged(_)) => Ok(Err((id, fault))),
        Err(fault) => Err(fault.into()),
    }
}

#[cfg(test)]
mod tests;
