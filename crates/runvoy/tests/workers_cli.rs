//! Workers at the command line, as an admin types it: accounts and their keys, and who is there, against the real server.

mod harness;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};

use self::harness::http::Http;
use self::harness::{Server, eventually};

const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIdNxBjbEsgovbO5BGbYbOQNONIF3
jn7p0QEKd5dFWsubXpAh6ofK1jLGApsB9dKHKXqdwHjjpr0RV2rdpK6Cug==
-----END PUBLIC KEY-----
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command wrote, where it succeeded.
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&done(output)).expect("JSON")
}

fn status_with(server: &Server, key: &str, path: &str) -> u16 {
    Http::new(&server.url, Some(key)).get(path).status
}

#[test]
fn an_account_of_workers_is_made_used_rekeyed_and_revoked() {
    let server = Server::start();
    let made = server.cli(&["workers", "create", "gpu-1", "--queue", "gpu,default"]);
    let first = done(&made).trim().to_owned();
    let told = text(&made.stderr);
    let usage = format!("runvoy worker --endpoint {} --api-key-file FILE --queue default", server.url);
    assert!(first.starts_with("rv_") && told.contains(&usage), "{told}");
    assert!(!told.contains(&first), "not a second time");
    assert_eq!(status_with(&server, &first, "/api/v1/whoami"), 200);
    assert_eq!(status_with(&server, &first, "/api/v1/executions"), 403);
    assert_eq!(status_with(&server, &first, "/api/v1/workers"), 403);

    let accounts = json_of(&server.cli(&["workers", "accounts", "--json"]));
    assert_eq!((&accounts[0]["name"], &accounts[0]["queues"][1]), (&"gpu-1".into(), &"gpu".into()));
    assert!(done(&server.cli(&["workers", "accounts"])).contains("gpu-1"));
    let again = server.cli(&["workers", "create", "gpu-1"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("runvoy workers rotate gpu-1"), "{}", text(&again.stderr));

    let unasked = server.cli(&["workers", "rotate", "gpu-1"]);
    assert_ne!(unasked.status.code(), Some(0), "it asks before it ends a key");
    let second = done(&server.cli(&["workers", "rotate", "gpu-1", "--yes"])).trim().to_owned();
    assert_eq!((status_with(&server, &first, "/api/v1/whoami"), status_with(&server, &second, "/api/v1/whoami")), (401, 200));
    done(&server.cli(&["workers", "revoke", "gpu-1", "--yes"]));
    assert_eq!(status_with(&server, &second, "/api/v1/whoami"), 401);
    let gone = server.cli(&["workers", "revoke", "gpu-1", "--yes"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains("runvoy workers accounts"), "{}", text(&gone.stderr));
    let audit = done(&server.cli(&["audit", "list", "--action", "workers"]));
    for action in ["workers.create", "workers.rotate", "workers.revoke"] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
}

#[test]
fn a_key_goes_into_a_file_of_its_own_and_is_shown_nowhere() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gpu-1.key");
    let file = path.to_str().expect("text");
    let missing = server.cli(&["workers", "create", "gpu-1", "--key-file", directory.path().join("no/gpu-1.key").to_str().expect("text")]);
    assert!(!missing.status.success(), "the file cannot be made");
    assert_eq!(json_of(&server.cli(&["workers", "accounts", "--json"])), json!([]), "so no key is given");

    let made = server.cli(&["workers", "create", "gpu-1", "--key-file", file]);
    assert_eq!(done(&made).trim(), file);
    assert!(text(&made.stderr).contains(&format!("--api-key-file {file} ")), "{}", text(&made.stderr));
    let key = || std::fs::read_to_string(&path).expect("a file").trim().to_owned();
    let first = key();
    assert!(!text(&made.stderr).contains(&first));
    assert_eq!(status_with(&server, &first, "/api/v1/whoami"), 200);
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);

    let taken = server.cli(&["workers", "create", "gpu-2", "--key-file", file]);
    assert!(taken.status.code() == Some(2) && text(&taken.stderr).contains("exists"), "{}", text(&taken.stderr));
    assert_eq!((key(), json_of(&server.cli(&["workers", "accounts", "--json"])).as_array().map(Vec::len)), (first.clone(), Some(1)));

    let again = json_of(&server.cli(&["workers", "rotate", "gpu-1", "--yes", "--key-file", file, "--json"]));
    assert!(again["account"]["name"] == "gpu-1" && again.get("api_key").is_none(), "{again}");
    assert_eq!((status_with(&server, &first, "/api/v1/whoami"), status_with(&server, &key(), "/api/v1/whoami")), (401, 200));
}

#[test]
fn a_public_key_is_imported_from_a_file_and_a_private_one_is_not() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let public = file("worker.pub", PUBLIC_KEY);
    let wrong = server.cli(&["workers", "import", &public, "--name", "ci", "--role", "admin"]);
    assert!(!wrong.status.success() && text(&wrong.stderr).contains("role"), "{}", text(&wrong.stderr));
    assert_eq!(done(&server.cli(&["workers", "import", &public, "--name", "ci", "--role", "viewer"])).trim(), "ci");
    let account = json_of(&server.cli(&["workers", "accounts", "--json"]))[0].clone();
    assert_eq!(account["role"], "viewer", "{account}");
    assert_eq!(account["fingerprint"], "2RxZRy5zZHP32oSWfJtVwxH36AZB4QEomyVKyjGWg4vF", "{account}");
    let twice = server.cli(&["workers", "import", &public, "--name", "again"]);
    assert_eq!(twice.status.code(), Some(1), "a key is one account's");
    let private = file("worker.key", &PUBLIC_KEY.replace("PUBLIC", "PRIVATE"));
    let refused = server.cli(&["workers", "import", &private]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("private key"), "{}", text(&refused.stderr));
    let nonsense = file("nonsense", "nonsense");
    assert!(text(&server.cli(&["workers", "import", &nonsense]).stderr).contains("public_key"));
}

#[test]
fn the_worker_of_a_server_is_there_until_the_server_stops() {
    let data = tempfile::tempdir().expect("a directory");
    let mut server = harness::Setup::default().start_in(data.path());
    let workers = |server: &Server| json_of(&server.cli(&["workers", "list", "--json"]));
    eventually("the worker of the server is on the roster", || workers(&server).as_array().is_some_and(|all| all.len() == 1));
    let own = workers(&server)[0].clone();
    assert_eq!((&own["in_process"], &own["live"], &own["queues"][0]), (&true.into(), &true.into(), &"default".into()));
    assert!(done(&server.cli(&["workers", "list"])).contains("(server)"));
    server.stop();
    let again = harness::Setup::default().arg("--no-worker").start_in(data.path());
    eventually("nobody is there", || workers(&again).as_array().is_some_and(Vec::is_empty));
    let id = again.run("true");
    let waiting = again.status(&id)["waiting_for"].clone();
    assert_eq!(waiting["message"], "a worker: no worker serves queue default");
}

#[test]
fn a_queue_is_stopped_limited_shown_and_goes_on() {
    let server = Server::start();
    let told = server.cli(&["queues", "pause", "default", "--reason", "a new driver"]);
    assert!(text(&told.stderr).contains("is paused"), "{}", text(&told.stderr));
    let id = server.run("true");
    eventually("it says why it waits", || {
        server.status(&id)["waiting_for"]["message"].as_str().is_some_and(|why| why.contains("a new driver"))
    });
    let log = server.cli(&["logs", &id]);
    let why = "queued, waiting for queue default, which admin@localhost has paused: a new driver";
    assert!(text(&log.stderr).contains(why), "{}", text(&log.stderr));
    done(&server.cli(&["queues", "set", "default", "--concurrency", "2", "--per-user", "1"]));
    let shown = done(&server.cli(&["queues", "show", "default"]));
    assert!(shown.contains("a new driver") && shown.contains("per user      1"), "{shown}");
    assert!(done(&server.cli(&["queues", "list"])).contains("paused, max 2, max 1 per user"));
    let shown = json_of(&server.cli(&["queues", "show", "default", "--json"]));
    assert_eq!((&shown["concurrency"], &shown["depth"]), (&2.into(), &1.into()));
    assert_eq!(server.cli(&["queues", "set", "default"]).status.code(), Some(2), "a limit is needed");
    assert_eq!(server.cli(&["queues", "show", "never"]).status.code(), Some(1));
    done(&server.cli(&["queues", "resume", "default"]));
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED");
    done(&server.cli(&["queues", "reset", "default", "--yes"]));
    assert!(json_of(&server.cli(&["queues", "show", "default", "--json"])).get("concurrency").is_none());
}
