//! The seams between the engine and the world, and their errors.

pub mod clock;
pub mod identity;
pub mod lease;
pub mod log;
pub mod runner;
pub mod store;
