//! Tasks become executions: for the first time, or again after a resume; and dead letters that are none any more.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::Board;
use crate::command::{Refusal, Submit};
use crate::decide::end::fail_unread;
use crate::decide::properties;
use crate::decide::redrive::{drop_letter, goes_on};
use crate::decide::submit::{claim_lock, new_execution};
use crate::event::EventType;
use crate::id::ExecutionId;
use crate::job::{Node, Phase, TaskRef};
use crate::redrive::RedrivenAs;
use crate::step::Step;
use crate::view::{Standing, View};

/// A task that is ready again: itself, what it was as a dead letter, and what people were told of that.
const RESUME_COST: usize = 3;
/// A dead letter that is none any more: itself, and what people were told of it.
const BURY_COST: usize = 2;
/// A task that becomes an execution: itself, the execution, its event, its lock.
const RELEASE_COST: usize = 4;
/// Where nobody says otherwise a task waits for its lock as long as it takes.
const LOCK_WAIT_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

impl<V: View> Board<'_, V> {
    /// Tasks that failed before the last resume.
    pub(super) fn make_ready_again(&mut self) -> Result<(), V::Error> {
        if !self.job.resuming {
            return Ok(());
        }
        let generation = self.job.generation;
        let most = self.affordable(RESUME_COST);
        let failed = self.standing(Standing::FailedBefore(generation), most)?;
        self.job.resuming = failed.len() == most;
        self.unfinished |= self.job.resuming;
        for mut node in failed {
            self.budget -= RESUME_COST;
            self.bury(&node)?;
            // So that it is not found again by this same look.
            (node.phase, node.generation) = (Phase::Ready, generation);
            self.job.counts.failed -= 1;
            self.job.counts.ready += 1;
            self.put(node);
        }
        Ok(())
    }

    /// A task that runs again is no dead letter any more.
    fn bury(&mut self, node: &Node) -> Result<(), V::Error> {
        let Some(id) = node.execution else { return Ok(()) };
        if let Some(mut execution) = self.view.execution(id)?.filter(|execution| execution.dead) {
            // Whoever asked for the resume may not be who makes this step.
            let again = RedrivenAs { at: self.step.at, by: self.step.actor.name(), execution: None };
            goes_on(self.view, self.step, &mut execution, again, &mut self.writes)?;
            self.writes.put(execution, self.step);
        }
        Ok(())
    }

    /// Of a job of which nothing runs again, nothing waits for somebody to run it again.
    pub(super) fn bury_all(&mut self) -> Result<(), V::Error> {
        let Some(from) = self.job.unburied else { return Ok(()) };
        let most = self.affordable(BURY_COST);
        let failed = self.view.nodes(self.job.id, Standing::FailedFrom(from), most)?;
        self.job.unburied = failed.last().filter(|_| failed.len() == most).map(|last| last.place + 1);
        for id in failed.iter().filter_map(|node| node.execution) {
            self.budget -= BURY_COST;
            if let Some(execution) = self.view.execution(id)?.filter(|execution| execution.dead) {
                let why = Refusal::JobClosed(self.job.id, self.job.status).to_string();
                drop_letter(self.view, self.step, execution, &why, &mut self.writes)?;
            }
        }
        Ok(())
    }

    /// Tasks that could run become executions, as many as the job may have at once.
    pub(super) fn release(&mut self) -> Result<(), V::Error> {
        let free = self.job.concurrency.map_or(u32::MAX, |most| most.saturating_sub(self.job.counts.active)).min(self.job.counts.ready);
        let wanted = usize::try_from(free).unwrap_or(usize::MAX);
        let most = self.affordable(RELEASE_COST);
        self.unfinished |= wanted > most;
        for node in self.standing(Standing::Ready, wanted.min(most))? {
            self.budget -= RELEASE_COST;
            self.release_one(node)?;
        }
        Ok(())
    }

    fn release_one(&mut self, mut node: Node) -> Result<(), V::Error> {
        let id = execution_id(self.step, &node, self.job.generation);
        let mut spec = node.runs().clone();
        spec.lock_wait_ms = spec.lock.as_ref().map(|_| spec.lock_wait_ms.unwrap_or(LOCK_WAIT_MS));
        spec.task = Some(TaskRef {
            job: self.job.id,
            task: node.task.clone(),
            generation: self.job.generation,
            name: (node.name != node.task.as_str()).then(|| node.name.clone()),
        });
        let submit = Submit { id, spec, created_by: self.job.created_by.clone(), key: None, lease_to: None };
        let mut execution = new_execution(self.step, &submit);
        let claimed = claim_lock(self.view, self.step, &execution, &self.writes)?;
        if let Ok((claim, lock)) = claimed {
            execution.lock = claim;
            self.writes.locks.extend(lock);
        }
        let pending = json!({
            "name": node.name,
            "dependsOn": node.depends_on,
            "attempt": 1,
            "queue": execution.spec.queue,
            "generation": self.job.generation,
        });
        self.writes.event(self.step, id, EventType::TaskPending, properties(&execution, pending));
        self.job.counts.ready -= 1;
        (node.execution, node.generation) = (Some(id), self.job.generation);
        if node.runs().is_lost() {
            fail_unread(self.step, execution, &mut self.writes);
            node.phase = Phase::Failed;
            self.job.counts.failed += 1;
            self.job.failed_task.get_or_insert_with(|| node.task.to_string());
            // It takes nobody's place: the next in line may have it.
            self.unfinished |= self.job.counts.ready > 0;
        } else {
            self.writes.put(execution, self.step);
            node.phase = Phase::Active;
            self.job.counts.active += 1;
        }
        self.put(node);
        Ok(())
    }
}

/// The id of a task's execution, a UUIDv7: of its time, then in the order of the job's tasks, and of nothing else that could come twice.
fn execution_id(step: &Step, node: &Node, generation: u32) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(node.job.as_bytes());
    hash.update(generation.to_be_bytes());
    hash.update(node.task.as_str());
    let digest: [u8; 32] = hash.finalize().into();
    let rest = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes")) >> 14;
    let (time, place) = (step.at.0.clamp(0, (1 << 48) - 1).cast_unsigned(), u64::from(node.place & 0xff_ffff));
    let high = time << 16 | 0x7000 | place >> 12;
    let low = 0b10 << 62 | (place & 0xfff) << 50 | rest;
    ExecutionId::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}
