//! Locks: who holds which, and taking one away.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, Lock};
use serde::Serialize;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, name};
use crate::pager::Pager;
use crate::route::{Routes, Rule};
use crate::view;

/// The result of releasing a lock.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ReleaseResponse {
    /// The lock's name.
    lock_name: String,
    /// The result as a sentence; names the execution that holds the lock now.
    message: String,
}

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listLocks", "List the locks that are held").paged().gives_array::<Lock>(200, "The locks, by name");
    routes.get("/api/v1/locks", Rule::Key(Action::ReadLocks), operation, list);
    let operation = Operation::new("releaseLock", "Release a lock")
        .about(
            "Takes the lock from the execution that holds it. That execution goes on without the \
             lock, so make sure that this is safe. The next waiting execution gets the lock.",
        )
        .path("name", name(), "The lock's name; it may contain slashes")
        .gives::<ReleaseResponse>(200, "The lock was released")
        .refuses(&[Code::NotFound, Code::InvalidRequest]);
    routes.delete("/api/v1/locks/{*name}", Rule::Key(Action::ReleaseLock), operation, release);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let lines = call.engine().locks(call.caller()?).await?;
    let mut locks: Vec<Lock> = lines.iter().filter_map(view::lock).collect();
    let next = pager.cut(&mut locks, |lock| lock.lock_name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &locks)))
}

async fn release(call: Call) -> Result<Response<Body>, Fault> {
    let lock = call.engine().release_lock(call.caller()?, call.params.get("name")).await?;
    let message = match &lock.holder {
        Some(holder) => format!("released; execution {} holds it now", holder.execution),
        None => "released".to_owned(),
    };
    Ok(answer::json(StatusCode::OK, &ReleaseResponse { lock_name: lock.name.to_string(), message }))
}
