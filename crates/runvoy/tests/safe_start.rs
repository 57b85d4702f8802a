//! What starts a server, and with what: a data directory keeps how its server runs commands, and nothing loosens that by accident.

mod harness;

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, binary, eventually};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A range that no other test of this machine has.
fn uids() -> String {
    let first = 3_900_000_000 + std::process::id() % 100_000 * 1_000;
    format!("{first}-{}", first + 999)
}

/// The command line with nothing configured.
fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env_clear().current_dir("/").stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn in_directory(data: &Path, args: &[&str]) -> Output {
    bare(args).arg("--data-dir").arg(data).output().expect("it runs")
}

/// A developer with a key of her own.
fn eve(server: &Server) -> Http {
    let invited = server.http().post("/api/v1/users/create", &json!({"email": "eve@example.com", "role": "developer"}));
    assert_eq!(invited.status, 201, "{}", invited.text());
    let token = invited.json()["claim_token"].as_str().expect("a token").to_owned();
    let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({}));
    Http::new(&server.url, Some(claimed.json()["api_key"].as_str().expect("a key")))
}

/// A directory whose commands can be reached by other users, and the data directory in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("a mode");
    let data = dir.path().join("data");
    (dir, data)
}

/// Eve's command waits in a queue that nobody serves; then the server is killed. The file that the command would write.
fn queue_and_kill(setup: Setup, data: &Path) -> (PathBuf, String) {
    let mut server = setup.start_in(data);
    let trace = data.with_file_name("ran");
    let submitted = eve(&server).post("/api/v1/run", &json!({"command": format!("id > {}", trace.display())}));
    assert_eq!(submitted.status, 202, "{}", submitted.text());
    server.kill_9();
    (trace, submitted.json()["execution_id"].as_str().expect("an id").to_owned())
}

#[test]
fn security_28_no_command_starts_a_server_that_runs_queued_work() {
    for args in [vec!["--no-worker".to_owned()], vec!["--run-as-uids".to_owned(), uids(), "--queues".to_owned(), "other".to_owned()]] {
        let (_dir, data) = place();
        let (trace, id) = queue_and_kill(Setup { args: args.clone(), ..Setup::default() }, &data);
        let listed = in_directory(&data, &["list"]);
        let said = text(&listed.stderr);
        assert_eq!(listed.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("is not running") && said.contains(&format!("runvoy serve --data-dir {}", data.display())), "{said}");
        let ephemeral = in_directory(&data, &["serve", "--ephemeral"]);
        assert!(!ephemeral.status.success() && text(&ephemeral.stderr).contains("is not running"), "{}", text(&ephemeral.stderr));
        // Nor does a start without the flags run it as the server's user.
        let server = Setup::default().arg("--concurrency").arg("1").start_in(&data);
        let status = if args.len() == 1 { server.status(&id) } else { server.wait(&id) };
        let ran = std::fs::read_to_string(&trace).unwrap_or_default();
        assert!(!ran.contains("uid=0("), "{args:?}: {status} {ran}");
        assert_eq!(args.len() == 1, status["status"] == "PENDING", "{status}");
    }
}

#[test]
fn security_28_several_users_keep_commands_from_starting_a_server() {
    let (_dir, data) = place();
    queue_and_kill(Setup::default().arg("--no-worker"), &data);
    std::fs::remove_file(data.join("start.json")).expect("a record");
    let listed = in_directory(&data, &["list"]);
    assert!(text(&listed.stderr).contains("has several users"), "{}", text(&listed.stderr));
}

#[test]
fn security_28_queued_work_of_others_waits_for_other_settings() {
    let (_dir, data) = place();
    let (trace, id) = queue_and_kill(Setup::default().arg("--no-worker"), &data);
    let mut server = Setup::default().arg("--reset-start").start_in(&data);
    let refused = server.http().post("/api/v1/run", &json!({"command": "true"}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(server.status(&id)["status"], "PENDING");
    // Alone again, the admin runs commands; those of who is no user any more end instead.
    assert_eq!(server.http().post("/api/v1/users/revoke", &json!({"email": "eve@example.com"})).status, 200);
    assert_eq!(server.wait(&id)["status"], "FAILED");
    assert_eq!(server.wait(&server.run("true"))["exit_code"], 0);
    assert!(!trace.exists());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_server_without_a_worker_takes_runs_of_two_users() {
    let server = Setup::default().arg("--no-worker").start();
    assert_eq!(eve(&server).post("/api/v1/run", &json!({"command": "true"})).status, 202);
    server.run("true");
}

#[test]
fn a_second_user_is_asked_about_where_commands_share_a_uid() {
    let server = Server::start();
    let refused = server.http().post("/api/v1/users/create", &json!({"email": "eve@example.com", "role": "developer"}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    let said = refused.json();
    assert_eq!((&said["code"], &said["confirm"]), (&json!("CONFLICT"), &json!(true)), "{said}");
    assert!(said["error"].as_str().is_some_and(|error| error.contains("run no more commands")), "{said}");
    assert!(said["details"].as_str().is_some_and(|details| details.contains("--run-as-uids")), "{said}");
    let asked = server.cli(&["users", "create", "eve@example.com", "--role", "developer"]);
    assert_eq!(asked.status.code(), Some(2), "{}", text(&asked.stderr));
    assert!(text(&asked.stderr).contains("--run-as-uids") && text(&asked.stderr).contains("--yes"), "{}", text(&asked.stderr));
    server.wait(&server.run("true"));
    let made = server.cli(&["users", "create", "eve@example.com", "--role", "developer", "--yes"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
}

#[test]
fn a_key_that_may_run_is_asked_about_where_commands_share_a_uid() {
    let server = Server::start();
    let file = server.data.with_file_name("ci.pub");
    let key =
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==";
    std::fs::write(&file, format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n")).expect("written");
    let import = ["workers", "import", file.to_str().expect("a path"), "--name", "ci", "--role", "developer"];
    let asked = server.cli(&import);
    assert_eq!(asked.status.code(), Some(2), "{}", text(&asked.stderr));
    assert!(text(&asked.stderr).contains("--run-as-uids") && text(&asked.stderr).contains("--yes"), "{}", text(&asked.stderr));
    server.wait(&server.run("true"));
    let made = server.cli(&[&import[..], &["--yes"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
}

#[test]
fn security_28_root_makes_no_directory_in_the_home_of_another_user() {
    let (dir, _) = place();
    let home = dir.path().join("ana");
    std::fs::create_dir(&home).expect("made");
    std::os::unix::fs::chown(&home, Some(12345), Some(12345)).expect("root can");
    for args in [&["list"][..], &["serve"]] {
        let output = in_directory(&home.join(".runvoy/data"), args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("belongs to the user with id 12345"), "{said}");
    }
    assert_eq!(std::fs::read_dir(&home).expect("a directory").count(), 0, "nothing was made");
    std::fs::write(home.join("server.yaml"), "no_such_setting: 1").expect("written");
    let said = text(&in_directory(&home, &["serve"]).stderr);
    assert!(said.contains("belongs to the user with id 12345") && !said.contains("no_such_setting"), "nothing is read: {said}");
}

#[test]
fn a_start_that_fails_binds_no_later_one() {
    let (_dir, data) = place();
    assert_eq!(Setup::default().start_in(&data).stop(), Some(0));
    let before = std::fs::read_to_string(data.join("start.json")).expect("a record");
    std::fs::rename(data.join("keys/audit.key"), data.with_file_name("audit.key")).expect("moved");
    Setup::default().arg("--no-worker").try_start_in(&data).err().expect("it needs its key");
    assert_eq!(std::fs::read_to_string(data.join("start.json")).expect("a record"), before);
}

#[test]
fn a_start_is_bound_by_what_is_kept_when_it_has_the_directory() {
    let (_dir, data) = place();
    assert_eq!(Setup::default().start_in(&data).stop(), Some(0));
    let lock = std::fs::File::options().read(true).write(true).open(data.join("lock")).expect("the lock file");
    lock.lock().expect("it is free");
    let server = std::thread::scope(|scope| {
        let starting = scope.spawn(|| Setup::default().start_in(&data));
        eventually("it waits", || data.join("wanted").exists());
        std::fs::write(data.join("start.json"), r#"{"backend":"embedded","worker":false}"#).expect("written");
        lock.unlock().expect("unlocked");
        starting.join().expect("no panic")
    });
    let id = server.run("true");
    let kept = std::fs::read_to_string(data.join("start.json")).expect("a record");
    assert!(kept.contains(r#""worker":false"#), "{kept}");
    assert_eq!(server.status(&id)["status"], "PENDING");
}

/// Everything below a directory that others than its owner may write to.
fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().expect("it is there"));
        if metadata.permissions().mode() & 0o022 != 0 {
            open.push(path.clone());
        }
        if metadata.is_dir() {
            open.extend(open_to_others(&path));
        }
    }
    open
}

#[test]
fn security_11_a_server_keeps_its_files_to_itself_under_any_umask() {
    let (_dir, data) = place();
    let lax = || Setup { wrapper: ["sh", "-c", "umask 002; exec \"$@\"", "sh"].map(str::to_owned).to_vec(), ..Setup::default() };
    let mut server = lax().start_in(&data);
    let id = server.run("umask");
    server.wait(&id);
    assert_eq!(server.raw(&id), b"0077\n", "commands have the umask that they always have");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(open_to_others(&data), [""; 0].map(PathBuf::from));
    // As servers left them that did not see to it.
    for (name, mode) in [("logs", 0o775), ("logs/lock", 0o664), ("runvoy.db", 0o664)] {
        std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let server = lax().start_in(&data);
    server.wait(&server.run("true"));
    assert_eq!(open_to_others(&data), [""; 0].map(PathBuf::from));
}

#[test]
fn security_28_root_starts_no_server_in_another_users_directory() {
    let (_dir, data) = place();
    std::fs::create_dir(&data).expect("made");
    std::os::unix::fs::chown(&data, Some(12345), Some(12345)).expect("root can");
    for args in [&["list"][..], &["serve"]] {
        let output = in_directory(&data, args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("belongs to the user with id 12345"), "{said}");
    }
    assert_eq!(std::fs::read_dir(&data).expect("a directory").count(), 0, "nothing was made");
}

#[test]
fn security_28_nothing_is_sent_to_a_socket_of_another_user() {
    let (_dir, data) = place();
    std::fs::create_dir(&data).expect("made");
    std::os::unix::fs::chown(&data, Some(12345), Some(12345)).expect("root can");
    let listening = data.join("sock");
    let fake = std::thread::spawn(move || {
        become_user(12345);
        let listener = std::os::unix::net::UnixListener::bind(listening).expect("a socket");
        let mut sent = Vec::new();
        // The look whether it listens comes first, then the client.
        for _ in 0..2 {
            listener.accept().expect("a client").0.read_to_end(&mut sent).expect("read");
        }
        sent
    });
    eventually("it listens", || std::os::unix::net::UnixStream::connect(data.join("sock")).is_ok());
    let output = bare(&["list", "--endpoint"]).arg(format!("unix:{}", data.join("sock").display())).output().expect("it runs");
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("runs as another user (uid 12345"), "{said}");
    assert_eq!(fake.join().expect("no panic"), b"", "nothing was sent");
}

/// Lets this thread alone act as another user: what it listens on is that user's.
#[expect(unsafe_code, reason = "std changes users of whole processes only")]
fn become_user(uid: u32) {
    // SAFETY: the call takes numbers only and changes nothing but this thread's credentials.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    assert_eq!(changed, 0, "root can");
}

#[test]
fn endpoint_and_key_need_no_home() {
    let server = Server::start();
    let mut command = bare(&["list", "--json"]);
    command.env("RUNVOY_API_ENDPOINT", &server.url).env("RUNVOY_API_KEY", server.key());
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let nothing = bare(&["list"]).output().expect("it runs");
    let said = text(&nothing.stderr);
    assert!(nothing.status.code() == Some(2) && said.contains("--endpoint") && !said.contains("--data-dir"), "{said}");
}

#[test]
fn security_11_a_lost_database_is_not_made_anew() {
    let (_dir, data) = place();
    let mut server = Setup::default().start_in(&data);
    server.kill_9();
    for name in ["runvoy.db", "runvoy.db-wal", "runvoy.db-shm"] {
        std::fs::remove_file(data.join(name)).ok();
    }
    let said = Setup::default().try_start_in(&data).err().expect("refused");
    assert!(said.contains("runvoy.db is missing"), "{said}");
    assert!(!data.join("runvoy.db").exists(), "nothing was made");
}

#[test]
fn security_11_what_others_could_have_changed_keeps_a_server_from_starting() {
    let (_dir, data) = place();
    let mut server = Setup::default().start_in(&data);
    server.wait(&server.run("true"));
    assert_eq!(server.stop(), Some(0));
    let set = |name: &str, mode| std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(mode)).expect("a mode");
    let mode = |name: &str| std::fs::metadata(data.join(name)).expect("it is there").permissions().mode() & 0o777;
    let refused = |what: &str| {
        let said = Setup::default().try_start_in(&data).err().unwrap_or_else(|| panic!("it started: {what}"));
        assert!(said.contains(what), "{said}");
    };
    // Commands with users of their own pass through the data directory.
    set(".", 0o711);
    set("keys/audit.key", 0o640);
    assert_eq!(Setup::default().start_in(&data).stop(), Some(0));
    assert_eq!(mode("keys/audit.key"), 0o600, "nobody else gets into keys");
    set(".", 0o711);
    for (name, mode) in [("keys", 0o755), ("keys/audit.key", 0o640), ("runvoy.db", 0o666), ("start.json", 0o644)] {
        set(name, mode);
    }
    let said = Setup::default().try_start_in(&data).err().expect("refused");
    let (_, command) = said.split_once("start again: ").unwrap_or_else(|| panic!("no command: {said}"));
    let command = command.lines().next().expect("a line");
    assert!(["keys ", "keys/audit.key", "runvoy.db", "start.json"].iter().all(|name| said.contains(name)), "{said}");
    assert!(std::process::Command::new("sh").args(["-c", command]).status().expect("sh runs").success(), "{command}");
    assert_eq!(Setup::default().start_in(&data).stop(), Some(0));
    for name in ["runvoy.db", "admin.key"] {
        set(".", 0o711);
        set(name, 0o640);
        refused("others than its owner have access");
        for command in [&["admin", "recover"][..], &["audit", "verify"]] {
            let said = text(&in_directory(&data, command).stderr);
            assert!(said.contains("others than its owner have access"), "{command:?}: {said}");
        }
        // Where nobody else gets, a mode is too wide by mistake.
        set(".", 0o700);
        assert_eq!(Setup::default().start_in(&data).stop(), Some(0));
        assert_eq!(mode(name), 0o600, "{name}");
    }
    std::os::unix::fs::chown(data.join("logs"), Some(12345), None).expect("root can");
    refused("belongs to the user with id 12345");
    std::os::unix::fs::chown(data.join("logs"), Some(0), None).expect("root can");
    std::fs::rename(data.join("keys/audit.key"), data.with_file_name("audit.key")).expect("moved");
    std::os::unix::fs::symlink(data.with_file_name("audit.key"), data.join("keys/audit.key")).expect("a link");
    refused("is a symbolic link");
    std::fs::rename(data.with_file_name("audit.key"), data.join("keys/audit.key")).expect("moved");
    Setup::default().start_in(&data);
}

#[test]
fn security_11_a_tampered_backup_is_not_restored() {
    let (dir, data) = place();
    let copy = dir.path().join("copy");
    let server = Setup::default().start_in(&data);
    server.wait(&server.run("true"));
    let output = in_directory(&data, &["backup", copy.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let restored = dir.path().join("restored");
    let restore = || bare(&["restore"]).arg(&copy).arg("--data-dir").arg(&restored).output().expect("it runs");
    let refused = |what: &str| {
        let output = restore();
        assert!(!output.status.success() && text(&output.stderr).contains(what), "{what}: {}", text(&output.stderr));
        assert!(!restored.exists(), "nothing was put in place");
    };
    for name in ["runvoy.db", "start.json", "keys/signing.key", "manifest.json"] {
        let whole = std::fs::read(copy.join(name)).expect("a file");
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(copy.join(name), &changed).expect("written");
        refused("was altered or is damaged");
        std::fs::remove_file(copy.join(name)).expect("removed");
        refused(" not ");
        std::fs::write(copy.join(name), &whole).expect("written");
        std::fs::set_permissions(copy.join(name), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    for mode in [0o777, 0o700] {
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(mode)).expect("a mode");
        if mode == 0o777 {
            refused("others than its owner");
        }
    }
    let added = copy.join("logs/added");
    std::fs::write(&added, "").expect("written");
    refused("was added");
    std::fs::set_permissions(&added, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    refused("others than its owner");
    std::fs::remove_file(&added).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", &added).expect("a link");
    refused("symbolic link");
    std::fs::remove_file(&added).expect("removed");
    let output = restore();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed = in_directory(&restored, &["list"]);
    assert!(text(&listed.stderr).contains("is not running"), "how it is started comes along: {}", text(&listed.stderr));
}
