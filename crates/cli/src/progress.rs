//! The progress of a job in one line, and the lines that it ends with. Pure: it makes texts, others write them.

use runvoy_wire::{Job, JobStatus, Rfc3339, Status, TaskStatus};

use crate::duration::Human;
use crate::reason;
use crate::sanitize::one_line;
use crate::terminal::{Tone, paint};

/// So many failed tasks are named at the end.
const NAMED: usize = 10;

/// The mark of a status, and what it feels like.
pub(crate) fn mark(status: JobStatus) -> (&'static str, Tone) {
    match status {
        JobStatus::Running => ("●", Tone::Busy),
        JobStatus::Completed => ("✓", Tone::Good),
        JobStatus::Failed => ("✗", Tone::Bad),
        JobStatus::Cancelled => ("■", Tone::Warning),
    }
}

/// `3 done · 2 running · 4 waiting · 1 failed`.
pub(crate) fn counts(job: &Job) -> String {
    let counts = job.task_counts;
    format!("{} done · {} running · {} waiting · {} failed", counts.completed, counts.running, counts.waiting, counts.failed)
}

/// How long it has been running, or ran.
pub(crate) fn elapsed(job: &Job, now: Rfc3339) -> Human {
    Human::from_ms(job.completed_at.unwrap_or(now).ms_since(job.created_at))
}

/// `✓ completed · 10 done · … · 12s · ID`; a failed one with its failed tasks and what to do next.
pub(crate) fn end(job: &Job, now: Rfc3339, colour: bool) -> String {
    let (mark, tone) = mark(job.status);
    let word = paint(&format!("{mark} {}", job.status.as_str().to_ascii_lowercase()), tone, colour);
    let mut text = format!("{word} · {} · {} · {}", counts(job), elapsed(job, now), paint(&one_line(&job.job_id), Tone::Dim, colour));
    if job.status != JobStatus::Failed {
        return text;
    }
    let failed = |status: TaskStatus| matches!(status, TaskStatus::Execution(Status::Failed | Status::Stopped));
    let all: Vec<_> = job.tasks.iter().filter(|task| failed(task.status)).collect();
    for task in all.iter().take(NAMED) {
        let why = task.end_reason.as_ref().map_or_else(|| task.status.to_string(), reason::told);
        text.push_str(&format!("\n  {}: {why}", one_line(&task.task_id)));
    }
    if all.len() > NAMED {
        text.push_str(&format!("\n  and {} more", all.len() - NAMED));
    }
    let id = one_line(&job.job_id);
    if let Some(first) = all.first() {
        text.push_str(&format!("\n  see why:          runvoy job logs {id} {}", one_line(&first.task_id)));
    }
    text.push_str(&format!("\n  run them again:   runvoy job resume {id}"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: &str, tasks: serde_json::Value) -> Job {
        serde_json::from_value(
            serde_json::json!({"jobId": "0192ab", "status": status, "createdAt": "1970-01-01T00:00:00Z", "totalTasks": 4,
            "taskCounts": {"completed": 2, "running": 0, "waiting": 1, "failed": 1}, "tasks": tasks}),
        )
        .expect("a job")
    }

    #[test]
    fn a_failed_job_names_what_failed_and_what_to_do() {
        let tasks = serde_json::json!([{"taskId": "a", "status": "SUCCEEDED"}, {"taskId": "b", "status": "FAILED", "end_reason": {"code": "exit", "message": "exit code 2"}}]);
        insta::assert_snapshot!(end(&job("FAILED", tasks), Rfc3339(12_000), false), @r"
        ✗ failed · 2 done · 0 running · 1 waiting · 1 failed · 12s · 0192ab
          b: exit code 2
          see why:          runvoy job logs 0192ab b
          run them again:   runvoy job resume 0192ab
        ");
        assert_eq!(
            end(&job("COMPLETED", serde_json::json!([])), Rfc3339(1_500), false),
            "✓ completed · 2 done · 0 running · 1 waiting · 1 failed · 1.5s · 0192ab"
        );
    }
}
