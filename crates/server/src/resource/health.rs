//! Whether the server is there, lives, and is ready: for clients, for those who restart it, and for those who send it traffic.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode};
use runvoy_model::record::{Kind, hash_name};
use runvoy_wire::{Code, Health, Probe, ProbeStatus};

use crate::answer;
use crate::call::Call;
use crate::fault::{Fault, chain};
use crate::operation::Operation;
use crate::route::{Routes, Rule};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("getHealth", "Get the server's health and version").gives::<Health>(200, "The server is up");
    routes.get("/api/v1/health", Rule::Anyone, operation, health);
    let operation = Operation::new("checkLiveness", "Liveness probe")
        .about("Responds as long as the process is alive; checks nothing else.")
        .gives_type(200, "text/plain; charset=utf-8", "The process is alive");
    routes.get("/livez", Rule::Anyone, operation, livez);
    let operation = Operation::new("checkReadiness", "Readiness probe")
        .about(
            "Checks that the server accepts work: it is not stopping, and each of its \
             dependencies responds. The body lists the dependencies with their last error.",
        )
        .gives_type(200, "text/plain; charset=utf-8", "The server is ready")
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
    if call.state.is_stopping() || call.state.refuses_work() {
        let (error, details) = ("the server is stopping".into(), String::new());
        return Err(Fault::Refused { code: Code::ServiceUnavailable, error, details });
    }
    let dependencies = call.state.host.dependencies().await;
    let details = lines(&dependencies);
    // A key that nobody has: the smallest read there is.
    if let Err(error) = call.engine().ports().records.record(Kind::Key, &hash_name(&[0; 32])).await {
        tracing::warn!(error = chain(&error), "the store does not answer");
        return Err(Fault::Refused { code: Code::DatabaseError, error: "the store does not answer".into(), details });
    }
    let away: Vec<&str> = dependencies.iter().filter(|one| one.status == ProbeStatus::Fail).map(|one| one.name.as_str()).collect();
    if !away.is_empty() {
        let error = format!("not ready because of {}", away.join(", "));
        return Err(Fault::Refused { code: Code::ServiceUnavailable, error, details });
    }
    Ok(answer::whole(StatusCode::OK, TEXT, format!("ready\n{details}")))
}

/// One line for each: its name, how it stands, and what there is to say of that.
fn lines(dependencies: &[Probe]) -> String {
    let line = |one: &Probe| match one.detail.as_str() {
        "" => format!("{}: {}\n", one.name, one.status),
        detail => format!("{}: {}, {detail}\n", one.name, one.status),
    };
    dependencies.iter().map(line).collect()
}
