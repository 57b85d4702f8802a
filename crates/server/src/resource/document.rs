//! The description of the API.

use axum::body::Body;
use http::{Response, StatusCode};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("getOpenApiDocument", "Get the OpenAPI document")
        .about("Returns this description of the API.")
        .gives_type(200, "application/json", "An OpenAPI 3.1 document");
    routes.get("/api/v1/openapi.json", Rule::Anyone, operation, document);
}

async fn document(call: Call) -> Result<Response<Body>, Fault> {
    Ok(answer::whole(StatusCode::OK, answer::JSON, call.state.openapi.clone()))
}
