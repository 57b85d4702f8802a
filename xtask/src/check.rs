//! `cargo xtask check`: everything a change must pass, cheapest first; exactly what `.ci/run` runs.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step::Steps;
use crate::suite::{self, Runner};
use crate::tally::Tally;
use crate::{lint, need, tee, tidy, tool, web};

/// Runs every step, stopping at the first failure.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.take("format", lint::format)?;
    steps.take("tidy", tidy::run)?;
    steps.take("needs", need::provide)?;
    steps.take("clippy", || tool::run(&mut web::required(lint::clippy())))?;
    steps.take("docs", || tool::run(&mut web::required(lint::docs())))?;
    steps.take("page types", || tool::run(&mut web::install()).and_then(|()| tool::run(&mut web::types())))?;
    let mut tally = Tally::default();
    let tests = test(&mut steps, &mut tally);
    if tests.is_ok() {
        steps.finish();
    }
    println!("{tally}");
    tests
}

/// The steps that run tests, and count them.
fn test(steps: &mut Steps, tally: &mut Tally) -> Result<()> {
    steps.take("page tests", || tested(vec![web::unit_tests()], tally))?;
    steps.take("doc tests", || tested(vec![web::required(suite::doc_tests())], tally))?;
    steps.take("tests", || tested(Runner::pick().everything().into_iter().map(web::required).collect(), tally))?;
    steps.take("journeys", || tested(vec![web::journeys()?], tally))
}

/// Runs all `commands`, also after a failure, so that one run shows everything that is broken.
fn tested(commands: Vec<Command>, tally: &mut Tally) -> Result<()> {
    let mut failed = Vec::new();
    for mut command in commands {
        if !tee::run(&mut command, |line| tally.read(line))?.success() {
            failed.push(tool::line(&command));
        }
    }
    if !failed.is_empty() {
        bail!("`{}` failed", failed.join("`, `"));
    }
    Ok(())
}
