//! The process runner with real processes. These tests need Linux and root: they make cgroups and change users.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test an error is a failure")]

mod command;
mod containment;
mod crash;
mod isolation;
mod limit;
mod privilege;
mod refusal;
mod stage;
mod terminal;
mod uid;
mod work_dir;
