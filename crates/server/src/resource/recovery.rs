//! The way back in for whoever owns the machine: over the local socket, as the server's own user, and no other way.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, RecoverRequest, RecoverResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("recoverAdmin", "Recover admin access")
        .about(
            "Makes a user an admin and creates a further API key for them, for the case that \
             every admin key is lost.",
        )
        .takes::<RecoverRequest>(false)
        .gives::<RecoverResponse>(201, "The API key; it is shown only here")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/admin/recover", Rule::Owner(Action::ManageUsers), operation, recover);
}

async fn recover(call: Call) -> Result<Response<Body>, Fault> {
    let request: RecoverRequest = call.json().await?.unwrap_or_default();
    let made = call.engine().recover_admin(call.caller()?, request.email.as_deref()).await?;
    Ok(answer::json(StatusCode::CREATED, &RecoverResponse { email: made.email, api_key: made.api_key.into() }))
}
