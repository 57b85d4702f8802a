//! A user for each execution, through the real binary: what people run cannot get at each other, and what is wrong is told at the start.

mod harness;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::{Value, json};

use self::harness::http::Http;
use self::harness::{Server, Setup, eventually};

const CANARY: &str = "canary-of-the-admin-5d20";

/// A range that no other test of this machine has.
fn uids() -> String {
    let first = 4_100_000_000 + std::process::id() % 100_000 * 1_000;
    format!("{first}-{}", first + 999)
}

/// Eve, a developer with a key of her own.
fn eve(server: &Server) -> Http {
    let invited = server.http().post("/api/v1/users/create", &json!({"email": "eve@example.com", "role": "developer"}));
    let token = invited.json()["claim_token"].as_str().unwrap_or_else(|| panic!("no token: {}", invited.text())).to_owned();
    let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({}));
    let key = claimed.json()["api_key"].as_str().unwrap_or_else(|| panic!("no key: {}", claimed.text())).to_owned();
    Http::new(&server.url, Some(&key))
}

fn doctor_on_uid(server: &Server) -> (String, String) {
    let doctor = server.get("/api/v1/doctor").json();
    let probe = doctor["probes"].as_array().expect("probes").iter().find(|probe| probe["name"] == "uid").expect("a probe").clone();
    let text = |field: &Value| field.as_str().expect("text").to_owned();
    (text(&probe["status"]), text(&probe["detail"]))
}

/// The process of this user that sleeps.
fn sleeping_as(uid: &str) -> Option<u32> {
    let uid: u32 = uid.parse().expect("a uid");
    std::fs::read_dir("/proc").expect("/proc").flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let is_theirs = std::fs::metadata(entry.path()).is_ok_and(|owner| owner.uid() == uid);
        let sleeps = std::fs::read(entry.path().join("cmdline")).is_ok_and(|words| words.starts_with(b"sleep\0"));
        (is_theirs && sleeps).then_some(pid)
    })
}

/// The admin's command has a secret and waits; what eve's command finds out about it, and whether the other lives through it.
fn attack(server: &Server) -> (String, bool) {
    let mut eve = eve(server);
    let secret = json!({"name": "canary", "key_name": "CANARY", "value": CANARY});
    assert_eq!(server.http().post("/api/v1/secrets", &secret).status, 201);
    let victim = server.run_with(json!({"command": "id -u; pwd; exec sleep 1000", "secrets": ["canary"]}));
    eventually("the command runs", || server.raw(&victim).iter().filter(|byte| **byte == b'\n').count() == 2);
    let said = String::from_utf8(server.raw(&victim)).expect("text");
    let [uid, directory] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    // The pid that this machine knows: in a namespace of its own the command has another one.
    let mut pid = None;
    eventually("the command sleeps", || {
        pid = sleeping_as(uid);
        pid.is_some()
    });
    let pid = pid.expect("a pid");
    let script = format!(
        "exec 2>/dev/null; echo uid $(id -u) not {uid}; test \"$HOME\" = \"$PWD\" && echo at home; \
         cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c '^CANARY=' | sed 's/^/seen: /'; \
         cat {directory}/.env && echo read; kill -9 {pid}; echo done"
    );
    let submitted = eve.post("/api/v1/run", &json!({"command": script}));
    assert_eq!(submitted.status, 202, "{}", submitted.text());
    let id = submitted.json()["execution_id"].as_str().expect("an id").to_owned();
    server.wait(&id);
    let text = String::from_utf8(server.raw(&id)).expect("text");
    assert!(text.ends_with("done\n"), "{text}");
    server.http().post(&format!("/api/v1/executions/{victim}/kill"), &json!({}));
    server.wait(&victim);
    // Whose end it was tells whether it lived until the admin ended it.
    let lived = server.status(&victim)["status"] == "STOPPED";
    (text, lived)
}

#[test]
fn security_14_with_uids_of_their_own_nobody_gets_at_the_secrets_of_another_s_command() {
    let server = Setup::default().arg("--run-as-uids").arg(&uids()).start();
    let (text, lived) = attack(&server);
    let words: Vec<&str> = text.lines().next().expect("a line").split(' ').collect();
    let [_, own, _, other] = words[..] else { panic!("{text}") };
    assert!(own != other && own != "0" && other != "0", "{text}");
    assert!(text.contains("seen: 0\n") && text.contains("at home\n") && !text.contains("read\n"), "{text}");
    assert!(lived, "the command was not killed by another");
    assert_eq!(doctor_on_uid(&server), ("ok".into(), "each execution runs as a user of its own".into()));
}

/// What the test above would find if it could, and that it is told.
#[test]
fn commands_of_run_as_get_at_each_other_and_doctor_says_so() {
    let server = Setup::default().arg("--run-as").arg("nobody").start();
    assert_eq!(doctor_on_uid(&server).0, "ok", "one user alone has nobody to fear");
    let (text, lived) = attack(&server);
    assert!(text.contains("seen: 1\n") && !lived, "{text}");
    let (status, detail) = doctor_on_uid(&server);
    assert!(status == "warn" && detail.contains("share one user") && detail.contains("--run-as-uids"), "{status}: {detail}");
}

#[test]
fn a_range_that_cannot_work_is_refused_at_the_start() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (args, expected) in [
        (&["--run-as-uids", "0-70000"][..], "uid 0 belongs to root"),
        (&["--run-as-uids", "999-70000"], "begin at 1000"),
        (&["--run-as-uids", "70000"], "expected FIRST-LAST"),
        (&["--run-as-uids", "65000-65600"], "65534 is in /etc/passwd (nobody)"),
        (&["--run-as-uids", "70000-70001", "--concurrency", "3"], "2 uids are too few for 3 executions at once"),
        (&["--run-as-uids", "70000-70999", "--run-as", "nobody"], "exclude each other"),
    ] {
        let setup = args.iter().fold(Setup::default(), |setup, arg| setup.arg(arg));
        let said = setup.try_start_in(&dir.path().join("data")).err().unwrap_or_else(|| panic!("it started with {args:?}"));
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    // Whoever is not root cannot change users, and is told so instead of at every command.
    let wrapper = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"].map(str::to_owned).to_vec();
    std::os::unix::fs::chown(dir.path(), Some(12345), Some(12345)).expect("root can");
    let setup = Setup { wrapper, ..Setup::default() }.arg("--run-as-uids").arg(&uids());
    let said = setup.try_start_in(&dir.path().join("other")).err().expect("it is refused");
    assert!(said.contains("CAP_SETUID") && said.contains("run it as root"), "{said}");
}

#[test]
fn a_place_that_commands_cannot_reach_is_refused_before_anything_is_made_there() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let home = dir.path().join("home");
    std::fs::create_dir(&home).expect("a directory");
    let set = |mode| std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).expect("a mode");
    set(0o700);
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("a mode");
    let data = home.join(".runvoy/data");
    let setup = || Setup::default().arg("--run-as-uids").arg(&uids());
    let said = setup().try_start_in(&data).err().expect("it is refused");
    assert!(said.contains(&format!("{} lets no other user pass", home.display())) && said.contains("--data-dir"), "{said}");
    assert!(!home.join(".runvoy").exists(), "nothing is made where nothing can run");
    // What the server makes above its own directory, it makes so that commands can pass.
    set(0o711);
    let server = setup().start_in(&data);
    assert_eq!(server.wait(&server.run("test \"$(id -u)\" != 0"))["exit_code"], 0);
}

/// What doctor says of the parts of isolation: their states by name.
fn isolation(server: &Server) -> BTreeMap<String, String> {
    let doctor = server.get("/api/v1/doctor").json();
    let text = |field: &Value| field.as_str().expect("text").to_owned();
    let parts = doctor["probes"].as_array().expect("probes").iter();
    let parts = parts.filter_map(|probe| Some((text(&probe["name"]).strip_prefix("isolation: ")?.to_owned(), text(&probe["detail"]))));
    parts.collect()
}

#[test]
fn settings_of_isolation_reach_the_commands() {
    // Not in /tmp, of which isolated commands have their own.
    let dir = tempfile::tempdir_in("/var/lib").expect("a directory of root's");
    let shared = dir.path().join("shared");
    std::fs::create_dir(&shared).expect("made");
    for (path, mode) in [(dir.path(), 0o711), (&shared, 0o1777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let place = shared.to_str().expect("a path");
    let script = format!("(echo x > {place}/$RUNVOY_EXECUTION_ID) 2>/dev/null && echo wrote; test $$ -lt 10 && echo alone; true");
    let run = |setup: Setup| {
        let server = setup.arg("--run-as-uids").arg(&uids()).start();
        let id = server.run(&script);
        server.wait(&id);
        (String::from_utf8(server.raw(&id)).expect("text"), isolation(&server))
    };
    let off = "off by setting";
    let (said, found) = run(Setup::default().env("RUNVOY_ISOLATION", "off").env("RUNVOY_DEFAULT_LIMITS", "false"));
    assert_eq!(said, "wrote\n");
    let parts = ["landlock", "memory limit", "namespaces", "pid limit", "seccomp"];
    assert_eq!(found, parts.map(|part| (part.to_owned(), off.to_owned())).into());
    let (said, found) = run(Setup::default().env("RUNVOY_ISOLATION", "basic"));
    assert_eq!(said, "wrote\nalone\n");
    assert!(found["seccomp"] == off && found["landlock"] == off && found["namespaces"] == "on", "{found:?}");
    assert!(found["pid limit"] != off && found["memory limit"] != off, "{found:?}");
    let (said, found) = run(Setup::default());
    assert!(found.values().all(|state| state != off), "{found:?}");
    assert_eq!(said, if found["landlock"] == "on" { "alone\n" } else { "wrote\nalone\n" });
    let (said, _) = run(Setup::default().env("RUNVOY_ISOLATION_WRITABLE", place));
    assert_eq!(said, "wrote\nalone\n");
}

#[test]
fn security_28_isolation_that_is_asked_for_and_not_in_force_keeps_a_server_from_starting() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("a mode");
    let stderr = dir.path().join("stderr");
    // Root without this capability makes no namespaces.
    let script = format!("exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\" 2>{}", stderr.display());
    let wrapper = vec!["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
    let setup = || Setup { wrapper: wrapper.clone(), ..Setup::default() }.arg("--run-as-uids").arg(&uids());
    let said = || std::fs::read_to_string(&stderr).expect("what it said");
    assert!(setup().env("RUNVOY_ISOLATION", "strict").try_start_in(&dir.path().join("refused")).is_err());
    assert!(said().contains("isolation: this machine has no namespaces"), "{}", said());
    // Where nobody asked, it is told and does without.
    let server = setup().start_in(&dir.path().join("data"));
    assert!(isolation(&server)["namespaces"].starts_with("not supported on this machine: "), "{:?}", isolation(&server));
    assert!(said().contains("cannot keep commands apart") && said().contains("namespaces"), "{}", said());
    let shared = Setup::default().env("RUNVOY_ISOLATION", "strict").try_start_in(&dir.path().join("shared"));
    let refused = shared.err().expect("commands share a user");
    assert!(refused.contains("--run-as-uids"), "{refused}");
    assert!(!dir.path().join("shared").exists(), "nothing was made or opened before");
}
