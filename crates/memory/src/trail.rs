//! The trail of events in memory: everything is at hand, so that it is proved in two plain walks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use runvoy_model::chain::ChainHead;
use runvoy_model::event::Entity;
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
}

/// The head of every chain, as what it is about keeps it.
fn heads(state: &State) -> BTreeMap<Entity, ChainHead> {
    let executions = state.executions.values().map(|execution| (Entity::task(execution.id), execution.chain));
    let records = state.records.values().filter_map(|record| Some((record.entity()?, record.chain)));
    let jobs = state.jobs.all().map(|job| (Entity::job(job.id), job.chain));
    executions.chain(records).chain(jobs).collect()
}
