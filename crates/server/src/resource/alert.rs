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
    let operation = Operation::new("sendTestAlert", "Send a test alert")
        .about(
            "Sends a message to the configured webhook, so that you can see whether alerts \
             arrive. Fails with `CONFLICT` if no webhook is configured or the webhook refuses the \
             message.",
        )
        .gives::<AlertTestResponse>(200, "The webhook accepted the message")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/alerts/test", Rule::Key(Action::Diagnose), operation, test);
}

async fn test(call: Call) -> Result<Response<Body>, Fault> {
    let place = call.engine().test_alert(call.caller()?).await?;
    let message = format!("{place} accepted the message");
    Ok(answer::json(StatusCode::OK, &AlertTestResponse { place, message }))
}
