//! Keys of a user: their own matter, or an admin's. Somebody else's keys are not there.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{Account, KeyRequest, MadeKey};
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_model::user::ApiKey;
use runvoy_wire::{Code, CreateKeyRequest, CreateKeyResponse, Key, KeysResponse, RevokeKeyResponse};

use crate::answer;
use crate::call::Call;
use crate::credential;
use crate::fault::Fault;
use crate::operation::{Operation, flag, text};
use crate::route::{Routes, Rule};

const WHOSE: &str = "The user's e-mail address: yours, or as an admin any user's";
const WHICH: &str = "The first characters of the key, as the list shows them";

pub(super) fn add(routes: &mut Routes) {
    let rule = Rule::Key(Action::ManageKeys);
    let operation = Operation::new("listKeys", "List the API keys of a user")
        .about("Lists what is known about the keys; a key itself is shown only when it is created.")
        .path("email", text(), WHOSE)
        .gives::<KeysResponse>(200, "The keys, oldest first")
        .refuses(&[Code::NotFound]);
    routes.get("/api/v1/users/{email}/keys", rule, operation, list);
    let operation = Operation::new("createKey", "Create an API key")
        .about(
            "Creates a further key for the user. A repeat with the same Idempotency-Key fails \
             with `CONFLICT`, because a key is shown only once.",
        )
        .path("email", text(), WHOSE)
        .idempotent()
        .takes::<CreateKeyRequest>(false)
        .gives::<CreateKeyResponse>(201, "The key; it is shown only here")
        .refuses(&[Code::NotFound]);
    routes.post("/api/v1/users/{email}/keys", rule, operation, create);
    let operation = Operation::new("revokeKey", "Revoke an API key")
        .about("The key stops working at once, and connections that were opened with it are closed.")
        .path("email", text(), WHOSE)
        .path("prefix", text(), WHICH)
        .query(
            "replaced",
            flag(),
            "The key of this request replaces it, also in the file where the server keeps the key of its first admin",
        )
        .gives::<RevokeKeyResponse>(200, "The key was revoked")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.delete("/api/v1/users/{email}/keys/{prefix}", rule, operation, revoke);
    let operation = Operation::new("rotateKey", "Replace an API key")
        .about("Creates a new key and revokes the old one in the same step.")
        .path("email", text(), WHOSE)
        .path("prefix", text(), WHICH)
        .idempotent()
        .takes::<CreateKeyRequest>(false)
        .gives::<CreateKeyResponse>(201, "The new key; it is shown only here")
        .refuses(&[Code::NotFound]);
    routes.post("/api/v1/users/{email}/keys/{prefix}/rotate", rule, operation, rotate);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let account = call.engine().keys(call.caller()?, call.params.get("email")).await?;
    Ok(answer::json(StatusCode::OK, &KeysResponse { keys: shown(&account) }))
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let request = asked(&call).await?;
    let made = call.engine().create_key(call.caller()?, call.params.get("email"), &request).await?;
    Ok(given(&made, "keep it safe: it is shown only here".into(), None))
}

async fn rotate(call: Call) -> Result<Response<Body>, Fault> {
    let (request, prefix) = (asked(&call).await?, call.params.get("prefix"));
    let made = call.engine().rotate_key(call.caller()?, call.params.get("email"), prefix, &request).await?;
    let key_file = call.state.host.key_ended(prefix, Some(&made.api_key)).await;
    Ok(given(&made, format!("{prefix} is revoked; keep the new key safe: it is shown only here"), key_file))
}

async fn revoke(call: Call) -> Result<Response<Body>, Fault> {
    let (email, prefix) = (call.params.get("email"), call.params.get("prefix"));
    let is_replaced = call.query()?.flag("replaced")?;
    call.engine().revoke_key(call.caller()?, email, prefix).await?;
    // Another user's key is no replacement, and a caller at the Unix socket shows none.
    let own = credential::shown_key(&call.parts.headers).filter(|_| is_replaced && call.caller().is_ok_and(|caller| caller.email == email));
    let key_file = call.state.host.key_ended(prefix, own.as_deref()).await;
    let message = "revoked; connections that were opened with it are closed".to_owned();
    Ok(answer::json(StatusCode::OK, &RevokeKeyResponse { prefix: prefix.to_owned(), message, key_file }))
}

async fn asked(call: &Call) -> Result<KeyRequest, Fault> {
    let idempotency_key = call.idempotency_key()?;
    let request: CreateKeyRequest = call.json().await?.unwrap_or_default();
    Ok(KeyRequest { name: request.name, expires_in: request.expires_in, idempotency_key })
}

fn given(made: &MadeKey, message: String, key_file: Option<String>) -> Response<Body> {
    let response = CreateKeyResponse { api_key: made.api_key.as_str().into(), key: view(&made.kept, None), message, key_file };
    answer::json(StatusCode::CREATED, &response)
}

/// The keys of an account.
pub(super) fn shown(account: &Account) -> Vec<Key> {
    account.user.keys.iter().zip(&account.key_uses).map(|(key, used)| view(key, *used)).collect()
}

fn view(key: &ApiKey, last_used: Option<UnixMs>) -> Key {
    Key {
        prefix: key.prefix.clone(),
        name: key.name.clone(),
        created_at: key.created_at.into(),
        expires_at: key.expires_at.map(Into::into),
        last_used: last_used.map(Into::into),
        revoked: key.revoked_at.is_some(),
    }
}
