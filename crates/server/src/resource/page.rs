//! The addresses of the web page. Where the program was built without it, a short page says so and shows the command that reads the log; it
//! runs nothing, loads nothing, and repeats nothing of its address but an execution's id.

use std::fmt::Write as _;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use runvoy_model::id::{ExecutionId, JobId};

use crate::answer;
use crate::bundle;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

const HTML: &str = "text/html; charset=utf-8";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("homePage", "The web page").page();
    routes.get("/", Rule::Anyone, operation, home);
    let operation = Operation::new("logPage", "The web page of a log").page();
    routes.get("/logs", Rule::Anyone, operation, log);
    let operation = Operation::new("jobPage", "The web page of a job").page();
    routes.get("/jobs/{job}", Rule::Anyone, operation, job);
    let operation = Operation::new("pageAsset", "A file of the web page").page();
    routes.get("/assets/{asset}", Rule::Anyone, operation, asset);
    let operation = Operation::new("pageIcon", "The icon of the web page").page();
    routes.get("/icon.svg", Rule::Anyone, operation, icon);
}

async fn home(call: Call) -> Result<Response<Body>, Fault> {
    match asked(&call)? {
        Some(id) => Ok(found(&format!("/logs?execution_id={id}"))),
        None => Ok(page(&call, None)),
    }
}

async fn log(call: Call) -> Result<Response<Body>, Fault> {
    let id = asked(&call)?;
    // The page's files are found from where it lies, and one level down they are not.
    if call.parts.uri.path().ends_with('/') {
        return Ok(found(&id.map_or_else(|| "/logs".to_owned(), |id| format!("/logs?execution_id={id}"))));
    }
    Ok(page(&call, id))
}

async fn job(call: Call) -> Result<Response<Body>, Fault> {
    match call.params.get("job").parse::<JobId>() {
        Ok(id) => Ok(found(&format!("/#/jobs/{id}"))),
        Err(_) => Ok(found("/#/jobs")),
    }
}

async fn asset(call: Call) -> Result<Response<Body>, Fault> {
    file(&call, &format!("assets/{}", call.params.get("asset")))
}

async fn icon(call: Call) -> Result<Response<Body>, Fault> {
    file(&call, "icon.svg")
}

fn asked(call: &Call) -> Result<Option<ExecutionId>, Fault> {
    Ok(call.query()?.without_empty(&["execution_id"]).text("execution_id")?.and_then(|id| id.parse().ok()))
}

fn found(address: &str) -> Response<Body> {
    let mut response = answer::nothing();
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(address).expect("hex digits are ASCII"));
    response
}

fn file(call: &Call, path: &str) -> Result<Response<Body>, Fault> {
    Ok(bundle::find(path).ok_or_else(Fault::no_route)?.answer(&call.parts.headers))
}

fn page(call: &Call, id: Option<ExecutionId>) -> Response<Body> {
    bundle::find("index.html").map_or_else(|| without_page(id), |file| file.answer(&call.parts.headers))
}

/// What stands in the place of the page where the program was built without it.
fn without_page(id: Option<ExecutionId>) -> Response<Body> {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>runvoy</title></head>\n<body>\n<main>\n<h1>runvoy</h1>\n\
         <p>This server was built without the web page, which needs Node at build time. The command line shows the same log:</p>\n",
    );
    let id = id.map_or_else(|| "EXECUTION_ID".to_owned(), |id| id.to_string());
    write!(html, "<pre>runvoy logs {id} --follow\nrunvoy status {id}</pre>\n</main>\n</body>\n</html>\n")
        .expect("a String takes everything");
    answer::whole(StatusCode::OK, HeaderValue::from_static(HTML), html)
}
