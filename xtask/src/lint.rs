//! `cargo xtask lint`: what can be said about the code without running it. `check` takes the same steps.

use std::process::Command;

use anyhow::Result;

use crate::step::Steps;
use crate::suite::WITH_AWS;
use crate::{tidy, tool};

/// Runs every lint; cargo-deny only where it is installed, because tidy enforces the same bans.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.take("format", format)?;
    steps.take("tidy", tidy::run)?;
    steps.take("clippy", || clippy().iter_mut().try_for_each(tool::run))?;
    steps.take("docs", || tool::run(&mut docs()))?;
    if tool::has_cargo_command("deny") {
        steps.take("deny", || tool::run(&mut tool::cargo(&["deny", "--offline", "check", "bans"])))?;
    }
    steps.finish();
    Ok(())
}

/// Is everything formatted?
pub fn format() -> Result<()> {
    tool::run(&mut tool::cargo(&["fmt", "--all", "--check"]))
}

/// Clippy over everything, warnings refused: the default program, then the one with AWS in it.
pub fn clippy() -> [Command; 2] {
    [&[], WITH_AWS.as_slice()].map(|features| {
        let mut command = tool::cargo(&["clippy", "--workspace", "--all-targets"]);
        command.args(features).args(["--", "-D", "warnings"]);
        command
    })
}

/// Does the documentation build, with every link in it?
pub fn docs() -> Command {
    let mut command = tool::cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}
