//! Workers: those that are there, and the accounts whose keys they show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// A worker as it was last heard of. An item of `GET /workers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// One start of it: a worker that is started again is another one.
    pub worker_id: String,
    /// What it calls itself.
    pub name: String,
    /// The machine it is on.
    #[serde(default)]
    pub host: String,
    /// The account whose key it showed; absent for one that lives inside a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The queues it serves.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub queues: Vec<String>,
    /// What executions can ask for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How it runs commands.
    #[serde(default)]
    pub runner: String,
    /// How many executions it runs now.
    #[serde(default)]
    pub running: u32,
    /// How many it runs at once.
    #[serde(default)]
    pub concurrency: u32,
    /// It was heard of within the last 30 seconds, or holds a lease and says nothing else of itself.
    #[serde(default)]
    pub live: bool,
    /// It finishes what it runs and takes nothing new: it is about to stop, or an admin drains it.
    #[serde(default)]
    pub draining: bool,
    /// The admin who drains it, until one lets it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_by: Option<String>,
    /// It lives inside a server.
    #[serde(default)]
    pub in_process: bool,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// When it started.
    pub since: Rfc3339,
    /// When it was last heard of.
    pub seen_at: Rfc3339,
}

/// Answer to `POST /workers/{name}/drain` and `POST /workers/{name}/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrainWorkerResponse {
    /// The worker's name.
    pub name: String,
    /// Whether it takes nothing new from now on.
    pub draining: bool,
    /// How many executions it runs now.
    pub running: u32,
    /// What happened, for a person.
    pub message: String,
}

/// An account of workers. An item of `GET /workers/accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerAccount {
    /// Its name.
    pub name: String,
    /// Its id: another one when the name is used again.
    pub id: String,
    /// What it may do: `worker`, or for a public key `viewer`, `developer` or `operator`.
    #[serde(default)]
    pub role: String,
    /// What else a worker may do: `submit`, and read and end what it submitted.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub may: Vec<String>,
    /// The queues it may serve; none means every queue.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub queues: Vec<String>,
    /// The first characters of its key; absent where it has a public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// The fingerprint of its public key: what `kid` of its tokens says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub created_by: String,
    /// When.
    pub created_at: Rfc3339,
    /// Since when it has this key.
    pub keyed_at: Rfc3339,
    /// When its key was last used, to the minute or so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// Its key is not accepted any more.
    #[serde(default)]
    pub revoked: bool,
}

/// Body of `POST /workers`, and of `POST /workers/accounts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateWorkerRequest {
    /// Its name. It may be left out with a public key: then it is what comes with the key, or the key's fingerprint.
    #[serde(default)]
    pub name: String,
    /// What it may do: `worker` where it is left out; with a public key also `viewer`, `developer` or `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What else a worker with a public key may do: `submit`, and read and end what it submitted.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub may: Vec<String>,
    /// The queues it may serve; none means every queue. They are for workers alone.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// A P-256 public key whose owner signs tokens with the private one: PEM, or base58 of such a key or of a JSON document with `name` and
    /// `public_key`. Absent: a key is made, and shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// What the account is for: one line of at most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Make a key that may run commands on a server that runs them as its own user. It refuses commands from then on, as with a second user.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

/// Answer to an account that was made or given another key. A key is given once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateWorkerResponse {
    /// The account.
    pub account: WorkerAccount,
    /// The key. Nobody can ask for it again. Absent where a public key was brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Sensitive>,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}

/// Answer to `POST /signing-key/rotate`: a new key signs the task tokens of new leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateSigningKeyResponse {
    /// The name of the key: when it was made, in milliseconds since 1970.
    pub key_id: String,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}

/// Answer to `DELETE /workers/{name}`, and to `DELETE /workers/accounts/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeWorkerResponse {
    /// Which account.
    pub name: String,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
}
