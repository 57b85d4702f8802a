//! The break-glass, with and without a server; and that no key is on the disk in any form.

mod harness;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, binary, count};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn recover(data: &Path, more: &[&str]) -> Output {
    Command::new(binary()).args(["admin", "recover", "--data-dir"]).arg(data).args(more).output().expect("it runs")
}

fn whoami(server: &Server) -> serde_json::Value {
    server.get("/api/v1/whoami").json()
}

fn recoveries(server: &Server) -> usize {
    let events = server.get("/api/v1/audit?action=admin.recover").json();
    events.as_array().expect("events").len()
}

#[test]
fn whoever_owns_the_machine_gets_back_in_with_and_without_a_server() {
    let mut server = Server::start();
    let data = server.data.clone();
    let lost = server.key();
    let running = recover(&data, &[]);
    assert_eq!(running.status.code(), Some(0), "{}", text(&running.stderr));
    assert_eq!(text(&running.stdout).trim(), data.join("admin.key").to_str().expect("a path"));
    assert_ne!(server.key(), lost);
    assert_eq!(whoami(&server)["email"], "admin@localhost");
    assert_eq!(recoveries(&server), 1);

    assert_eq!(server.stop(), Some(0));
    let stopped = recover(&data, &["--email", "Ana@Example.com", "--json"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", text(&stopped.stderr));
    let key_file = data.join("admin.key");
    let told: serde_json::Value = serde_json::from_slice(&stopped.stdout).expect("JSON");
    assert_eq!(told, json!({"email": "ana@example.com", "key_file": key_file}));
    assert_eq!(std::fs::metadata(&key_file).expect("a key").permissions().mode() & 0o777, 0o600);
    let server = Setup::default().start_in(&data);
    assert_eq!((&whoami(&server)["email"], &whoami(&server)["role"]), (&json!("ana@example.com"), &json!("admin")));
    assert_eq!(recoveries(&server), 2, "both are in the audit trail");
    assert_eq!(server.get("/api/v1/audit/verify").json()["ok"], true);
    assert_eq!(Http::new(&server.url, Some(&lost)).get("/api/v1/whoami").status, 200, "it takes nothing away");
}

#[test]
fn there_is_nothing_to_recover_where_there_is_no_store() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let refused = recover(dir.path(), &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("there is no store"), "{}", text(&refused.stderr));
    assert!(std::fs::read_dir(dir.path()).expect("a directory").next().is_none(), "nothing is made");
    let server = Server::start();
    let refused = recover(&server.data, &["--email", "nobody"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--email"), "{}", text(&refused.stderr));
}

#[test]
fn security_01_no_key_or_token_is_on_the_disk_or_in_a_backup() {
    let mut server = Server::start();
    let mut http = server.http();
    let mut shown = Vec::new();
    for n in 0..count(10, 100) {
        let email = format!("user{n}@example.com");
        let invited = http.post("/api/v1/users/create", &json!({"email": email, "role": "viewer", "confirm": true})).json();
        let token = invited["claim_token"].as_str().expect("a token").to_owned();
        let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({})).json();
        let key = claimed["api_key"].as_str().expect("a key").to_owned();
        let made = Http::new(&server.url, Some(&key)).post(&format!("/api/v1/users/{email}/keys"), &json!({})).json();
        shown.extend([token, key, made["api_key"].as_str().expect("a key").to_owned()]);
    }
    let copy = server.data.with_file_name("copy");
    let backup = server.cli(&["backup", copy.to_str().expect("a path"), "--data-dir", server.data.to_str().expect("a path")]);
    assert_eq!(backup.status.code(), Some(0), "{}", text(&backup.stderr));
    // Once with the write-ahead log as it is, once after a stop.
    let mut files = Vec::new();
    read_all(&server.data, &mut files);
    read_all(&copy, &mut files);
    assert_eq!(server.stop(), Some(0));
    read_all(&server.data, &mut files);
    // Space that is set aside holds nothing, and takes a minute to look through.
    files.retain(|(_, content)| content.iter().any(|byte| *byte != 0));
    assert!(files.iter().any(|(_, content)| find(content, b"user0@example.com")), "the search finds what is there");
    for secret in &shown {
        // The beginning of a key is shown; what comes after it is not.
        let rest = &secret[12..];
        for form in [rest.to_owned(), hex(rest), hex(rest).to_uppercase(), base64(rest, 0), base64(rest, 1), base64(rest, 2)] {
            for (name, content) in &files {
                assert!(!find(content, form.as_bytes()), "{form} is in {name}");
            }
        }
    }
}

/// Every file below a directory, but the one that holds the admin's key on purpose and the home of the command line.
fn read_all(directory: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let kind = std::fs::symlink_metadata(&entry).expect("it is there").file_type();
        if kind.is_dir() && !entry.ends_with("home") {
            read_all(&entry, files);
        } else if kind.is_file() && !entry.ends_with("admin.key") {
            files.push((entry.display().to_string(), std::fs::read(&entry).expect("it can be read")));
        }
    }
}

fn find(content: &[u8], wanted: &[u8]) -> bool {
    content.windows(wanted.len()).any(|window| window == wanted)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What a text becomes in base64 from this place on: the part that does not depend on what stands around it.
fn base64(text: &str, from: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = text.as_bytes()[from..].chunks_exact(3).map(|group| group.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte)));
    groups.flat_map(|bits| [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63]))).collect()
}
