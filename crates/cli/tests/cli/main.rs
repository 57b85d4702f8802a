//! The commands as processes against a small server.

#[path = "../../../client/tests/fake/mod.rs"]
mod fake;
mod hint;
mod interrupt;
mod pipe;
mod process;
mod user;
