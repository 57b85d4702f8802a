//! What a comparison of kept state with events comes to.

use std::fmt::Display;

use crate::event::Entity;
use crate::verify::label;

/// An event that creates something, after events of the same store that hold digests.
pub(super) const NO_DIGEST: &str = "has no digest in the event that recorded it, although earlier events have one: it was removed";

/// Something that is kept and does not follow from the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What it is about: `TASK:0192ab…`, `JOB:0192ab…`, `LOCK:deploy`.
    pub entity: String,
    /// Which part of it: `status`, `tasks.build.phase`.
    pub field: String,
    /// What is kept and what the events say, for a person.
    pub message: String,
}

impl Mismatch {
    /// Something of an entity that cannot be compared at all.
    pub fn of(entity: &Entity, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { entity: label(entity), field: field.into(), message: message.into() }
    }
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// How many executions, jobs, tasks, locks and records.
    pub compared: u64,
    /// The first that does not follow from the events.
    pub first: Option<Mismatch>,
    /// How many executions and jobs were written before events held digests: what they run, and
    /// whose they are, cannot be compared.
    pub unverifiable: u64,
}

impl Comparison {
    /// All that is kept follows from the events.
    pub const fn agrees(&self) -> bool {
        self.first.is_none()
    }

    /// One more was compared.
    pub fn add(&mut self, result: Result<(), Mismatch>) {
        self.compared += 1;
        if let Err(mismatch) = result {
            self.first.get_or_insert(mismatch);
        }
    }

    /// More were compared, after these.
    pub fn join(&mut self, other: Self) {
        self.compared += other.compared;
        self.unverifiable += other.unverifiable;
        if let Some(mismatch) = other.first {
            self.first.get_or_insert(mismatch);
        }
    }
}

/// Says `field` of an entity where what is kept is not what the events say.
pub(super) fn same<T: PartialEq + Display>(
    entity: &Entity,
    field: impl Display,
    kept: Option<T>,
    folded: Option<T>,
) -> Result<(), Mismatch> {
    if kept == folded {
        return Ok(());
    }
    let shown = |value: Option<T>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
    let message = format!("is {}, but the events say {}", shown(kept), shown(folded));
    Err(Mismatch::of(entity, field.to_string(), message))
}
