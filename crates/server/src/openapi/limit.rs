//! What the fields of request bodies accept: patterns, lengths, ranges and words. The types only say
//! text or number; the engine refuses what is outside of these limits.

use runvoy_model::group::MOST_MEMBERS;
use runvoy_model::job::MOST_TASKS;
use runvoy_model::name::NAME_PATTERN;
use runvoy_model::pattern::MOST_PATTERN_BYTES;
use runvoy_model::queue::{MOST_PERMITS, MOST_REASON_BYTES};
use runvoy_model::redrive::MOST_REDRIVEN;
use runvoy_model::role::Role;
use runvoy_model::rule::MOST_ENTRIES;
use runvoy_model::spec::MOST_LABELS;
use runvoy_model::worker::MOST_QUEUES;
use serde_json::{Map, Value, json};

use crate::operation::EMAIL_PATTERN;

/// Linux passes no longer argument to a program.
const MAX_ARGUMENT: u32 = 128 * 1024 - 1;
const MAX_SECONDS: u32 = 30 * 24 * 3600;
const MAX_SECRETS: u32 = 64;
/// Everything but NUL.
const NO_NUL: &str = r"^[^\u0000]*$";
/// Everything but NUL, and not only white space.
const NOT_BLANK: &str = r"^[^\u0000]*[^\s\u0000][^\u0000]*$";
/// One line without control characters.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// Names of environment variables; of those that begin with RUNVOY_ only RUNVOY_USER_
/// is for users.
const VARIABLE: &str = "^(?!RUNVOY_(?!USER_))[A-Za-z_][A-Za-z0-9_]*$";
/// `https://HOST/PATH`, `ssh://USER@HOST/PATH` or `USER@HOST:PATH`.
const REPOSITORY: &str = concat!(
    r"^(https://|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?(:[1-9][0-9]{0,3})?",
    r"(/[A-Za-z0-9_][A-Za-z0-9._~-]*)+/?$",
    r"|^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?:[A-Za-z0-9_][A-Za-z0-9._~-]*(/[A-Za-z0-9_][A-Za-z0-9._~-]*)*/?$",
);
/// A branch, tag or commit: parts that begin and end as Git allows.
const REFERENCE: &str =
    r"^(?!.*(\.\.|\.lock(/|$)))[A-Za-z0-9_]([A-Za-z0-9._#@=,!()&%-]*[A-Za-z0-9_])?(/[A-Za-z0-9_]([A-Za-z0-9._#@=,!()&%-]*[A-Za-z0-9_])?)*$";
/// A relative path without `..`.
const DIRECTORY: &str = r"^[A-Za-z0-9_][A-Za-z0-9._ -]*(/[A-Za-z0-9_][A-Za-z0-9._ -]*)*/?$";
/// A pattern of a rule: no white space around it, no control characters.
const GLOB: &str = r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$";
const NO_ROLE_CHARS: &str = "^[A-Za-z0-9_+=,.@-]*$";

/// The limits of the fields of one schema. A limit is merged into the field's own schema.
type Limits = Vec<(&'static str, Value)>;

/// Adds every limit to the schema that it is about.
pub(super) fn apply(schemas: &mut Map<String, Value>) {
    for (name, limits) in all() {
        for (field, limit) in limits {
            let property = schemas.get_mut(name).and_then(|schema| schema["properties"][field].as_object_mut());
            let (Some(property), Value::Object(limit)) = (property, limit) else { unreachable!("{name}.{field} is described") };
            property.extend(limit);
        }
    }
    // The type has a default so that its absence is refused with a sentence about roles.
    schemas["CreateUserRequest"]["required"] = json!(["email", "role"]);
    schemas["Parameter"]["additionalProperties"] = false.into();
}

fn all() -> Vec<(&'static str, Limits)> {
    let mut all = vec![
        ("RunRequest", [terms(), null_is_empty(&["env", "secrets", "labels", "worker_labels", "terminal"])].concat()),
        ("PutPlaybookRequest", playbook()),
        ("TaskRequest", [terms(), null_is_empty(&["env", "labels", "worker_labels", "dependsOn"]), task()].concat()),
        ("TaskChange", [terms(), null_is_empty(&["env", "labels", "worker_labels"]), vec![("taskId", name())]].concat()),
        ("TaskDefaults", [terms(), null_is_empty(&["env", "labels", "worker_labels"])].concat()),
    ];
    all.extend(jobs());
    all.extend(people());
    all.extend(resources());
    all
}

fn name() -> Value {
    json!({"pattern": format!("^{NAME_PATTERN}$")})
}

fn names(most: usize) -> Value {
    json!({"maxItems": most, "items": {"type": "string", "pattern": format!("^{NAME_PATTERN}$")}})
}

fn email() -> Value {
    json!({"pattern": EMAIL_PATTERN, "maxLength": 254})
}

fn text(least: u32, most: u32, pattern: &str) -> Value {
    json!({"minLength": least, "maxLength": most, "pattern": pattern})
}

fn range(least: u64, most: u64) -> Value {
    json!({"minimum": least, "maximum": most})
}

/// Lists and maps that clients in Go send as null where they are empty.
fn null_is_empty(fields: &[&'static str]) -> Limits {
    let kind = |field: &str| match field {
        "env" | "labels" | "worker_labels" | "parameters" => "object",
        "terminal" | "confirm" | "kill" => "boolean",
        _ => "array",
    };
    fields.iter().map(|field| (*field, json!({"type": [kind(field), "null"]}))).collect()
}

/// What a run, a task and a playbook have in common.
fn terms() -> Limits {
    let env = json!({
        "propertyNames": {"pattern": VARIABLE},
        "additionalProperties": {"type": "string", "pattern": NO_NUL},
    });
    let labels = json!({
        "maxProperties": MOST_LABELS,
        "propertyNames": {"pattern": format!("^{NAME_PATTERN}$")},
        "additionalProperties": {"type": "string", "maxLength": 256, "pattern": PRINTABLE},
    });
    let arg = json!({"type": "string", "maxLength": MAX_ARGUMENT, "pattern": NO_NUL});
    vec![
        ("command", text(1, MAX_ARGUMENT, NOT_BLANK)),
        ("args", json!({"items": arg})),
        ("image", json!({"minLength": 1})),
        ("env", env),
        ("timeout", range(1, MAX_SECONDS.into())),
        ("secrets", names(MAX_SECRETS as usize)),
        ("git_repo", text(1, 2_048, REPOSITORY)),
        ("git_ref", text(1, 255, REFERENCE)),
        ("git_path", text(1, 1_024, DIRECTORY)),
        ("git_token", name()),
        ("lock", name()),
        ("lock_wait", range(0, MAX_SECONDS.into())),
        ("queue", name()),
        ("priority", range(1, 5)),
        ("labels", labels.clone()),
        ("worker_labels", labels),
        ("retries", range(0, 100)),
    ]
}

fn playbook() -> Limits {
    let parameters = json!({"maxProperties": 64, "propertyNames": {"pattern": "^[a-z][a-z0-9_]{0,63}$"}});
    let nulls = null_is_empty(&["env", "secrets", "labels", "worker_labels", "terminal", "parameters"]);
    [terms(), nulls, vec![("parameters", parameters)]].concat()
}

fn task() -> Limits {
    vec![
        ("taskId", name()),
        ("name", text(1, 256, PRINTABLE)),
        ("dependsOn", json!({"uniqueItems": true, "items": {"type": "string", "pattern": format!("^{NAME_PATTERN}$")}})),
    ]
}

fn jobs() -> Vec<(&'static str, Limits)> {
    let tasks = json!({"minItems": 1, "maxItems": MOST_TASKS});
    let create = vec![
        ("name", text(1, 256, PRINTABLE)),
        ("requestId", text(1, 255, "^[!-~]+$")),
        ("concurrency", range(1, u32::MAX.into())),
        ("tasks", tasks.clone()),
    ];
    let changes = [vec![("tasks", json!({"maxItems": MOST_TASKS}))], null_is_empty(&["tasks"])].concat();
    vec![("CreateJobRequest", create), ("AddTasksRequest", vec![("tasks", tasks)]), ("ResumeJobRequest", changes)]
}

fn people() -> Vec<(&'static str, Limits)> {
    let roles = json!({"enum": Role::OF_PEOPLE.map(Role::as_str)});
    let emails = json!({"maxItems": MOST_MEMBERS, "items": {"type": "string", "maxLength": 254, "pattern": EMAIL_PATTERN}});
    let create = vec![("email", email()), ("role", roles.clone()), ("api_key", text(32, 256, "^[!-~]+$"))];
    vec![
        ("CreateUserRequest", [create, null_is_empty(&["confirm"])].concat()),
        ("RevokeUserRequest", [vec![("email", email())], null_is_empty(&["kill"])].concat()),
        ("SetRoleRequest", vec![("role", roles)]),
        ("CreateKeyRequest", vec![("name", text(0, 64, PRINTABLE))]),
        ("PutGroupRequest", [vec![("name", name()), ("members", emails)], null_is_empty(&["members"])].concat()),
        ("PutRuleRequest", rule()),
    ]
}

fn rule() -> Limits {
    let patterns = || json!({"maxItems": MOST_ENTRIES, "items": {"type": "string", "maxLength": MOST_PATTERN_BYTES, "pattern": GLOB}});
    let who = format!("{}|^worker:{NAME_PATTERN}$", EMAIL_PATTERN);
    let words: Vec<&str> = Role::ALL.into_iter().filter(|role| *role != Role::Admin).map(Role::as_str).collect();
    vec![
        ("name", name()),
        ("users", json!({"maxItems": MOST_ENTRIES, "items": {"type": "string", "maxLength": 254, "pattern": who}})),
        ("groups", names(MOST_ENTRIES)),
        ("roles", json!({"maxItems": MOST_ENTRIES, "items": {"type": "string", "enum": words}})),
        ("commands", patterns()),
        ("images", patterns()),
        ("locks", patterns()),
        ("queues", patterns()),
        ("secrets", patterns()),
        ("playbooks", patterns()),
        ("reason", text(1, 512, r"^[^\u0000-\u001f\u007f-\u009f]*[!-~][^\u0000-\u001f\u007f-\u009f]*$")),
    ]
}

fn resources() -> Vec<(&'static str, Limits)> {
    let use_by = json!({"maxItems": 100, "items": {
        "type": "string",
        "maxLength": 254,
        "pattern": format!("{EMAIL_PATTERN}|^(group|worker):{NAME_PATTERN}$|^role:(admin|operator|developer|viewer)$"),
    }});
    let secret = || {
        vec![
            ("key_name", text(1, 128, VARIABLE)),
            ("value", text(1, 65_536, NO_NUL)),
            ("description", text(0, 512, PRINTABLE)),
            ("use_by", use_by.clone()),
        ]
    };
    let ids = json!({"minItems": 1, "maxItems": MOST_REDRIVEN, "items": {"type": "string", "pattern": "^[0-9a-f]{32}$"}});
    let may = json!({"items": {"type": "string", "enum": ["submit"]}});
    let worker = vec![
        ("name", name()),
        ("role", json!({"enum": [Value::Null, "worker", "viewer", "developer", "operator"]})),
        ("may", may),
        ("queues", names(MOST_QUEUES)),
        ("description", text(0, 256, PRINTABLE)),
    ];
    let image = vec![
        ("image", text(1, 255, r"^[a-z0-9]+([._/-][a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$")),
        ("cpu", range(64, 262_144)),
        ("memory", range(16, 4_194_304)),
        ("runtime_platform", text(0, 16, "^(Linux/(X86_64|ARM64))?$")),
        ("task_role_name", text(0, 64, NO_ROLE_CHARS)),
        ("task_execution_role_name", text(0, 64, NO_ROLE_CHARS)),
    ];
    let queue = vec![
        ("reason", text(0, u32::try_from(MOST_REASON_BYTES).unwrap_or(u32::MAX), PRINTABLE)),
        ("concurrency", range(0, MOST_PERMITS.into())),
        ("per_user", range(0, MOST_PERMITS.into())),
    ];
    vec![
        ("CreateSecretRequest", [vec![("name", name())], secret(), null_is_empty(&["use_by"])].concat()),
        ("UpdateSecretRequest", secret()),
        ("CreateWorkerRequest", [worker, null_is_empty(&["may", "queues", "confirm"])].concat()),
        ("RegisterImageRequest", image),
        ("PutQueueRequest", queue),
        ("RedriveRequest", vec![("execution_ids", ids), ("after", text(1, 80, r"^[0-9]{1,15}\.[0-9]{1,15}\.[0-9a-f]{32}$"))]),
        ("RunPlaybookRequest", [vec![("lock_wait", range(0, MAX_SECONDS.into()))], null_is_empty(&["parameters"])].concat()),
        ("BackupRequest", vec![("destination", text(1, 4_096, "^/[^\\u0000]+$"))]),
    ]
}
