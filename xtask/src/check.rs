//! `cargo xtask check`: everything a change must pass, cheapest first; exactly what `.ci/run` runs.

use anyhow::{Result, bail};

use crate::emulator::Emulators;
use crate::step::Steps;
use crate::suite::{self, Runner};
use crate::tally::Tally;
use crate::{lint, need, tee, tidy, tool};

/// Runs every step, stopping at the first failure.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.take("format", lint::format)?;
    steps.take("tidy", tidy::run)?;
    steps.take("clippy", lint::clippy)?;
    steps.take("docs", lint::docs)?;
    steps.take("needs", need::provide)?;
    let emulators = steps.take("emulators", || Ok(Emulators::start()))?;
    let mut tally = Tally::default();
    steps.take("doc tests", || tested(vec![suite::doc_tests()], &emulators, &mut tally))?;
    let runner = Runner::pick();
    let tests = steps.take("tests", || tested(runner.everything(), &emulators, &mut tally));
    // Also after a failure: one run shows everything that is broken.
    let tests = tests.and(steps.take("tests on AWS", || tested(vec![runner.on_aws()], &emulators, &mut tally)));
    if tests.is_ok() {
        steps.finish();
    }
    println!("{tally}");
    tests
}

/// Runs all `commands`, also after a failure, so that one run shows everything that is broken.
fn tested(commands: Vec<std::process::Command>, emulators: &Emulators, tally: &mut Tally) -> Result<()> {
    let mut failed = Vec::new();
    for mut command in commands {
        emulators.tell(&mut command);
        if !tee::run(&mut command, |line| tally.read(line))?.success() {
            failed.push(tool::line(&command));
        }
    }
    if !failed.is_empty() {
        bail!("`{}` failed", failed.join("`, `"));
    }
    Ok(())
}
