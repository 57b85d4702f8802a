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
    let operation = Operation::new("rotateSealingKey", "Make a new sealing key and seal every secret with it")
        .gives::<RotateSealingKeyResponse>(200, "Every secret is sealed with it, and keys that seal nothing are gone")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/sealing-key/rotate", Rule::Key(Action::RotateSealingKey), operation, rotate);
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let rotation = call.engine().rotate_sealing_key(call.caller()?).await?;
    let message = if rotation.unopened.is_empty() {
        "every secret is sealed with the new key; backups made before still need the old one, which they hold".to_owned()
    } else {
        let names: Vec<&str> = rotation.unopened.iter().map(runvoy_model::name::Name::as_str).collect();
        format!("these do not open with the key they name, and stay as they are: {}; set them anew", names.join(", "))
    };
    let response = RotateSealingKeyResponse { key_id: rotation.key_id, resealed: rotation.resealed, message };
    Ok(answer::json(StatusCode::OK, &response))
}
