//! People at the command line, as they type it: an admin and those they invite, with homes of their own, against the real server.

mod harness;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use runvoy_cli::command::access::ACTIONS;
use serde_json::{Value, json};

use self::harness::http::Http;
use self::harness::{Server, Setup, binary, process};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server on which several people may run commands.
fn server() -> Server {
    Setup::default().arg("--allow-shared-uid").start()
}

/// Somebody with a home, and nothing in the environment.
struct Person {
    home: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Invited by the admin, with the key in their profile.
    fn invited(server: &Server, email: &str, role: &str) -> Self {
        let person = Self::new();
        let token = done(&server.cli(&["users", "create", email, "--role", role]));
        let claimed = person.cli(&["claim", token.trim(), "--endpoint", &server.url]);
        assert!(text(&claimed.stderr).contains(&format!("Signed in as {email}")), "{}", text(&claimed.stderr));
        assert_eq!((claimed.status.code(), claimed.stdout.len()), (Some(0), 0));
        person
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).env_clear().env("HOME", self.home.path()).current_dir(self.home.path()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn cli(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("it runs")
    }

    fn stored(&self) -> String {
        std::fs::read_to_string(self.home.path().join(".runvoy/config.yaml")).expect("a user file")
    }
}

/// What a command wrote, where it succeeded.
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&done(output)).expect("JSON")
}

fn with_stdin(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
    child.wait_with_output().expect("it ends")
}

fn file(directory: &Path, name: &str, content: &str) -> String {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
    std::fs::write(&path, content).expect("written");
    path.to_str().expect("a path").to_owned()
}

#[test]
fn a_user_is_invited_claims_once_and_runs() {
    let server = server();
    let token = done(&server.cli(&["users", "create", "ana@example.com", "--role", "developer"]));
    let ana = Person::new();
    done(&ana.cli(&["claim", token.trim(), "--endpoint", &server.url]));
    let again = Person::new().cli(&["claim", token.trim(), "--endpoint", &server.url]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert_eq!(done(&ana.cli(&["run", "echo hello"])), "hello\n");
    let whoami = json_of(&ana.cli(&["whoami", "--json"]));
    assert_eq!((whoami["email"].as_str(), whoami["role"].as_str()), (Some("ana@example.com"), Some("developer")));
    // What is the admin's is not there for her, and the server's people are not hers to see.
    let theirs = server.run("true");
    assert_eq!(ana.cli(&["status", &theirs]).status.code(), Some(1));
    assert_eq!(ana.cli(&["users", "list"]).status.code(), Some(1));
    done(&server.cli(&["users", "role", "ana@example.com", "operator"]));
    done(&ana.cli(&["status", &theirs]));
    let listed = done(&server.cli(&["users", "list"]));
    assert!(listed.contains("ana@example.com  operator  active"), "{listed}");
}

#[test]
fn a_revoked_user_is_out_and_their_work_ends_where_asked() {
    let server = server();
    let ana = Person::invited(&server, "ana@example.com", "developer");
    let id = done(&ana.cli(&["run", "-d", "sleep 1000"])).trim().to_owned();
    server.wait_until(&id, "RUNNING");
    assert_eq!(server.cli(&["users", "revoke", "ana@example.com"]).status.code(), Some(2), "nothing is ended unasked");
    let revoked = server.cli(&["users", "revoke", "ana@example.com", "--kill", "--yes"]);
    assert!(text(&revoked.stderr).contains("1 execution"), "{}", text(&revoked.stderr));
    assert_eq!(ana.cli(&["whoami"]).status.code(), Some(4));
    assert_eq!(server.wait(&id)["status"], "STOPPED");
    let back = Person::invited(&server, "ana@example.com", "viewer");
    done(&back.cli(&["list"]));
}

#[test]
fn keys_are_made_rotated_and_ended() {
    let server = server();
    let ana = Person::invited(&server, "ana@example.com", "developer");
    let key = done(&ana.cli(&["keys", "create", "--name", "ci", "--expires", "90d"])).trim().to_owned();
    let mut ci = ana.command(&["whoami"]);
    ci.env("RUNVOY_API_ENDPOINT", &server.url).env("RUNVOY_API_KEY", &key);
    done(&ci.output().expect("it runs"));
    let (before, keys) = (ana.stored(), json_of(&ana.cli(&["keys", "list", "--json"])));
    assert_eq!(keys.as_array().map(Vec::len), Some(2), "{keys}");
    let rotated = ana.cli(&["keys", "rotate"]);
    done(&rotated);
    assert_ne!(ana.stored(), before, "the new key is saved");
    done(&ana.cli(&["whoami"]));
    let keys = json_of(&ana.cli(&["keys", "list", "--json"]));
    let ended = keys.as_array().expect("a list").iter().filter(|key| key["revoked"] == true).count();
    assert_eq!((keys.as_array().map(Vec::len), ended), (Some(3), 1), "{keys}");
    let prefix = keys.as_array().expect("a list").iter().find(|key| key["name"] == "ci").expect("listed")["prefix"].clone();
    let beginning = &prefix.as_str().expect("text")[.."rv_".len() + 6];
    done(&server.cli(&["keys", "revoke", beginning, "--user", "ana@example.com", "--yes"]));
    assert_eq!(ci.output().expect("it runs").status.code(), Some(4));
}

#[test]
fn the_key_file_of_the_server_follows_a_rotation_from_another_machine() {
    let server = server();
    let file = server.data.join("admin.key");
    let kept = || std::fs::read_to_string(&file).expect("a key file").trim().to_owned();
    // Another machine has the admin's key in a file of its own, and no data directory.
    let elsewhere = tempfile::tempdir().expect("a directory");
    let own = elsewhere.path().join("own.key");
    let run = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).env_clear().env("HOME", elsewhere.path()).env("RUNVOY_API_ENDPOINT", &server.url);
        command.arg("--api-key-file").arg(&own).output().expect("it runs")
    };
    let copy = || {
        std::fs::copy(&file, &own).expect("a copy");
    };
    copy();
    let first = kept();
    let rotated = run(&["keys", "rotate"]);
    done(&rotated);
    assert!(text(&rotated.stderr).contains("admin.key in the server's data directory has the new key too"), "{}", text(&rotated.stderr));
    assert_ne!(kept(), first);
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    done(&server.cli(&["whoami"]));
    // The same where the server exchanges the key in one step.
    copy();
    let (second, prefix) = (kept(), kept()[.."rv_".len() + 8].to_owned());
    let answer = server.http().send("POST", &format!("/api/v1/users/admin@localhost/keys/{prefix}/rotate"), &[], b"").expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_ne!(kept(), second);
    assert_eq!(kept(), answer.json()["api_key"].as_str().expect("a key"));
    done(&server.cli(&["whoami"]));
}

#[test]
fn a_key_that_ends_soon_is_told() {
    let server = server();
    let key = done(&server.cli(&["keys", "create", "--expires", "3d"]));
    let mut soon = server.cli_command(&["whoami"]);
    soon.env("RUNVOY_API_KEY", key.trim());
    let told = soon.output().expect("it runs");
    assert!(text(&told.stderr).contains("Your API key expires in 2d 23h"), "{}", text(&told.stderr));
}

#[test]
fn a_rule_narrows_and_is_explained_and_a_dry_run_leaves_no_trace() {
    let server = server();
    let ana = Person::invited(&server, "ana@example.com", "developer");
    done(&server.cli(&["groups", "create", "interns", "ana@example.com"]));
    let rules = "name: no-prod\neffect: deny\ngroups: [interns]\nlocks: ['prod*']\nreason: ask ops first\n";
    done(&with_stdin(server.cli_command(&["rules", "apply", "-"]), rules));
    let refused = ana.cli(&["run", "--lock", "prod-eu", "true"]);
    assert_eq!(refused.status.code(), Some(125), "{}", text(&refused.stderr));
    let denied = server.cli(&["access", "explain", "ana@example.com", "run", "--lock", "prod-eu", "--json"]);
    assert_eq!(denied.status.code(), Some(1), "{}", text(&denied.stderr));
    let explained: Value = serde_json::from_slice(&denied.stdout).expect("JSON");
    assert_eq!((explained["allowed"].as_bool(), explained["rule"].as_str()), (Some(false), Some("no-prod")), "{explained}");
    done(&ana.cli(&["access", "explain", "me", "run", "--lock", "test"]));
    // The help and the completion know the words of the server.
    let odd = ana.cli(&["access", "explain", "me", "fly"]);
    assert!(
        text(&odd.stderr).contains(&format!("unknown action fly; expected {}", ACTIONS[..ACTIONS.len() - 1].join(", "))),
        "{}",
        text(&odd.stderr)
    );
    let before = server.get("/api/v1/executions").json();
    let refused = ana.cli(&["run", "--dry-run", "--lock", "prod-eu", "true"]);
    assert_eq!(refused.status.code(), Some(1), "{}{}", text(&refused.stdout), text(&refused.stderr));
    assert!(text(&refused.stdout).contains("no-prod"), "{}", text(&refused.stdout));
    let allowed = json_of(&ana.cli(&["run", "--dry-run", "--json", "--lock", "test", "-e", "A=hunter2", "true"]));
    assert_eq!((allowed["allowed"].as_bool(), &allowed["env"], &allowed["lock"]), (Some(true), &json!(["A"]), &json!("test")), "{allowed}");
    assert_eq!(server.get("/api/v1/executions").json(), before);
    done(&server.cli(&["rules", "delete", "no-prod", "--yes"]));
    done(&ana.cli(&["run", "--lock", "prod-eu", "true"]));
    done(&server.cli(&["groups", "delete", "interns", "--yes"]));
}

#[test]
fn images_come_and_go_and_one_is_the_default() {
    let server = server();
    done(&server.cli(&["images", "register", "registry.example.com/tools:1", "--cpu", "512", "--memory", "1024", "--set-default"]));
    let listed = json_of(&server.cli(&["images", "list", "--json"]));
    let default: Vec<&Value> = listed.as_array().expect("a list").iter().filter(|image| image["is_default"] == true).collect();
    assert_eq!((default.len(), default[0]["image"].as_str()), (1, Some("registry.example.com/tools:1")), "{listed}");
    let shown = done(&server.cli(&["images", "show", "registry.example.com/tools:1"]));
    assert!(shown.contains("1024 MiB"), "{shown}");
    let gone = server.cli(&["images", "unregister", "registry.example.com/tools:1", "--yes"]);
    assert!(text(&gone.stderr).contains("the default is now local"), "{}", text(&gone.stderr));
    let unknown = server.cli(&["run", "--image", "registry.example.com/tools:1", "true"]);
    assert_eq!(unknown.status.code(), Some(125));
    assert!(text(&unknown.stderr).contains("images register"), "{}", text(&unknown.stderr));
}

#[test]
fn a_secret_is_used_and_masked_and_in_no_process_list() {
    const VALUE: &str = "hunter2-canary-93a1";
    let server = server();
    let mut create = server.cli_command(&["secrets", "create", "github", "GITHUB_TOKEN", "--description", "for CI"]);
    let mut child = create.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(VALUE.as_bytes()).expect("read");
    // It waits for the end of its input, with the value already in its memory.
    for pid in process::all() {
        let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!text(&argv).contains(VALUE), "{}", text(&argv));
    }
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(done(&server.cli(&["run", "--secret", "github", "echo length ${#GITHUB_TOKEN}"])), format!("length {}\n", VALUE.len()));
    let masked = done(&server.cli(&["run", "--secret", "github", "echo token $GITHUB_TOKEN"]));
    assert!(masked.starts_with("token ") && !masked.contains(VALUE), "{masked}");
    assert!(!done(&server.cli(&["secrets", "get", "github"])).contains(VALUE));
    assert_eq!(done(&server.cli(&["secrets", "get", "github", "--show-value"])), format!("{VALUE}\n"));
    let taken = with_stdin(server.cli_command(&["secrets", "create", "github", "OTHER"]), "other");
    assert_eq!(taken.status.code(), Some(1), "{}", text(&taken.stderr));
    done(&with_stdin(server.cli_command(&["secrets", "update", "github"]), "hunter3-canary\n"));
    done(&server.cli(&["secrets", "rotate-key"]));
    assert_eq!(done(&server.cli(&["secrets", "get", "github", "--show-value"])), "hunter3-canary\n");
    done(&server.cli(&["secrets", "delete", "github", "--yes"]));
    assert_eq!(server.cli(&["secrets", "get", "github"]).status.code(), Some(1));
}

#[test]
fn a_playbook_on_the_server_takes_parameters_as_data() {
    let server = server();
    let ana = Person::invited(&server, "ana@example.com", "developer");
    let content = "description: Greet\ncommand: printf\nargs: ['[%s]', '{{who}}']\nparameters:\n  who: {type: string, max_length: 20}\n";
    let path = file(ana.home.path(), "greet.yaml", content);
    assert_eq!(ana.cli(&["playbook", "push", &path]).status.code(), Some(1), "only admins push");
    done(&server.cli(&["playbook", "push", &path]));
    assert_eq!(done(&ana.cli(&["playbook", "run", "greet", "-p", "who=$(id); 'x'"])), "[$(id); 'x']");
    let wrong = ana.cli(&["playbook", "run", "greet", "-p", "who=much longer than twenty characters"]);
    assert_eq!(wrong.status.code(), Some(125), "{}", text(&wrong.stderr));
    let plan = json_of(&ana.cli(&["playbook", "run", "greet", "-p", "who=bo", "--dry-run", "--json"]));
    assert_eq!(plan["playbook"], "greet@1", "{plan}");
    done(&server.cli(&["playbook", "push", &file(ana.home.path(), "greet.yaml", "commands: ['echo second']\n")]));
    assert_eq!(done(&ana.cli(&["playbook", "run", "greet"])), "second\n");
    let never = server.cli(&["playbook", "show", "greet@9"]);
    assert!(text(&never.stderr).contains("playbook greet has no version 9"), "{}", text(&never.stderr));
    assert_eq!(done(&server.cli(&["playbook", "run", "greet@1", "-p", "who=bo"])), "[bo]", "old versions stay, for admins");
    assert_eq!(ana.cli(&["playbook", "run", "greet@1", "-p", "who=bo"]).status.code(), Some(125));
    done(&server.cli(&["playbook", "remove", "greet", "--yes"]));
    assert_eq!(ana.cli(&["playbook", "run", "greet"]).status.code(), Some(125));
}

#[test]
fn a_playbook_in_a_file_runs_its_commands_until_one_fails() {
    let server = server();
    let ana = Person::invited(&server, "ana@example.com", "developer");
    let content = "description: Steps\nenv: {NAME: file}\ncommands:\n  - echo \"one $NAME\"\n  - exit 7\n  - echo never\n";
    file(ana.home.path(), "work/.runvoy/steps.yaml", content);
    file(ana.home.path(), "work/.runvoy/slip.yaml", "commands: [ls]\nsecerts: [x]\n");
    let below = |args: &[&str]| {
        let mut command = ana.command(args);
        command.current_dir(ana.home.path().join("work"));
        command.output().expect("it runs")
    };
    let ran = below(&["playbook", "run", "steps", "--", "-e", "NAME=flag"]);
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(7), "one flag\n"), "{}", text(&ran.stderr));
    let listed = json_of(&below(&["playbook", "list", "--json"]));
    assert_eq!((&listed[0]["name"], &listed[1]["where"]), (&json!("slip"), &json!("project")), "{listed}");
    let slip = below(&["playbook", "run", "slip"]);
    assert_eq!(slip.status.code(), Some(2));
    assert!(text(&slip.stderr).contains("slip.yaml:2:1: "), "{}", text(&slip.stderr));
}

#[test]
fn what_was_done_is_listed_exported_verified_and_traced() {
    let server = server();
    done(&server.cli(&["users", "create", "ana@example.com", "--role", "viewer"]));
    let events = json_of(&server.cli(&["audit", "list", "--json", "--since", "1h"]));
    let created = events.as_array().expect("a list").iter().find(|event| event["entity"] == "USER:ana@example.com").expect("audited");
    assert_eq!((created["user"].as_str(), created["result"].as_str()), (Some("admin@localhost"), Some("ok")), "{created}");
    let request = created["request_id"].as_str().expect("text").to_owned();
    let trace = json_of(&server.cli(&["trace", &request, "--json"]));
    assert_eq!(trace["related_resources"]["users"][0]["email"], "ana@example.com", "{trace}");
    let exported = done(&server.cli(&["audit", "export"]));
    let ids: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str::<Value>(line).expect("one object a line")["event_id"].clone()).collect();
    assert!(ids.contains(&created["event_id"]), "{exported}");
    assert!(done(&server.cli(&["audit", "verify"])).starts_with("The audit trail is intact.\n"));
    // Commands are given below the data directory, which is named here by a path that is not absolute.
    assert!(done(&server.cli(&["audit", "verify", "--data-dir", ".."])).starts_with("The audit trail is intact.\n"));
    let unknown = server.cli(&["trace", "0192ab34c56d7e8f9a0b1c2d3e4f5a6b"]);
    assert!(unknown.status.code() == Some(1) && text(&unknown.stderr).contains("runvoy audit list"), "{}", text(&unknown.stderr));
    done(&server.cli(&["health", "reconcile"]));
}

#[test]
fn a_link_opens_one_log_without_a_key() {
    let server = server();
    let id = server.run("echo for everybody");
    server.wait(&id);
    let url = done(&server.cli(&["logs", &id, "--link"]));
    let token = url.trim().split_once("#token=").expect("a token in the fragment").1.to_owned();
    let mut stranger = Http::new(&server.url, None);
    let read = |http: &mut Http| {
        let bearer = format!("Bearer {token}");
        http.send("GET", &format!("/api/v1/logs/{id}"), &[("authorization", &bearer)], b"").expect("an answer")
    };
    let answer = read(&mut stranger);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.json()["logs"].as_str().expect("text").contains("for everybody"), "{}", answer.text());
}

#[test]
fn two_servers_in_two_profiles_never_hear_of_each_other() {
    let (one, two) = (server(), server());
    let ana = Person::new();
    for (name, server) in [("one", &one), ("two", &two)] {
        let token = done(&server.cli(&["users", "create", &format!("ana@{name}.example"), "--role", "developer"]));
        done(&ana.cli(&["claim", token.trim(), "--profile", name, "--endpoint", &server.url]));
    }
    for name in ["one", "two"] {
        assert_eq!(json_of(&ana.cli(&["--profile", name, "whoami", "--json"]))["email"], format!("ana@{name}.example"));
    }
    done(&ana.cli(&["profile", "use", "two"]));
    done(&ana.cli(&["run", "echo on two"]));
    assert_eq!(json_of(&ana.cli(&["list", "--json"])).as_array().map(Vec::len), Some(1));
    assert_eq!(json_of(&ana.cli(&["--profile", "one", "list", "--json"])), json!([]));
    let crossed = ana.cli(&["--profile", "one", "--endpoint", &two.url, "whoami"]);
    assert_eq!(crossed.status.code(), Some(4), "the key of one is not sent to two: {}", text(&crossed.stderr));
}
