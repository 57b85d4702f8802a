//! Errors in the document: the one body that all of them have, and the meaning of each code.

use runvoy_wire::{Code, LockHeld};
use utoipa::PartialSchema as _;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required, ResponseBuilder};

/// The name of the body's schema.
pub(super) const ERROR: &str = "Error";

/// The response of a status: each code that it can carry, with its meaning.
pub(super) fn response(codes: &[Code]) -> ResponseBuilder {
    let lines: Vec<String> = codes.iter().map(|code| format!("`{code}`: {}", meaning(*code))).collect();
    ResponseBuilder::new().description(lines.join("\n\n"))
}

/// What a code means.
const fn meaning(code: Code) -> &'static str {
    match code {
        Code::InvalidRequest => "A parameter or field is missing, malformed or out of range; `error` names it.",
        Code::Unauthorized => "The request has no credential.",
        Code::InvalidApiKey => "The server does not know this API key.",
        Code::ApiKeyRevoked => "The API key, or its user, was revoked or has expired.",
        Code::Forbidden => "Your role or a rule does not allow this.",
        Code::NotFound => "It does not exist, or you may not see it.",
        Code::SecretNotFound => "The secret does not exist, or you may not see it.",
        Code::MethodNotAllowed => "The path exists, but not with this method.",
        Code::Conflict => "The request contradicts the current state; `details` says what to do.",
        Code::LockHeld => "Another execution holds the lock; the body says which one.",
        Code::SecretAlreadyExists => "A secret with this name already exists.",
        Code::PayloadTooLarge => "The body is larger than this operation accepts.",
        Code::RateLimited => "Too many requests; retry after the seconds in `Retry-After`.",
        Code::InternalError => "The server failed; its log has the request id of `X-Request-ID`.",
        Code::DatabaseError => "The store did not answer; retry.",
        Code::ServiceUnavailable => "The server is stopping or overloaded; retry.",
    }
}

/// The fields that every error has, and those that only some have: one schema for all, so that a
/// client needs no case distinction before it can read an error.
pub(super) fn schema() -> ObjectBuilder {
    let string = || ObjectBuilder::new().schema_type(Type::String);
    let codes = Code::ALL.iter().map(|code| code.as_str());
    let error = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("The body of every error."))
        .property("error", string().description(Some("What failed, as a sentence.")))
        .property("code", string().enum_values(Some(codes)).description(Some("What failed, for programs.")))
        .property("details", string().description(Some("Why, or what to do next; may be empty.")))
        .property(
            "confirm",
            ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .description(Some("With `CONFLICT`: the same request with `\"confirm\": true` in its body is accepted.")),
        )
        .required("error")
        .required("code")
        .required("details");
    lock_held_properties().into_iter().fold(error, |error, (name, schema)| error.property(name, schema))
}

fn lock_held_properties() -> std::collections::BTreeMap<String, RefOr<Schema>> {
    match LockHeld::schema() {
        RefOr::T(Schema::Object(object)) => object.properties,
        _ => unreachable!("a struct is an object"),
    }
}

/// `required` of a parameter or a body.
pub(super) const fn required(is_required: bool) -> Required {
    if is_required { Required::True } else { Required::False }
}
