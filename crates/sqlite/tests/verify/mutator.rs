//! A hand that knows the file format: it changes rows with SQL and stamps every page anew, so that no checksum tells. What it changed is still
//! found, because the chained events hold digests of what they wrote.

use std::path::Path;

use runvoy_conformance::chance::Chance;
use runvoy_model::change::{Change, Invitation, InvitedBy, NewImage, NewSecret, NewWorker};
use runvoy_model::command::{OpenJob, Submit};
use runvoy_model::digest;
use runvoy_model::id::{ExecutionId, JobId, WorkerAccountId};
use runvoy_model::image::{ImageSettings, Reference};
use runvoy_model::job::{Counts, Job, JobStatus, Node, Payload, Phase};
use runvoy_model::name::Name;
use runvoy_model::playbook::PlaybookBody;
use runvoy_model::queue::QueueUpdate;
use runvoy_model::role::Role;
use runvoy_model::rule::{Effect, Rule};
use runvoy_model::secret::Sealed;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::WorkerKey;
use runvoy_ports::store::ExecutionStore as _;
use runvoy_sqlite::compare_state;
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

use crate::used::{START, Used, bytes, spec, step};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A store with something of every kind, and a job of which one task waits.
async fn furnished() -> Used {
    let used = Used::new().await;
    let store = used.open();
    let secret = |text: &str| NewSecret {
        name: name(text),
        key_name: "DB".into(),
        description: None,
        use_by: vec!["group:ana".into()],
        sealed: Sealed { key_id: "k1".into(), data: "YQ==".into() },
    };
    let image = NewImage {
        image: "alpine:3.20".into(),
        reference: Reference::parse("alpine:3.20").expect("a reference"),
        settings: ImageSettings::default(),
        is_default: true,
    };
    let worker = NewWorker {
        name: name("builder"),
        id: WorkerAccountId::from_bytes([3; 16]),
        role: Role::Worker,
        may_submit: false,
        queues: vec![name("default")],
        key: WorkerKey::Secret { hash: [4; 32], prefix: "rvw_1".into() },
        description: None,
    };
    let invited = Invitation { email: "eve@example.com".into(), role: Role::Viewer, by: InvitedBy::Token([6; 32], UnixMs(START + 1)) };
    let queue =
        QueueUpdate { name: name("slow"), paused: Some(true), reason: Some("why".into()), concurrency: Some(Some(2)), per_user: None };
    let rule = Rule { commands: vec!["rm *".into()], ..Rule::new("no-rm", Effect::Deny) };
    for change in [
        Change::PutRule(Box::new(rule)),
        Change::CreateSecret(Box::new(secret("db"))),
        Change::CreateSecret(Box::new(secret("gone"))),
        Change::DeleteSecret(name("gone")),
        Change::PushPlaybook(name("deploy"), Box::new(PlaybookBody { command: "make deploy".into(), ..PlaybookBody::default() })),
        Change::RegisterImage(image),
        Change::CreateWorker(Box::new(worker)),
        Change::InviteUser(invited),
        Change::RevokeKey("bob@example.com".into(), "rv_bob".into()),
        Change::PutQueue(queue),
    ] {
        store.change(step(), change, None).await.expect("made");
    }
    let mut waiting = spec();
    (waiting.lock, waiting.env) = (Some(name("prod")), [("A".to_owned(), "1".to_owned())].into());
    let submit =
        Submit { id: ExecutionId::from_bytes(bytes()), spec: waiting, created_by: "ana@example.com".into(), key: None, lease_to: None };
    store.submit(step(), submit).await.expect("taken");
    store.open_job(step(), job()).await.expect("opened");
    used.checkpoint(&store).await;
    store.close().await.expect("a clean end");
    used
}

fn job() -> OpenJob {
    let id = JobId::from_bytes(bytes());
    let node = |task: &str, depends_on: Vec<Name>| Node {
        job: id,
        task: name(task),
        place: 0,
        batch: 5,
        name: format!("the task {task}"),
        depends_on,
        input: Some(Payload::Inline(json!({"rows": 3}))),
        spec: spec(),
        revision: None,
        phase: Phase::Staged,
        looked: 0,
        open_parents: 0,
        marked: false,
        generation: 0,
        execution: None,
        output: None,
    };
    let nodes = vec![node("build", Vec::new()), node("ship", vec![name("build")])];
    let job = Job {
        id,
        name: Some("nightly".into()),
        request_key: None,
        created_by: "ana@example.com".into(),
        created_by_request_id: "r".into(),
        modified_by_request_id: "r".into(),
        created_at: UnixMs(START),
        status: JobStatus::Running,
        completed_at: None,
        cancelled_by: None,
        concurrency: Some(4),
        generation: 1,
        opening: Some(5),
        resuming: false,
        counts: Counts { total: 2, ..Counts::default() },
        places: 0,
        failure_told: false,
        failed_task: None,
        attention: false,
        unburied: None,
        chain: runvoy_model::chain::ChainHead::default(),
        version: 0,
    };
    let digest = Some(digest::of_tasks(nodes.iter().map(digest::of_task).collect()));
    OpenJob { job, nodes, told: Payload::Inline(json!([])), digest, key: None }
}

/// Stamps every page as the server does.
fn restamp(path: &Path) {
    let mut file = std::fs::read(path).expect("the file");
    let size = usize::from(u16::from_be_bytes([file[16], file[17]]));
    for (number, page) in file.chunks_exact_mut(size).enumerate() {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&i64::try_from(number * size).expect("small").to_be_bytes());
        crc.update(&page[..size - 8]);
        page[size - 8..size - 4].copy_from_slice(&crc.finalize().to_be_bytes());
        page[size - 4..].copy_from_slice(b"rvp1");
    }
    std::fs::write(path, file).expect("written");
}

/// Changes a copy of a store; gives what the proof names, and what the comparison of state names.
fn forged(used: &Used, change: impl FnOnce(&Connection)) -> (Option<String>, Option<String>) {
    let copy = Used { dir: tempfile::tempdir().expect("a directory") };
    std::fs::copy(used.path(), copy.path()).expect("a copy");
    std::fs::copy(used.exported(), copy.exported()).expect("a copy");
    let conn = Connection::open(copy.path()).expect("it opens");
    change(&conn);
    drop(conn);
    restamp(&copy.path());
    let verdict = copy.verify().first_bad.map(|bad| format!("{} {}", bad.entity, bad.problem.as_str()));
    let mismatch = compare_state(&copy.path()).expect("it can be read").first.map(|first| format!("{} {}", first.entity, first.field));
    (verdict, mismatch)
}

#[tokio::test]
async fn security_15_forged_records_and_specs_are_named_by_the_proof_alone() {
    let used = furnished().await;
    let untouched = forged(&used, |conn| conn.execute_batch("INSERT INTO key_uses VALUES (zeroblob(32), 1)").expect("changed"));
    assert_eq!(untouched, (None, None), "the checksums are as the server's, and a hint is no state");
    let role = "UPDATE records SET body = json_set(body, '$.user.role', 'admin') WHERE kind = 0 AND name = 'ana@example.com'";
    let key = "UPDATE records SET body = json_remove(body, '$.user.keys[0].revoked_at') WHERE kind = 0 AND name = 'bob@example.com'";
    let rule = "UPDATE records SET body = json_set(body, '$.rule.effect', 'allow') WHERE kind = 5";
    let playbook = "UPDATE records SET body = replace(body, 'make deploy', 'id') WHERE kind = ";
    let command = "UPDATE executions SET spec = json_set(spec, '$.command', 'id') WHERE seq = 1";
    let owner =
        "UPDATE executions SET state = json_set(state, '$.created_by', 'eve@example.com'), created_by = 'eve@example.com' WHERE seq = 1";
    let shared = "UPDATE executions SET state = json_set(state, '$.owned_by', json('[\"eve@example.com\"]')) WHERE seq = 1";
    let job = "UPDATE jobs SET state = json_set(state, '$.created_by', 'eve@example.com'), created_by = 'eve@example.com'";
    let inserted = "INSERT INTO records (kind, name, version, chain_count, chain_mac, body) SELECT 0, 'eve', 1, 0, zeroblob(32), body FROM \
                    records WHERE kind = 0 AND name = 'admin@example.com'";
    let execution = "INSERT INTO executions (id, status, priority, submitted_at, ready_at, queue, created_by, lock, state, spec) SELECT \
                     zeroblob(16), status, priority, submitted_at, ready_at, queue, created_by, NULL, json_set(state, '$.chain.count', 0, \
                     '$.chain.mac', printf('%064d', 0), '$.id', printf('%032d', 0)), json_remove(spec, '$.lock') FROM executions WHERE lock = 'prod'";
    for (sql, named) in [
        (role, "USER:ana@example.com altered"),
        (key, "USER:bob@example.com altered"),
        (rule, "RULE:no-rm altered"),
        (&format!("{playbook}9"), "PLAYBOOK:deploy altered"),
        (&format!("{playbook}10"), "PLAYBOOK VERSION:deploy@1 altered"),
        (command, "TASK:"),
        (owner, "TASK:"),
        (shared, "TASK:"),
        (job, "JOB:"),
        (inserted, "USER:eve altered"),
        (execution, "TASK:00000000000000000000000000000000 altered"),
        ("DELETE FROM records WHERE kind = 1 AND name LIKE '616e61%'", "KEY:616e61000000 removed"),
        ("UPDATE records SET body = body || ' ', version = version + 1 WHERE kind = 3", "ADMINS:only altered"),
    ] {
        let found = forged(&used, |conn| {
            assert_eq!(conn.execute(sql, []).unwrap_or_else(|error| panic!("{sql}: {error}")), 1, "{sql}");
        });
        assert!(found.0.as_ref().is_some_and(|found| found.starts_with(named)), "{sql}: {found:?}");
        assert!(found.1.is_some(), "{sql}: {found:?}");
    }
    // Without its digest nothing is intact, and the comparison says so though it does not prove the
    // chain.
    for (entity_kind, named) in [(0, "TASK:"), (8, "JOB:")] {
        let sql = format!("UPDATE events SET properties = json_remove(properties, '$.body') WHERE entity_kind = {entity_kind}");
        let found = forged(&used, |conn| assert!(conn.execute(&sql, []).expect("changed") > 0));
        assert!(found.0.as_ref().is_some_and(|found| found.starts_with(named)), "{found:?}");
        assert!(found.1.as_ref().is_some_and(|found| found.starts_with(named)), "{found:?}");
    }
    let batch = "UPDATE events SET properties = json_remove(properties, '$.bodies') WHERE entity_kind = 8";
    let found = forged(&used, |conn| assert!(conn.execute(batch, []).expect("changed") > 0));
    assert!(found.1.as_ref().is_some_and(|found| found.starts_with("JOB:") && found.ends_with(" tasks")), "{found:?}");
    let task = "UPDATE tasks SET body = json_set(body, '$.spec.command', 'id') WHERE id & 4294967295 = 1";
    let found = forged(&used, |conn| assert_eq!(conn.execute(task, []).expect("changed"), 1));
    assert!(found.1.as_ref().is_some_and(|found| found.starts_with("JOB:") && found.ends_with(" tasks")), "{found:?}");
}

/// A column that says what somebody may do, what runs, or what happened; and where it is JSON, the parts of it that do.
type Target = (&'static str, &'static str, &'static [&'static str]);

const ALL: &[&str] = &[""];
const TARGETS: [Target; 24] = [
    ("records", "body", ALL),
    ("records", "kind", &[]),
    ("records", "name", &[]),
    ("records", "version", &[]),
    ("records", "chain_count", &[]),
    ("records", "chain_mac", &[]),
    ("executions", "id", &[]),
    ("executions", "spec", ALL),
    (
        "executions",
        "state",
        &["/id", "/created_by", "/owned_by", "/submitted_at", "/status", "/attempt", "/started_at", "/exit_code", "/chain"],
    ),
    ("executions", "status", &[]),
    ("executions", "created_by", &[]),
    ("executions", "queue", &[]),
    ("executions", "lock", &[]),
    ("executions", "job", &[]),
    ("jobs", "state", &["/id", "/name", "/created_by", "/created_at", "/status", "/concurrency", "/generation", "/counts/total", "/chain"]),
    ("jobs", "created_by", &[]),
    ("nodes", "task", &[]),
    ("nodes", "phase", &[]),
    ("nodes", "batch", &[]),
    ("nodes", "execution", &[]),
    ("tasks", "body", ALL),
    ("events", "properties", ALL),
    ("events", "at", &[]),
    ("locks", "holder", &[]),
];
/// Counters and what comes and goes without an event: see `Kind::is_bound`.
const ROWS: &str = "WHERE kind NOT IN (11, 12, 13, 17)";

fn mutate(conn: &Connection, chance: &mut Chance) -> String {
    let tables = ["records", "executions", "jobs", "nodes", "tasks", "events"];
    if chance.percent(10) {
        let table = tables[chance.below(tables.len())];
        let key = if table == "nodes" { "place" } else { "rowid" };
        let row = row_of(conn, chance, table, key);
        let sql = format!("DELETE FROM {table} WHERE {key} = {row}");
        assert_eq!(conn.execute(&sql, []).expect("deleted"), 1, "{sql}");
        return sql;
    }
    loop {
        let (table, column, parts) = TARGETS[chance.below(TARGETS.len())];
        let key = match table {
            "nodes" => "place",
            "locks" => "fence",
            _ => "rowid",
        };
        let row = row_of(conn, chance, table, key);
        let before: Cell =
            conn.query_row(&format!("SELECT {column} FROM {table} WHERE {key} = {row}"), [], |row| row.get(0)).expect("a cell");
        let after = changed(chance, &before, parts);
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {key} = {row}");
        // What the schema itself refuses cannot be forged; and what is as before is no change.
        if after != before && conn.execute(&sql, [&after]).is_ok_and(|rows| rows == 1) {
            return format!("{sql}: {before:?} -> {after:?}");
        }
    }
}

fn row_of(conn: &Connection, chance: &mut Chance, table: &str, key: &str) -> i64 {
    let only = if table == "records" { ROWS } else { "" };
    let mut statement = conn.prepare(&format!("SELECT {key} FROM {table} {only} ORDER BY 1")).expect("a table");
    let rows: Vec<i64> = statement.query_map([], |row| row.get(0)).expect("rows").map(|row| row.expect("a row")).collect();
    *chance.pick(&rows).expect("a row")
}

fn changed(chance: &mut Chance, before: &Cell, parts: &[&str]) -> Cell {
    match before {
        Cell::Null => Cell::Text("x".into()),
        Cell::Integer(number) => Cell::Integer(number + 1 + i64::try_from(chance.below(3)).expect("small")),
        Cell::Real(number) => Cell::Real(number + 1.0),
        Cell::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let at = chance.below(bytes.len());
            bytes[at] ^= 1 << chance.below(8);
            Cell::Blob(bytes)
        }
        Cell::Text(text) => match (chance.pick(parts), serde_json::from_str::<Value>(text)) {
            (Some(part), Ok(mut value)) => {
                let Some(part) = value.pointer_mut(part) else { return before.clone() };
                change_leaf(chance, part);
                Cell::Text(value.to_string())
            }
            _ => Cell::Text(format!("{text}x")),
        },
    }
}

/// Changes one value somewhere inside.
fn change_leaf(chance: &mut Chance, value: &mut Value) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let at = chance.below(members.len());
            change_leaf(chance, members.values_mut().nth(at).expect("a member"));
        }
        Value::Array(items) if !items.is_empty() => {
            let at = chance.below(items.len());
            if chance.percent(30) {
                items.remove(at);
            } else {
                change_leaf(chance, &mut items[at]);
            }
        }
        Value::String(text) => {
            let other = ["admin", "allow", "eve@example.com", "x", ""][chance.below(5)];
            *value = Value::String(if chance.percent(50) { format!("{text}{other}x") } else { other.to_owned() });
        }
        Value::Number(number) => *value = json!(number.as_i64().unwrap_or(0) + 1),
        Value::Bool(flag) => *value = json!(!*flag),
        Value::Null | Value::Object(_) | Value::Array(_) => *value = json!("x"),
    }
}

#[tokio::test]
async fn promise_28_every_random_forgery_is_found_though_restamped() {
    let count = if std::env::var_os("RUNVOY_PROVE").is_some() { 5_000 } else { 150 };
    let used = furnished().await;
    for seed in 0..count {
        let mut made = String::new();
        let found = forged(&used, |conn| made = mutate(conn, &mut Chance::new(seed)));
        assert!(found.0.is_some() || found.1.is_some(), "seed {seed} is not found: {made}");
    }
    println!("PROMISE 28 | a forged row is found though its page has a valid checksum | {count} forgeries | 0 unnoticed");
}
