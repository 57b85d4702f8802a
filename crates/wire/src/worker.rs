//! Workers: those that are there, and the accounts whose keys they show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// The id of this start of the worker; a restarted worker has another one.
    pub worker_id: String,
    /// The worker's name.
    pub name: String,
    /// The machine that it runs on.
    #[serde(default)]
    pub host: String,
    /// The account that it signed in with; absent for a worker inside a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The queues it serves.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub queues: Vec<String>,
    /// The labels that executions can ask for.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The runner: how it runs commands.
    #[serde(default)]
    pub runner: String,
    /// How many executions it is running.
    #[serde(default)]
    pub running: u32,
    /// How many executions it can run at the same time.
    #[serde(default)]
    pub concurrency: u32,
    /// Whether it is online: it was heard from within the last 30 seconds, or holds a lease.
    #[serde(default)]
    pub live: bool,
    /// Whether it is draining: it finishes its executions and takes no new ones, because it is
    /// about to exit or an admin drains it.
    #[serde(default)]
    pub draining: bool,
    /// The admin who drains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_by: Option<String>,
    /// Whether it runs inside a server.
    #[serde(default)]
    pub in_process: bool,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// When it started.
    pub since: Rfc3339,
    /// When it was last heard from.
    pub seen_at: Rfc3339,
}

/// The result of draining a worker or letting it take work again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrainWorkerResponse {
    /// The worker's name.
    pub name: String,
    /// Whether it takes no new executions from now on.
    pub draining: bool,
    /// How many executions it is running.
    pub running: u32,
    /// What happened, as text for people.
    pub message: String,
}

/// An account that workers sign in with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerAccount {
    /// The account's name.
    pub name: String,
    /// The account's id. An account that reuses the name has another id.
    pub id: String,
    /// The role: `worker`, or for an account with a public key also `viewer`, `developer` or
    /// `operator`.
    #[serde(default)]
    pub role: String,
    /// What a worker may do besides running executions: `submit` them, and read and kill those.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub may: Vec<String>,
    /// The queues that it may serve; empty: all.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub queues: Vec<String>,
    /// The first characters of its API key; absent for an account with a public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// The fingerprint of its public key, which is the `kid` of its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The user who created it.
    #[serde(default)]
    pub created_by: String,
    /// When it was created.
    pub created_at: Rfc3339,
    /// When it got its current key.
    pub keyed_at: Rfc3339,
    /// When its key was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// Whether it was revoked.
    #[serde(default)]
    pub revoked: bool,
}

/// A worker account to create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateWorkerRequest {
    /// The account's name. Optional with `public_key`: the default is the name in the key's
    /// document, or the key's fingerprint.
    #[serde(default)]
    pub name: String,
    /// The role; default: `worker`. Other roles need a `public_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What a worker with a `public_key` may do besides running executions: `submit` them, and read
    /// and kill those.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub may: Vec<String>,
    /// The queues that it may serve; default: all. Only with the role `worker`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// A P-256 public key, whose owner signs tokens with the private key: PEM, or base58 of the key
    /// or of a JSON document with `name` and `public_key`. Default: the server creates an API key
    /// and shows it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// What the account is for: one line of at most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Confirm a further account on a server that runs commands as its own operating-system user.
    /// The server then refuses commands, as with a second user.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

/// A worker account that was created or got a new key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateWorkerResponse {
    /// The account.
    pub account: WorkerAccount,
    /// The API key, shown only here; absent for an account with a public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Sensitive>,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}

/// The result of rotating the key that signs task tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateSigningKeyResponse {
    /// The id of the new key: its creation time in Unix milliseconds.
    pub key_id: String,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}

/// The result of revoking a worker account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeWorkerResponse {
    /// The account's name.
    pub name: String,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
}
