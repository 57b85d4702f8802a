//! Users, keys, claims, groups, rules, access, audit, trace: what is sent, what is shown, what is stored.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fake::{Fake, Reply, Seen};
use crate::user::{ID, User, answer, body, finish, text, with_stdin};

const AT: &str = "2026-01-03T14:22:19.000Z";

fn key(prefix: &str) -> Value {
    json!({"prefix": prefix, "name": "laptop", "created_at": AT, "expires_at": "2026-04-03T14:22:19.000Z"})
}

fn ended(prefix: &str) -> Value {
    let mut key = key(prefix);
    key["revoked"] = true.into();
    key
}

fn people(seen: &Seen) -> Reply {
    match (seen.method.as_str(), seen.path().trim_start_matches("/api/v1/")) {
        ("POST", "users/create") => Reply::json(
            201,
            json!({"user": {"email": "bo@example.com", "role": "viewer", "created_at": AT, "claim_expires_at": "2026-01-03T14:37:19Z"}, "claim_token": "hunter2"}),
        ),
        ("GET", "users") => Reply::json(200, json!({"users": [{"email": "bo@example.com", "role": "viewer", "created_at": AT}]})),
        ("POST", "users/revoke") => {
            Reply::json(200, json!({"message": "bo is revoked; 2 executions go on", "email": "bo@example.com", "open_executions": 2}))
        }
        ("POST", "users/bo%40example.com/role") => {
            Reply::json(200, json!({"email": "bo@example.com", "role": "operator", "message": "bo is operator"}))
        }
        ("GET", path) if path.ends_with("/keys") => {
            Reply::json(200, json!({"keys": [key("rv_hun"), key("rv_othello"), ended("rv_gone1234")]}))
        }
        ("POST", path) if path.ends_with("/keys") => {
            Reply::json(201, json!({"api_key": "rv_new_hunter3", "key": key("rv_new"), "message": "made"}))
        }
        ("POST", path) if path.ends_with("/rotate") => {
            Reply::json(201, json!({"api_key": "rv_oth_hunter4", "key": key("rv_oth"), "message": "made"}))
        }
        ("DELETE", path) if path.contains("/keys/") => Reply::json(200, json!({"prefix": "rv_hun", "message": "ended"})),
        ("POST", "claim/good") => {
            Reply::json(200, json!({"api_key": "rv_claimed_hunter5", "user_email": "bo@example.com", "message": "claimed"}))
        }
        ("POST", "claim/spent") => Reply::error(409, "CONFLICT", "the token was already claimed"),
        ("GET", "groups") => {
            Reply::json(200, json!({"groups": [{"name": "ops", "members": ["ana@example.com"], "created_at": AT, "created_by": "x"}]}))
        }
        ("POST", "groups") => Reply::json(200, json!({"name": "ops", "message": "saved"})),
        ("DELETE", "groups/ops") => Reply::json(200, json!({"name": "ops", "message": "deleted"})),
        ("GET", "rules") => {
            Reply::json(200, json!({"rules": [{"name": "no-prod", "effect": "deny", "groups": ["interns"], "locks": ["prod*"]}]}))
        }
        ("POST", "rules") => Reply::json(200, json!({"name": body(seen)["name"], "message": "saved"})),
        ("GET", "access/explain") => Reply::json(
            200,
            json!({"allowed": false, "rule": "no-prod", "why": "lock prod", "user": "bo@example.com", "role": "viewer", "action": "run"}),
        ),
        ("GET", "audit") if seen.parameter("cursor").is_none() => {
            let headers = vec![("x-next-cursor", "two".to_owned())];
            Reply::Answer(200, headers, serde_json::to_vec(&json!([event("e2")])).expect("plain data"))
        }
        ("GET", "audit") => {
            let mut refused = event("e1");
            refused["entity"] = "USER:ana@example.com".into();
            refused["target"] = "ship".into();
            refused["result"] = "denied: FORBIDDEN".into();
            Reply::json(200, json!([refused]))
        }
        ("GET", "audit/export") => Reply::Answer(200, Vec::new(), b"{\"event_id\":\"e1\"}\n{\"event_id\":\"e2\"}\n".to_vec()),
        // As a server answers that does not know of this.
        ("GET", "audit/verify") if seen.parameter("state").is_some() => Reply::json(200, json!({"ok": true, "checked": 9})),
        ("GET", "audit/verify") => Reply::json(
            200,
            json!({"ok": false, "checked": 9, "first_bad": {"entity": "USER:bo@example.com", "number": 3, "problem": "removed", "message": "a gap"}}),
        ),
        ("GET", "trace/none") => Reply::json(200, json!({"logs": [], "related_resources": {}})),
        ("GET", "trace/r1") => {
            Reply::json(200, json!({"logs": [{"event_id": "e1", "timestamp": 0, "message": "user created"}], "related_resources": {}}))
        }
        ("POST", "health/reconcile") => {
            Reply::json(200, json!({"status": "ok", "report": {"timestamp": AT, "reconciled_count": 1, "error_count": 0}}))
        }
        ("POST", path) if path.ends_with("/link") => Reply::json(
            201,
            json!({"execution_id": ID, "url": "http://x/logs#token=hunter2", "token": "hunter2", "expires_at": "2026-01-05T14:22:19Z"}),
        ),
        ("POST", "images/register") => Reply::json(201, json!({"image": "alpine:3", "message": "registered", "image_id": "alpine:3-a1"})),
        _ => answer(seen, 0),
    }
}

fn event(id: &str) -> Value {
    json!({"event_id": id, "at": AT, "user": "ana@example.com", "action": "user.create", "entity": "USER:bo@example.com", "number": 1, "result": "ok", "request_id": "r1"})
}

#[tokio::test]
async fn an_invitation_prints_the_token_alone_and_says_how_to_claim_it() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let made = user.run(&["users", "create", "bo@example.com", "--role", "viewer"]).await;
    assert_eq!((made.status.code(), text(&made.stdout).as_str()), (Some(0), "hunter2\n"), "{}", text(&made.stderr));
    let said = text(&made.stderr);
    assert!(said.contains("runvoy claim TOKEN --endpoint") && said.contains("2026-01-03T14:37:19"), "{said}");
    assert!(!said.contains("hunter2"), "a pipe gets the token once: {said}");
    assert_eq!(body(&fake.seen()[0]), json!({"email": "bo@example.com", "role": "viewer"}));
    assert!(fake.seen()[0].header("idempotency-key").is_some());
    assert_eq!(user.run(&["users", "create", "bo@example.com", "--role", "king"]).await.status.code(), Some(2));
}

#[tokio::test]
async fn a_second_user_is_made_with_a_word_about_what_that_stops() {
    let fake = Fake::new(|seen| match seen.path() {
        "/api/v1/doctor" => {
            Reply::json(200, json!({"probes": [{"name": "uid", "status": "fail", "detail": "commands are refused: give --run-as-uids"}]}))
        }
        _ => people(seen),
    });
    let user = User::of(&fake).await;
    let words = ["users", "create", "bo@example.com", "--role", "viewer"];
    let said = text(&user.run(&words).await.stderr);
    assert!(said.contains("several users: commands are refused: give --run-as-uids"), "{said}");
    let without = text(&User::of(&Fake::new(people)).await.run(&words).await.stderr);
    assert!(!without.contains("several users"), "{without}");
}

#[tokio::test]
async fn what_is_shown_once_is_what_is_printed_as_its_name() {
    let user = User::of(&Fake::new(people)).await;
    for (words, printed) in [
        (&["users", "create", "bo@example.com", "--role", "viewer", "-o", "name"][..], "hunter2\n"),
        (&["keys", "create", "-o", "name"], "rv_new_hunter3\n"),
    ] {
        let made = user.run(words).await;
        assert_eq!(text(&made.stdout), printed, "{}", text(&made.stderr));
    }
}

#[tokio::test]
async fn a_user_who_is_there_already_can_be_given_a_key_or_be_invited_anew() {
    let user = User::of(&Fake::new(|_| Reply::error(409, "CONFLICT", "user bo@example.com exists already"))).await;
    let taken = user.run(&["users", "create", "bo@example.com", "--role", "viewer"]).await;
    let said = text(&taken.stderr);
    assert!(taken.status.code() == Some(1) && said.contains("runvoy keys create --user bo@example.com"), "{said}");
    assert!(said.contains("runvoy users revoke bo@example.com"), "{said}");
}

#[tokio::test]
async fn a_key_is_ended_by_its_beginning_and_named() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let ended = user.run(&["keys", "revoke", "othe", "--yes"]).await;
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(0), "key rv_othello: ended\n"));
    let asked = fake.seen().into_iter().rfind(|seen| seen.method == "DELETE").expect("asked");
    assert_eq!(asked.path(), "/api/v1/users/ana%40example.com/keys/rv_othello");
    let again = user.run(&["keys", "revoke", "rv_gone", "--yes"]).await;
    assert!(again.status.code() == Some(1) && text(&again.stderr).contains("already revoked"), "{}", text(&again.stderr));
}

#[tokio::test]
async fn revoking_asks_first_and_says_what_becomes_of_running_work() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let refused = user.run(&["users", "revoke", "bo@example.com"]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--yes") && fake.seen().is_empty(), "{}", text(&refused.stderr));
    let done = user.run(&["users", "revoke", "bo@example.com", "--kill", "--yes"]).await;
    assert_eq!((done.status.code(), text(&done.stderr).as_str()), (Some(0), "bo is revoked; 2 executions go on\n"));
    assert_eq!(body(&fake.seen()[0]), json!({"email": "bo@example.com", "kill": true}));
    let role = user.run(&["users", "role", "bo@example.com", "operator", "--json"]).await;
    let role: Value = serde_json::from_slice(&role.stdout).expect("JSON");
    assert_eq!(role["role"], "operator");
}

#[tokio::test]
async fn a_claim_is_saved_and_never_shown() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let unset = |words: &[&str]| {
        let mut command = user.command(words);
        command.env_remove("RUNVOY_API_KEY").env_remove("RUNVOY_API_ENDPOINT");
        command
    };
    let nowhere = finish(unset(&["claim", "good"])).await;
    assert!(nowhere.status.code() == Some(2) && text(&nowhere.stderr).contains("--endpoint"), "{}", text(&nowhere.stderr));
    let claimed = with_stdin(unset(&["claim", "-", "--profile", "prod", "--endpoint", &user.endpoint]), "good\n").await;
    let said = text(&claimed.stdout) + &text(&claimed.stderr);
    assert!(claimed.status.success() && said.contains("Signed in as bo@example.com") && !said.contains("hunter5"), "{said}");
    assert!(said.contains("add --profile prod") && said.contains("runvoy profile use prod"), "{said}");
    let stored = std::fs::read_to_string(user.home.path().join(".runvoy/config.yaml")).expect("written");
    assert!(stored.contains("prod:") && stored.contains("rv_claimed_hunter5") && stored.contains(&user.endpoint), "{stored}");
    let seen = fake.seen();
    let claim = seen.iter().find(|seen| seen.path().contains("/claim/")).expect("asked");
    assert!(claim.header("x-api-key").is_none(), "no key is needed");
    // The key that is there is not thrown away unasked, and the token is not spent to find that out.
    let again = finish(unset(&["claim", "good", "--profile", "prod"])).await;
    assert!(again.status.code() == Some(2) && text(&again.stderr).contains("--yes"), "{}", text(&again.stderr));
    assert_eq!(fake.seen().len(), seen.len());
    let elsewhere = finish(unset(&["claim", "good", "--profile", "prod", "--endpoint", "http://127.0.0.1:1"])).await;
    assert!(text(&elsewhere.stderr).contains("the key of another server"), "{}", text(&elsewhere.stderr));
    let spent = finish(unset(&["claim", "spent", "--profile", "other", "--endpoint", &user.endpoint])).await;
    assert!(spent.status.code() == Some(1) && text(&spent.stderr).contains("ask the admin who invited you"), "{}", text(&spent.stderr));
}

#[tokio::test]
async fn rotating_the_key_in_use_saves_the_new_one_before_the_old_one_ends() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let path = user.home.path().join(".runvoy/config.yaml");
    std::fs::create_dir(user.home.path().join(".runvoy")).expect("made");
    std::fs::write(&path, format!("api_endpoint: {}\napi_key: rv_hunter2\n", user.endpoint)).expect("written");
    let mut command = user.command(&["keys", "rotate"]);
    command.env_remove("RUNVOY_API_KEY").env_remove("RUNVOY_API_ENDPOINT");
    let rotated = finish(command).await;
    let said = text(&rotated.stdout) + &text(&rotated.stderr);
    assert!(rotated.status.success() && said.contains("rv_new") && !said.contains("hunter"), "{said}");
    assert!(std::fs::read_to_string(&path).expect("there").contains("rv_new_hunter3"));
    let seen = fake.seen();
    let made = seen.iter().find(|seen| seen.method == "POST").expect("made");
    assert_eq!(made.header("x-api-key"), Some("rv_hunter2"));
    assert_eq!(body(made), json!({"name": "laptop", "expires_in": 90 * 86_400}), "as the old one was");
    let ended = seen.iter().find(|seen| seen.method == "DELETE").expect("ended");
    assert_eq!((ended.header("x-api-key"), ended.path()), (Some("rv_new_hunter3"), "/api/v1/users/ana%40example.com/keys/rv_hun"));
}

/// The server of this machine told its first admin's key in a file.
#[tokio::test]
async fn a_rotated_key_is_renewed_in_its_file_and_in_admin_key() {
    let user = User::of(&Fake::new(people)).await;
    let (file, data) = (user.home.path().join("ana.key"), user.home.path().join(".runvoy/data"));
    std::fs::create_dir_all(&data).expect("made");
    let kept = |path: &std::path::Path| std::fs::read_to_string(path).expect("there");
    for (admin, words, renewed) in [
        ("rv_hunter2\n", &["keys", "rotate"][..], "rv_new_hunter3\n"),
        ("rv_othello-and-more\n", &["keys", "rotate", "rv_othe"], "rv_oth_hunter4\n"),
        ("rv_another\n", &["keys", "rotate", "rv_othe"], "rv_another\n"),
    ] {
        std::fs::write(&file, "rv_hunter2\n").expect("written");
        std::fs::write(data.join("admin.key"), admin).expect("written");
        let mut command = user.command(words);
        command.env_remove("RUNVOY_API_KEY").env("RUNVOY_API_KEY_FILE", &file);
        let rotated = finish(command).await;
        assert_eq!(rotated.status.code(), Some(0), "{words:?}: {}", text(&rotated.stderr));
        assert_eq!(kept(&data.join("admin.key")), renewed, "{words:?}");
        assert_eq!(kept(&file), if words.len() == 2 { "rv_new_hunter3\n" } else { "rv_hunter2\n" }, "{words:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_stored_here_is_not_rotated_by_itself() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let own = user.run(&["keys", "rotate"]).await;
    assert!(own.status.code() == Some(2) && text(&own.stderr).contains("RUNVOY_API_KEY"), "{}", text(&own.stderr));
    assert!(fake.seen().iter().all(|seen| seen.method == "GET"));
    let other = user.run(&["keys", "rotate", "rv_othe", "--user", "bo@example.com"]).await;
    assert_eq!(text(&other.stdout), "rv_oth_hunter4\n", "whoever asked gets it: {}", text(&other.stderr));
    let made = user.run(&["keys", "create", "--name", "ci", "--expires", "90d"]).await;
    assert_eq!(text(&made.stdout), "rv_new_hunter3\n");
    let request = fake.seen().into_iter().rfind(|seen| seen.method == "POST").expect("asked");
    assert_eq!(body(&request), json!({"name": "ci", "expires_in": 7_776_000}));
}

#[tokio::test]
async fn a_key_that_ends_soon_is_told_by_whoami_and_doctor() {
    let soon = Arc::new(Mutex::new(String::new()));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let at = runvoy_wire::Rfc3339(i64::try_from(now).expect("before long") + 3 * 86_400_000).to_string();
    soon.lock().expect("no panic holds it").push_str(&at);
    let fake = Fake::new(move |seen| match seen.path() {
        "/api/v1/whoami" => {
            let at = soon.lock().expect("no panic holds it").clone();
            Reply::json(200, json!({"email": "ana@example.com", "role": "admin", "key_prefix": "rv_hun", "key_expires_at": at}))
        }
        _ => answer(seen, 0),
    });
    let user = User::of(&fake).await;
    let whoami = user.run(&["whoami"]).await;
    assert!(text(&whoami.stderr).contains("expires in 2d 23h"), "{}", text(&whoami.stderr));
    let doctor: Value = serde_json::from_slice(&user.run(&["doctor", "--json"]).await.stdout).expect("JSON");
    let probe = doctor["probes"].as_array().expect("a list").iter().find(|probe| probe["name"] == "key expiry").expect("told").clone();
    assert_eq!(probe["status"], "warn");
}

#[tokio::test]
async fn members_come_and_go_and_the_rest_stays() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let put = || fake.seen().into_iter().rfind(|seen| seen.method == "POST").map(|seen| body(&seen));
    assert!(user.run(&["groups", "add", "ops", "bo@example.com"]).await.status.success());
    assert_eq!(put(), Some(json!({"name": "ops", "members": ["ana@example.com", "bo@example.com"]})));
    assert!(user.run(&["groups", "remove", "ops", "ana@example.com"]).await.status.success());
    assert_eq!(put(), Some(json!({"name": "ops", "members": []})));
    for (words, says) in [
        (&["groups", "remove", "ops", "zed@example.com"][..], "not in group"),
        (&["groups", "add", "devs", "bo@example.com"], "runvoy groups create devs"),
        (&["groups", "create", "ops"], "already exists"),
    ] {
        let refused = user.run(words).await;
        assert!(refused.status.code() == Some(1) && text(&refused.stderr).contains(says), "{words:?}: {}", text(&refused.stderr));
    }
}

#[tokio::test]
async fn rules_are_applied_from_yaml_after_the_whole_file_was_checked() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let file = user.home.path().join("rules.yaml");
    std::fs::write(&file, "- name: a\n  effect: deny\n  locks: ['prod*']\n- name: b\n  efect: deny\n").expect("written");
    let broken = user.run(&["rules", "apply", "rules.yaml"]).await;
    assert_eq!(broken.status.code(), Some(2));
    assert!(text(&broken.stderr).contains("rules.yaml:5:3: "), "{}", text(&broken.stderr));
    assert!(fake.seen().is_empty(), "nothing is sent of a file that is broken");
    let text_of_rules = "- name: a\n  effect: deny\n  locks: ['prod*']\n- name: b\n  effect: allow\n  playbooks: [deploy]\n";
    let applied = with_stdin(user.command(&["rules", "apply", "-", "-o", "name"]), text_of_rules).await;
    assert_eq!(text(&applied.stdout), "a\nb\n", "{}", text(&applied.stderr));
    let sent: Vec<Value> = fake.seen().iter().map(body).collect();
    assert_eq!(sent[1], json!({"name": "b", "effect": "allow", "playbooks": ["deploy"]}));
    assert_eq!(text(&with_stdin(user.command(&["rules", "apply", "-"]), text_of_rules).await.stderr), "rule a: saved\nrule b: saved\n");
    let shown = user.run(&["rules", "show", "no-prod", "-o", "yaml"]).await;
    assert!(text(&shown.stdout).contains("prod*"), "{}", text(&shown.stdout));
    assert_eq!(user.run(&["rules", "show", "none"]).await.status.code(), Some(1));
    let table = user.run(&["rules", "list"]).await;
    assert!(text(&table.stdout).contains("no-prod  deny    groups: interns  locks: prod*"), "{}", text(&table.stdout));
}

#[tokio::test]
async fn a_rule_that_is_refused_says_which_were_applied_and_which_not() {
    let fake = Fake::new(|seen| match body(seen)["name"].as_str() {
        Some("b") => Reply::error(400, "INVALID_REQUEST", "the request is not valid"),
        name => Reply::json(200, json!({"name": name, "message": "saved"})),
    });
    let user = User::of(&fake).await;
    let rules: String = ["a", "b", "c"].map(|name| format!("- {{name: {name}, effect: deny, locks: [x]}}\n")).concat();
    let refused = with_stdin(user.command(&["rules", "apply", "-"]), &rules).await;
    let said = text(&refused.stderr);
    assert!(said.contains("this was rule b") && said.contains("applied before it: a\n") && said.contains("not applied: c\n"), "{said}");
}

#[tokio::test]
async fn an_explanation_names_the_rule_and_asks_for_everything_that_was_given() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let told = user.run(&["access", "explain", "bo@example.com", "run", "--lock", "prod", "--command", "make deploy"]).await;
    assert!(text(&told.stdout).starts_with("denied\n") && text(&told.stdout).contains("decided by  no-prod"), "{}", text(&told.stdout));
    assert_eq!(fake.seen()[0].target, "/api/v1/access/explain?user=bo%40example.com&action=run&command=make%20deploy&lock=prod");
    user.run(&["access", "explain", "me", "run"]).await;
    assert_eq!(fake.seen()[1].target, "/api/v1/access/explain?action=run");
}

#[tokio::test]
async fn the_audit_record_is_listed_exported_and_judged() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let listed: Value =
        serde_json::from_slice(&user.run(&["audit", "list", "--json", "--user", "ana@example.com"]).await.stdout).expect("JSON");
    assert_eq!((listed[0]["event_id"].as_str(), listed[1]["event_id"].as_str()), (Some("e2"), Some("e1")), "over both pages");
    assert_eq!(fake.seen()[0].parameter("user"), Some("ana%40example.com"));
    let exported = user.run(&["audit", "export", "--since", "1d"]).await;
    assert_eq!(text(&exported.stdout), "{\"event_id\":\"e1\"}\n{\"event_id\":\"e2\"}\n");
    let judged = user.run(&["audit", "verify"]).await;
    assert_eq!(judged.status.code(), Some(1), "tampering is a failure");
    assert!(text(&judged.stdout).contains("USER:bo@example.com number 3"), "{}", text(&judged.stdout));
    let unheard = user.run(&["audit", "verify", "--state"]).await;
    assert_eq!(unheard.status.code(), Some(1), "what was not compared is not proved");
    assert!(text(&unheard.stderr).contains("older"), "{}", text(&unheard.stderr));
    assert_eq!(text(&user.run(&["audit", "list", "-o", "name", "-n", "1"]).await.stdout), "e2\n");
    let shown = text(&user.run(&["audit", "list"]).await.stdout);
    assert!(shown.contains("  ship ") && !shown.contains("USER:ana@example.com"), "a refusal is about what was asked for: {shown}");
}

#[tokio::test]
async fn traces_links_images_and_reconciliation_reach_the_server() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    assert!(text(&user.run(&["trace", "r1"]).await.stdout).contains("user created"));
    let unknown = user.run(&["trace", "none"]).await;
    assert!(unknown.status.code() == Some(1) && unknown.stdout.is_empty(), "{}", text(&unknown.stdout));
    assert!(text(&unknown.stderr).contains("no record of request none"), "{}", text(&unknown.stderr));
    assert!(text(&user.run(&["health", "reconcile"]).await.stdout).contains("repaired"));
    let link = user.run(&["logs", ID, "--link"]).await;
    assert_eq!(text(&link.stdout), "http://x/logs#token=hunter2\n", "only the address");
    assert!(!text(&link.stderr).contains("hunter2"));
    let words = [
        "images",
        "register",
        "alpine:3",
        "--set-default",
        "--cpu",
        "256",
        "--memory",
        "512",
        "--runtime-platform",
        "Linux/ARM64",
        "--task-role",
        "t",
        "--task-exec-role",
        "e",
    ];
    let registered = user.run(&words).await;
    assert_eq!(text(&registered.stderr), "image alpine:3: registered\n");
    let request = fake.seen().into_iter().rfind(|seen| seen.path().ends_with("/register")).expect("asked");
    let expected = json!({"image": "alpine:3", "is_default": true, "cpu": 256, "memory": 512, "runtime_platform": "Linux/ARM64",
        "task_role_name": "t", "task_execution_role_name": "e"});
    assert_eq!(body(&request), expected);
}

#[tokio::test]
async fn what_is_not_found_is_listed_by_its_own_command() {
    let user = User::of(&Fake::new(|_| Reply::error(404, "NOT_FOUND", "no such thing"))).await;
    for (words, command) in [
        (&["images", "show", "x"][..], "runvoy images list"),
        (&["users", "role", "x", "viewer"], "runvoy users list"),
        (&["secrets", "get", "x"], "runvoy secrets list"),
        (&["keys", "list", "--user", "x"], "runvoy users list"),
        (&["playbook", "show", "x"], "runvoy playbook list"),
        (&["status", ID], "runvoy list"),
    ] {
        let missing = user.run(words).await;
        assert_eq!(missing.status.code(), Some(1), "{words:?}");
        let next: Vec<String> = text(&missing.stderr).lines().filter(|line| line.contains("next:")).map(str::to_owned).collect();
        assert_eq!(next, [format!("  next: see what there is: {command}")], "{words:?}");
    }
}

#[tokio::test]
async fn names_complete_from_the_server_and_in_silence_without_it() {
    let fake = Fake::new(people);
    let user = User::of(&fake).await;
    let complete = |endpoint: &str, words: &[&str]| {
        let mut command = user.command(&[&["--", "runvoy"], words].concat());
        command.env("COMPLETE", "fish").env("RUNVOY_API_ENDPOINT", endpoint);
        finish(command)
    };
    for (words, expected) in [
        (&["users", "revoke", "b"][..], "bo@example.com"),
        (&["groups", "delete", "o"], "ops"),
        (&["rules", "show", "no"], "no-prod"),
        (&["keys", "revoke", "rv_o"], "rv_othello"),
        (&["secrets", "update", "x", "--use-by", "group:"], "group:ops"),
    ] {
        let found = complete(&user.endpoint, words).await;
        assert!(text(&found.stdout).starts_with(expected), "{words:?}: {}", text(&found.stdout));
        let silent = complete("http://127.0.0.1:1", words).await;
        assert_eq!((text(&silent.stdout), text(&silent.stderr)), (String::new(), String::new()), "{words:?}");
    }
}
