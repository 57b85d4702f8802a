//! Events: immutable facts with their index keys. A store keeps the compact [`Event`]; the keys of the wire
//! form are computed from it, byte for byte the same whoever computes them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chain::canonical_json;
use crate::digest;
use crate::id::{ExecutionId, Id, JobId};
use crate::time::UnixMs;

/// What kind of thing an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EntityType {
    /// An execution.
    Task,
    /// A job.
    Job,
    /// A user.
    User,
    /// A group.
    Group,
    /// A rule.
    Rule,
    /// An image.
    Image,
    /// A secret.
    Secret,
    /// A playbook.
    Playbook,
    /// The log of events itself.
    Ledger,
    /// The looks at what runs.
    Health,
    /// The terms of a queue.
    Queue,
    /// An account of workers.
    Worker,
    /// A worker that an admin drains.
    Drain,
}

impl EntityType {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Task,
        Self::Job,
        Self::User,
        Self::Group,
        Self::Rule,
        Self::Image,
        Self::Secret,
        Self::Playbook,
        Self::Ledger,
        Self::Health,
        Self::Queue,
        Self::Worker,
        Self::Drain,
    ];

    /// The prefix in the keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "TASK",
            Self::Job => "JOB",
            Self::User => "USER",
            Self::Group => "GROUP",
            Self::Rule => "RULE",
            Self::Image => "IMAGE",
            Self::Secret => "SECRET",
            Self::Playbook => "PLAYBOOK",
            Self::Ledger => "LEDGER",
            Self::Health => "HEALTH",
            Self::Queue => "QUEUE",
            Self::Worker => "WORKER",
            Self::Drain => "DRAIN",
        }
    }

    /// Reads the prefix.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entity| entity.as_str() == text)
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// It waits to be leased: submitted, retried or handed back.
    TaskPending,
    /// A worker may run it.
    TaskProcessingStarted,
    /// An attempt failed and another one follows.
    TaskProcessingFailed,
    /// It returned 0.
    TaskCompleted,
    /// It ended otherwise.
    TaskFailed,
    /// It ran too long.
    TaskTimeout,
    /// Its worker is alive. The only unchained kind.
    TaskHeartbeat,
    /// It was killed.
    TaskStopped,
    /// A look at what runs.
    TaskHealthCheck,
    /// A job was submitted.
    JobCreated,
    /// A job got more tasks.
    JobTasksAdded,
    /// Every task of a job is done.
    JobCompleted,
    /// A task of a job failed; the others go on.
    JobFailureDetected,
    /// Somebody's call changed something.
    Audit,
    /// What the whole log comes to.
    AuditCheckpoint,
}

impl EventType {
    /// Every type.
    pub const ALL: [Self; 15] = [
        Self::TaskPending,
        Self::TaskProcessingStarted,
        Self::TaskProcessingFailed,
        Self::TaskCompleted,
        Self::TaskFailed,
        Self::TaskTimeout,
        Self::TaskHeartbeat,
        Self::TaskStopped,
        Self::TaskHealthCheck,
        Self::JobCreated,
        Self::JobTasksAdded,
        Self::JobCompleted,
        Self::JobFailureDetected,
        Self::Audit,
        Self::AuditCheckpoint,
    ];

    /// The words on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TaskPending => "Task Pending",
            Self::TaskProcessingStarted => "Task Processing Started",
            Self::TaskProcessingFailed => "Task Processing Failed",
            Self::TaskCompleted => "Task Completed",
            Self::TaskFailed => "Task Failed",
            Self::TaskTimeout => "Task Timeout",
            Self::TaskHeartbeat => "Task Heartbeat",
            Self::TaskStopped => "Task Stopped",
            Self::TaskHealthCheck => "Task Health Check",
            Self::JobCreated => "Job Created",
            Self::JobTasksAdded => "Job Tasks Added",
            Self::JobCompleted => "Job Completed",
            Self::JobFailureDetected => "Job Failure Detected",
            Self::Audit => "Audit",
            Self::AuditCheckpoint => "Audit Checkpoint",
        }
    }

    /// Reads the words.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }

    /// Whether it tells of calls and not of what they did: part of the trail, which is for who may read that.
    pub const fn is_trail(self) -> bool {
        matches!(self, Self::Audit | Self::AuditCheckpoint)
    }

    /// Whether it is a link of its entity's chain.
    pub const fn is_chained(self) -> bool {
        !matches!(self, Self::TaskHeartbeat)
    }
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityType,
    /// Its id within its kind.
    pub id: String,
}

impl Entity {
    /// The entity of a job.
    pub fn job(id: JobId) -> Self {
        Self { kind: EntityType::Job, id: id.to_string() }
    }

    /// The entity of an execution.
    pub fn task(id: ExecutionId) -> Self {
        Self { kind: EntityType::Task, id: id.to_string() }
    }
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its id.
    pub id: Id,
    /// What it is about.
    pub entity: Entity,
    /// Its number among the chained events of its entity, from 1; a heartbeat has the number of the event before it.
    pub number: u64,
    /// What happened.
    pub kind: EventType,
    /// When.
    pub at: UnixMs,
    /// `source`, `origin`, `workerId`: who emitted it.
    pub context: Value,
    /// What else is to be known.
    pub properties: Value,
    /// Its link in the chain; zero for unchained ones.
    pub mac: [u8; 32],
}

impl Serialize for EventType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("unknown event type"))
    }
}

/// Where events are kept: the parts of their keys that come from configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventScope {
    /// Whose events they are.
    pub tenant: String,
    /// Which app emitted them.
    pub app: String,
    /// `local`, `prod`, …
    pub environment: String,
    /// Where what is too large for an event lies, if others can read it there.
    pub blobs: Option<BlobPlace>,
}

/// A place of blobs that others can read too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPlace {
    /// The bucket.
    pub bucket: String,
    /// What stands before a blob's key in the name of its object.
    pub prefix: String,
}

impl Default for EventScope {
    fn default() -> Self {
        Self { tenant: "default".into(), app: "runvoy".into(), environment: "local".into(), blobs: None }
    }
}

impl Event {
    /// The bytes that the chain covers.
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let head = json!([self.entity.kind.as_str(), self.entity.id, self.kind.as_str(), self.at.0]);
        canonical_json(&head, &mut out);
        canonical_json(&self.context, &mut out);
        canonical_json(&self.properties, &mut out);
        out
    }

    /// The event as it goes over the wire, with every key. It is received in the step that it is made in: both have one time.
    pub fn to_wire(&self, scope: &EventScope) -> Value {
        let (kind, id, at) = (self.entity.kind.as_str(), &self.entity.id, self.at.0);
        let entity = format!("{kind}#{id}");
        let app = format!("APP#{}", scope.app);
        let tenant = format!("TENANT#{}", scope.tenant);
        let event = format!("EVENT#{}", self.kind.as_str());
        let time = format!("TIMESTAMP#{at}");
        let mut context = Map::new();
        if let Value::Object(own) = &self.context {
            context.clone_from(own);
        }
        context.insert("environment".into(), Value::String(scope.environment.clone()));
        let mut properties = self.properties.clone();
        digest::strip(&mut properties);
        if let Some(place) = &scope.blobs {
            name_object(place, &mut properties);
        }
        json!({
            "PK": tenant,
            "SK": format!("{time}#EVENT#{}", hyphenated(self.id)),
            "GSI1PK": entity,
            "GSI1SK": format!("{kind}#{time}"),
            "GSI2PK": app,
            "GSI2SK": time,
            "GSI3PK": app,
            "GSI3SK": format!("{entity}#{time}"),
            "GSI4PK": event,
            "GSI4SK": format!("{tenant}#{time}"),
            "GSI5PK": event,
            "GSI5SK": format!("{tenant}#{entity}#{time}"),
            "GSI6PK": event,
            "GSI6SK": format!("{tenant}#{app}#{time}"),
            "GSI7PK": event,
            "GSI7SK": format!("{tenant}#{app}#{entity}#{time}"),
            "entityId": id,
            "entityType": kind,
            "tenantId": scope.tenant,
            "eventType": self.kind.as_str(),
            "timestamp": at,
            "receivedAt": at,
            "number": self.wire_number(),
            "context": context,
            "properties": properties,
        })
    }
}

impl Event {
    /// The number that readers see. A heartbeat is no link of a chain: it has a number of its own, of when it was and the end of its id, above all numbers of chains
    /// and small enough for every reader of JSON.
    fn wire_number(&self) -> u64 {
        if self.kind.is_chained() {
            return self.number;
        }
        let at = u64::try_from(self.at.0).unwrap_or(0).min(LAST_NUMBERED_MS);
        let [.., high, low] = *self.id.as_bytes();
        (at << ID_BITS) | (u64::from(u16::from_be_bytes([high, low])) & ((1 << ID_BITS) - 1))
    }
}

/// So many bits of a heartbeat's number are of its id; with its time it has 53, which JSON's readers keep exactly.
const ID_BITS: u32 = 11;
const LAST_NUMBERED_MS: u64 = (1 << (53 - ID_BITS)) - 1;
/// What names something that was too large.
const OVERFLOW: &str = "_s3Overflow";

/// Says where what is named lies, for those who read the bucket themselves. It is no part of what is stored: an installation can move.
fn name_object(place: &BlobPlace, properties: &mut Value) {
    let Some(Value::Object(named)) = properties.get_mut(OVERFLOW) else { return };
    if let Some(Value::String(key)) = named.get_mut("key") {
        *key = format!("{}{key}", place.prefix);
        named.insert("bucket".into(), Value::String(place.bucket.clone()));
    }
}

fn hyphenated(id: Id) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in id.as_bytes().iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(id: &str, at: i64) -> Event {
        Event {
            id: id.parse().expect("an id"),
            entity: Entity { kind: EntityType::Task, id: "req-123".into() },
            number: 2,
            kind: EventType::TaskHeartbeat,
            at: UnixMs(at),
            context: json!({}),
            properties: json!({}),
            mac: [0; 32],
        }
    }

    #[test]
    fn heartbeats_have_numbers_of_their_own_that_rise() {
        let number = |event: &Event| event.to_wire(&EventScope::default())["number"].as_u64().expect("a number");
        let (first, second) = ("ddf71f63b0364ac7ad0f77a7fdfca352", "ddf71f63b0364ac7ad0f77a7fdfca353");
        let beats = [heartbeat(first, 1_767_453_739_640), heartbeat(second, 1_767_453_739_640), heartbeat(first, 1_767_453_749_640)];
        let numbers: Vec<u64> = beats.iter().map(number).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
        assert!(numbers.iter().all(|number| (1 << 50..1 << 53).contains(number)), "{numbers:?}");
        assert!(number(&heartbeat(first, i64::MAX)) < 1 << 53);
        let chained = Event { kind: EventType::TaskProcessingStarted, ..heartbeat(first, 5) };
        assert_eq!(number(&chained), 2, "links keep theirs");
    }

    #[test]
    fn what_lies_elsewhere_is_named_with_its_bucket_where_others_can_read_it() {
        let named = |scope: &EventScope, properties: Value| {
            let event = Event { properties, ..heartbeat("ddf71f63b0364ac7ad0f77a7fdfca352", 5) };
            event.to_wire(scope)["properties"].clone()
        };
        let there = BlobPlace { bucket: "data".into(), prefix: "blobs/".into() };
        let there = EventScope { blobs: Some(there), ..EventScope::default() };
        let kept = json!({"n": 1, "_s3Overflow": {"key": "ab", "bytes": 5, "fields": ["output"]}});
        let told = json!({"n": 1, "_s3Overflow": {"bucket": "data", "key": "blobs/ab", "bytes": 5, "fields": ["output"]}});
        assert_eq!((named(&there, kept.clone()), named(&EventScope::default(), kept.clone())), (told, kept));
        assert_eq!(named(&there, json!({"n": 1})), json!({"n": 1}));
    }

    #[test]
    fn the_keys_are_those_of_the_contract() {
        let event = Event {
            id: "ddf71f63b0364ac7ad0f77a7fdfca352".parse().expect("an id"),
            entity: Entity { kind: EntityType::Task, id: "req-123".into() },
            number: 2,
            kind: EventType::TaskProcessingStarted,
            at: UnixMs(1_767_453_739_640),
            context: json!({"source": "system", "origin": "sqs-worker", "workerId": "worker-abc123"}),
            properties: json!({"requestId": "req-123"}),
            mac: [0; 32],
        };
        let scope = EventScope { tenant: "gbinnovations".into(), app: "task-workflow".into(), environment: "prod".into(), blobs: None };
        let wire = event.to_wire(&scope);
        let expected = [
            ("PK", "TENANT#gbinnovations"),
            ("SK", "TIMESTAMP#1767453739640#EVENT#ddf71f63-b036-4ac7-ad0f-77a7fdfca352"),
            ("GSI1PK", "TASK#req-123"),
            ("GSI1SK", "TASK#TIMESTAMP#1767453739640"),
            ("GSI2PK", "APP#task-workflow"),
            ("GSI2SK", "TIMESTAMP#1767453739640"),
            ("GSI3PK", "APP#task-workflow"),
            ("GSI3SK", "TASK#req-123#TIMESTAMP#1767453739640"),
            ("GSI4PK", "EVENT#Task Processing Started"),
            ("GSI4SK", "TENANT#gbinnovations#TIMESTAMP#1767453739640"),
            ("GSI5PK", "EVENT#Task Processing Started"),
            ("GSI5SK", "TENANT#gbinnovations#TASK#req-123#TIMESTAMP#1767453739640"),
            ("GSI6PK", "EVENT#Task Processing Started"),
            ("GSI6SK", "TENANT#gbinnovations#APP#task-workflow#TIMESTAMP#1767453739640"),
            ("GSI7PK", "EVENT#Task Processing Started"),
            ("GSI7SK", "TENANT#gbinnovations#APP#task-workflow#TASK#req-123#TIMESTAMP#1767453739640"),
        ];
        for (key, value) in expected {
            assert_eq!(wire[key], value, "{key}");
        }
        assert_eq!(wire["context"]["environment"], "prod");
        assert_eq!(wire["context"]["workerId"], "worker-abc123");
    }
}
