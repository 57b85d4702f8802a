//! Who the caller is.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::Whoami;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("whoami", "Get the current user")
        .about(
            "Returns the user, role, groups and rules of the API key that the request is made \
             with.",
        )
        .gives::<Whoami>(200, "The current user");
    routes.get("/api/v1/whoami", Rule::Key(Action::KnowSelf), operation, whoami);
}

async fn whoami(call: Call) -> Result<Response<Body>, Fault> {
    let caller = call.caller()?;
    let rules = call.engine().rules_for(caller).await?;
    let whoami = Whoami {
        email: caller.email.clone(),
        role: caller.role.as_str().to_owned(),
        key_prefix: caller.key_prefix.clone(),
        key_expires_at: caller.key_expires_at.map(Into::into),
        groups: caller.groups.clone(),
        rules,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(answer::json(StatusCode::OK, &whoami))
}
