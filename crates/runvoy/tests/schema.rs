//! The HTTP API as programs of others see it through its OpenAPI document: schemathesis sends what the document allows and what it does not, and holds
//! the answers against it; openapi-python-client makes a client from it. Both are installed by `cargo xtask check`.

mod harness;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::harness::http::Http;
use self::harness::{Server, Setup, count};

/// Operations that take a key away, perhaps the one in use. They are tried by themselves, after all others.
const TAKES_KEYS: [&str; 4] = ["revokeKey", "revokeUser", "rotateKey", "setUserRole"];

/// A program of the virtual environment.
fn program(name: &str) -> Command {
    let place =
        std::env::var_os("RUNVOY_CLIENTS").expect("RUNVOY_CLIENTS names the virtual environment: cargo xtask test --test schema makes it");
    let path: PathBuf = Path::new(&place).join("bin").join(name);
    assert!(path.exists(), "there is no {}: cargo xtask test --test schema installs it", path.display());
    Command::new(path)
}

/// A server that never runs what it is sent, and throttles nobody: a request that is answered with
/// 429 tests nothing else.
fn server() -> Server {
    let unlimited = ["FAILED_KEYS", "FAILED_CLAIMS", "DENIALS"];
    let setup = Setup::default().arg("--no-worker");
    unlimited.iter().fold(setup, |setup, what| setup.env(&format!("RUNVOY_{what}_PER_MINUTE"), "0")).start()
}

fn developer(server: &Server) -> String {
    let made = server.http().post("/api/v1/users/create", &json!({"email": "dev@example.com", "role": "developer"}));
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["claim_token"].as_str().expect("a token").to_owned();
    let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({}));
    claimed.json()["api_key"].as_str().expect("a key").to_owned()
}

/// Tries every operation with one key, each time on a server of its own.
fn try_with(key_of: fn(&Server) -> String) {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/api");
    let (config, rules) = (files.join("schemathesis.toml"), files.join("rules.py"));
    for takes_keys in [false, true] {
        let server = server();
        let key = key_of(&server);
        let home = tempfile::tempdir().expect("a directory");
        let mut command = program("schemathesis");
        command.arg("--config-file").arg(&config).arg("--no-color").arg("run").arg(format!("{}/api/v1/openapi.json", server.url));
        command.args(["--header", &format!("X-API-Key: {key}"), "--generation-deterministic"]);
        command.args(["--max-examples", &count(5, 100).to_string()]);
        let filter = if takes_keys { "--include-operation-id" } else { "--exclude-operation-id" };
        command.args(TAKES_KEYS.iter().flat_map(|id| [filter, *id]));
        command.current_dir(home.path()).env("PYTHONDONTWRITEBYTECODE", "1").env("SCHEMATHESIS_HOOKS", &rules);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn third_party_requests_by_the_document_find_nothing_with_an_admin_s_key() {
    try_with(Server::key);
}

#[test]
fn third_party_requests_by_the_document_find_nothing_with_a_developer_s_key() {
    try_with(developer);
}

#[test]
fn third_party_generated_python_has_a_module_for_each_resource() {
    let document = server().http().get("/api/v1/openapi.json").json();
    let place = tempfile::tempdir().expect("a directory");
    let (source, target) = (place.path().join("openapi.json"), place.path().join("client"));
    std::fs::write(&source, document.to_string()).expect("written");
    let mut command = program("openapi-python-client");
    command.arg("generate").arg("--path").arg(&source).arg("--output-path").arg(&target);
    // It formats what it made with a program beside it.
    let (own, usual) = (std::env::var_os("RUNVOY_CLIENTS").expect("set"), std::env::var_os("PATH").unwrap_or_default());
    let path = std::iter::once(Path::new(&own).join("bin")).chain(std::env::split_paths(&usual));
    command.args(["--meta", "none"]).env("PATH", std::env::join_paths(path).expect("a path"));
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let operations = document["paths"].as_object().expect("paths").values().flat_map(|item| item.as_object().expect("methods").values());
    let resource = |operation: &Value| operation["tags"][0].as_str().expect("a tag").replace('-', "_");
    let resources: BTreeSet<String> = operations.map(resource).collect();
    assert!(resources.len() > 15, "{resources:?}");
    for resource in resources {
        assert!(target.join("api").join(&resource).join("__init__.py").exists(), "no module {resource}");
    }
}
