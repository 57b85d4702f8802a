//! Writes down what the log of events comes to, once a minute and at the stop, and tells it outside the store.
//!
//! The tree over the log lives in memory and goes on from the last checkpoint at a start, so that a checkpoint costs what happened since
//! the last one. A checkpoint is an event too, and the next one covers it; but it alone is no reason for a next one, so that a server at
//! rest writes nothing. A checkpoint is told before the next is written: outside there is at most one less than inside, unless telling
//! fails; then checkpoints are written all the same, and told when it works again. Where several servers write to one store, a checkpoint's
//! number names its step: of two that did not know of each other the second writes nothing, so that none ever covers less than the one before it.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use runvoy_model::change::{Change, Checkpoint};
use runvoy_model::event::{Entity, EntityType, EventType};
use runvoy_model::merkle::Tree;
use runvoy_model::record::ONLY;
use runvoy_model::witness::Witness;
use runvoy_ports::store::EventQuery;
use runvoy_ports::trail::Witnesses;
use tokio::sync::Mutex;

use crate::Engine;
use crate::error::EngineError;

const EVERY: Duration = Duration::from_secs(60);
/// An earlier start may have left an incident.
const UNKNOWN: u8 = 2;
/// How many events are read at once.
const PAGE: usize = 1_000;
/// So many pages are worth a checkpoint: a store with a long past and none yet gets there step by step, whatever ends the server meanwhile.
const PAGES_AT_ONCE: usize = 10;

/// The agent.
pub struct Auditor {
    engine: Arc<Engine>,
    witnesses: Arc<dyn Witnesses>,
    progress: Mutex<Option<Progress>>,
    /// Whether the last one failed: 0, 1, or [`UNKNOWN`].
    was_failing: AtomicU8,
}

/// How far the log was read.
struct Progress {
    tree: Tree,
    /// The place of the last event that was read.
    read: u64,
    /// The place of the last event in the tree.
    covered: u64,
    /// How many checkpoints are among what was read.
    checkpoints: u64,
    /// Something else than checkpoints happened since the last one.
    is_due: bool,
    /// The last checkpoint that was told outside; `None` where that must be looked up.
    told: Option<Option<Witness>>,
}

impl Auditor {
    /// An auditor that tells these witnesses.
    pub fn new(engine: Arc<Engine>, witnesses: Arc<dyn Witnesses>) -> Self {
        Self { engine, witnesses, progress: Mutex::new(None), was_failing: AtomicU8::new(UNKNOWN) }
    }

    /// Makes a checkpoint every minute, until dropped.
    pub async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.turn().await;
        }
    }

    /// Makes a checkpoint. That it could not be made or told is an incident, which is over when it can.
    pub async fn turn(&self) {
        let failed = self.checkpoint().await.err().map(|error| {
            let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
            tracing::error!(%error, cause, "no checkpoint of the audit trail was created, or it was not exported");
            format!("checkpoints of the audit trail cannot be exported: {error}{cause}")
        });
        let is_failing = failed.is_some();
        if self.was_failing.swap(u8::from(is_failing), Ordering::Relaxed) == u8::from(is_failing) {
            return;
        }
        if let Err(error) = self.engine.note_delivery("checkpoints", failed).await {
            self.was_failing.store(UNKNOWN, Ordering::Relaxed);
            tracing::warn!(%error, "an incident about checkpoints cannot be recorded");
        }
    }

    /// Tells what an earlier start wrote and could not tell any more.
    pub async fn catch_up(&self) -> Result<(), EngineError> {
        let mut progress = self.progress.lock().await;
        let progress = self.resume(&mut progress).await?;
        self.tell(progress).await
    }

    /// Makes a checkpoint if anything happened since the last one; whether it did.
    pub async fn checkpoint(&self) -> Result<bool, EngineError> {
        let mut progress = self.progress.lock().await;
        let progress = self.resume(&mut progress).await?;
        let (mut told, mut made) = (self.tell(progress).await, false);
        loop {
            let is_at_end = self.read(progress).await?;
            if progress.is_due && (is_at_end || !self.engine.config.shares_store()) {
                let checkpoint = progress.tree.checkpoint(progress.covered);
                let step = self.engine.agent_step("auditor", &format!("checkpoint {}", progress.checkpoints + 1));
                self.engine.ports.store.change(step, Change::Checkpoint(checkpoint), None).await?;
                (progress.is_due, made) = (false, true);
                told = self.tell(progress).await;
            }
            if is_at_end {
                return told.map(|()| made);
            }
        }
    }

    /// Goes on from the last checkpoint, once.
    async fn resume<'p>(&self, progress: &'p mut Option<Progress>) -> Result<&'p mut Progress, EngineError> {
        if progress.is_none() {
            let query = EventQuery { descending: true, limit: 1, ..of_ledger() };
            let (tree, covered, checkpoints) = match self.engine.ports.store.events(query).await?.pop() {
                None => (Tree::default(), 0, 0),
                Some(last) => {
                    let checkpoint: Option<Checkpoint> = Witness::of(&last.event).map(|(_, checkpoint)| checkpoint);
                    // Whatever the last one does not cover is read again, and it itself is among that.
                    let before = last.event.number.saturating_sub(1);
                    let resumed = checkpoint.and_then(|checkpoint| Some((Tree::resume(&checkpoint)?, checkpoint.up_to, before)));
                    let changed = "the last checkpoint of the audit trail was changed: see `runvoy audit verify`";
                    resumed.ok_or_else(|| EngineError::Internal(changed.to_owned()))?
                }
            };
            *progress = Some(Progress { tree, read: covered, covered, checkpoints, is_due: false, told: None });
        }
        Ok(progress.as_mut().expect("just filled"))
    }

    /// Takes what happened since the last look into the tree, or as much as is worth a checkpoint; whether that was all.
    async fn read(&self, progress: &mut Progress) -> Result<bool, EngineError> {
        for _ in 0..PAGES_AT_ONCE {
            let page = self.engine.ports.store.leaves(progress.read, PAGE).await?;
            for leaf in &page {
                progress.read = leaf.place;
                if leaf.kind.is_chained() {
                    progress.tree.append(leaf.id, &leaf.mac);
                    progress.covered = leaf.place;
                    progress.is_due |= leaf.kind != EventType::AuditCheckpoint;
                    progress.checkpoints += u64::from(leaf.kind == EventType::AuditCheckpoint);
                }
            }
            if page.len() < PAGE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells every checkpoint that was not told yet. What was written is looked up, not remembered: an answer may have been lost.
    async fn tell(&self, progress: &mut Progress) -> Result<(), EngineError> {
        // Out of `progress` until everything is told: after a failure, or where nobody waits any more, it may have been heard all the same.
        let mut told = match progress.told.take() {
            Some(told) if !self.engine.config.shares_store() => told,
            _ => self.witnesses.last().await.map_err(|error| EngineError::Unavailable(Box::new(error)))?,
        };
        let mut after = told.as_ref().map(|told| told.up_to);
        loop {
            let page = self.engine.ports.store.events(EventQuery { after, limit: PAGE, ..of_ledger() }).await?;
            after = page.last().map(|last| last.place);
            let number = told.as_ref().map_or(0, |told| told.number);
            let further = page.iter().filter(|stored| stored.event.number > number);
            let further: Vec<Witness> = further.filter_map(|stored| Some(Witness::of(&stored.event)?.0)).collect();
            if let Some(last) = further.last().cloned() {
                self.witnesses.tell(further).await.map_err(|error| EngineError::Unavailable(Box::new(error)))?;
                told = Some(last);
            }
            if page.len() < PAGE {
                progress.told = Some(told);
                return Ok(());
            }
        }
    }
}

fn of_ledger() -> EventQuery {
    EventQuery { entity: Some(Entity { kind: EntityType::Ledger, id: ONLY.to_owned() }), ..EventQuery::default() }
}
