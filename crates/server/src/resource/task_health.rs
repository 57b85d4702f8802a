//! How what runs is: everything the caller may see, or one execution.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::health::{self as model, Health};
use runvoy_model::role::Action;
use runvoy_wire::{Code, HealthWord, TaskHealth, TaskHealthResponse, TaskHealthSummary};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, part_of_id};
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("checkExecutions", "Check the health of all running executions")
        .about(
            "Classifies each running execution that you may see by how long ago it was last heard \
             from: healthy, warning, critical or overtime.",
        )
        .gives::<TaskHealthResponse>(200, "Counts, and each execution, the worst first");
    routes.get("/api/v1/health/tasks", Rule::Key(Action::Read), operation, all);
    let operation = Operation::new("checkExecution", "Check the health of a running execution")
        .path("id", part_of_id(), "The execution's id, or six or more digits that begin or end it and no other id")
        .gives::<TaskHealth>(200, "Its health")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.get("/api/v1/health/tasks/{id}", Rule::Key(Action::Read), operation, one);
}

async fn all(call: Call) -> Result<Response<Body>, Fault> {
    let engine = call.engine();
    let check = engine.task_health(call.caller()?).await?;
    let model::Summary { total_processing, healthy, warning, critical, overtime } = check.summary;
    let response = TaskHealthResponse {
        checked_at: Some(engine.now().into()),
        summary: TaskHealthSummary { total_processing, healthy, warning, critical, overtime },
        tasks: check.tasks.iter().map(shown).collect(),
    };
    Ok(answer::json(StatusCode::OK, &response))
}

async fn one(call: Call) -> Result<Response<Body>, Fault> {
    let health = call.engine().health_of(call.caller()?, call.id()).await?;
    Ok(answer::json(StatusCode::OK, &shown(&health)))
}

fn shown(task: &model::TaskHealth) -> TaskHealth {
    let ms = |ms: i64| u64::try_from(ms).unwrap_or(0);
    let (job_id, task_id) = task.task.as_ref().map(|(job, task)| (job.to_string(), task.to_string())).unzip();
    TaskHealth {
        request_id: task.execution.to_string(),
        health: match task.health {
            Health::Healthy => HealthWord::Healthy,
            Health::Warning => HealthWord::Warning,
            Health::Critical => HealthWord::Critical,
            Health::Overtime => HealthWord::Overtime,
        },
        elapsed: ms(task.elapsed_ms),
        time_since_last_event: ms(task.silent_ms),
        last_event_type: task.last_event.as_str().to_owned(),
        worker_id: Some(task.worker.to_string()),
        job_id,
        task_id,
    }
}
