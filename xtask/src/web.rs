//! The web page: its types, its unit tests, and the journeys through it in a browser. It calls the scripts of `web/` and `e2e/`, which
//! work without us as well, and builds nothing: the page is part of the server's own build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool;

/// Makes a build of the server that cannot have the page fail.
const REQUIRED: (&str, &str) = ("RUNVOY_REQUIRE_WEB", "1");

/// What the journeys repeat, at reduced counts; `npm --prefix e2e test` has the full ones.
const COUNTS: [(&str, &str); 2] = [("RUNVOY_E2E_CUTS", "3"), ("RUNVOY_E2E_KILLS", "3")];

/// The same command, which must not build a server without the page.
pub fn required(mut command: Command) -> Command {
    command.env(REQUIRED.0, REQUIRED.1);
    command
}

/// Whether the packages of the page are installed, so that its tests can run at once.
pub fn is_installed() -> bool {
    tool::root().join("web/node_modules/.installed-lock").exists() && tool::find("npm").is_some()
}

/// Installs the packages of the page and of the journeys where their lock files changed.
pub fn install() -> Command {
    node("e2e/lib/install.js")
}

/// Are the types right, in scripts and in markup?
pub fn types() -> Command {
    npm(&["run", "--silent", "check"])
}

/// Its unit tests, among them that no source holds raw HTML, an inline script or an address of somebody else.
pub fn unit_tests() -> Command {
    npm(&["run", "--silent", "test"])
}

/// The journeys, through the program that the tests before them built.
pub fn journeys() -> Result<Command> {
    let program = program()?;
    if !program.exists() {
        bail!("there is no {}: `cargo build` makes it", program.display());
    }
    let mut command = node("e2e/run.js");
    command.env("RUNVOY_BIN", program).envs(COUNTS);
    Ok(command)
}

/// Where cargo leaves the program of a debug build.
fn program() -> Result<PathBuf> {
    let metadata = tool::output(&mut tool::cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cannot read what `cargo metadata` wrote")?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(PathBuf::from(target).join("debug").join(format!("runvoy{}", std::env::consts::EXE_SUFFIX)))
}

fn npm(args: &[&str]) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.args(args).current_dir(tool::root().join("web")).env("NO_COLOR", "1");
    command
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(script).current_dir(tool::root()).env("NO_COLOR", "1");
    command
}
