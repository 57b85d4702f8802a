//! The seams between the engine and the world, and their errors.

pub mod alert;
pub mod blob;
pub mod clock;
pub mod cost;
pub mod event;
pub mod job;
pub mod lease;
pub mod log;
pub mod memory;
pub mod process;
pub mod queue;
pub mod record;
pub mod roster;
pub mod runner;
pub mod seal;
pub mod search;
pub mod signing;
pub mod store;
pub mod trail;
pub mod trouble;
