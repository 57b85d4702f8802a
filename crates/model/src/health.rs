//! How what runs is: judged from the record alone by how long an execution has run and how long nothing was heard of its worker. Pure: when to
//! look is an agent's matter.

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::EventType;
use crate::execution::Execution;
use crate::id::{ExecutionId, JobId, WorkerId};
use crate::name::Name;
use crate::status::Status;
use crate::time::UnixMs;

/// From when on something is worth a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Heard of within this: healthy.
    pub healthy_within_ms: i64,
    /// Heard of within this: a warning. Longer ago: critical.
    pub warning_within_ms: i64,
    /// Running longer than this: overtime.
    pub overtime_after_ms: i64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { healthy_within_ms: 5 * 60_000, warning_within_ms: 10 * 60_000, overtime_after_ms: 60 * 60_000 }
    }
}

/// How an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Heard of a short while ago.
    Healthy,
    /// Quiet for a while, or its lease has lapsed.
    Warning,
    /// Running for very long.
    Overtime,
    /// Quiet for long.
    Critical,
}

impl Health {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Overtime => "overtime",
            Self::Critical => "critical",
        }
    }
}

/// How one execution is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHealth {
    /// The execution.
    pub execution: ExecutionId,
    /// How it is.
    pub health: Health,
    /// How long its attempt has run.
    pub elapsed_ms: i64,
    /// How long ago its last event was.
    pub silent_ms: i64,
    /// What that event was.
    pub last_event: EventType,
    /// Who runs it.
    pub worker: WorkerId,
    /// The job and the task that it is.
    pub task: Option<(JobId, Name)>,
    /// It is quiet for so long that somebody should look, whatever else it is.
    pub is_silent: bool,
    /// It runs for so long that somebody should look.
    pub is_overtime: bool,
}

impl TaskHealth {
    /// How an execution is; `None` where it does not run. What counts is what was heard of its worker: that somebody else asked for its end
    /// is no sign of life.
    pub fn of(execution: &Execution, now: UnixMs, thresholds: Thresholds) -> Option<Self> {
        let runs = matches!(execution.status, Status::Running | Status::Terminating);
        let lease = execution.lease.as_ref().filter(|lease| runs && lease.begun)?;
        let started_at = execution.attempt_started_at?;
        let (last_event, last_at) = match lease.heartbeat_at {
            Some(at) => (EventType::TaskHeartbeat, at),
            None => (EventType::TaskProcessingStarted, started_at),
        };
        let (elapsed_ms, silent_ms) = (now.ms_since(started_at), now.ms_since(last_at));
        let (is_silent, is_overtime) = (silent_ms > thresholds.warning_within_ms, elapsed_ms > thresholds.overtime_after_ms);
        let health = match silent_ms {
            _ if is_overtime => Health::Overtime,
            _ if is_silent => Health::Critical,
            silent_ms if silent_ms > thresholds.healthy_within_ms => Health::Warning,
            // Events come once a minute at most: that nobody extends its lease is known sooner.
            _ if execution.worker_unreachable(now).is_some() => Health::Warning,
            _ => Health::Healthy,
        };
        let task = execution.spec.task.as_ref().map(|task| (task.job, task.task.clone()));
        Some(Self {
            execution: execution.id,
            health,
            elapsed_ms,
            silent_ms,
            last_event,
            worker: lease.worker,
            task,
            is_silent,
            is_overtime,
        })
    }

    fn properties(&self) -> Value {
        let mut row = json!({
            "requestId": self.execution,
            "health": self.health.as_str(),
            "elapsed": self.elapsed_ms,
            "timeSinceLastEvent": self.silent_ms,
            "lastEventType": self.last_event,
            "workerId": self.worker,
        });
        if let Some((job, task)) = &self.task {
            row["jobId"] = json!(job);
            row["taskId"] = json!(task);
        }
        row
    }
}

/// How many are how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All that run.
    pub total_processing: u64,
    /// Heard of a short while ago.
    pub healthy: u64,
    /// Quiet for a while.
    pub warning: u64,
    /// Quiet for long.
    pub critical: u64,
    /// Running for very long.
    pub overtime: u64,
}

/// A look at what runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Check {
    /// How many are how.
    pub summary: Summary,
    /// Each of them, the worst first.
    pub tasks: Vec<TaskHealth>,
}

/// So many executions are named in the event of a look.
pub const MOST_TOLD: usize = 100;

impl Check {
    /// A look at these.
    pub fn of(mut tasks: Vec<TaskHealth>) -> Self {
        let mut summary = Summary { total_processing: tasks.len() as u64, ..Summary::default() };
        for task in &tasks {
            *match task.health {
                Health::Healthy => &mut summary.healthy,
                Health::Warning => &mut summary.warning,
                Health::Critical => &mut summary.critical,
                Health::Overtime => &mut summary.overtime,
            } += 1;
        }
        tasks.sort_by_key(|task| (std::cmp::Reverse((task.health, task.silent_ms, task.elapsed_ms)), task.execution));
        Self { summary, tasks }
    }

    /// What its event says: everything in numbers, and the worst by name.
    pub fn properties(&self) -> Value {
        let tasks: Vec<Value> = self.tasks.iter().take(MOST_TOLD).map(TaskHealth::properties).collect();
        let left_out = self.tasks.len() - tasks.len();
        let mut properties = json!({"summary": self.summary, "tasks": tasks});
        if left_out > 0 {
            properties["tasksLeftOut"] = left_out.into();
        }
        properties
    }
}
