//! Secrets in the real files: their values are in none of them, their keys go where the store goes, and a store without its keys does not start.

mod harness;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use self::harness::http::{Answer, Http};
use self::harness::{Server, Setup, binary, count};

const FIRST: &str = "canary-first-4c1d9e";
const SECOND: &str = "canary-second-8b07f2";

fn put(server: &Server, name: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    server.http().send("PUT", &format!("/api/v1/secrets/{name}"), &headers, body.to_string().as_bytes()).expect("an answer")
}

fn create(server: &Server, name: &str, value: &str) {
    let answer = server.http().post("/api/v1/secrets", &json!({"name": name, "key_name": "TOKEN", "value": value}));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn value(http: &mut Http, name: &str) -> Value {
    http.get(&format!("/api/v1/secrets/{name}")).json()["secret"]["value"].clone()
}

fn rotate(server: &Server) -> Value {
    let answer = server.http().send("POST", "/api/v1/sealing-key/rotate", &[], b"").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn backup(server: &Server, to: &Path) {
    let output = server.cli(&["backup", path(to), "--data-dir", path(&server.data)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn restore(copy: &Path, data: &Path) -> Output {
    Command::new(binary()).arg("restore").arg(copy).arg("--data-dir").arg(data).output().expect("it runs")
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").map_while(Result::ok) {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

/// The files below a directory that hold a text somewhere.
fn holding(directory: &Path, text: &str) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    files(directory).into_iter().filter(holds).collect()
}

fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let whole = text.as_bytes().chunks_exact(3).map(|group| u32::from_be_bytes([0, group[0], group[1], group[2]]));
    whole.flat_map(|bits| [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63]))).collect()
}

/// Fails where a value is in a file below any of these, plain or encoded.
fn assert_nowhere(directories: &[&Path]) {
    for directory in directories {
        for canary in [FIRST, SECOND] {
            let hex: String = canary.bytes().map(|byte| format!("{byte:02x}")).collect();
            for form in [canary.to_owned(), base64(canary), hex] {
                assert_eq!(holding(directory, &form), Vec::<PathBuf>::new(), "{form}");
            }
        }
    }
}

fn seal_keys(data: &Path) -> Vec<PathBuf> {
    let mut keys = files(&data.join("keys/seal"));
    keys.retain(|path| path.extension().is_some_and(|extension| extension == "key"));
    keys
}

#[test]
fn security_11_no_file_of_the_server_holds_a_value() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (data, log, copy) = (dir.path().join("data"), dir.path().join("server.log"), dir.path().join("copy"));
    let logged = |setup: Setup| {
        let script = format!("exec \"$@\" 2>>'{}'", path(&log));
        Setup { wrapper: ["sh", "-c", script.as_str(), "sh"].map(str::to_owned).to_vec(), ..setup }.env("RUNVOY_LOG_LEVEL", "trace")
    };
    let mut server = logged(Setup::default()).start_in(&data);
    let body = json!({"name": "prod/token", "key_name": "TOKEN", "value": FIRST});
    for status in [201, 201] {
        let answer = server.http().try_post("/api/v1/secrets", &body, &[("idempotency-key", "k1")]).expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!(server.http().post("/api/v1/secrets", &body).status, 409);
    assert_eq!(value(&mut server.http(), "prod/token"), FIRST);
    assert_nowhere(&[&data]);
    assert_eq!(put(&server, "prod/token", &json!({"value": SECOND})).status, 200);
    let id = server.run_with(json!({"command": "echo \"$TOKEN\"; echo done", "secrets": ["prod/token"]}));
    server.wait(&id);
    assert_eq!(String::from_utf8_lossy(&server.raw(&id)), "***\ndone\n", "the command has the value, and its log does not");
    assert_eq!(rotate(&server)["resealed"], 1);
    assert_eq!(value(&mut server.http(), "prod/token"), SECOND);
    backup(&server, &copy);
    // The search finds what is there, also in the log of the server.
    assert!(!holding(&data, "prod/token").is_empty() && !holding(&copy, "prod/token").is_empty());
    assert!(std::fs::read_to_string(&log).expect("a log").contains("/api/v1/sealing-key/rotate"), "the server's log is searched too");
    assert_nowhere(&[dir.path()]);
    server.kill_9();
    let mut server = logged(Setup::default()).start_in(&data);
    assert_eq!(value(&mut server.http(), "prod/token"), SECOND);
    assert_eq!(server.stop(), Some(0));
    assert_nowhere(&[dir.path()]);
}

#[test]
fn security_11_a_store_with_secrets_does_not_start_without_their_key() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    create(&server, "db", FIRST);
    server.stop();
    let key = seal_keys(&data).pop().expect("a key");
    let bytes = std::fs::read(&key).expect("a key");
    assert_eq!((std::fs::metadata(&key).expect("a key").permissions().mode() & 0o777, bytes.len()), (0o600, 32));
    let refused = |what: &str| {
        let said = Setup::default().try_start_in(&data).err().unwrap_or_else(|| panic!("it started with {what}"));
        assert!(said.contains("encryption key") && said.contains("restore a backup"), "{what}: {said}");
    };
    std::fs::write(&key, [0; 32]).expect("written");
    refused("another key");
    std::fs::write(&key, &bytes[..31]).expect("written");
    refused("a part of its key");
    std::fs::remove_file(&key).expect("removed");
    refused("no key");
    let (ring, aside) = (data.join("keys/seal"), data.join("aside"));
    std::fs::rename(&ring, &aside).expect("moved");
    refused("no ring");
    assert!(!ring.exists(), "none was made in its place");
    std::fs::rename(&aside, &ring).expect("moved");
    std::fs::write(&key, &bytes).expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("private");
    let server = Setup::default().start_in(&data);
    assert_eq!(value(&mut server.http(), "db"), FIRST);
}

#[test]
fn a_backup_has_the_sealing_keys_and_a_restore_brings_them_back() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start();
    create(&server, "db", FIRST);
    rotate(&server);
    let copy = dir.path().join("copy");
    backup(&server, &copy);
    // The running server goes on to another key, which the copy does not need.
    rotate(&server);
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&copy.join("keys/seal")), 0o700);
    assert!(files(&copy.join("keys")).iter().all(|path| mode(path) == 0o600));
    let data = dir.path().join("data");
    let output = restore(&copy, &data);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(mode(&data.join("keys/seal")), 0o700);
    let restored = Setup::default().start_in(&data);
    assert_eq!(value(&mut Http::new(&restored.url, Some(&server.key())), "db"), FIRST);
    create_after(&restored, &server.key());
}

/// What is restored goes on sealing.
fn create_after(server: &Server, key: &str) {
    let mut http = Http::new(&server.url, Some(key));
    assert_eq!(http.post("/api/v1/secrets", &json!({"name": "new", "key_name": "TOKEN", "value": SECOND})).status, 201);
    assert_eq!(value(&mut http, "new"), SECOND);
}

#[test]
fn security_11_a_rotation_that_is_killed_loses_no_value_and_the_next_one_finishes_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    let secrets = 20;
    for n in 0..secrets {
        create(&server, &format!("s{n}"), &format!("value-{n}"));
    }
    let (mut cut_off, wanted) = (0, count(3, 30));
    for round in 0.. {
        assert!(round < 10 * wanted, "only {cut_off} rotations were killed in the middle");
        let (url, key) = (server.url.clone(), server.key());
        let rotating = std::thread::spawn(move || Http::new(&url, Some(&key)).send("POST", "/api/v1/sealing-key/rotate", &[], b""));
        // Killed as soon as there is a second key, or some secrets later.
        while seal_keys(&data).len() < 2 && !rotating.is_finished() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(3 * (round % 5) as u64));
        server.kill_9();
        cut_off += usize::from(rotating.join().expect("it ends").is_err());
        server = Setup::default().start_in(&data);
        for n in 0..secrets {
            assert_eq!(value(&mut server.http(), &format!("s{n}")), format!("value-{n}"), "round {round}");
        }
        if cut_off == wanted {
            break;
        }
    }
    rotate(&server);
    assert_eq!(seal_keys(&data).len(), 1, "only the key in use is left");
}
