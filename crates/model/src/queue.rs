//! The terms of a queue: whether it hands anything out, and how many of it may be with workers at once. A limit is a semaphore whose permits are
//! named: one record holds those that are taken, and changes in the same step as the lease that takes one, or that gives it back.

use serde::{Deserialize, Serialize};

use crate::id::ExecutionId;
use crate::name::Name;
use crate::status::{WaitCode, WaitingFor};
use crate::time::UnixMs;

/// No limit is higher: every permit stands in one record.
pub const MOST_PERMITS: u32 = 1_000;
/// The reason of a pause has at most so many bytes.
pub const MOST_REASON_BYTES: usize = 500;

/// What holds of a queue. One without terms hands out whatever it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTerms {
    /// The queue.
    pub name: Name,
    /// It hands nothing out; what runs goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// So many of it may be with workers at once. What was leased before there was a limit does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// So many of each user's may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<u32>,
}

/// Somebody has stopped a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who.
    pub by: String,
    /// When.
    pub at: UnixMs,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is new about a queue's terms; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUpdate {
    /// Which.
    pub name: Name,
    /// Stop it, or let it go on.
    pub paused: Option<bool>,
    /// Why it is stopped.
    pub reason: Option<String>,
    /// The limit of all, or none.
    pub concurrency: Option<Option<u32>>,
    /// The limit of each user, or none.
    pub per_user: Option<Option<u32>>,
}

/// The right of one execution of a limited queue to be with a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Whose.
    pub execution: ExecutionId,
    /// For whom it runs.
    pub user: String,
}

/// Why a queue hands something not out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// It is paused.
    Paused,
    /// All its permits are taken.
    Full,
    /// The user has as many as one user may.
    UserFull,
}

impl QueueTerms {
    /// The terms of a queue of which nothing was said.
    pub const fn none(name: Name) -> Self {
        Self { name, paused: None, concurrency: None, per_user: None }
    }

    /// Whether a lease of it takes a permit.
    pub const fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.per_user.is_some()
    }

    /// What keeps a user's execution waiting, beside workers.
    pub fn bar(&self, permits: &[Permit], user: &str) -> Option<Bar> {
        let at = |limit: Option<u32>, held: usize| limit.is_some_and(|limit| held >= limit as usize);
        if self.paused.is_some() {
            Some(Bar::Paused)
        } else if at(self.concurrency, permits.len()) {
            Some(Bar::Full)
        } else if at(self.per_user, permits.iter().filter(|permit| permit.user == user).count()) {
            Some(Bar::UserFull)
        } else {
            None
        }
    }

    /// What a user's execution waits for because of these terms.
    pub fn waiting_for(&self, permits: &[Permit], user: &str) -> Option<WaitingFor> {
        let name = &self.name;
        let (code, message) = match (self.bar(permits, user)?, &self.paused) {
            (Bar::Paused, Some(pause)) => {
                let why = pause.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                (WaitCode::Paused, format!("queue {name}, which {} has paused{why}", pause.by))
            }
            (Bar::Paused, None) => (WaitCode::Paused, format!("queue {name}, which is paused")),
            (Bar::Full, _) => (WaitCode::Limit, format!("{} of queue {name}", places(self.concurrency))),
            (Bar::UserFull, _) => (WaitCode::Limit, format!("{} of the user in queue {name}", places(self.per_user))),
        };
        Some(WaitingFor { code, message })
    }
}

fn places(limit: Option<u32>) -> String {
    match limit.unwrap_or_default() {
        1 => "the only slot".to_owned(),
        limit => format!("one of the {limit} slots"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(users: &[&str]) -> Vec<Permit> {
        users.iter().zip(1..).map(|(user, byte)| Permit { execution: ExecutionId::from_bytes([byte; 16]), user: (*user).into() }).collect()
    }

    #[test]
    fn a_pause_says_who_and_why_before_any_limit_does() {
        let mut terms = QueueTerms { per_user: Some(1), concurrency: Some(2), ..QueueTerms::none(Name::new("gpu").expect("a name")) };
        let words = |terms: &QueueTerms, held: &[&str]| terms.waiting_for(&permits(held), "ann@x").map(|waiting| waiting.message);
        assert_eq!(words(&terms, &[]), None);
        assert_eq!(words(&terms, &["ann@x"]).as_deref(), Some("the only slot of the user in queue gpu"));
        assert_eq!(words(&terms, &["bob@x", "eve@x"]).as_deref(), Some("one of the 2 slots of queue gpu"));
        terms.paused = Some(Pause { by: "root@x".into(), at: UnixMs(1), reason: Some("a new driver".into()) });
        assert_eq!(words(&terms, &["ann@x"]).as_deref(), Some("queue gpu, which root@x has paused: a new driver"));
    }
}
