//! The key that task tokens are signed with: a new one for new leases.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, RotateSigningKeyResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("rotateSigningKey", "Rotate the key that signs task tokens")
        .about(
            "Creates a new key that signs the task tokens of leases made a minute from now or \
             later. Existing leases remain valid.",
        )
        .gives::<RotateSigningKeyResponse>(200, "The key was rotated")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/signing-key/rotate", Rule::Key(Action::ManageWorkers), operation, rotate);
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let made = call.engine().rotate_signing_key(call.caller()?).await?;
    let message = "a new key signs task tokens from a minute on; existing leases remain valid, and no key before it signs \
                   for leases that are made more than an hour from now";
    let response = RotateSigningKeyResponse { key_id: made.made_at().0.to_string(), message: message.to_owned() };
    Ok(answer::json(StatusCode::OK, &response))
}
