//! The transactional store: how a step is taken. It is decided over what was read, written by one conditional transaction, and decided anew
//! if somebody was faster.

use std::sync::Arc;

use futures_util::future::try_join_all;
use runvoy_model::chain::AuditKey;
use runvoy_model::change::Change;
use runvoy_model::command::{Answer, Command, Receipt};
use runvoy_model::decide::{decide, replay};
use runvoy_model::execution::Execution;
use runvoy_model::limit::StepLimits;
use runvoy_model::record::{Kind, owner_record};
use runvoy_model::step::Step;
use runvoy_model::view::Writes;
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;

use crate::blob::S3BlobStore;
use crate::clients::Clients;
use crate::config::Config;
use crate::desk::{Desk, Halt, Need};
use crate::dynamo::{Dynamo, pause};
use crate::event::EventLog;
use crate::fault::Fault;
use crate::item::Item;
use crate::job::list::JobLists;
use crate::lists::Lists;
use crate::turn::{Turn, Turns};
use crate::{limit, mark};

/// A step that was overtaken so often is given back to its caller.
const ROUNDS: u32 = 60;
/// A decision that wants to look at more than this is not one of ours.
const LOOKS: usize = 5_000;

/// Executions, jobs, records and events in DynamoDB. A clone is another handle on the same.
#[derive(Clone)]
pub struct DynamoStore {
    pub(crate) dynamo: Dynamo,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) config: Arc<Config>,
    pub(crate) audit_key: AuditKey,
    pub(crate) lists: Arc<Lists>,
    pub(crate) events: Arc<EventLog>,
    /// Where the pruner goes on.
    pub(crate) pruned_to: Arc<parking_lot::Mutex<Option<Item>>>,
    turns: Arc<Turns<Need>>,
    wakes: Option<Arc<dyn Wakes>>,
}

/// Who is told of what a step has made ready or taken. Hints: they may be lost.
pub trait Wakes: Send + Sync {
    /// These steps were committed with these writes.
    fn committed(&self, writes: &Writes);

    /// This execution was given up, because nobody could read what it was to run.
    fn gave_up(&self, execution: &Execution);
}

impl DynamoStore {
    /// What one step may hold.
    pub const STEP_LIMITS: StepLimits = limit::STEP;

    /// The store of an installation that was set up.
    pub fn new(clients: &Clients, config: Arc<Config>, audit_key: AuditKey) -> Self {
        let dynamo = Dynamo::new(clients, Arc::clone(&config));
        let blobs: Arc<dyn BlobStore> = Arc::new(S3BlobStore::new(clients, &config));
        let lists = Arc::new(Lists::new(dynamo.clone(), Arc::clone(&blobs), Arc::clone(&config)));
        let events = Arc::new(EventLog::new(dynamo.clone()));
        Self { dynamo, blobs, config, audit_key, lists, events, pruned_to: Arc::default(), turns: Arc::default(), wakes: None }
    }

    /// The same, telling somebody of what it commits.
    #[must_use]
    pub fn waking(mut self, wakes: Arc<dyn Wakes>) -> Self {
        self.wakes = Some(wakes);
        self
    }

    /// Takes one step, or answers it as before.
    pub(crate) async fn take(&self, step: &Step, command: &Command) -> Result<Answer, StoreError> {
        let (mut tried, mut round) = (None, 0);
        let taken = loop {
            match self.try_take(step, command, &mut tried).await {
                Err(Fault::Conflict | Fault::Busy(_)) if round < ROUNDS => pause(round.min(4)).await,
                taken => break taken,
            }
            round += 1;
        };
        // It may have been done in a round whose answer was lost, and what is remembered is only looked at.
        tried.iter().for_each(|writes| self.remember(writes));
        if let Err(Fault::Conflict) = taken {
            let source = std::io::Error::other("other writers changed the same items in every attempt");
            return Err(Fault::Unavailable { service: "DynamoDB", code: "TransactionConflict".to_owned(), source: Box::new(source) }.into());
        }
        Ok(taken?)
    }

    /// `tried` is what was written last, in vain as far as that round knows.
    async fn try_take(&self, step: &Step, command: &Command, tried: &mut Option<Writes>) -> Result<Answer, Fault> {
        let mut desk = Desk::default();
        let mut turn = None;
        let (receipt, found) = tokio::try_join!(mark::receipt(&self.dynamo, step.id), self.foreseen(step, command))?;
        if let Some(receipt) = receipt {
            return self.answer_again(&receipt).await;
        }
        // What leaves a receipt and left none was not done: to remember it would be to count and show what there is not.
        tried.take_if(|writes| writes.receipt.is_some());
        found.into_iter().flatten().for_each(|(need, found)| desk.put(need, found));
        let (mut writes, mut answer) = self.decide(&mut desk, &mut turn, |desk| decide(desk, step, command)).await?;
        if writes.is_empty() {
            // That nothing was given says nothing about what was looked at.
            if !matches!(command, Command::Lease(_)) {
                self.hold(&desk).await?;
            }
            return Ok(answer);
        }
        writes.seal(&self.audit_key, &mut answer);
        let committed = self.commit(step, command, &desk, &writes).await;
        drop(turn);
        if let Err(fault @ (Fault::Conflict | Fault::Busy(_))) = committed {
            *tried = Some(writes);
            return Err(fault);
        }
        // Also where no answer came: it may have been done.
        *tried = None;
        self.remember(&writes);
        committed?;
        if let Some(wakes) = &self.wakes {
            wakes.committed(&writes);
            if let (Command::GiveUp(..), Answer::Ended(ended)) = (command, &answer) {
                wakes.gave_up(ended);
            }
        }
        Ok(answer)
    }

    /// What was written is found from now on, also where an index lags.
    fn remember(&self, writes: &Writes) {
        writes.executions.iter().for_each(|execution| self.lists.wrote(execution));
        writes.jobs.iter().for_each(|job| self.lists.recent.wrote_job(job));
        writes.forgotten.iter().for_each(|job| self.lists.recent.forget_job(*job));
    }

    /// What it takes to look for jobs.
    pub(crate) fn job_lists(&self) -> JobLists<'_> {
        JobLists { dynamo: &self.dynamo, shards: self.config.shards, recent: self.lists.recent.jobs(|job| Some(job.clone())) }
    }

    async fn answer_again(&self, receipt: &Receipt) -> Result<Answer, Fault> {
        let mut answer = self.decide(&mut Desk::default(), &mut None, |desk| replay(desk, receipt)).await?;
        answer.executions_mut().iter().for_each(|execution| self.lists.wrote(execution));
        Ok(answer)
    }

    /// Runs a decision until it has seen all that it wants to see.
    async fn decide<T>(
        &self,
        desk: &mut Desk,
        turn: &mut Option<Turn>,
        decision: impl Fn(&mut Desk) -> Result<T, Halt>,
    ) -> Result<T, Fault> {
        for _ in 0..LOOKS {
            match decision(desk) {
                Ok(decided) => return Ok(decided),
                Err(Halt::Need(need)) => {
                    let busy = matches!(need, Need::Job(_) | Need::Lock(_) | Need::FirstWaiter(_) | Need::Record(Kind::Permits, _));
                    if busy && turn.is_none() {
                        *turn = Some(self.turns.take(need.clone()).await);
                    }
                    self.fetch(desk, need).await?;
                }
            }
        }
        Err(Fault::Damaged("a decision never ended".to_owned()))
    }

    /// What a step will surely look at, read at once instead of one after the other.
    async fn foreseen(&self, step: &Step, command: &Command) -> Result<Vec<Vec<(Need, crate::desk::Found)>>, Fault> {
        let needs = foreseen(step, command);
        try_join_all(needs.into_iter().map(|need| self.read(need))).await
    }
}

/// The things that a step looks at whatever it finds.
fn foreseen(step: &Step, command: &Command) -> Vec<Need> {
    let mut needs = Vec::new();
    if let Some(authority) = &step.authority {
        let (kind, name) = owner_record(&authority.email);
        needs.push(Need::Record(kind, name.to_owned()));
    }
    match command {
        Command::Submit(submit) => {
            needs.push(Need::Execution(submit.id));
            needs.extend(submit.lease_to.as_ref().map(|_| Need::Record(Kind::Queue, submit.spec.queue.as_str().to_owned())));
            needs.extend(submit.key.as_ref().map(|key| Need::Submitted(key.user.clone(), key.key.clone())));
        }
        Command::Begin(fence) | Command::Send(fence) | Command::GiveBack(fence) | Command::Unsend(fence) => {
            needs.push(Need::Execution(fence.execution))
        }
        Command::Extend(extend) => needs.push(Need::Execution(extend.fence.execution)),
        Command::EndAttempt(ended) => needs.push(Need::Execution(ended.fence.execution)),
        Command::Kill(kill) => needs.push(Need::Execution(kill.execution)),
        Command::Reap(reap) => needs.push(Need::Execution(reap.execution)),
        Command::ConfirmKill(id)
        | Command::ExpireWait(id)
        | Command::GiveUp(id, _)
        | Command::NoteLink(id, ..)
        | Command::FreePermit(_, id) => needs.push(Need::Execution(*id)),
        Command::ReleaseLock(name) | Command::FreeLock(name, _) => needs.push(Need::Lock(name.clone())),
        Command::Change(Change::Checkpoint(_), _) => needs.push(Need::Record(Kind::Ledger, runvoy_model::record::ONLY.to_owned())),
        _ => {}
    }
    needs.dedup();
    needs
}
