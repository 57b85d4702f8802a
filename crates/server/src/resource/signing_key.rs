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
    let operation = Operation::new("rotateSigningKey", "Make a new key that signs the task tokens of new leases")
        .gives::<RotateSigningKeyResponse>(200, "It signs for leases made in a minute and later; leases that are held go on")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/signing-key/rotate", Rule::Key(Action::ManageWorkers), operation, rotate);
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let made = call.engine().rotate_signing_key(call.caller()?).await?;
    let message = "a new key signs task tokens in a minute; leases that are held go on with theirs, and of leases made more than an hour \
                   from now no key before it is believed";
    let response = RotateSigningKeyResponse { key_id: made.made_at().0.to_string(), message: message.to_owned() };
    Ok(answer::json(StatusCode::OK, &response))
}
