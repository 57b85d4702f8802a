//! Locks: who holds which, and taking one away.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, Lock};
use serde::Serialize;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, text};
use crate::pager::Pager;
use crate::route::{Routes, Rule};
use crate::view;

/// Answer to a lock taken from its holder.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ReleaseResponse {
    /// The lock.
    lock_name: String,
    /// What happens now, for a person.
    message: String,
}

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listLocks", "Every lock that is held").paged().gives_array::<Lock>(200, "The locks, by name");
    routes.get("/api/v1/locks", Rule::Key(Action::ReadLocks), operation, list);
    let operation = Operation::new("releaseLock", "Take a lock from its holder, who goes on without it")
        .path("name", text(), "The lock; its name may hold slashes")
        .gives::<ReleaseResponse>(200, "It is free, or the first in line holds it")
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
        Some(holder) => format!("it was released, and execution {} holds it now", holder.execution),
        None => "it was released".to_owned(),
    };
    Ok(answer::json(StatusCode::OK, &ReleaseResponse { lock_name: lock.name.to_string(), message }))
}
