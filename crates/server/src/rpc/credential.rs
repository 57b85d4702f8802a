//! Public keys that workers sign their tokens with: registered, listed, revoked. Each is an account of workers.

use runvoy_engine::{EngineError, MAY_SUBMIT, WorkerRequest};
use runvoy_model::id::WorkerAccountId;
use runvoy_model::role::Role;
use runvoy_model::worker::WorkerAccount;
use runvoy_rpc::principal::v1::{
    Credential, ImportCredentialRequest, ImportCredentialResponse, ListCredentialsRequest, ListCredentialsResponse,
    RevokeCredentialRequest, RevokeCredentialResponse,
};
use runvoy_wire::Rfc3339;

use super::call::Call;
use super::error::RpcFault;

pub(super) async fn import(call: Call, request: ImportCredentialRequest) -> Result<ImportCredentialResponse, RpcFault> {
    let ImportCredentialRequest { name, public_key_pem, description, .. } = request;
    let asked = WorkerRequest { name, description: Some(description), ..WorkerRequest::default() };
    let made = call.engine().import_worker(&call.caller, &asked, &public_key_pem).await;
    let account = made.map_err(import_refused)?.account;
    Ok(ImportCredentialResponse {
        principal_id: account.id.to_string(),
        org_id: org_id(&call),
        roles: roles(&account),
        fingerprint: account.key.shown(),
        name: account.name.to_string(),
        ..ImportCredentialResponse::default()
    })
}

/// Refusals in the words of this call: its own field names, and ALREADY_EXISTS for a key or a name that an account has.
fn import_refused(error: EngineError) -> RpcFault {
    match error {
        EngineError::Invalid { field, message } if field == "public_key" => RpcFault::invalid("public_key_pem", message),
        EngineError::Conflict { message, .. } => RpcFault::Exists(message),
        error => error.into(),
    }
}

pub(super) async fn list(call: Call, request: ListCredentialsRequest) -> Result<ListCredentialsResponse, RpcFault> {
    let kind = Role::Worker.as_str();
    let is_asked = request.principal_type.is_empty() || request.principal_type.eq_ignore_ascii_case(kind);
    let accounts = call.engine().list_worker_accounts(&call.caller).await?;
    let shown = accounts.into_iter().filter(|known| is_asked && known.account.revoked_at.is_none());
    let credentials = shown.map(|known| Credential {
        principal_id: known.account.id.to_string(),
        org_id: org_id(&call),
        r#type: kind.to_owned(),
        name: known.account.name.to_string(),
        fingerprint: known.account.key.shown(),
        roles: roles(&known.account),
        created_at: Rfc3339::from(known.account.created_at).to_string(),
        last_used_at: known.last_used.map(|at| Rfc3339::from(at).to_string()).unwrap_or_default(),
        ..Credential::default()
    });
    Ok(ListCredentialsResponse { credentials: credentials.collect(), ..ListCredentialsResponse::default() })
}

pub(super) async fn revoke(call: Call, request: RevokeCredentialRequest) -> Result<RevokeCredentialResponse, RpcFault> {
    let id = request.principal_id.parse::<WorkerAccountId>();
    let id = id.map_err(|_| RpcFault::invalid("principal_id", "is not the id of a principal"))?;
    let account = call.engine().worker_account(&call.caller, id).await?;
    call.engine().revoke_worker(&call.caller, account.name.as_str()).await?;
    Ok(RevokeCredentialResponse::default())
}

/// What it may do, in words: its role, and whether it also submits.
fn roles(account: &WorkerAccount) -> Vec<String> {
    let submits = account.may_submit.then_some(MAY_SUBMIT);
    std::iter::once(account.role.as_str()).chain(submits).map(str::to_owned).collect()
}

fn org_id(call: &Call) -> String {
    call.engine().config().events.tenant.clone()
}
