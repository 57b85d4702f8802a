//! The trail of events in memory: everything is at hand, so that it is proved in two plain walks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use runvoy_model::chain::ChainHead;
use runvoy_model::digest::DigestsSince;
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::execution::Execution;
use runvoy_model::fold::{Comparison, ExecutionFold, Impossible, JobCheck, Mismatch, RecordCheck, compare_lock};
use runvoy_model::job::{Job, Node, Phase};
use runvoy_model::verify::{ChainCheck, TreeCheck, Verdict};
use runvoy_model::witness::Witness;
use runvoy_ports::store::StoreError;
use runvoy_ports::trail::AuditTrail;

use crate::state::State;
use crate::store::MemoryStore;

#[async_trait]
impl AuditTrail for MemoryStore {
    async fn verify(&self) -> Result<Verdict, StoreError> {
        let state = self.state.lock();
        let mut verdict = Verdict::default();
        let mut heads = heads(&state);
        let mut chains: BTreeMap<&Entity, ChainCheck> = BTreeMap::new();
        let mut tree = TreeCheck::default();
        let mut marks = state.events.values().filter_map(|event| Some((event.id, Witness::of(event)?.0))).peekable();
        for (place, event) in state.events.iter().filter(|(_, event)| event.kind.is_chained()) {
            while let Some((id, witness)) = marks.next_if(|(_, witness)| witness.up_to < *place) {
                tree.compare(id, &witness).unwrap_or_else(|bad| verdict.note(*bad));
            }
            tree.append(event.id, &event.mac);
            verdict.checked += 1;
            chains.entry(&event.entity).or_insert_with(|| ChainCheck::new(&event.entity)).next(&self.audit_key, *place, event);
        }
        for (id, witness) in marks {
            tree.compare(id, &witness).unwrap_or_else(|bad| verdict.note(*bad));
        }
        for (entity, chain) in chains {
            chain.finish(heads.remove(entity)).into_iter().for_each(|bad| verdict.note(bad));
        }
        for (entity, head) in heads {
            ChainCheck::new(&entity).finish(Some(head)).into_iter().for_each(|bad| verdict.note(bad));
        }
        verdict.checkpoint_at = tree.last().map(|witness| witness.time);
        Ok(verdict)
    }

    async fn compare_state(&self) -> Result<Comparison, StoreError> {
        let state = self.state.lock();
        let mut found = Comparison::default();
        let digests = DigestsSince::among(state.events.iter().map(|(place, event)| (*place, &event.properties)));
        let mut folds: BTreeMap<&Entity, Result<ExecutionFold, Impossible>> = BTreeMap::new();
        for (place, event) in state.events.iter().filter(|(_, event)| event.entity.kind == EntityType::Task) {
            let fold = folds.entry(&event.entity).or_insert_with(|| Ok(ExecutionFold::default()));
            if let Ok(known) = fold
                && let Err(impossible) = known.next(*place, event)
            {
                *fold = Err(impossible);
            }
        }
        let mut whole: Vec<(&Execution, ExecutionFold)> = Vec::new();
        for execution in state.executions.values() {
            let about = Entity::task(execution.id);
            let fold = folds.remove(&about).unwrap_or_else(|| Ok(ExecutionFold::default()));
            let fold = fold.map_err(|impossible| Mismatch::of(&about, "events", impossible.to_string()));
            let lock = execution.spec.lock.as_ref().and_then(|name| state.locks.get(name));
            found.add(fold.and_then(|fold| {
                let compared = fold.compare(execution, lock, digests);
                whole.push((execution, fold));
                compared
            }));
        }
        for job in state.jobs.all() {
            found.join(compare_job(&state, job, &whole, digests));
        }
        for lock in state.locks.values().filter(|lock| lock.holder.is_some()) {
            let holder = whole.iter().find(|(execution, _)| lock.is_held_by(execution.id));
            found.add(compare_lock(lock, holder.map(|(execution, fold)| (*execution, fold))));
        }
        let mut records = RecordCheck::default();
        state.events.iter().for_each(|(place, event)| records.event(*place, event));
        for record in state.records.values() {
            found.add(records.record(record).map_err(|bad| Mismatch::from(*bad)));
        }
        if let Some(bad) = records.finish() {
            found.add(Err(bad.into()));
        }
        Ok(found)
    }
}

fn compare_job(state: &State, job: &Job, executions: &[(&Execution, ExecutionFold)], digests: DigestsSince) -> Comparison {
    let mut check = JobCheck::new(job.clone(), digests);
    let about = Entity::job(job.id);
    for (place, event) in state.events.iter().filter(|(_, event)| event.entity == about) {
        check.event(*place, event);
    }
    let is_task = |execution: &Execution| execution.spec.task.as_ref().is_some_and(|task| task.job == job.id);
    for (execution, fold) in executions.iter().filter(|(execution, _)| is_task(execution)) {
        check.execution(execution, fold);
    }
    let is_opened = |node: &&Node| node.phase != Phase::Staged || job.opening == Some(node.batch);
    state.jobs.nodes(job.id).filter(is_opened).for_each(|node| check.node(node));
    state.jobs.nodes(job.id).filter(is_opened).for_each(|node| check.parents(node));
    check.finish()
}

/// The head of every chain, as what it is about keeps it.
fn heads(state: &State) -> BTreeMap<Entity, ChainHead> {
    let executions = state.executions.values().map(|execution| (Entity::task(execution.id), execution.chain));
    let records = state.records.values().filter_map(|record| Some((record.entity()?, record.chain)));
    let jobs = state.jobs.all().map(|job| (Entity::job(job.id), job.chain));
    executions.chain(records).chain(jobs).collect()
}
