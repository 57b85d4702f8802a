//! Calls about people and what they manage: where each goes, what it carries, and which credential it shows.

mod fake;

use std::sync::{Arc, Mutex};

use fake::{Fake, Reply, Seen};
use runvoy_client::wire::{
    CreateKeyRequest, CreateSecretRequest, CreateUserRequest, Effect, PlaybookTerms, PutGroupRequest, RegisterImageRequest, Rfc3339, Rule,
    RunPlaybookRequest, RunRequest, Status, UpdateSecretRequest,
};
use runvoy_client::{AccessQuery, AuditQuery, Client, ClientError, Endpoint, Options, Retry};
use serde_json::{Value, json};

const KEY: &str = "rv_caller";
const AT: &str = "2026-01-03T14:22:19Z";

async fn client(fake: &Fake) -> Client {
    let endpoint = format!("http://{}", fake.tcp().await).parse::<Endpoint>().expect("an endpoint");
    Client::new(Options { api_key: Some(KEY.to_owned()), retry: Retry::NONE, ..Options::new(endpoint) }).expect("plain options")
}

/// A server that gives the same answer to everything.
fn answering(body: Value) -> Fake {
    Fake::new(move |_| Reply::json(200, &body))
}

/// What was asked: method, target, body, and whether a repeat would be the same call.
fn asked(seen: &Seen) -> (String, Value, bool) {
    let body = if seen.body.is_empty() { Value::Null } else { serde_json::from_slice(&seen.body).expect("JSON") };
    (format!("{} {}", seen.method, seen.target), body, seen.header("idempotency-key").is_some())
}

fn last(fake: &Fake) -> (String, Value, bool) {
    asked(fake.seen().last().expect("a request"))
}

fn user() -> Value {
    json!({"email": "ana@example.com", "role": "viewer", "created_at": AT, "revoked": false})
}

fn key() -> Value {
    json!({"prefix": "rv_ab", "created_at": AT, "revoked": false})
}

fn rule() -> Rule {
    serde_json::from_value(json!({"name": "prod", "effect": "deny", "locks": ["prod/*"]})).expect("a rule")
}

#[tokio::test]
async fn users_are_invited_changed_and_revoked() {
    let fake = answering(json!({"users": [user()], "user": user(), "claim_token": "t", "message": "", "email": "ana@example.com",
        "role": "operator", "open_executions": 2}));
    let client = client(&fake).await;
    assert_eq!(client.users().await.expect("a list")[0].email, "ana@example.com");
    assert_eq!(last(&fake), ("GET /api/v1/users".to_owned(), Value::Null, false));
    let request =
        CreateUserRequest { email: "ana@example.com".into(), role: "viewer".into(), api_key: None, confirm: false, expires_in: None };
    assert_eq!(client.create_user(&request).await.expect("invited").claim_token.expose(), "t");
    assert_eq!(last(&fake), ("POST /api/v1/users/create".to_owned(), json!({"email": "ana@example.com", "role": "viewer"}), true));
    assert_eq!(client.revoke_user("ana@example.com", true).await.expect("revoked").open_executions, 2);
    assert_eq!(last(&fake), ("POST /api/v1/users/revoke".to_owned(), json!({"email": "ana@example.com", "kill": true}), false));
    assert_eq!(client.set_role("ana+x@example.com", "operator").await.expect("changed").role, "operator");
    assert_eq!(last(&fake), ("POST /api/v1/users/ana%2Bx%40example.com/role".to_owned(), json!({"role": "operator"}), false));
}

#[tokio::test]
async fn keys_are_listed_made_rotated_and_revoked() {
    let fake = answering(json!({"keys": [key()], "api_key": "rv_new", "key": key(), "prefix": "rv_ab", "message": ""}));
    let client = client(&fake).await;
    assert_eq!(client.keys("ana@example.com").await.expect("a list")[0].prefix, "rv_ab");
    assert_eq!(last(&fake).0, "GET /api/v1/users/ana%40example.com/keys");
    let request = CreateKeyRequest { name: Some("ci".into()), expires_in: Some(60) };
    assert_eq!(client.create_key("ana@example.com", &request).await.expect("made").api_key.expose(), "rv_new");
    let body = json!({"name": "ci", "expires_in": 60});
    assert_eq!(last(&fake), ("POST /api/v1/users/ana%40example.com/keys".to_owned(), body.clone(), true));
    client.rotate_key("ana@example.com", "rv_ab", &request).await.expect("rotated");
    assert_eq!(last(&fake), ("POST /api/v1/users/ana%40example.com/keys/rv_ab/rotate".to_owned(), body, true));
    client.revoke_key("ana@example.com", "rv_ab").await.expect("revoked");
    assert_eq!(last(&fake), ("DELETE /api/v1/users/ana%40example.com/keys/rv_ab".to_owned(), Value::Null, false));
}

#[tokio::test]
async fn a_new_key_for_task_tokens_is_asked_for_and_not_twice() {
    let fake = answering(json!({"key_id": "1767450139640", "message": ""}));
    let client = client(&fake).await;
    assert_eq!(client.rotate_signing_key().await.expect("rotated").key_id, "1767450139640");
    assert_eq!(last(&fake), ("POST /api/v1/signing-key/rotate".to_owned(), Value::Null, false));
}

#[tokio::test]
async fn a_new_key_is_used_over_the_same_connections() {
    let fake = answering(json!({"keys": []}));
    let old = client(&fake).await;
    old.keys("ana@example.com").await.expect("a list");
    let new = old.with_key("rv_new\n").expect("a key");
    new.keys("ana@example.com").await.expect("a list");
    old.keys("ana@example.com").await.expect("a list");
    let sent: Vec<_> = fake.seen().iter().map(|seen| seen.header("x-api-key").map(str::to_owned)).collect();
    assert_eq!(sent, [KEY, "rv_new", KEY].map(|key| Some(key.to_owned())));
    assert_eq!(fake.connections(), 1);
    assert!(matches!(old.with_key("two\nlines").err(), Some(ClientError::Invalid { what: "API key", .. })));
}

#[tokio::test]
async fn groups_and_rules_are_put_and_removed_and_explained() {
    let fake = answering(json!({"groups": null, "rules": [{"name": "prod", "effect": "deny"}], "name": "x", "message": ""}));
    let client = client(&fake).await;
    assert_eq!(client.groups().await.expect("a list"), []);
    let group = PutGroupRequest { name: "ops".into(), members: vec!["ana@example.com".into()] };
    client.put_group(&group).await.expect("put");
    assert_eq!(last(&fake), ("POST /api/v1/groups".to_owned(), json!({"name": "ops", "members": ["ana@example.com"]}), true));
    client.remove_group("a/b").await.expect("removed");
    assert_eq!(last(&fake).0, "DELETE /api/v1/groups/a%2Fb");
    assert_eq!(client.rules().await.expect("a list")[0].effect, Effect::Deny);
    client.put_rule(&rule()).await.expect("put");
    assert_eq!(last(&fake), ("POST /api/v1/rules".to_owned(), json!({"name": "prod", "effect": "deny", "locks": ["prod/*"]}), true));
    client.remove_rule("prod").await.expect("removed");
    assert_eq!(last(&fake).0, "DELETE /api/v1/rules/prod");

    let explaining = answering(json!({"allowed": false, "rule": "prod", "why": "lock prod/db matches prod/*", "rules": null}));
    let client = self::client(&explaining).await;
    let query =
        AccessQuery { user: Some("ana@example.com".into()), action: "run".into(), lock: Some("prod/db".into()), ..AccessQuery::default() };
    assert!(!client.explain(&query).await.expect("an answer").allowed);
    assert_eq!(last(&explaining).0, "GET /api/v1/access/explain?user=ana%40example.com&action=run&lock=prod%2Fdb");
}

#[tokio::test]
async fn an_image_keeps_its_slashes_and_colons_in_one_place() {
    let image = json!({"image_id": "tool:1-a1b2", "image": "ghcr.io/team/tool:1", "owned_by": null, "created_at": AT, "message": ""});
    let mut body = image.clone();
    body["images"] = json!([image]);
    let fake = answering(body);
    let client = client(&fake).await;
    assert_eq!(client.images().await.expect("a list").len(), 1);
    assert_eq!(last(&fake).0, "GET /api/v1/images");
    assert_eq!(client.image("ghcr.io/team/tool:1").await.expect("an image").image_id, "tool:1-a1b2");
    assert_eq!(last(&fake).0, "GET /api/v1/images/ghcr.io%2Fteam%2Ftool%3A1");
    let request =
        RegisterImageRequest { image: "alpine".into(), is_default: Some(true), cpu: Some(256), ..RegisterImageRequest::default() };
    client.register_image(&request).await.expect("registered");
    assert_eq!(last(&fake), ("POST /api/v1/images/register".to_owned(), json!({"image": "alpine", "is_default": true, "cpu": 256}), true));
    client.unregister_image("ghcr.io/team/tool:1").await.expect("unregistered");
    assert_eq!(last(&fake).0, "DELETE /api/v1/images/ghcr.io%2Fteam%2Ftool%3A1");
}

#[tokio::test]
async fn secrets_are_made_read_changed_deleted_and_sealed_anew() {
    let secret = json!({"name": "github", "key_name": "GITHUB_TOKEN", "value": "hunter2", "created_at": AT, "updated_at": AT});
    let fake = answering(
        json!({"secrets": [secret], "total": 1, "secret": secret, "name": "github", "message": "", "key_id": "k2", "resealed": 1}),
    );
    let client = client(&fake).await;
    assert_eq!(client.secrets().await.expect("a list").len(), 1);
    let value = client.secret("team/github").await.expect("a secret").value;
    assert_eq!(value.as_ref().map(|value| value.expose()), Some("hunter2"));
    assert_eq!(last(&fake).0, "GET /api/v1/secrets/team%2Fgithub");
    let request = CreateSecretRequest {
        name: "github".into(),
        key_name: "GITHUB_TOKEN".into(),
        value: "hunter2".into(),
        description: None,
        use_by: vec!["group:ops".into()],
    };
    client.create_secret(&request).await.expect("made");
    let body = json!({"name": "github", "key_name": "GITHUB_TOKEN", "value": "hunter2", "use_by": ["group:ops"]});
    assert_eq!(last(&fake), ("POST /api/v1/secrets".to_owned(), body, true));
    let update = UpdateSecretRequest { value: Some("hunter3".into()), ..UpdateSecretRequest::default() };
    client.update_secret("github", &update).await.expect("changed");
    assert_eq!(last(&fake), ("PUT /api/v1/secrets/github".to_owned(), json!({"value": "hunter3"}), false));
    client.delete_secret("github").await.expect("deleted");
    assert_eq!(last(&fake).0, "DELETE /api/v1/secrets/github");
    assert_eq!(client.rotate_sealing_key().await.expect("rotated").resealed, 1);
    assert_eq!(last(&fake).0, "POST /api/v1/sealing-key/rotate");
}

#[tokio::test]
async fn playbooks_are_pushed_shown_run_and_removed() {
    let playbook = json!({"name": "deploy", "version": 2, "command": "make", "created_at": AT});
    let mut body = playbook.clone();
    body["playbooks"] = json!([playbook]);
    body["message"] = json!("");
    let fake = Fake::new(move |seen| match seen.path().ends_with("/run") {
        true => Reply::json(202, json!({"execution_id": "0192ab", "log_url": "", "status": "PENDING"})),
        false => Reply::json(200, &body),
    });
    let client = client(&fake).await;
    assert_eq!(client.playbooks().await.expect("a list")[0].version, 2);
    assert_eq!(client.playbook("deploy", Some(1)).await.expect("a playbook").terms.command, "make");
    assert_eq!(last(&fake).0, "GET /api/v1/playbooks/deploy?version=1");
    let terms = PlaybookTerms { command: "make".into(), ..PlaybookTerms::default() };
    client.push_playbook("deploy", &terms).await.expect("pushed");
    assert_eq!(last(&fake), ("PUT /api/v1/playbooks/deploy".to_owned(), json!({"command": "make"}), true));
    let request = RunPlaybookRequest { parameters: [("count".to_owned(), json!(3))].into(), ..RunPlaybookRequest::default() };
    client.run_playbook("deploy", &request, Some("mine".into())).await.expect("taken");
    assert_eq!(last(&fake), ("POST /api/v1/playbooks/deploy/run".to_owned(), json!({"parameters": {"count": 3}}), true));
    assert_eq!(fake.seen().last().and_then(|seen| seen.header("idempotency-key").map(str::to_owned)).as_deref(), Some("mine"));
    client.remove_playbook("deploy").await.expect("removed");
    assert_eq!(last(&fake).0, "DELETE /api/v1/playbooks/deploy");
}

#[tokio::test]
async fn a_dry_run_asks_for_one_and_carries_no_key_of_its_own() {
    let fake = answering(
        json!({"allowed": true, "image_id": "local", "image": "local", "command": "true", "env": ["A"], "queue": "default",
        "priority": 3, "retries": 0, "rules": [{"rule": "role:developer", "effect": "allow", "why": "developers run"}], "cost_usd_per_hour": 0.25}),
    );
    let client = client(&fake).await;
    let request = RunRequest { command: "true".into(), ..RunRequest::default() };
    let answer = client.dry_run(&request).await.expect("an answer");
    assert_eq!((answer.allowed, answer.rules[0].effect, answer.cost_usd_per_hour), (true, Effect::Allow, Some(0.25)));
    assert_eq!(last(&fake), ("POST /api/v1/run?dry_run=1".to_owned(), json!({"command": "true"}), false));
    client.dry_run_playbook("deploy", &RunPlaybookRequest::default()).await.expect("an answer");
    assert_eq!(last(&fake), ("POST /api/v1/playbooks/deploy/run?dry_run=1".to_owned(), json!({"parameters": {}}), false));
}

#[tokio::test]
async fn a_link_is_read_with_its_token_and_without_the_key() {
    let fake =
        answering(json!({"execution_id": "0192ab", "url": "http://h/logs?execution_id=0192ab#token=jwt", "token": "jwt", "expires_at": AT,
        "status": "RUNNING", "logs": "hello\n", "last_timestamp": AT, "completed": false}));
    let client = client(&fake).await;
    let link = client.link("0192ab").await.expect("a link");
    assert!(!format!("{link:?}").contains("jwt"), "{link:?}");
    assert_eq!((last(&fake).0.as_str(), fake.seen()[0].header("x-api-key")), ("POST /api/v1/executions/0192ab/link", Some(KEY)));
    assert!(last(&fake).2, "a repeat makes no second link");
    let log = client.linked_log("0192ab", link.token.expose(), Some(Rfc3339(0))).await.expect("a log");
    assert_eq!((log.status, log.logs.as_str(), log.completed), (Status::Running, "hello\n", false));
    let seen = fake.seen().pop().expect("a request");
    assert_eq!(seen.target, "/api/v1/logs/0192ab?since=1970-01-01T00%3A00%3A00.000Z");
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (Some("Bearer jwt"), None));
}

#[tokio::test]
async fn the_audit_record_is_paged_verified_and_exported() {
    let event = json!({"event_id": "e1", "at": AT, "user": "ana@example.com", "action": "user.invite", "entity": "USER:bob@example.com"});
    let fake = Fake::new(move |seen| match seen.path() {
        "/api/v1/audit/verify" => Reply::json(
            200,
            json!({"ok": false, "checked": 7,
            "first_bad": {"entity": "USER:bob@example.com", "number": 3, "problem": "altered", "message": "event 3 is not as it was written"}}),
        ),
        "/api/v1/audit/export" => Reply::Answer(200, Vec::new(), format!("{event}\n{event}\n").into_bytes()),
        _ => Reply::Answer(200, vec![("x-next-cursor", "c2".to_owned())], format!("[{event}]").into_bytes()),
    });
    let client = client(&fake).await;
    let query = AuditQuery { user: Some("ana@example.com".into()), since: Some(AT.into()), ..AuditQuery::default() };
    let page = client.audit(&query).await.expect("a page");
    assert_eq!((page.items[0].action.as_str(), page.next_cursor.as_deref()), ("user.invite", Some("c2")));
    assert_eq!(last(&fake).0, "GET /api/v1/audit?user=ana%40example.com&since=2026-01-03T14%3A22%3A19Z");
    let proof = client.verify_audit(false).await.expect("an answer");
    assert_eq!((proof.ok, proof.first_bad.map(|bad| bad.number)), (false, Some(3)));
    assert_eq!(last(&fake).0, "GET /api/v1/audit/verify");
    client.verify_audit(true).await.expect("an answer");
    assert_eq!(last(&fake).0, "GET /api/v1/audit/verify?state=true");
    let mut export = client.export_audit(&AuditQuery::default()).await.expect("an export");
    let mut bytes = Vec::new();
    while let Some(chunk) = export.chunk().await.expect("whole") {
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[tokio::test]
async fn a_trace_and_a_reconciliation_are_read() {
    let fake = answering(json!({"logs": null, "related_resources": {"users": [user()]},
        "status": "ok", "report": {"timestamp": AT, "issues": null, "reconciled_count": 2, "error_count": 0}}));
    let client = client(&fake).await;
    assert_eq!(client.trace_request("r/1").await.expect("a trace").related_resources.users.len(), 1);
    assert_eq!(last(&fake).0, "GET /api/v1/trace/r%2F1");
    assert_eq!(client.reconcile().await.expect("a report").report.reconciled_count, 2);
    assert_eq!(last(&fake).0, "POST /api/v1/health/reconcile");
}

#[tokio::test]
async fn no_trace_shows_a_claim_token_or_the_key_it_became() {
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let fake = answering(json!({"api_key": "rv_hunter2", "user_email": "ana@example.com", "message": "claimed"}));
    let endpoint = format!("http://{}", fake.tcp().await).parse::<Endpoint>().expect("an endpoint");
    let sink = lines.clone();
    let trace = Arc::new(move |_, line: &str| sink.lock().expect("free").push(line.to_owned()));
    let client = Client::new(Options { trace: Some(trace), ..Options::new(endpoint) }).expect("plain options");
    let claim = client.claim("hunter2-token").await.expect("claimed");
    assert_eq!((claim.api_key.expose(), claim.user_email.as_str()), ("rv_hunter2", "ana@example.com"));
    assert_eq!(last(&fake).0, "POST /api/v1/claim/hunter2-token");
    let text = lines.lock().expect("free").join("\n") + &format!("{claim:?}");
    assert!(text.contains("/claim/[hidden]") && text.contains("ana@example.com"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
