//! `cargo xtask coverage`: line coverage of all tests but the promises. cargo-llvm-cov does it where it is installed;
//! else the compiler's own instrumentation, read by the llvm tools of the toolchain or of the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::client::CLIENT;
use crate::emulator::Emulators;
use crate::suite::PROMISE;
use crate::tool;

/// Prints a table of coverage per file; a browsable one is said where there is one.
pub fn run() -> Result<()> {
    let emulators = Emulators::start();
    if tool::has_cargo_command("llvm-cov") {
        let mut command = tool::cargo(&["llvm-cov", "--workspace", "--html", "--", "--skip", PROMISE, "--skip", CLIENT]);
        emulators.tell(&mut command);
        return tool::run(&mut command);
    }
    let tools = Tools::find()?;
    let dir = tool::root().join("target/coverage");
    // Another target directory: instrumented artefacts must not push the ordinary ones out.
    let build = dir.join("build");
    let profiles = dir.join("profiles");
    if profiles.exists() {
        fs::remove_dir_all(&profiles).with_context(|| format!("cannot empty {}", profiles.display()))?;
    }
    let instrumented = |args: &[&str]| {
        let mut command = tool::cargo(args);
        command.env("RUSTFLAGS", "-C instrument-coverage").env("CARGO_TARGET_DIR", &build);
        command.env("LLVM_PROFILE_FILE", profiles.join("%p-%8m.profraw"));
        emulators.tell(&mut command);
        command
    };
    let built = tool::output(&mut instrumented(&["test", "--workspace", "--no-run", "--message-format=json"]))?;
    tool::run(&mut instrumented(&["test", "--workspace", "--tests", "--", "--skip", PROMISE, "--skip", CLIENT]))?;
    report(&tools, &profiles, &dir.join("all.profdata"), &executables(&built))
}

fn report(tools: &Tools, profiles: &Path, merged: &Path, binaries: &[String]) -> Result<()> {
    let mut merge = Command::new(&tools.profdata);
    merge.args(["merge", "--sparse", "--output"]).arg(merged);
    for entry in fs::read_dir(profiles).with_context(|| format!("cannot read {}", profiles.display()))? {
        merge.arg(entry?.path());
    }
    tool::run(&mut merge)?;
    let Some((first, others)) = binaries.split_first() else { bail!("no test was built") };
    let mut show = Command::new(&tools.cov);
    show.arg("report").arg(first).arg("--instr-profile").arg(merged).arg("--ignore-filename-regex=(/registry/|/rustc/|/target/)");
    show.args(others.iter().flat_map(|binary| ["--object", binary]));
    tool::run(&mut show)
}

/// The programs that cargo says it built.
fn executables(messages: &str) -> Vec<String> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed.filter_map(|message| message["executable"].as_str().map(str::to_owned)).collect()
}

struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// The toolchain's own first: the format of profiles belongs to its version of LLVM.
    fn find() -> Result<Tools> {
        if let Some(tools) = Tools::of_toolchain()? {
            return Ok(tools);
        }
        if tool::find("rustup").is_some() {
            eprintln!("the llvm tools are missing; running `rustup component add llvm-tools`");
            if tool::run(Command::new("rustup").args(["component", "add", "llvm-tools"])).is_ok()
                && let Some(tools) = Tools::of_toolchain()?
            {
                return Ok(tools);
            }
        }
        match (tool::find("llvm-profdata"), tool::find("llvm-cov")) {
            (Some(profdata), Some(cov)) => Ok(Tools { profdata, cov }),
            _ => bail!(
                "llvm-profdata and llvm-cov are missing; `rustup component add llvm-tools` or `cargo install cargo-llvm-cov` brings them"
            ),
        }
    }

    fn of_toolchain() -> Result<Option<Tools>> {
        let libdir = tool::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
        let bin = Path::new(libdir.trim()).with_file_name("bin");
        let tools = Tools { profdata: bin.join("llvm-profdata"), cov: bin.join("llvm-cov") };
        Ok((tools.profdata.is_file() && tools.cov.is_file()).then_some(tools))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_artefacts_that_run_are_taken() {
        let messages =
            "{\"reason\":\"compiler-artifact\",\"executable\":\"/t/a\"}\n{\"executable\":null}\nnot json\n{\"reason\":\"build-finished\"}";
        assert_eq!(executables(messages), ["/t/a"]);
    }
}
