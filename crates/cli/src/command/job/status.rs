//! `job status`: the status of a job and of its tasks.

use runvoy_wire::{Job, Rfc3339, Status, Task, TaskRevision, TaskStatus};

use super::JobId;
use crate::failure::Failure;
use crate::graph;
use crate::progress;
use crate::reason;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, facts, render};

pub(super) async fn show(session: &Session, job: &JobId) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let id = job.resolve(&client).await?;
    let job = client.job(&id).await?;
    let (now, width, colour) = (session.now(), session.terminal.width, session.terminal.stdout_colour);
    session.show(&job, || vec![job.job_id.clone()], || describe(&job, now, width, colour))?;
    Ok(0)
}

fn describe(job: &Job, now: Rfc3339, width: Option<usize>, colour: bool) -> String {
    let about = facts(
        [
            ("job", Some(job.job_id.clone())),
            ("name", job.name.clone()),
            ("status", Some(job.status.to_string())),
            ("tasks", Some(format!("{}: {}", job.total_tasks, progress::counts(job)))),
            ("first failed", job.failed_task_id.clone()),
            ("user", Some(job.created_by.clone())),
            ("submitted", Some(job.created_at.to_string())),
            ("finished", job.completed_at.map(|at| at.to_string())),
            ("elapsed", Some(progress::elapsed(job, now).to_string())),
            ("concurrency", job.concurrency.map(|most| most.to_string())),
            ("request id", job.request_id.clone()),
        ],
        colour,
    );
    let about = revisions(job).fold(about, |about, line| about + &line);
    let ids = ShortIds::of(width.is_some(), job.tasks.iter().filter_map(|task| task.execution_id.as_deref()));
    let rows: Vec<Vec<Cell>> = job.tasks.iter().map(|task| row(task, &job.tasks, now, ids)).collect();
    if rows.is_empty() {
        return about;
    }
    format!("{about}\n{}", render(&["TASK", "STATUS", "DURATION", "ATTEMPT", "EXECUTION", "REASON"], &rows, width, colour))
}

/// The tasks that no longer run what they were submitted with.
fn revisions(job: &Job) -> impl Iterator<Item = String> {
    job.tasks.iter().filter_map(|task| {
        let TaskRevision { command, original_command, .. } = task.revision.as_ref()?;
        let change = if command == original_command { command.clone() } else { format!("{original_command} → {command}") };
        Some(format!("{} was changed: {}\n", task.task_id, one_line(&change)))
    })
}

fn row(task: &Task, tasks: &[Task], now: Rfc3339, ids: ShortIds) -> Vec<Cell> {
    let (_, tone) = graph::mark(task.status);
    let dash = || "-".to_owned();
    let why = task.end_reason.as_ref().map(reason::told).or_else(|| task.waiting_for.as_ref().map(|reason| reason.message.clone()));
    let why = why.or_else(|| blocked_by(task, tasks));
    vec![
        (&task.task_id).into(),
        Cell::new(task.status.as_str(), tone),
        graph::duration(task, now).unwrap_or_else(dash).into(),
        if task.attempt > 0 { task.attempt.to_string() } else { dash() }.into(),
        Cell::whole(task.execution_id.as_deref().map_or("-", |id| ids.show(id))),
        why.unwrap_or_else(dash).into(),
    ]
}

/// The task that keeps this one from beginning, where nothing is said to be waited for any more.
fn blocked_by(task: &Task, tasks: &[Task]) -> Option<String> {
    let needed = tasks.iter().filter(|other| task.status == TaskStatus::Waiting && task.depends_on.contains(&other.task_id));
    let missing = needed.filter(|other| other.status != TaskStatus::Execution(Status::Succeeded));
    // One that ended badly says more than one that is blocked itself.
    let first = missing.min_by_key(|other| other.status == TaskStatus::Waiting)?;
    Some(format!("blocked: task {} is {}", first.task_id, first.status.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_the_job_and_then_its_tasks() {
        let job: Job = serde_json::from_str(
            r#"{"jobId":"0192ab","name":"nightly","status":"FAILED","createdAt":"2026-01-03T14:22:19Z","createdBy":"ana@example.com","totalTasks":2,
            "taskCounts":{"failed":1,"waiting":1},"failedTaskId":"a","tasks":[{"taskId":"a","status":"FAILED","attempt":3,"executionId":"0192ac",
            "startedAt":"2026-01-03T14:22:20Z","completedAt":"2026-01-03T14:22:24Z","end_reason":{"code":"exit","message":"exit code 2"}},
            {"taskId":"b","status":"WAITING","dependsOn":["a"],"waiting_for":{"code":"dependency","message":"task a"}}]}"#,
        )
        .expect("a job");
        insta::assert_snapshot!(describe(&job, "2026-01-03T14:23:19Z".parse().expect("a time"), None, false), @r"
        job           0192ab
        name          nightly
        status        FAILED
        tasks         2: 0 done · 0 running · 1 waiting · 1 failed
        first failed  a
        user          ana@example.com
        submitted     2026-01-03T14:22:19.000Z
        elapsed       1m 00s

        TASK  STATUS   DURATION  ATTEMPT  EXECUTION  REASON
        a     FAILED   4.0s      3        0192ac     exit code 2
        b     WAITING  -         -        -          task a
        ");
    }

    #[test]
    fn a_blocked_task_says_by_which() {
        let tasks: Vec<Task> = serde_json::from_str(
            r#"[{"taskId":"a","status":"FAILED"},{"taskId":"b","status":"WAITING","dependsOn":["a"]},
            {"taskId":"c","status":"WAITING","dependsOn":["b","a"]},{"taskId":"d","status":"WAITING","dependsOn":["b"]},{"taskId":"e","status":"WAITING"}]"#,
        )
        .expect("tasks");
        let told: Vec<Option<String>> = tasks.iter().map(|task| blocked_by(task, &tasks)).collect();
        let by = |text: &str| Some(format!("blocked: task {text}"));
        assert_eq!(told, [None, by("a is FAILED"), by("a is FAILED"), by("b is WAITING"), None]);
    }
}
