//! The metrics, for a Prometheus server at the usual place and for our own clients below the API.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode};
use runvoy_model::role::Action;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn add(routes: &mut Routes) {
    for (path, id) in [("/metrics", "getMetrics"), ("/api/v1/metrics", "getApiMetrics")] {
        let operation = Operation::new(id, "Get the metrics").about("Returns the metrics in the Prometheus text format.").gives_type(
            200,
            TYPE,
            "The metrics",
        );
        routes.get(path, Rule::KeyUnlessPublic(Action::Metrics), operation, metrics);
    }
}

async fn metrics(call: Call) -> Result<Response<Body>, Fault> {
    Ok(answer::whole(StatusCode::OK, HeaderValue::from_static(TYPE), (call.state.metrics)()))
}
