//! `cargo xtask check`: everything a change must pass, cheapest first; exactly what `.ci/run` runs.

use std::process::Command;

use anyhow::{Result, bail};

use crate::client::Clients;
use crate::emulator::Emulators;
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
    steps.take("clippy", || lint::clippy().map(web::required).iter_mut().try_for_each(tool::run))?;
    steps.take("docs", || tool::run(&mut web::required(lint::docs())))?;
    steps.take("page types", || tool::run(&mut web::install()).and_then(|()| tool::run(&mut web::types())))?;
    let emulators = steps.take("emulators", || Ok(Emulators::start()))?;
    let mut tally = Tally::default();
    let clients = steps.take("clients", || Ok(Clients::install()))?;
    let tests = test(&mut steps, &emulators, &clients, &mut tally);
    if tests.is_ok() {
        steps.finish();
    }
    println!("{tally}");
    tests
}

/// The steps that run tests, and count them. The long ones run also after a failure, so that one run shows everything that is broken.
fn test(steps: &mut Steps, emulators: &Emulators, clients: &Clients, tally: &mut Tally) -> Result<()> {
    let runner = Runner::pick();
    let all = |commands: Vec<Command>| commands.into_iter().map(|command| clients.tell(web::required(command))).collect();
    steps.take("page tests", || tested(vec![web::unit_tests()], emulators, tally))?;
    steps.take("doc tests", || tested(all(vec![suite::doc_tests()]), emulators, tally))?;
    let tests = steps.take("tests", || tested(all(runner.everything()), emulators, tally));
    let journeys = steps.take("journeys", || tested(vec![web::journeys()?], emulators, tally));
    let on_aws = steps.take("tests on AWS", || tested(all(vec![runner.on_aws()]), emulators, tally));
    tests.and(journeys).and(on_aws)
}

/// Runs all `commands`, also after a failure.
fn tested(commands: Vec<Command>, emulators: &Emulators, tally: &mut Tally) -> Result<()> {
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
