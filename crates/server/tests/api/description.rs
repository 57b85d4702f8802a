//! The OpenAPI document and the route table say the same.

use std::collections::BTreeSet;

use runvoy_server::{App, Rule};
use serde_json::Value;

use crate::app::TestApp;

async fn document() -> Value {
    TestApp::new().await.get("/api/v1/openapi.json").send().await.json()
}

#[tokio::test]
async fn security_06_every_route_is_described_and_nothing_else() {
    let document = document().await;
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        described.extend(item.as_object().expect("methods").keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    let served: BTreeSet<_> = App::table().into_iter().map(|row| (row.method.to_string(), row.path.replace("{*", "{"))).collect();
    assert_eq!(described, served);
}

#[tokio::test]
async fn every_operation_has_an_id_its_parameters_a_good_answer_and_the_error_body() {
    let document = document().await;
    let mut ids = BTreeSet::new();
    for row in App::table() {
        let path = row.path.replace("{*", "{");
        let operation = &document["paths"][&path][row.method.as_str().to_lowercase()];
        assert!(ids.insert(operation["operationId"].as_str().expect("an id").to_owned()), "{path}");
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
