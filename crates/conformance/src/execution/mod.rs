//! The promises of an execution store.

pub mod end;
pub mod event;
pub mod gate;
pub mod kill;
pub mod lease;
pub mod list;
pub mod lock;
pub mod prune;
pub mod queue;
pub mod repeat;
pub mod sight;
pub mod submit;
