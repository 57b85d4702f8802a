//! One state change as its caller names it: who, when, on whose request.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::id::{Id, StepId, WorkerId};
use crate::role::Role;
use crate::time::UnixMs;

/// The frame of one atomic step. A repeat with the same id is answered as before and writes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Named by the caller.
    pub id: StepId,
    /// When, by the caller's clock.
    pub at: UnixMs,
    /// Who does it.
    pub actor: Actor,
    /// The request it belongs to; the step's own id where there is none.
    pub request_id: String,
    /// For a call through an API: what is to be kept about it.
    pub audit: Option<Audit>,
    /// What a user's right to it rests on; looked at again in the step itself.
    pub authority: Option<Authority>,
}

impl Step {
    /// A step of the platform itself.
    pub fn system(id: StepId, at: UnixMs, part: &'static str) -> Self {
        Self { id, at, actor: Actor::System(part), request_id: id.to_string(), audit: None, authority: None }
    }

    /// A step of a worker.
    pub fn worker(id: StepId, at: UnixMs, worker: WorkerId) -> Self {
        Self { id, at, actor: Actor::Worker(worker), request_id: id.to_string(), audit: None, authority: None }
    }

    /// The id of the step's `index`th event.
    pub fn event_id(&self, index: usize) -> Id {
        let mut bytes = *self.id.as_bytes();
        let tail = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        let index = u32::try_from(index).expect("a step has few events");
        bytes[12..].copy_from_slice(&tail.wrapping_add(index).to_be_bytes());
        Id::from_bytes(bytes)
    }

    /// The context that the step's events carry.
    pub fn context(&self) -> Value {
        match &self.actor {
            Actor::User { email } => json!({"source": "user", "origin": "api", "user": email}),
            Actor::Worker(worker) => {
                let mut context = json!({"source": "system", "origin": "worker", "workerId": worker});
                // A worker names itself; whose key it showed, it cannot choose.
                if let Some(authority) = &self.authority {
                    context["account"] = authority.email.as_str().into();
                }
                context
            }
            Actor::System(part) => json!({"source": "system", "origin": part}),
        }
    }
}

/// Who does a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person, through the API.
    User {
        /// Who.
        email: String,
    },
    /// A worker.
    Worker(WorkerId),
    /// A part of the platform.
    System(&'static str),
}

impl Actor {
    /// The actor as a person reads it.
    pub fn name(&self) -> String {
        match self {
            Self::User { email } => email.clone(),
            Self::Worker(worker) => format!("worker {worker}"),
            Self::System(part) => (*part).to_owned(),
        }
    }
}

/// Who was admitted, and as what. It may have ended by the time of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Who.
    pub email: String,
    /// The hash of the key they showed; absent where the machine itself answers for them.
    pub key_hash: Option<[u8; 32]>,
    /// What they were when they were admitted.
    pub role: Role,
    /// They were a worker that may submit.
    pub may_submit: bool,
}

/// What is kept about a call through an API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// What was called: `executions.run`, `executions.kill`, `locks.release`.
    pub action: String,
    /// The address it came from.
    pub from: String,
    /// What is run or ended by it, masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it was asked of, where that is not what the event is about: the execution that is run again, the playbook that is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
