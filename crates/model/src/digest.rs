//! Digests of what a step writes. They enter the events of that step, and with them the chain: whoever changes a record, a spec or an owner in
//! the store without the audit key no longer agrees with the event that wrote it. They never leave the store ([`strip`]), because a digest
//! would let a reader of events guess what only others may read.
//!
//! Each covers the fields of a type in the order of their declaration, as JSON. A field that is added must be left out while it has its default
//! value, and the order must stay: the tests below fail otherwise.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::execution::Execution;
use crate::hex::hex;
use crate::id::{ExecutionId, JobId};
use crate::job::{Job, Node, Payload, Revision};
use crate::name::Name;
use crate::record::{Body, Record};
use crate::spec::Spec;
use crate::time::UnixMs;

/// The property that holds the digest of what the event is about: an execution or a job.
pub const BODY: &str = "body";
/// The property that holds the digests of records by [`key`], of a batch of tasks by [`tasks_key`], and of tasks that were changed after [`REVISION`].
pub const BODIES: &str = "bodies";
/// Stands before the name of a task that was changed.
pub const REVISION: &str = "revision:";

/// What never changes of an execution: what it runs, and whose it is.
pub fn of_execution(execution: &Execution) -> String {
    #[derive(Serialize)]
    struct Fixed<'e> {
        id: ExecutionId,
        created_by: &'e str,
        owned_by: &'e [String],
        created_by_request_id: &'e str,
        submitted_at: UnixMs,
        spec: &'e Spec,
    }
    let Execution { id, created_by, owned_by, created_by_request_id, submitted_at, spec, .. } = execution;
    hex(&of(&Fixed { id: *id, created_by, owned_by, created_by_request_id, submitted_at: *submitted_at, spec }))
}

/// What never changes of a job.
pub fn of_job(job: &Job) -> String {
    #[derive(Serialize)]
    struct Fixed<'j> {
        id: JobId,
        name: Option<&'j str>,
        created_by: &'j str,
        created_by_request_id: &'j str,
        created_at: UnixMs,
        concurrency: Option<u32>,
    }
    let Job { id, created_by, created_by_request_id, created_at, concurrency, .. } = job;
    let name = job.name.as_deref();
    hex(&of(&Fixed { id: *id, name, created_by, created_by_request_id, created_at: *created_at, concurrency: *concurrency }))
}

/// All of a record but the head of its chain.
pub fn of_record(record: &Record) -> String {
    #[derive(Serialize)]
    struct Written<'r> {
        kind: &'r str,
        name: &'r str,
        version: u64,
        body: Option<&'r Body>,
    }
    let Record { kind, name, version, body, .. } = record;
    hex(&of(&Written { kind: kind.as_str(), name, version: *version, body: body.as_ref() }))
}

/// What never changes of a task.
pub fn of_task(node: &Node) -> [u8; 32] {
    #[derive(Serialize)]
    struct Fixed<'n> {
        job: JobId,
        task: &'n Name,
        batch: u64,
        name: &'n str,
        depends_on: &'n [Name],
        input: Option<&'n Payload>,
        spec: &'n Spec,
    }
    let Node { job, task, batch, name, depends_on, spec, .. } = node;
    of(&Fixed { job: *job, task, batch: *batch, name, depends_on, input: node.input.as_ref(), spec })
}

/// The name among [`BODIES`] and the digest of what a task runs since it was changed. Nothing where it never was, or where that cannot be read.
pub fn of_revision(node: &Node) -> Option<(String, String)> {
    #[derive(Serialize)]
    struct Fixed<'n> {
        job: JobId,
        task: &'n Name,
        generation: u32,
        spec: &'n Spec,
    }
    let Revision { generation, spec } = &**node.revision.as_ref().filter(|revision| !revision.spec.is_lost())?;
    let fixed = Fixed { job: node.job, task: &node.task, generation: *generation, spec };
    Some((format!("{REVISION}{}", node.task), hex(&of(&fixed))))
}

/// A batch of tasks by the digests of its tasks, in any order.
pub fn of_tasks(mut tasks: Vec<[u8; 32]>) -> [u8; 32] {
    tasks.sort_unstable();
    Sha256::digest(tasks.concat()).into()
}

/// The name of a record's digest among [`BODIES`].
pub fn key(record: &Record) -> String {
    format!("{}:{}", record.kind.as_str(), record.name)
}

/// The name of a batch's digest among [`BODIES`].
pub fn tasks_key(batch: u64) -> String {
    format!("tasks:{batch}")
}

/// Adds a digest to an event's [`BODIES`].
pub fn add(properties: &mut Value, key: String, digest: String) {
    if let Value::Object(members) = properties {
        let bodies = members.entry(BODIES).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(bodies) = bodies {
            bodies.insert(key, Value::String(digest));
        }
    }
}

/// The digests that an event holds of records and batches.
pub fn bodies(properties: &Value) -> impl Iterator<Item = (&str, &str)> {
    let bodies = properties.get(BODIES).and_then(Value::as_object).into_iter().flatten();
    bodies.filter_map(|(key, digest)| Some((key.as_str(), digest.as_str()?)))
}

/// Whether an event holds a digest of what it wrote.
pub fn is_in(properties: &Value) -> bool {
    properties.get(BODY).is_some_and(Value::is_string) || bodies(properties).next().is_some()
}

/// Since when the events of a store hold digests. An older version wrote none; what it wrote can be
/// proved by its chain, and not compared. Nobody without the audit key can add an event or take a
/// digest out of one, so that one event with a digest binds all after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DigestsSince(Option<u64>);

impl DigestsSince {
    /// The place of the first event that holds one; `None` where none does.
    pub const fn new(first: Option<u64>) -> Self {
        Self(first)
    }

    /// The first of these, in the order of the log.
    pub fn among<'e>(events: impl IntoIterator<Item = (u64, &'e Value)>) -> Self {
        Self(events.into_iter().find(|(_, properties)| is_in(properties)).map(|(place, _)| place))
    }

    /// Whether an event that creates something at this place must hold its digest.
    pub fn binds(self, place: u64) -> bool {
        self.0.is_some_and(|first| first <= place)
    }
}

/// Takes the digests out of properties that leave the store.
pub fn strip(properties: &mut Value) {
    if let Value::Object(members) = properties {
        members.remove(BODY);
        members.remove(BODIES);
    }
}

fn of(value: &impl Serialize) -> [u8; 32] {
    Sha256::digest(serde_json::to_vec(value).expect("model types can be written as JSON")).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Kind;

    #[test]
    fn a_record_keeps_its_digest_across_versions_of_the_program() {
        let text = r#"{"user":{"email":"ana@x","role":"developer","keys":[],"created_by":"server","created_at":1,"created_by_request_id":"",
            "modified_by_request_id":""}}"#;
        let body: Body = serde_json::from_str(text).expect("a user");
        let record = Record { version: 3, body: Some(body), ..Record::new(Kind::User, "ana@x") };
        assert_eq!(of_record(&record), "4117ce6cb221edc78570cb035a637945b514aa578337f7a1170a2e0ff131e1f0");
        assert_ne!(of_record(&record), of_record(&Record { version: 4, ..record.clone() }));
        assert_ne!(of_record(&record), of_record(&Record { body: None, ..record }));
    }

    #[test]
    fn a_spec_keeps_its_digest_across_versions_of_the_program() {
        let text = r#"{"command":"make","args":["a"],"image":"local","env":{"A":"1"},"timeout_ms":5,"lock":"l","lock_wait_ms":6,
            "queue":"default","priority":3,"labels":{"k":"v"},"worker_labels":{"gpu":"t4"},"terminal":true,"retries":1,"secrets":["s"]}"#;
        let spec: Spec = serde_json::from_str(text).expect("a spec");
        assert_eq!(hex(&of(&spec)), "a62c25b3c5fbf66c42a8234c6dfe3e00ff5f16f527139838882e57940c295701");
    }

    #[test]
    fn the_order_of_tasks_does_not_count() {
        assert_eq!(of_tasks(vec![[1; 32], [2; 32]]), of_tasks(vec![[2; 32], [1; 32]]));
        assert_ne!(of_tasks(vec![[1; 32], [2; 32]]), of_tasks(vec![[1; 32]]));
    }

    #[test]
    fn the_first_event_with_a_digest_binds_all_after_it() {
        let mut bodies = json!({});
        add(&mut bodies, "key:1".into(), "bb".into());
        let events = [(3, json!({"body": 7})), (5, bodies), (8, json!({BODY: "aa"}))];
        let since = DigestsSince::among(events.iter().map(|(place, properties)| (*place, properties)));
        assert!(since.binds(5) && since.binds(6) && !since.binds(4));
        assert!(!DigestsSince::default().binds(u64::MAX));
    }

    #[test]
    fn digests_can_be_taken_out_again() {
        let mut properties = json!({"user": "ana@x", BODY: "aa"});
        add(&mut properties, "key:1".into(), "bb".into());
        add(&mut properties, tasks_key(7), "cc".into());
        assert_eq!(bodies(&properties).collect::<Vec<_>>(), [("key:1", "bb"), ("tasks:7", "cc")]);
        strip(&mut properties);
        assert_eq!(properties, json!({"user": "ana@x"}));
    }
}
