//! The tags of the document: one for each resource, so that a generated client has a module for
//! each.

use utoipa::openapi::tag::{Tag, TagBuilder};

/// Every tag with its description, in the order in which documentation shows them.
pub(super) const TAGS: [(&str, &str); 18] = [
    ("executions", "Run commands, list and watch executions, kill them."),
    ("logs", "Read, search, follow and share the logs of executions."),
    ("jobs", "Submit and manage jobs: graphs of tasks."),
    ("queues", "List, pause and limit queues; redrive dead letters."),
    ("workers", "List workers and manage the accounts that workers sign in with."),
    ("playbooks", "Store commands with checked parameters, and run them."),
    ("images", "Register the environments that commands may run in."),
    ("secrets", "Store encrypted values that commands get in their environment."),
    ("locks", "List the locks that executions hold, and release them."),
    ("users", "Invite users, change their roles and revoke them."),
    ("keys", "Create, rotate and revoke the API keys of a user."),
    ("groups", "Name several users, for rules and secrets."),
    ("rules", "Narrow what a role may do, and explain a decision."),
    ("cost", "Sum up what executions cost."),
    ("audit", "Read, verify and export the audit trail."),
    ("events", "Query and follow the event log."),
    ("health", "Check the server and what it runs."),
    ("server", "Back up the server, recover access to it, describe its API."),
];

/// The tags as the document lists them.
pub(super) fn described() -> Vec<Tag> {
    let tag = |(name, about)| TagBuilder::new().name(name).description(Some(about)).build();
    TAGS.into_iter().map(tag).collect()
}

/// The tag of a path.
pub(super) fn of(path: &str) -> &'static str {
    let within = path.strip_prefix("/api/v1/").or_else(|| path.strip_prefix("/api/")).unwrap_or_default();
    let parts: Vec<&str> = within.split(['/', '.']).collect();
    match parts.as_slice() {
        ["executions", _, "logs" | "link" | "stream", ..] | ["logs", ..] => "logs",
        ["run" | "executions", ..] => "executions",
        ["users", _, "keys", ..] => "keys",
        ["users" | "claim" | "whoami", ..] => "users",
        ["sealing-key", ..] => "secrets",
        ["signing-key", ..] => "workers",
        ["access", ..] => "rules",
        ["trace", ..] => "audit",
        ["admin" | "backup" | "openapi", ..] => "server",
        [first, ..] => TAGS.iter().map(|(name, _)| *name).find(|name| name == first).unwrap_or("health"),
        [] => "health",
    }
}
