//! The OpenAPI document, built from the route table: what is served and what is described cannot
//! drift apart.

mod error;
mod example;
mod limit;
mod permission;
mod present;
mod tag;

use std::collections::BTreeMap;

use http::Method;
use runvoy_wire::Code;
use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, PathItem, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ComponentsBuilder, ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApiBuilder, RefOr, ResponseBuilder};

use self::error::{ERROR, required};
use crate::route::{Route, Routes, Rule};

const ABOUT: &str = "Runs commands on infrastructure that its users have no credentials for.\n\n\
    Authenticate with an API key in `X-API-Key` or as `Authorization: Bearer`. Times are RFC 3339 \
    in UTC. Every response has an `X-Request-ID`, which the audit trail and the server's log \
    repeat. Lists that take `limit` and `cursor` return the cursor of the next page in \
    `X-Next-Cursor`.";
/// What any route can answer.
const ALWAYS: [Code; 2] = [Code::InternalError, Code::ServiceUnavailable];
/// What any route with a rule can answer.
const GUARDED: [Code; 6] =
    [Code::Unauthorized, Code::InvalidApiKey, Code::ApiKeyRevoked, Code::Forbidden, Code::RateLimited, Code::DatabaseError];

/// The document as JSON text. The addresses of the web page are no part of it.
pub(crate) fn document(routes: &Routes) -> String {
    let mut components = ComponentsBuilder::new()
        .security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key"))))
        .security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)))
        .security_scheme("ticket", SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::new("token"))))
        .security_scheme("link", SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::new("token"))))
        .schema(ERROR, error::schema());
    let mut named: BTreeMap<String, RefOr<Schema>> = BTreeMap::new();
    let mut paths = PathsBuilder::new();
    for route in routes.routes.iter().filter(|route| !route.operation.is_page) {
        let operation = &route.operation;
        let shapes = operation.promises.iter().filter_map(|promise| promise.shape.as_ref()).chain(&operation.body);
        named.extend(shapes.flat_map(|shape| shape.named.iter().cloned()));
        paths = paths.path(route.path.replace("{*", "{"), PathItem::new(method(&route.method), describe(route)));
    }
    for (name, schema) in named {
        components = components.schema(name, schema);
    }
    let info = InfoBuilder::new().title("runvoy").version(env!("CARGO_PKG_VERSION")).description(Some(ABOUT));
    let document =
        OpenApiBuilder::new().info(info.build()).paths(paths).tags(Some(tag::described())).components(Some(components.build())).build();
    let mut document = serde_json::to_value(&document).expect("a document is plain data");
    present::apply(&mut document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        limit::apply(schemas);
        example::apply(schemas);
    }
    document.to_string()
}

fn method(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn describe(route: &Route) -> OperationBuilder {
    let operation = &route.operation;
    let about = [operation.about, &permission::of(route.rule)].join(" ");
    let mut described = OperationBuilder::new()
        .operation_id(Some(operation.id))
        .summary(Some(operation.summary))
        .description(Some(about.trim()))
        .tag(tag::of(route.path));
    for param in &operation.params {
        let parameter = ParameterBuilder::new()
            .name(param.name)
            .parameter_in(param.place.clone())
            .required(required(param.required))
            .description(Some(param.description))
            .schema(Some(param.schema.clone()));
        described = described.parameter(parameter);
    }
    if let Some(body) = &operation.body {
        let content = ContentBuilder::new().schema(Some(body.schema.clone())).build();
        let body = RequestBodyBuilder::new().required(Some(required(operation.body_required))).content("application/json", content);
        described = described.request_body(Some(body.build()));
    }
    for (status, response) in responses(route) {
        described = described.response(status.to_string(), response);
    }
    let no_scopes: [&str; 0] = [];
    let schemes: &[&str] = match route.rule {
        Rule::Anyone => &[],
        Rule::Key(_) | Rule::Owner(_) | Rule::KeyUnlessPublic(_) => &["key", "bearer"],
        Rule::KeyOrTicket(_) => &["key", "bearer", "ticket"],
        Rule::KeyOrLink(_) => &["key", "bearer", "link"],
    };
    for scheme in schemes {
        described = described.security(SecurityRequirement::new(*scheme, no_scopes));
    }
    if matches!(route.rule, Rule::KeyUnlessPublic(_)) {
        described = described.security(SecurityRequirement::default());
    }
    described
}

/// The responses by status. Several content types of one status are one response, and so are
/// several error codes.
fn responses(route: &Route) -> BTreeMap<u16, ResponseBuilder> {
    let operation = &route.operation;
    let mut responses: BTreeMap<u16, ResponseBuilder> = BTreeMap::new();
    for promise in &operation.promises {
        let mut response = responses.remove(&promise.status).unwrap_or_else(|| ResponseBuilder::new().description(promise.description));
        if !promise.content_type.is_empty() {
            let content = ContentBuilder::new().schema(promise.shape.as_ref().map(|shape| shape.schema.clone()));
            response = response.content(promise.content_type, content.build());
        }
        for (name, description) in &operation.headers {
            let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).description(Some(*description));
            response = response.header(*name, header.build());
        }
        responses.insert(promise.status, response);
    }
    let guarded: &[Code] = if route.rule == Rule::Anyone { &[] } else { &GUARDED };
    let mut codes: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in ALWAYS.iter().chain(guarded).chain(&operation.refusals) {
        let of_status = codes.entry(code.status()).or_default();
        if !of_status.contains(code) {
            of_status.push(*code);
        }
    }
    for (status, codes) in codes {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ERROR))).build();
        responses.insert(status, error::response(&codes).content("application/json", content));
    }
    responses
}
