//! An example of each request body that people write by hand.

use serde_json::{Map, Value, json};

/// Adds the examples.
pub(super) fn apply(schemas: &mut Map<String, Value>) {
    for (name, example) in all() {
        if let Some(schema) = schemas.get_mut(name) {
            schema["examples"] = json!([example]);
        }
    }
}

fn all() -> [(&'static str, Value); 13] {
    [
        ("RunRequest", json!({"command": "make test", "env": {"CI": "true"}, "timeout": 600, "labels": {"team": "core"}})),
        (
            "CreateJobRequest",
            json!({"name": "release", "tasks": [
                {"taskId": "build", "command": "make"},
                {"taskId": "test", "command": "make test", "dependsOn": ["build"]},
            ]}),
        ),
        ("AddTasksRequest", json!({"tasks": [{"taskId": "deploy", "command": "make deploy"}]})),
        ("PutQueueRequest", json!({"concurrency": 4, "per_user": 2})),
        ("CreateUserRequest", json!({"email": "ana@example.com", "role": "developer"})),
        ("SetRoleRequest", json!({"role": "operator"})),
        ("PutGroupRequest", json!({"name": "ops", "members": ["ana@example.com"]})),
        (
            "PutRuleRequest",
            json!({"name": "no-rm", "effect": "deny", "roles": ["developer"], "commands": ["rm *"],
            "reason": "Ask an operator."}),
        ),
        (
            "PutPlaybookRequest",
            json!({"command": "./deploy.sh", "args": ["{{region}}"], "parameters": {
                "region": {"type": "choice", "choices": ["eu", "us"], "default": "eu"},
            }}),
        ),
        ("RunPlaybookRequest", json!({"parameters": {"region": "eu"}})),
        ("CreateSecretRequest", json!({"name": "db", "key_name": "DB_PASSWORD", "value": "correct horse"})),
        ("CreateWorkerRequest", json!({"name": "gpu-1", "queues": ["gpu"]})),
        ("RegisterImageRequest", json!({"image": "alpine:3.20"})),
    ]
}
