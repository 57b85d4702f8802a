//! Secrets: named values that commands get in their environment. A value is in an answer only for those who may read it, and never in an error.

use axum::body::Body;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};
use runvoy_engine::{SecretChange, SecretRequest};
use runvoy_model::role::Action;
use runvoy_wire::{
    Code, CreateSecretRequest, DeleteSecretResponse, SaveSecretResponse, Secret, SecretResponse, SecretsResponse, Sensitive,
    UpdateSecretRequest,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, name};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

/// A shorter value is not hidden in every form in which a command could print it.
const SHORT_BYTES: usize = 6;
const NAMED: &str = "The secret's name; it may contain slashes";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listSecrets", "List secrets")
        .about("Lists the secrets that you may use or manage, without their values.")
        .paged()
        .gives::<SecretsResponse>(200, "The secrets, by name; `total` counts all pages");
    routes.get("/api/v1/secrets", Rule::Key(Action::ReadSecrets), operation, list);
    let operation = Operation::new("createSecret", "Create a secret")
        .about(
            "Stores a value, encrypted. Fails with `SECRET_ALREADY_EXISTS` and changes nothing if \
             the name is taken. Only an admin may use a `key_name` that changes what programs \
             load, such as LD_PRELOAD.",
        )
        .idempotent()
        .takes::<CreateSecretRequest>(true)
        .gives::<SaveSecretResponse>(201, "The secret was created")
        .refuses(&[Code::SecretAlreadyExists]);
    routes.post("/api/v1/secrets", Rule::Key(Action::WriteSecrets), operation, create);
    let operation = Operation::new("getSecret", "Get a secret")
        .about("Returns the secret, with its value if you may read it: its owners and admins may.")
        .path("name", name(), NAMED)
        .gives::<SecretResponse>(200, "The secret")
        .refuses(&[Code::SecretNotFound, Code::InvalidRequest]);
    routes.get("/api/v1/secrets/{*name}", Rule::Key(Action::ReadSecrets), operation, show);
    let operation = Operation::new("updateSecret", "Change a secret")
        .about(
            "Changes what the body names, at least one field, and keeps the rest. Running \
             executions keep the old value.",
        )
        .path("name", name(), NAMED)
        .takes::<UpdateSecretRequest>(true)
        .gives::<SaveSecretResponse>(200, "The secret was changed")
        .refuses(&[Code::SecretNotFound]);
    routes.put("/api/v1/secrets/{*name}", Rule::Key(Action::WriteSecrets), operation, update);
    let operation = Operation::new("deleteSecret", "Delete a secret")
        .about("Executions that need the secret and have not started will fail to start.")
        .path("name", name(), NAMED)
        .gives::<DeleteSecretResponse>(200, "The secret was deleted")
        .refuses(&[Code::SecretNotFound, Code::InvalidRequest]);
    routes.delete("/api/v1/secrets/{*name}", Rule::Key(Action::WriteSecrets), operation, delete);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let secrets = call.engine().secrets(call.caller()?).await?;
    let mut secrets: Vec<Secret> = secrets.into_iter().map(|secret| view(secret, None)).collect();
    let total = secrets.len() as u64;
    let next = pager.cut(&mut secrets, |secret| secret.name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &SecretsResponse { total, secrets })))
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let request: CreateSecretRequest = body(&call).await?;
    let message = saved("saved, encrypted", Some(&request.value));
    let secret = SecretRequest {
        name: request.name,
        key_name: request.key_name,
        value: request.value.into_exposed().into(),
        description: request.description,
        use_by: request.use_by,
        idempotency_key: call.idempotency_key()?,
    };
    call.engine().create_secret(call.caller()?, secret).await?;
    Ok(answer::json(StatusCode::CREATED, &SaveSecretResponse { message }))
}

async fn show(call: Call) -> Result<Response<Body>, Fault> {
    let (secret, value) = call.engine().secret(call.caller()?, call.params.get("name")).await?;
    let value = value.map(|value| Sensitive::new(value.as_str()));
    let mut response = answer::json(StatusCode::OK, &SecretResponse { secret: view(secret, value) });
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn update(call: Call) -> Result<Response<Body>, Fault> {
    let request: UpdateSecretRequest = body(&call).await?;
    let message = saved("changed; running executions keep the old value", request.value.as_ref());
    let change = SecretChange {
        key_name: request.key_name,
        value: request.value.map(|value| value.into_exposed().into()),
        description: request.description,
        use_by: request.use_by,
    };
    call.engine().update_secret(call.caller()?, call.params.get("name"), change).await?;
    Ok(answer::json(StatusCode::OK, &SaveSecretResponse { message }))
}

async fn delete(call: Call) -> Result<Response<Body>, Fault> {
    let name = call.engine().delete_secret(call.caller()?, call.params.get("name")).await?;
    let message = "deleted; executions that need it and have not started will fail to start".into();
    Ok(answer::json(StatusCode::OK, &DeleteSecretResponse { name: name.to_string(), message }))
}

fn saved(message: &str, value: Option<&Sensitive>) -> String {
    match value {
        Some(value) if value.expose().len() < SHORT_BYTES => {
            format!("{message}; a value of fewer than {SHORT_BYTES} bytes is not masked in every form in which a command can print it")
        }
        _ => message.to_owned(),
    }
}

/// The body. What is wrong with one is told without repeating any of it: it may be the value.
async fn body<T: DeserializeOwned>(call: &Call) -> Result<T, Fault> {
    let value: Value = call.json().await?.ok_or_else(|| Fault::invalid("body", "must be a JSON object"))?;
    serde_json::from_value(value).map_err(|error| {
        let message = error.to_string();
        let message =
            if message.starts_with("missing field") { message } else { "must be a JSON object of texts; use_by is a list of them".into() };
        Fault::invalid("body", message)
    })
}

pub(super) fn view(secret: runvoy_model::secret::Secret, value: Option<Sensitive>) -> Secret {
    Secret {
        name: secret.name.to_string(),
        key_name: secret.key_name,
        description: secret.description.filter(|text| !text.is_empty()),
        value,
        created_by: secret.created_by,
        owned_by: secret.owned_by,
        created_at: secret.created_at.into(),
        updated_at: secret.updated_at.into(),
        updated_by: secret.updated_by,
        created_by_request_id: secret.created_by_request_id,
        modified_by_request_id: secret.modified_by_request_id,
        use_by: secret.use_by,
    }
}
