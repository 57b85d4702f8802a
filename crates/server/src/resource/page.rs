//! The addresses of the web page. This build has no viewer: the page says so and shows the command that reads the log. It runs nothing, loads
//! nothing, and repeats nothing of its address but an execution's id.

use std::fmt::Write as _;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use runvoy_model::id::ExecutionId;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, text};
use crate::route::{Routes, Rule};

const HTML: &str = "text/html; charset=utf-8";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("home", "The web page; with an execution's id it leads to that log's page")
        .query("execution_id", text(), "The execution")
        .gives_type(200, HTML, "The page")
        .gives_nothing(302, "The page of that log");
    routes.get("/", Rule::Anyone, operation, home);
    let operation =
        Operation::new("logPage", "The web page of a log").query("execution_id", text(), "The execution").gives_type(200, HTML, "The page");
    routes.get("/logs", Rule::Anyone, operation, log);
}

async fn home(call: Call) -> Result<Response<Body>, Fault> {
    let Some(id) = asked(&call)? else { return Ok(page(None)) };
    let mut response = answer::nothing();
    *response.status_mut() = StatusCode::FOUND;
    let to = HeaderValue::from_str(&format!("/logs?execution_id={id}")).expect("hex digits are ASCII");
    response.headers_mut().insert(header::LOCATION, to);
    Ok(response)
}

async fn log(call: Call) -> Result<Response<Body>, Fault> {
    Ok(page(asked(&call)?))
}

fn asked(call: &Call) -> Result<Option<ExecutionId>, Fault> {
    Ok(call.query()?.text("execution_id")?.and_then(|id| id.parse().ok()))
}

fn page(id: Option<ExecutionId>) -> Response<Body> {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>runvoy</title></head>\n<body>\n<main>\n<h1>runvoy</h1>\n\
         <p>The log viewer is not part of this build. The command line shows the same log:</p>\n",
    );
    let id = id.map_or_else(|| "EXECUTION_ID".to_owned(), |id| id.to_string());
    write!(html, "<pre>runvoy logs {id} --follow\nrunvoy status {id}</pre>\n</main>\n</body>\n</html>\n")
        .expect("a String takes everything");
    answer::whole(StatusCode::OK, HeaderValue::from_static(HTML), html)
}
