//! The commands as processes against a small server.

#[path = "../../../client/tests/fake/mod.rs"]
mod fake;
mod hint;
mod interrupt;
mod job;
mod listing;
mod people;
mod pipe;
mod playbook;
mod process;
mod profile;
mod secret;
mod terminal;
mod user;
mod web;
