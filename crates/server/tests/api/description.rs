//! The OpenAPI document and the route table say the same.

use std::collections::BTreeSet;

use runvoy_server::{App, Rule};
use serde_json::Value;

use crate::app::TestApp;

async fn document() -> Value {
    TestApp::new().await.get("/api/v1/openapi.json").send().await.json()
}

/// Whether a path is of the API, and not an address of the web page.
fn is_of_api(path: &str) -> bool {
    path.starts_with("/api/") || ["/livez", "/readyz", "/metrics"].contains(&path)
}

#[tokio::test]
async fn security_06_every_route_is_described_and_nothing_else() {
    let document = document().await;
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        described.extend(item.as_object().expect("methods").keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    let rows = App::table().into_iter().filter(|row| is_of_api(row.path));
    let served: BTreeSet<_> = rows.map(|row| (row.method.to_string(), row.path.replace("{*", "{"))).collect();
    assert_eq!(described, served);
}

#[tokio::test]
async fn every_operation_has_an_id_its_parameters_a_good_answer_and_the_error_body() {
    let document = document().await;
    let mut ids = BTreeSet::new();
    for row in App::table().into_iter().filter(|row| is_of_api(row.path)) {
        let path = row.path.replace("{*", "{");
        let operation = &document["paths"][&path][row.method.as_str().to_lowercase()];
        assert!(ids.insert(operation["operationId"].as_str().expect("an id").to_owned()), "{path}");
        let summary = operation["summary"].as_str().expect("a summary");
        assert!(summary.len() <= 60 && !summary.ends_with('.'), "{path}: {summary}");
        let about = operation["description"].as_str().expect("a description");
        assert_eq!(about.contains("Permission: `"), row.rule != Rule::Anyone, "{path}: {about}");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.as_str() < "400"), "{path}");
        assert!(responses["500"]["content"]["application/json"]["schema"]["$ref"].is_string(), "{path}");
        assert_eq!(responses.contains_key("401"), row.rule != Rule::Anyone, "{path}");
        assert_eq!(operation["security"].is_array(), row.rule != Rule::Anyone, "{path}");
        for name in path.split(['{', '}']).skip(1).step_by(2) {
            let parameters = operation["parameters"].as_array().expect("parameters");
            assert!(parameters.iter().any(|parameter| parameter["name"] == name && parameter["in"] == "path"), "{path}");
        }
    }
}

#[tokio::test]
async fn every_operation_has_one_tag_that_is_described() {
    let document = document().await;
    let described: BTreeSet<&str> =
        document["tags"].as_array().expect("tags").iter().map(|tag| tag["name"].as_str().expect("a name")).collect();
    let mut used = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("methods").values() {
            let [tag] = operation["tags"].as_array().expect("tags").as_slice() else { panic!("{path}: {operation}") };
            used.insert(tag.as_str().expect("a name"));
        }
    }
    assert_eq!(used, described);
    for (path, tag) in [
        ("/api/v1/run", "executions"),
        ("/api/v1/executions/{id}/logs", "logs"),
        ("/api/v1/users/{email}/keys", "keys"),
        ("/readyz", "health"),
    ] {
        let operation = document["paths"][path].as_object().and_then(|methods| methods.values().next()).expect(path);
        assert_eq!(operation["tags"][0], tag, "{path}");
    }
}

#[tokio::test]
async fn responses_require_the_fields_that_they_always_have() {
    let document = document().await;
    let requires = |schema: &str, field: &str| {
        let required = document["components"]["schemas"][schema]["required"].as_array().cloned().unwrap_or_default();
        required.contains(&field.into())
    };
    for (schema, field) in [("UsersResponse", "users"), ("StatusResponse", "exit_code"), ("Execution", "owned_by"), ("Queue", "depth")] {
        assert!(requires(schema, field), "{schema}.{field}");
    }
    for (schema, field) in [("Execution", "completed_at"), ("LogEvent", "late"), ("CreateUserRequest", "api_key")] {
        assert!(!requires(schema, field), "{schema}.{field}");
    }
    assert_eq!(document["components"]["schemas"]["Execution"]["properties"]["duration_seconds"]["type"], "integer", "never null");
}

#[tokio::test]
async fn every_error_is_of_one_type_that_holds_the_fields_of_a_held_lock() {
    let document = document().await;
    let error = &document["components"]["schemas"]["Error"];
    assert_eq!(error["required"], serde_json::json!(["error", "code", "details"]));
    for field in ["lock_name", "held_by", "since", "execution_id", "log_url"] {
        assert!(error["properties"][field].is_object(), "{field}");
    }
    let answers = document["paths"].as_object().expect("paths").values().flat_map(|item| item.as_object().expect("methods").values());
    for (status, answer) in answers.flat_map(|operation| operation["responses"].as_object().expect("responses")) {
        if status.as_str() >= "400" && status != "416" {
            assert_eq!(answer["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/Error", "{status}");
        }
    }
}

#[tokio::test]
async fn no_reference_leads_nowhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document().await;
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 10, "{found:?}");
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_document_changes_only_on_purpose() {
    let mut document = document().await;
    document["info"]["version"] = "VERSION".into();
    insta::assert_json_snapshot!("openapi", document);
}
