//! Answering an invitation. `GET` is for clients that know no better; ours use `POST`, so that a link preview cannot spend a token.

use axum::body::Body;
use http::{HeaderValue, Method, Response, StatusCode};
use runvoy_engine::{EngineError, Origin};
use runvoy_wire::{ClaimResponse, Code};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, pattern};
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = |id, about| {
        Operation::new(id, "Exchange an invitation for an API key")
            .about(about)
            .path("token", pattern("^[A-Za-z0-9_-]{32}$"), "The 32 characters of the invitation")
            .gives::<ClaimResponse>(200, "The API key; it is shown only here")
            .refuses(&[Code::InvalidRequest, Code::NotFound, Code::Conflict, Code::RateLimited])
    };
    let by_get = "The same with GET, for clients that cannot send POST. Prefer POST: a link preview sends GET, \
        too, and would use the invitation up.";
    routes.get("/api/v1/claim/{token}", Rule::Anyone, operation("claimInvitationByGet", by_get), claim);
    let by_post = "Works once, until the invitation expires. `NOT_FOUND`: the token is unknown or expired. \
        `CONFLICT`: it was used before.";
    routes.post("/api/v1/claim/{token}", Rule::Anyone, operation("claimInvitation", by_post), claim);
}

async fn claim(call: Call) -> Result<Response<Body>, Fault> {
    // Whoever only looks whether there is something must not spend it.
    if call.parts.method == Method::HEAD {
        return Err(Fault::MethodNotAllowed(HeaderValue::from_static("GET, POST, OPTIONS")));
    }
    let (attempts, peer, clock) = (&call.state.claim_attempts, call.reached.connection.peer, &call.engine().ports().clock);
    attempts.check(peer, clock.monotonic())?;
    let origin = Origin { from: peer.to_string(), request_id: call.request_id.clone() };
    let claimed = match call.engine().claim(call.params.get("token"), origin).await {
        // Whoever shows a token that was claimed has had a good one; everybody else may be guessing.
        Err(error @ (EngineError::NotFound { .. } | EngineError::Invalid { .. })) => {
            attempts.failed(peer, None, clock.monotonic())?;
            return Err(error.into());
        }
        claimed => claimed?,
    };
    let message = "keep it safe: it is shown only here".to_owned();
    let response = ClaimResponse { api_key: claimed.api_key.into(), user_email: claimed.email, message };
    Ok(answer::json(StatusCode::OK, &response))
}
