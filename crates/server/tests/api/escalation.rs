//! No sequence of calls gains a right: random short histories of each role against everything that can be called, and what each role can see.

use http::Method;
use runvoy_model::record::{Body, Kind, Record};
use runvoy_model::role::Role;
use runvoy_ports::record::RecordStore as _;
use runvoy_server::{App, TableRow};
use serde_json::{Value, json};

use crate::app::{TestApp, email_of, key_of};
use crate::people::invite;

const SEQUENCES: u64 = 40;
const CALLS: usize = 6;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).expect("small")).expect("small")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// What nobody but an admin may change: who there is, what they are, who is in what, what the rules and playbooks say.
async fn rights(app: &TestApp, own: &str) -> Vec<String> {
    let mut rights = Vec::new();
    for kind in [Kind::User, Kind::Claim, Kind::Admins, Kind::Group, Kind::Rule, Kind::Playbook, Kind::PlaybookVersion] {
        for record in app.store.records(kind).await.expect("a memory store") {
            rights.push(right(&record, own));
        }
    }
    rights
}

/// Of a user everything but their own keys, which are theirs to manage; of others' keys everything.
fn right(record: &Record, own: &str) -> String {
    match &record.body {
        Some(Body::User(user)) if user.email == own => format!("{own} {:?} {:?} {:?}", user.role, user.revoked_at, user.claim),
        body => format!("{:?} {} {body:?}", record.kind, record.name),
    }
}

/// Bodies that mean something somewhere.
fn bodies(role: Role) -> Vec<Value> {
    let own = email_of(role);
    vec![
        json!({}),
        json!({"email": own, "role": "admin"}),
        json!({"email": "eve@example.com", "role": "admin", "api_key": runvoy_model::key::key_text(&[0x44; 32])}),
        json!({"email": email_of(Role::Admin), "kill": true}),
        json!({"role": "admin"}),
        json!({"name": "all", "effect": "allow", "commands": ["*"], "users": [own]}),
        json!({"name": "ops", "members": [own]}),
        json!({"name": "mine", "key_name": "MINE", "value": "hunter2", "use_by": ["role:admin"]}),
        json!({"image": "evil:latest", "is_default": true}),
        json!({"command": "true"}),
        json!({"command": "id", "parameters": {}}),
        json!({"parameters": {}}),
        json!({"destination": "/tmp/x"}),
        json!({"name": "k", "expires_in": 60}),
    ]
}

/// A path with something in the place of each parameter that is there, or the caller's own, or nobody's.
fn path(row: &TableRow, dice: &mut Dice, role: Role, theirs: &str) -> String {
    let emails = [email_of(Role::Admin), email_of(role), "eve@example.com".into()];
    let admin = key_of(Role::Admin);
    let (email, name): (&String, &&str) = (dice.pick(&emails), dice.pick(&["ops", "guard", "deploy"]));
    let path = row
        .path
        .replace("{id}", theirs)
        .replace("{*image}", "local")
        .replace("{email}", email)
        .replace("{prefix}", &admin[..11])
        .replace("{*name}", name)
        .replace("{name}", "deploy")
        .replace("{token}", &"t".repeat(32))
        .replace("{request_id}", "r")
        .replace("{task}", "a")
        .replace("{job}", theirs)
        .replace("{asset}", "a.js");
    assert!(!path.contains('{'), "{path}: say what stands for its parameter");
    path
}

async fn stage() -> (TestApp, String) {
    let app = TestApp::new().await;
    let theirs = app.submit_as(Role::Admin, json!({"command": "sleep 1", "lock": "prod"})).await;
    let admin = |path: &str, body: Value| app.post(path).admin().json(&body);
    assert_eq!(admin("/api/v1/groups", json!({"name": "ops", "members": []})).send().await.status.as_u16(), 200);
    let rule = json!({"name": "guard", "effect": "deny", "groups": ["ops"], "commands": ["rm *"]});
    assert_eq!(admin("/api/v1/rules", rule).send().await.status.as_u16(), 200);
    let playbook = app.ask(Method::PUT, "/api/v1/playbooks/deploy").admin().json(&json!({"command": "true"})).send().await;
    assert!(playbook.status.is_success(), "{}", playbook.text());
    invite(&app, "invited@example.com", "admin").await;
    (app, theirs)
}

// With time that passes when nothing else does: one of the routes waits.
#[tokio::test(start_paused = true)]
async fn security_09_no_sequence_of_calls_gains_a_right() {
    let table: Vec<TableRow> = App::table();
    for role in [Role::Operator, Role::Developer, Role::Viewer] {
        let (app, theirs) = stage().await;
        let before = rights(&app, &email_of(role)).await;
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(role as u8 + 1));
        for sequence in 0..SEQUENCES {
            let mut key = key_of(role);
            for _ in 0..CALLS {
                let row = dice.pick(&table);
                let path = path(row, &mut dice, role, &theirs);
                let body = dice.pick(&bodies(role)).clone();
                let answer = app.ask(row.method.clone(), &path).header("x-api-key", &key).json(&body).send().await;
                let said = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
                if let Some(new) = said["api_key"].as_str() {
                    new.clone_into(&mut key);
                }
                let whoami = app.get("/api/v1/whoami").header("x-api-key", &key).send().await;
                if whoami.status.as_u16() == 200 {
                    assert_eq!(whoami.json()["role"], role.as_str(), "{sequence}: {} {path}", row.method);
                    assert_eq!(whoami.json()["email"], email_of(role), "{sequence}: {} {path}", row.method);
                }
            }
            assert_eq!(rights(&app, &email_of(role)).await, before, "{role:?}, sequence {sequence}");
        }
        let whoami = app.get("/api/v1/whoami").admin().send().await;
        assert_eq!(whoami.json()["role"], "admin", "nobody took a right from another either");
    }
}

#[tokio::test(start_paused = true)]
async fn security_08_what_a_developer_reads_holds_nothing_of_others() {
    let (app, _) = stage().await;
    let canary = "canary-c0ffee";
    let theirs =
        app.submit_as(Role::Operator, json!({"command": format!("echo {canary}"), "labels": {"l": canary}, "env": {"A": canary}})).await;
    let mut played = app.play().await;
    while played.execution.id.to_string() != theirs {
        played.exit(0).await;
        played = app.play().await;
    }
    played.write(&[canary]).await;
    let mine = app.submit_as(Role::Developer, json!({"command": "echo mine"})).await;
    for row in App::table().into_iter().filter(|row| row.method == Method::GET) {
        for query in [
            "",
            "?limit=0",
            "?limit=1000",
            "?user=operator@example.com",
            "?q=canary",
            "?status=RUNNING&limit=0",
            "?since=2020-01-01T00:00:00Z",
        ] {
            for id in [theirs.as_str(), &theirs[..14], &mine] {
                let path = path(&row, &mut Dice(7), Role::Developer, id);
                let answer = app.get(&format!("{path}{query}")).role(Role::Developer).send().await;
                assert!(!answer.text().contains(canary), "GET {path}{query}: {}", answer.text());
                let named = answer.text().contains(&theirs);
                assert!(!named || id == theirs, "GET {path}{query}: {}", answer.text());
            }
        }
    }
    for role in [Role::Admin, Role::Operator, Role::Viewer] {
        let seen = app.get(&format!("/api/v1/executions/{theirs}")).role(role).send().await;
        assert!(seen.text().contains(canary), "{role:?} may, so that the test could fail");
    }
}
