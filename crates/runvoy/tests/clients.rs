//! The RPC as clients of others speak it: Connect, gRPC and gRPC-Web by `@connectrpc/connect-node`, gRPC by Python's `grpcio`, all of them made
//! from the definitions in `proto/`. The programs are in `e2e/rpc`; here is only the server that they talk to.

mod harness;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use self::harness::{Server, Setup};

/// Where the programs are.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/rpc")
}

/// Runs a client against a server of its own, whose work nobody but the client takes.
fn drive(mut client: Command, ways: &[&str]) {
    let server = Setup::default().arg("--no-worker").env("RUNVOY_FAILED_KEYS_PER_MINUTE", "0").start();
    let queues: Vec<String> =
        ways.iter().flat_map(|way| ["", "-list", "-event", "-credential"].map(|part| format!("{way}{part}"))).collect();
    client.env("RUNVOY_URL", &server.url).env("RUNVOY_KEY", server.key()).env("RUNVOY_WORKER_KEY", worker_key(&server, &queues));
    let status = client.current_dir(programs()).env("NO_COLOR", "1").status();
    let status =
        status.unwrap_or_else(|error| panic!("{:?} cannot be started ({error}): cargo xtask check installs it", client.get_program()));
    assert!(status.success(), "a journey failed, see above: {status}");
}

fn worker_key(server: &Server, queues: &[String]) -> String {
    let made = server.http().post("/api/v1/workers/accounts", &json!({"name": "client", "queues": queues}));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["api_key"].as_str().expect("a key").to_owned()
}

#[test]
fn third_party_clients_of_node_speak_connect_grpc_and_grpc_web() {
    let installed = programs().join("node_modules");
    assert!(installed.exists(), "there is no {}: cargo xtask test --test clients installs it", installed.display());
    let mut node = Command::new("node");
    node.arg("run.js");
    drive(node, &["connect-json", "connect-binary", "grpc", "grpc-web"]);
}

#[test]
fn third_party_clients_of_python_speak_grpc() {
    let place =
        std::env::var_os("RUNVOY_CLIENTS").expect("RUNVOY_CLIENTS names the virtual environment: cargo xtask test --test clients makes it");
    let mut python = Command::new(Path::new(&place).join("bin/python3"));
    // No files of its own beside the program.
    python.arg("-B").arg("python_client.py");
    drive(python, &["python"]);
}
