//! The commands as processes against a small server.

#[path = "../../../client/tests/fake/mod.rs"]
mod fake;
mod interrupt;
mod process;
mod user;
