//! Virtual environments of Python under `target/`: made once, and anew when what they hold changes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{need, tool};

/// Makes `target/NAME` with these packages where it is missing or holds other versions.
pub fn install(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let place = tool::root().join("target").join(name);
    let mark = place.join("installed");
    let wanted = packages.join("\n");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(place);
    }
    need::provide_venv();
    eprintln!("installing {} in target/{name}", packages.join(" and "));
    tool::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place))?;
    let mut pip = Command::new(place.join("bin/python3"));
    tool::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]).args(packages))?;
    fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(place)
}
