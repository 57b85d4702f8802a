//! Proves the log: every chain against the head that its entity keeps, the whole log by place against its checkpoints, those against the exported
//! ones; and, asked apart, whether all other state follows from the events. Reads consistently while others write, and never writes but to drain.

mod chain;
mod export;
mod record;
mod state;
mod tree;

use std::sync::Arc;

use async_trait::async_trait;
use runvoy_model::chain::{AuditKey, ChainHead};
use runvoy_model::event::Entity;
use runvoy_model::fold::Comparison;
use runvoy_model::record::Record;
use runvoy_model::verify::{BadEvent, Problem, Verdict};
use runvoy_ports::job::JobStore;
use runvoy_ports::store::{ExecutionStore, StoreError};
use runvoy_ports::trail::AuditTrail;

use super::EventLog;
use super::witness::BucketWitnesses;
use crate::fault::Fault;
use crate::item::Item;
use crate::table::Table;

/// The heads of chains, as what they are about keeps them; and records, whole.
#[async_trait]
pub(crate) trait Heads: Send + Sync {
    /// A page of heads, in any order, and where to go on; `None` begins, and `None` ends. Read consistently: whatever is there from the first page to
    /// the last is on one of them. Also heads of what was removed and whose chain goes on when its name is used again.
    async fn heads(&self, after: Option<HeadCursor>) -> Result<HeadPage, Fault>;

    /// The head of one chain as it is now; `None` where nothing keeps it.
    async fn head(&self, entity: &Entity) -> Result<Option<ChainHead>, Fault>;

    /// A page of records, as [`Self::heads`] gives heads.
    async fn records(&self, after: Option<HeadCursor>) -> Result<RecordPage, Fault>;
}

/// A page of heads, and of what keeps one that cannot be read.
pub(crate) type HeadPage = (Vec<Result<(Entity, ChainHead), BadEvent>>, Option<HeadCursor>);

/// A page of records, and of those that cannot be read.
pub(crate) type RecordPage = (Vec<Result<Record, BadEvent>>, Option<HeadCursor>);

/// Where a walk over all heads or records goes on.
#[derive(Debug, Clone)]
pub(crate) struct HeadCursor {
    /// In this table.
    pub table: Table,
    /// After this key; from the beginning where there is none.
    pub after: Option<Item>,
}

/// The trail of an installation.
pub(crate) struct Trail {
    log: EventLog,
    key: AuditKey,
    heads: Arc<dyn Heads>,
    executions: Arc<dyn ExecutionStore>,
    jobs: Arc<dyn JobStore>,
    witnesses: Option<BucketWitnesses>,
}

impl Trail {
    /// The trail of events that are proved with this key, against this state, and against what was exported.
    pub fn new(
        log: EventLog,
        key: AuditKey,
        heads: Arc<dyn Heads>,
        (executions, jobs): (Arc<dyn ExecutionStore>, Arc<dyn JobStore>),
        witnesses: Option<BucketWitnesses>,
    ) -> Self {
        Self { log, key, heads, executions, jobs, witnesses }
    }

    async fn look(&self) -> Result<Verdict, Fault> {
        let mut verdict = Verdict::default();
        // Whatever was exported before the log is looked at must be in it.
        let told = match &self.witnesses {
            Some(witnesses) => witnesses.last_number().await?,
            None => 0,
        };
        let last = self.log.last_place().await?;
        let linked = chain::check(self, last, &mut verdict).await?;
        let mut of_tree = Verdict::default();
        let leaves = tree::check(self, last, told, &mut of_tree).await?;
        (verdict.checkpoint_at, verdict.unexported_from) = (of_tree.checkpoint_at, of_tree.unexported_from);
        // A chain names the event itself; the tree knows only between which checkpoints it lies.
        if verdict.is_whole() {
            verdict.first_bad = of_tree.first_bad;
        }
        if verdict.is_whole() && linked != leaves {
            let orphan = chain::orphan(self, last).await?;
            let message = format!("entities have {linked} events, but the log has {leaves}");
            verdict.note(orphan.unwrap_or_else(|| store(Problem::Altered, message)));
        }
        Ok(verdict)
    }
}

#[async_trait]
impl AuditTrail for Trail {
    async fn verify(&self) -> Result<Verdict, StoreError> {
        match self.look().await {
            Err(Fault::Damaged(why)) => {
                let mut verdict = Verdict::default();
                verdict.note(store(Problem::Unreadable, format!("the store cannot be read: {why}")));
                Ok(verdict)
            }
            looked => Ok(looked?),
        }
    }

    async fn compare_state(&self) -> Result<Comparison, StoreError> {
        state::compare(self).await
    }
}

/// Something that no event can be named for.
fn store(problem: Problem, message: String) -> BadEvent {
    BadEvent { place: u64::MAX, entity: "STORE".into(), number: 0, event_id: None, problem, message }
}
