//! `cargo xtask fix`: formats, and lets clippy repair what it can.

use anyhow::Result;

use crate::tool;

/// Clippy first: what it writes is formatted afterwards.
pub fn run() -> Result<()> {
    tool::run(&mut tool::cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"]))?;
    tool::run(&mut tool::cargo(&["fmt", "--all"]))
}
