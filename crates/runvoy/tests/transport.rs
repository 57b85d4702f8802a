//! How clients reach a server: TLS, loopback only without it, the socket, and the files that tell where it is.

mod harness;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use self::harness::{Server, Setup};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_whole_way_works_over_tls() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("a certificate");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let (cert, key) = (cert.to_str().expect("a path"), key.to_str().expect("a path"));
    let server = Setup::default().arg("--tls-cert").arg(cert).arg("--tls-key").arg(key).start();
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let output = server.cli(&["--ca-file", cert, "run", "echo over tls"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("over tls\n", Some(0)), "{}", text(&output.stderr));
    let distrustful = server.cli(&["whoami"]);
    assert_eq!(distrustful.status.code(), Some(1), "a certificate that nobody vouches for: {}", text(&distrustful.stderr));
}

#[test]
fn the_usual_self_signed_certificate_is_enough() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing_key = rcgen::KeyPair::generate().expect("a key");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, params.self_signed(&signing_key).expect("a certificate").pem()).expect("written");
    std::fs::write(&key, signing_key.serialize_pem()).expect("written");
    let (cert, key) = (cert.to_str().expect("a path"), key.to_str().expect("a path"));
    let server = Setup::default().arg("--tls-cert").arg(cert).arg("--tls-key").arg(key).start();
    let output = server.cli(&["--ca-file", cert, "run", "echo over tls"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("over tls\n", Some(0)), "{}", text(&output.stderr));
}

#[test]
fn beyond_loopback_without_tls_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let said = Setup::default().arg("--listen").arg("0.0.0.0:0").try_start_in(dir.path()).err().expect("refused");
    assert!(said.contains("--tls-cert") && said.contains("--behind-proxy"), "{said}");
}

#[test]
fn a_server_behind_a_proxy_tells_the_address_that_clients_use() {
    let server = Setup::default().arg("--public-url").arg("https://Run.Example.com/").start();
    let body = server.http().post("/api/v1/run", &serde_json::json!({"command": "true"})).json();
    let (page, stream) = (body["log_url"].as_str().unwrap_or_default(), body["websocket_url"].as_str().unwrap_or_default());
    assert!(page.starts_with("https://run.example.com/logs?") && stream.starts_with("wss://run.example.com/api/v1/"), "{body}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let said = Setup::default().arg("--public-url").arg("run.example.com").try_start_in(dir.path()).err().expect("refused");
    assert!(said.contains("public_url") && said.contains("https://HOST"), "{said}");
}

#[test]
fn the_files_of_a_server_are_its_owners_only_and_go_when_it_stops() {
    let mut server = Server::start();
    let mode = |name: &str| std::fs::metadata(server.data.join(name)).expect("it is there").permissions().mode() & 0o777;
    for (name, expected) in
        [("", 0o700), ("admin.key", 0o600), ("keys", 0o700), ("keys/audit.key", 0o600), ("sock", 0o600), ("runvoy.db", 0o600)]
    {
        assert_eq!(mode(name), expected, "{name}");
    }
    assert_eq!(mode("logs") & 0o077, 0, "others may not read logs");
    assert_eq!(std::fs::read_to_string(server.data.join("endpoint")).expect("the endpoint").trim(), server.url);
    assert_eq!(server.stop(), Some(0));
    assert!(!server.data.join("endpoint").exists() && !server.data.join("sock").exists());
}

#[test]
fn the_first_start_says_where_the_key_of_its_admin_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let said = || {
        let mut command = Command::new(harness::binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut String::new()).expect("it listens");
        let asked = Command::new("kill").arg(child.id().to_string()).status().expect("kill is everywhere");
        assert!(asked.success());
        let told = child.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&told.stderr).into_owned()
    };
    let place = format!("created the first admin, admin@localhost; their API key is in {}", dir.path().join("admin.key").display());
    let (first, second) = (said(), said());
    assert!(first.contains(&place), "{first}");
    assert!(!second.contains("the first admin"), "{second}");
}

#[test]
fn a_wrong_key_is_401_and_no_key_too() {
    let server = Server::start();
    let status = |key: Option<&str>| {
        let answer = harness::http::Http::new(&server.url, key).get("/api/v1/executions");
        (answer.status, answer.json()["code"].as_str().expect("a code").to_owned())
    };
    assert_eq!(status(None), (401, "UNAUTHORIZED".into()));
    assert_eq!(status(Some("nonsense")), (401, "INVALID_API_KEY".into()));
    let mut close = server.key();
    let last = close.pop().expect("a character");
    close.push(if last == 'A' { 'B' } else { 'A' });
    assert_eq!(status(Some(&close)), (401, "INVALID_API_KEY".into()));
}

#[test]
fn a_backup_of_a_running_server_restores_to_the_same_history() {
    let server = Server::start();
    let ids: Vec<String> = (0..20).map(|n| server.run(&format!("echo {n}; seq 1 2000"))).collect();
    for id in &ids {
        server.wait(id);
    }
    let running = server.run("sleep 1000");
    server.wait_until(&running, "RUNNING");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let copy = dir.path().join("copy");
    let data = server.data.to_str().expect("a path");
    let made = server.cli(&["backup", copy.to_str().expect("a path"), "--data-dir", data]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let again = server.cli(&["backup", copy.to_str().expect("a path"), "--data-dir", data]);
    assert_ne!(again.status.code(), Some(0), "an existing directory is not written into");
    let restored = dir.path().join("restored");
    let output = server.cli(&["restore", copy.to_str().expect("a path"), "--data-dir", restored.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let second = Setup::default().start_in(&restored);
    let key = server.key();
    let mut http = harness::http::Http::new(&second.url, Some(&key));
    for (n, id) in ids.iter().enumerate() {
        let status = http.get(&format!("/api/v1/executions/{id}/status")).json();
        assert_eq!(status["status"], "SUCCEEDED", "{status}");
        let raw = http.get(&format!("/api/v1/executions/{id}/logs?format=raw")).text();
        assert!(raw.starts_with(&format!("{n}\n1\n")) && raw.ends_with("2000\n"), "{id}");
    }
    let status = http.get(&format!("/api/v1/executions/{running}/status")).json();
    assert_eq!(status["end_reason"]["code"], "worker_lost", "what ran elsewhere does not run here: {status}");
}

#[test]
fn a_backup_is_for_the_servers_own_user_only() {
    let server = Server::start();
    let answer = server.http().post("/api/v1/backup", &serde_json::json!({"destination": "/tmp/never-made"}));
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(!std::path::Path::new("/tmp/never-made").exists());
}
