//! Users: who there is, whom to invite, what they are, whose rights end.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{Account, InviteRequest, RevokedUser};
use runvoy_model::phrase::counted;
use runvoy_model::role::Action;
use runvoy_wire::{
    Code, CreateUserRequest, CreateUserResponse, RenewInvitationRequest, RevokeUserRequest, RevokeUserResponse, SetRoleRequest,
    SetRoleResponse, User, UsersResponse,
};

use super::key;
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, text};
use crate::pager::Pager;
use crate::route::{Routes, Rule};
use crate::ticket::looks_like_ticket;

pub(super) fn add(routes: &mut Routes) {
    let rule = Rule::Key(Action::ManageUsers);
    let operation = Operation::new("listUsers", "List all users").paged().gives::<UsersResponse>(200, "The users, by e-mail address");
    routes.get("/api/v1/users", rule, operation, list);
    let operation = Operation::new("createUser", "Create a user")
        .about(
            "Creates a user and an invitation: its token is exchanged for an API key with \
             `claimInvitation`. A request with `api_key` creates no invitation, and takes no \
             `expires_in`. Fails with `CONFLICT` if the user exists.",
        )
        .idempotent()
        .takes::<CreateUserRequest>(true)
        .gives::<CreateUserResponse>(201, "The user was created; the token is shown only here")
        .refuses(&[Code::Conflict]);
    routes.post("/api/v1/users/create", rule, operation, create);
    let operation = Operation::new("renewInvitation", "Renew an invitation")
        .about(
            "Creates a new token for a user who has not claimed their invitation. The old token \
             stops working.",
        )
        .path("email", text(), "The user's e-mail address")
        .idempotent()
        .takes::<RenewInvitationRequest>(false)
        .gives::<CreateUserResponse>(200, "The new token; it is shown only here")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.post("/api/v1/users/{email}/renew", rule, operation, renew);
    let operation = Operation::new("revokeUser", "Revoke a user")
        .about(
            "Revokes all API keys of the user at once. Their executions and jobs go on unless \
             `kill` is true. The last admin cannot be revoked (`CONFLICT`).",
        )
        .takes::<RevokeUserRequest>(true)
        .gives::<RevokeUserResponse>(200, "The user was revoked, or had been before")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.post("/api/v1/users/revoke", rule, operation, revoke);
    let operation = Operation::new("setUserRole", "Change a user's role")
        .about("The last admin cannot be given another role (`CONFLICT`).")
        .path("email", text(), "The user's e-mail address")
        .takes::<SetRoleRequest>(true)
        .gives::<SetRoleResponse>(200, "The role was changed")
        .refuses(&[Code::NotFound, Code::Conflict]);
    routes.post("/api/v1/users/{email}/role", rule, operation, set_role);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let mut users: Vec<User> = call.engine().users(call.caller()?).await?.iter().map(shown).collect();
    let next = pager.cut(&mut users, |user| user.email.clone());
    Ok(next.on(answer::json(StatusCode::OK, &UsersResponse { users })))
}

async fn create(call: Call) -> Result<Response<Body>, Fault> {
    let idempotency_key = call.idempotency_key()?;
    let request: CreateUserRequest = call.body_of("an e-mail and a role").await?;
    let api_key = request.api_key.map(runvoy_wire::Sensitive::into_exposed);
    // Where a ticket may stand instead of a key, such a key would be taken for one.
    if api_key.as_deref().is_some_and(looks_like_ticket) {
        return Err(Fault::invalid("api_key", "looks like a ticket of this server: use a random key"));
    }
    let CreateUserRequest { email, role, confirm, expires_in, .. } = request;
    let request = InviteRequest { email, role, api_key, confirm, expires_in, idempotency_key };
    let invited = call.engine().invite(call.caller()?, &request).await?;
    let claim_token = invited.token.unwrap_or_default().into();
    Ok(answer::json(StatusCode::CREATED, &CreateUserResponse { user: shown(&invited.account), claim_token }))
}

async fn renew(call: Call) -> Result<Response<Body>, Fault> {
    let idempotency_key = call.idempotency_key()?;
    let request: RenewInvitationRequest = call.json().await?.unwrap_or_default();
    let (caller, email) = (call.caller()?, call.params.get("email"));
    let invited = call.engine().renew_invitation(caller, email, request.expires_in, idempotency_key.as_deref()).await?;
    let claim_token = invited.token.unwrap_or_default().into();
    Ok(answer::json(StatusCode::OK, &CreateUserResponse { user: shown(&invited.account), claim_token }))
}

async fn revoke(call: Call) -> Result<Response<Body>, Fault> {
    let request: RevokeUserRequest = call.body_of("an e-mail").await?;
    let revoked = call.engine().revoke_user(call.caller()?, &request.email, request.kill).await?;
    let message = revoked_message(&revoked);
    let RevokedUser { email, open: open_executions, killed: killed_executions, open_jobs, cancelled_jobs } = revoked;
    let response = RevokeUserResponse { message, email, open_executions, killed_executions, open_jobs, cancelled_jobs };
    Ok(answer::json(StatusCode::OK, &response))
}

async fn set_role(call: Call) -> Result<Response<Body>, Fault> {
    let request: SetRoleRequest = call.body_of("a role").await?;
    let user = call.engine().set_role(call.caller()?, call.params.get("email"), &request.role).await?;
    let message = format!("{} is now {}", user.email, user.role.as_str());
    Ok(answer::json(StatusCode::OK, &SetRoleResponse { email: user.email, role: user.role.as_str().to_owned(), message }))
}

fn revoked_message(revoked: &RevokedUser) -> String {
    let executions = |count: u64| counted(count, "execution");
    let work = match (revoked.open, revoked.killed) {
        (0, 0) => "nothing of theirs runs".to_owned(),
        (open, 0) => format!("{} of theirs {} on", executions(open), if open == 1 { "goes" } else { "go" }),
        (0, killed) => format!("{} of theirs {} being killed", executions(killed), if killed == 1 { "is" } else { "are" }),
        (open, killed) => format!("{} of theirs are being killed, {open} could not be and go on", executions(killed)),
    };
    let jobs = |count: u64| counted(count, "job");
    let jobs = match (revoked.open_jobs, revoked.cancelled_jobs) {
        (0, 0) => String::new(),
        (open, 0) => format!("; {} of theirs still start{} tasks", jobs(open), if open == 1 { "s" } else { "" }),
        (0, cancelled) => format!("; {} of theirs {} cancelled", jobs(cancelled), if cancelled == 1 { "is" } else { "are" }),
        (open, cancelled) => format!("; {} of theirs are cancelled, {open} could not be and go on", jobs(cancelled)),
    };
    format!("{} was revoked; {work}{jobs}", revoked.email)
}

pub(super) fn shown(account: &Account) -> User {
    let user = &account.user;
    User {
        email: user.email.clone(),
        role: user.role.as_str().to_owned(),
        created_at: user.created_at.into(),
        revoked: user.revoked_at.is_some(),
        last_used: account.last_used().map(Into::into),
        created_by_request_id: user.created_by_request_id.clone(),
        modified_by_request_id: user.modified_by_request_id.clone(),
        created_by: Some(user.created_by.clone()),
        keys: key::shown(account),
        groups: account.groups.clone(),
        claim_expires_at: user.claim.as_ref().map(|claim| claim.expires_at.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revoking_says_what_becomes_of_running_work() {
        let (open_jobs, cancelled_jobs) = (0, 0);
        let message = |open, killed| revoked_message(&RevokedUser { email: "ana@x".into(), open, killed, open_jobs, cancelled_jobs });
        assert_eq!(message(0, 0), "ana@x was revoked; nothing of theirs runs");
        assert_eq!(message(1, 0), "ana@x was revoked; 1 execution of theirs goes on");
        assert_eq!(message(0, 2), "ana@x was revoked; 2 executions of theirs are being killed");
        assert_eq!(message(1, 2), "ana@x was revoked; 2 executions of theirs are being killed, 1 could not be and go on");
    }
}
