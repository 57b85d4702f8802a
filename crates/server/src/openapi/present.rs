//! Which fields a response always has. The types tolerate absent fields, because they also read
//! responses of older servers; the document describes what this server sends.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Fields of responses that can be left out without being null otherwise: flags that are false,
/// counts of zero, any JSON value that is not there, and the tasks of a job in a list.
const LEFT_OUT: [(&str, &[&str]); 7] = [
    ("AuditEvent", &["details"]),
    ("AuditVerification", &["unverifiable"]),
    ("Execution", &["terminal", "worker_unreachable", "dead"]),
    ("StatusResponse", &["worker_unreachable"]),
    ("Job", &["tasks"]),
    ("LogEvent", &["cont", "eol", "late"]),
    ("Task", &["input", "output"]),
];
/// Fields of responses that are null where they have no value, and not left out.
const NULL_WHEN_ABSENT: [(&str, &[&str]); 4] =
    [("Execution", &["exit_code"]), ("StatusResponse", &["exit_code"]), ("LogsResponse", &["events"]), ("SearchResponse", &["next_line"])];
/// Schemas of both directions, and those that say themselves what they require.
const AS_DESCRIBED: [&str; 7] = ["Error", "Event", "LockHeld", "Parameter", "PlaybookTerms", "Playbook", "Rule"];
const PREFIX: &str = "#/components/schemas/";

/// Marks as required what responses always have; what they leave out is never null.
pub(super) fn apply(document: &mut Value) {
    let requests = referenced(document, "requestBody");
    let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") else { return };
    for (name, schema) in schemas {
        if requests.contains(name.as_str()) || AS_DESCRIBED.contains(&name.as_str()) {
            continue;
        }
        if let Value::Object(schema) = schema {
            complete(name, schema);
        }
    }
}

fn complete(name: &str, schema: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let lists = |table: &[(&str, &[&str])], field: &str| table.iter().any(|(of, fields)| *of == name && fields.contains(&field));
    let mut required = Vec::new();
    for (field, property) in properties {
        let can_be_null = is_nullable(property);
        if lists(&NULL_WHEN_ABSENT, field) || !can_be_null && !lists(&LEFT_OUT, field) {
            required.push(field.clone());
        } else if can_be_null {
            forbid_null(property);
        }
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
}

fn is_null(value: &Value) -> bool {
    value == "null" || value["type"] == "null"
}

fn is_nullable(property: &Value) -> bool {
    ["type", "oneOf"].iter().any(|key| property[*key].as_array().is_some_and(|any| any.iter().any(is_null)))
}

fn forbid_null(property: &mut Value) {
    for key in ["type", "oneOf"] {
        let Some(any) = property[key].as_array() else { continue };
        let rest: Vec<Value> = any.iter().filter(|one| !is_null(one)).cloned().collect();
        match (key, <[Value; 1]>::try_from(rest)) {
            ("type", Ok([one])) => property["type"] = one,
            (_, Ok([one])) => *property = one,
            (_, Err(rest)) => property[key] = rest.into(),
        }
    }
}

/// The schemas that some part of every operation refers to, directly or through others.
fn referenced(document: &Value, part: &str) -> BTreeSet<String> {
    let operations = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let mut waiting = Vec::new();
    for operation in operations.filter_map(Value::as_object).flat_map(|methods| methods.values()) {
        references(&operation[part], &mut waiting);
    }
    let mut found = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if found.insert(name.clone()) {
            references(&document["components"]["schemas"][&name], &mut waiting);
        }
    }
    found
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix(PREFIX));
            found.extend(name.map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
