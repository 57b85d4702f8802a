//! Whether the server is there, lives, and is ready: for clients, for those who restart it, and for those who send it traffic.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode};
use runvoy_model::record::Kind;
use runvoy_wire::{Code, Health};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("health", "Whether the server is there, and which one").gives::<Health>(200, "It is");
    routes.get("/api/v1/health", Rule::Anyone, operation, health);
    let operation = Operation::new("livez", "Whether the process lives").gives_type(200, "text/plain; charset=utf-8", "It does");
    routes.get("/livez", Rule::Anyone, operation, livez);
    let operation = Operation::new("readyz", "Whether the server can take requests: its store answers and it is not stopping")
        .gives_type(200, "text/plain; charset=utf-8", "It can")
        .refuses(&[Code::ServiceUnavailable, Code::DatabaseError]);
    routes.get("/readyz", Rule::Anyone, operation, readyz);
}

async fn health(call: Call) -> Result<Response<Body>, Fault> {
    let config = &call.state.config;
    let health = Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        provider: config.provider.clone(),
        region: config.region.clone(),
    };
    Ok(answer::json(StatusCode::OK, &health))
}

async fn livez(_: Call) -> Result<Response<Body>, Fault> {
    Ok(answer::whole(StatusCode::OK, TEXT, "ok\n"))
}

async fn readyz(call: Call) -> Result<Response<Body>, Fault> {
    if call.state.is_stopping() {
        let (error, details) = ("the server is stopping".into(), String::new());
        return Err(Fault::Refused { code: Code::ServiceUnavailable, error, details });
    }
    // A key that nobody has: the smallest read there is.
    call.engine().ports().records.record(Kind::Key, "").await.map_err(runvoy_engine::EngineError::from)?;
    Ok(answer::whole(StatusCode::OK, TEXT, "ready\n"))
}
