//! Alerts: whether they arrive.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{AlertTestResponse, Code};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("testAlert", "Send people a message that says nothing is wrong")
        .gives::<AlertTestResponse>(200, "The message was taken")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/alerts/test", Rule::Key(Action::Diagnose), operation, test);
}

async fn test(call: Call) -> Result<Response<Body>, Fault> {
    let place = call.engine().test_alert(call.caller()?).await?;
    let message = format!("{place} took the message");
    Ok(answer::json(StatusCode::OK, &AlertTestResponse { place, message }))
}
