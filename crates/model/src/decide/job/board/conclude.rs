//! What the whole of a job comes to, and the events that tell it.

use serde_json::{Map, Value, json};

use super::Board;
use crate::bound;
use crate::event::EventType;
use crate::job::{JobStatus, MOST_INLINE_BYTES, Phase};
use crate::view::{Standing, View};

impl<V: View> Board<'_, V> {
    /// What the whole comes to.
    pub(super) fn conclude(&mut self) -> Result<(), V::Error> {
        let counts = self.job.counts;
        let moves = self.job.attention || counts.staged + counts.ready + counts.active > 0;
        if !moves && counts.failed > 0 && self.job.failed_task.is_none() {
            // Other tasks ran again and this one did not: nobody was told of it in this generation.
            let failed = self.standing(Standing::FailedBefore(u32::MAX), 1)?;
            self.job.failed_task = failed.first().map(|node| node.task.to_string());
        }
        if let Some(task) = self.job.failed_task.clone()
            && !self.job.failure_told
        {
            self.job.failure_told = true;
            let told = self.with_statuses(json!({"jobId": self.job.id, "failedTaskId": task}))?;
            self.event(EventType::JobFailureDetected, told);
        }
        if moves {
            self.job.status = JobStatus::Running;
        } else if counts.completed == counts.total {
            (self.job.status, self.job.completed_at) = (JobStatus::Completed, Some(self.step.at));
            let told = self.with_statuses(json!({"jobId": self.job.id, "totalTasks": counts.total}))?;
            self.event(EventType::JobCompleted, told);
        } else {
            self.job.status = JobStatus::Failed;
        }
        Ok(())
    }

    /// The properties with where every task stands; of a job too large for that, with how many stand where.
    fn with_statuses(&mut self, mut properties: Value) -> Result<Value, V::Error> {
        let statuses = self.statuses()?;
        let text = bound::text(&statuses);
        if text.len() <= MOST_INLINE_BYTES {
            properties["taskStatuses"] = statuses;
            return Ok(properties);
        }
        let counts = self.job.counts;
        properties["taskCounts"] = json!({
            "completed": counts.completed,
            "failed": counts.failed,
            "processing": counts.active,
            "waiting": counts.staged + counts.waiting + counts.ready,
        });
        properties[bound::CUT] = json!({"taskStatuses": bound::mark(&text)});
        Ok(properties)
    }

    fn statuses(&mut self) -> Result<Value, V::Error> {
        let mut map = Map::new();
        for (task, phase) in self.view.phases(self.job.id)? {
            map.insert(task.to_string(), phase.word().into());
        }
        for node in self.nodes.iter().filter(|node| node.phase != Phase::Staged) {
            map.insert(node.task.to_string(), node.phase.word().into());
        }
        Ok(Value::Object(map))
    }
}
