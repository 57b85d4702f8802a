//! The key that secrets are sealed with: a new one for all of them.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, RotateSealingKeyResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("rotateSealingKey", "Rotate the key that encrypts secrets")
        .about(
            "Creates a new key, encrypts every secret with it and deletes keys that no secret \
             needs. Backups made before still need the old key, which they contain.",
        )
        .gives::<RotateSealingKeyResponse>(200, "The key was rotated")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/sealing-key/rotate", Rule::Key(Action::RotateSealingKey), operation, rotate);
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let rotation = call.engine().rotate_sealing_key(call.caller()?).await?;
    let message = if rotation.unopened.is_empty() {
        "every secret is encrypted with the new key; older backups still need the old key, which they contain".to_owned()
    } else {
        let names: Vec<&str> = rotation.unopened.iter().map(runvoy_model::name::Name::as_str).collect();
        format!("these secrets cannot be decrypted and were left unchanged: {}; set them again", names.join(", "))
    };
    let response = RotateSealingKeyResponse { key_id: rotation.key_id, resealed: rotation.resealed, message };
    Ok(answer::json(StatusCode::OK, &response))
}
