//! The OpenAPI document, built from the route table: what is served and what is described cannot drift apart.

use std::collections::BTreeMap;

use http::Method;
use runvoy_wire::{Code, LockHeld};
use utoipa::PartialSchema as _;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, PathItem, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ComponentsBuilder, ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApiBuilder, RefOr, Required, ResponseBuilder};

use crate::route::{Route, Routes, Rule};

const ERROR: &str = "Error";
/// What any route can answer.
const ALWAYS: [Code; 2] = [Code::InternalError, Code::ServiceUnavailable];
/// What any route with a rule can answer.
const GUARDED: [Code; 6] =
    [Code::Unauthorized, Code::InvalidApiKey, Code::ApiKeyRevoked, Code::Forbidden, Code::RateLimited, Code::DatabaseError];

/// The document as JSON text.
pub(crate) fn document(routes: &Routes) -> String {
    let mut components = ComponentsBuilder::new()
        .security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key"))))
        .security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)))
        .security_scheme("ticket", SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::new("token"))))
        .security_scheme("link", SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::new("token"))))
        .schema(ERROR, error_schema());
    let mut named: BTreeMap<String, RefOr<Schema>> = BTreeMap::new();
    let mut paths = PathsBuilder::new();
    for route in &routes.routes {
        let operation = &route.operation;
        let shapes = operation.promises.iter().filter_map(|promise| promise.shape.as_ref()).chain(&operation.body);
        named.extend(shapes.flat_map(|shape| shape.named.iter().cloned()));
        paths = paths.path(route.path.replace("{*", "{"), PathItem::new(method(&route.method), describe(route)));
    }
    for (name, schema) in named {
        components = components.schema(name, schema);
    }
    let info = InfoBuilder::new()
        .title("runvoy")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Runs commands on infrastructure that its users never get credentials for."));
    let document = OpenApiBuilder::new().info(info.build()).paths(paths).components(Some(components.build())).build();
    document.to_json().expect("a document is plain data")
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
    let mut described = OperationBuilder::new().operation_id(Some(operation.id)).summary(Some(operation.summary)).tag(resource(route.path));
    for param in &operation.params {
        let parameter = ParameterBuilder::new()
            .name(param.name)
            .parameter_in(param.place.clone())
            .required(if param.required { Required::True } else { Required::False })
            .description(Some(param.description))
            .schema(Some(param.schema.clone()));
        described = described.parameter(parameter);
    }
    if let Some(body) = &operation.body {
        let required = if operation.body_required { Required::True } else { Required::False };
        let content = ContentBuilder::new().schema(Some(body.schema.clone())).build();
        let body = RequestBodyBuilder::new().required(Some(required)).content("application/json", content);
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

/// The answers by status: several good ones of one status are one answer of several content types, and so are errors of several codes.
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
        let error = Ref::from_schema_name(ERROR);
        let words: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let content = ContentBuilder::new().schema(Some(error)).build();
        responses.insert(status, ResponseBuilder::new().description(words.join(" or ")).content("application/json", content));
    }
    responses
}

/// The three fields that every error has, and those that only a held lock adds: one type for all, so that a client needs not tell them apart first.
fn error_schema() -> ObjectBuilder {
    let string = || ObjectBuilder::new().schema_type(Type::String);
    let codes = Code::ALL.iter().map(|code| code.as_str());
    let error = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("error", string().description(Some("What happened, for a person.")))
        .property("code", string().enum_values(Some(codes)).description(Some("What happened, for a program.")))
        .property("details", string().description(Some("Why, or what to do next; may be empty.")))
        .property(
            "confirm",
            ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .description(Some("Beside CONFLICT: the same request with `\"confirm\": true` in its body is taken.")),
        )
        .required("error")
        .required("code")
        .required("details");
    lock_held_properties().into_iter().fold(error, |error, (name, schema)| error.property(name, schema))
}

fn lock_held_properties() -> BTreeMap<String, RefOr<Schema>> {
    match LockHeld::schema() {
        RefOr::T(Schema::Object(object)) => object.properties,
        _ => unreachable!("a struct is an object"),
    }
}

/// The resource that a route belongs to: generated clients have a module for each.
fn resource(path: &str) -> &str {
    let within = path.strip_prefix("/api/v1/").or_else(|| path.strip_prefix("/api/"));
    match within.and_then(|rest| rest.split(['/', '.']).next()) {
        Some("run") => "executions",
        Some(resource) => resource,
        None if ["/livez", "/readyz", "/metrics"].contains(&path) => "health",
        None => "page",
    }
}
