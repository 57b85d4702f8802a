//! The test runner: nextest where it is installed, else `cargo test`. Both run the same tests, and both run the
//! promises one at a time; docs/decisions/001-checks-without-extra-tools.md says why there are two.

use std::process::Command;

use crate::client::{self, CLIENT};
use crate::tool;

/// What the names of the tests of the reliability promises hold (`promise_07_a_full_disk_…`).
pub const PROMISE: &str = "promise_";

/// The crate of the fuzz targets.
const FUZZ: &str = "runvoy-fuzz";

/// The profile of `prove`: what is shipped, without the slow link, so that numbers mean something.
const PROVE_PROFILE: [&str; 4] = ["--config", "profile.prove.inherits='release'", "--config", "profile.prove.lto='off'"];

/// The program with AWS as a store in it, among all packages.
pub const WITH_AWS: [&str; 2] = ["--features", "runvoy/aws"];

/// The end-to-end tests that also run with AWS as the store. The others are about files, disks and power.
const AWS_JOURNEYS: [&str; 12] =
    ["alerts", "crash", "dead_letter", "event", "job", "job_crash", "load", "log", "people_cli", "run", "stop", "two_servers"];

/// Suites of the AWS adapters that check leaves to `cargo xtask test -p runvoy-aws`: emulators are slow, and what these ask (callers that lose answers
/// and repeat) is asked again by the suites through a failing network, which it runs.
const AWS_COVERED: [&str; 3] = ["repeated::", "on_ministack_through_faults::", "on_moto_through_faults::"];

/// Which program runs the tests.
#[derive(Clone, Copy)]
pub enum Runner {
    /// `cargo nextest run`.
    Nextest,
    /// `cargo test`.
    Libtest,
}

impl Runner {
    /// Nextest if it is there; says so if not.
    pub fn pick() -> Runner {
        if tool::has_cargo_command("nextest") {
            return Runner::Nextest;
        }
        eprintln!("cargo-nextest is not installed: tests run under `cargo test` (the same tests, a little slower)");
        Runner::Libtest
    }

    /// All tests of the workspace, without the doc tests, at reduced counts: one command after the other.
    pub fn everything(self) -> Vec<Command> {
        match self {
            Runner::Nextest => {
                let covered = AWS_COVERED.map(|name| format!("test({name})")).join(" | ");
                let mut command = tool::cargo(&["nextest", "run", "--workspace", "--profile", "ci", "--filterset"]);
                command.arg(format!("not (package(runvoy-aws) & ({covered}))"));
                vec![command]
            }
            Runner::Libtest => vec![
                {
                    let mut command = tool::cargo(&["test", "--workspace", "--no-fail-fast", "--tests", "--", "--skip", PROMISE]);
                    command.args(AWS_COVERED.iter().flat_map(|name| ["--skip", name]));
                    command
                },
                tool::cargo(&["test", "--workspace", "--no-fail-fast", "--tests", PROMISE, "--", "--test-threads=1"]),
            ],
        }
    }

    /// The end-to-end tests of what a user does, with AWS as the store.
    pub fn on_aws(self) -> Command {
        let mut command = match self {
            Runner::Nextest => tool::cargo(&["nextest", "run", "--profile", "ci"]),
            Runner::Libtest => tool::cargo(&["test", "--no-fail-fast"]),
        };
        // `--workspace` keeps the features of all dependencies as they were built already; `-p runvoy` would build most of them again.
        command.args(["--workspace"]).args(WITH_AWS).env("RUNVOY_TEST_BACKEND", "aws");
        for journey in AWS_JOURNEYS {
            command.args(["--test", journey]);
        }
        if matches!(self, Runner::Libtest) {
            command.args(["--", "--test-threads=2"]);
        }
        command
    }

    /// The tests of the inner loop: all but the promises, and but those that talk to emulators of AWS or need clients of others unless they are
    /// named; `args` narrow them.
    pub fn inner_loop(self, args: &[String]) -> Command {
        let is_narrowed = args.iter().any(|arg| arg == "-p" || arg.starts_with("--package"));
        let scope: &[&str] = if is_narrowed { &[] } else { &["--workspace", "--exclude", "runvoy-aws"] };
        let skipped: &[&str] = if client::are_named(args) { &[PROMISE] } else { &[PROMISE, CLIENT] };
        let mut command = match self {
            Runner::Nextest => tool::cargo(&["nextest", "run", "--filterset"]),
            Runner::Libtest => tool::cargo(&["test", "--tests"]),
        };
        match self {
            Runner::Nextest => {
                let names: Vec<String> = skipped.iter().map(|name| format!("test({name})")).collect();
                command.arg(format!("not ({})", names.join(" | "))).args(scope).args(args)
            }
            Runner::Libtest => command.args(scope).args(args).arg("--").args(skipped.iter().flat_map(|name| ["--skip", name])),
        };
        command
    }

    /// The promises whose names hold `filter`, at full counts, one at a time, with their output.
    pub fn promises(self, filter: &str) -> Command {
        self.proof(&["--workspace", &format!("{PROMISE}{}", filter.trim_start_matches(PROMISE))])
    }

    /// The fuzz targets, a minute each, with their output.
    pub fn fuzz(self) -> Command {
        self.proof(&["-p", FUZZ])
    }

    /// The tests that these arguments choose, as `prove` runs tests.
    fn proof(self, chosen: &[&str]) -> Command {
        let mut command = match self {
            Runner::Nextest => tool::cargo(&["nextest", "run", "--cargo-profile", "prove", "--no-capture"]),
            Runner::Libtest => tool::cargo(&["test", "--profile", "prove", "--no-fail-fast", "--tests"]),
        };
        command.args(PROVE_PROFILE).args(chosen);
        if matches!(self, Runner::Libtest) {
            command.args(["--", "--test-threads=1", "--nocapture"]);
        }
        command.env("RUNVOY_PROVE", "1");
        command
    }
}

/// The examples in the documentation, which nextest does not run.
pub fn doc_tests() -> Command {
    tool::cargo(&["test", "--workspace", "--doc", "--quiet"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_inner_loop_leaves_the_promises_out_under_both_runners() {
        assert!(words(&Runner::Nextest.inner_loop(&[])).contains(&"not (test(promise_) | test(third_party_))".to_owned()));
        assert!(words(&Runner::Libtest.inner_loop(&[])).ends_with(&["--skip", PROMISE, "--skip", CLIENT].map(str::to_owned)));
    }

    #[test]
    fn the_inner_loop_has_the_clients_of_others_where_they_are_named() {
        let args = ["--test".to_owned(), "clients".to_owned()];
        assert!(words(&Runner::Nextest.inner_loop(&args)).contains(&"not (test(promise_))".to_owned()));
        assert!(!words(&Runner::Libtest.inner_loop(&args)).contains(&CLIENT.to_owned()));
    }

    #[test]
    fn a_named_package_replaces_the_workspace() {
        let args = ["-p".to_owned(), "runvoy-model".to_owned()];
        assert!(!words(&Runner::Nextest.inner_loop(&args)).contains(&"--workspace".to_owned()));
        assert!(words(&Runner::Nextest.inner_loop(&[])).contains(&"--workspace".to_owned()));
    }

    #[test]
    fn every_journey_on_aws_is_a_test_of_the_binary() {
        for journey in AWS_JOURNEYS {
            assert!(tool::root().join(format!("crates/runvoy/tests/{journey}.rs")).exists(), "{journey}");
        }
    }

    #[test]
    fn a_proof_of_the_fuzz_targets_runs_all_of_them_at_length() {
        for runner in [Runner::Nextest, Runner::Libtest] {
            let command = runner.fuzz();
            assert!(words(&command).windows(2).any(|pair| pair == ["-p", FUZZ]));
            assert!(command.get_envs().any(|(name, _)| name == "RUNVOY_PROVE"));
        }
    }

    #[test]
    fn the_prefix_is_optional_in_a_filter() {
        for filter in ["07", "promise_07"] {
            assert!(words(&Runner::Nextest.promises(filter)).contains(&"promise_07".to_owned()));
        }
        assert!(words(&Runner::Libtest.promises("")).contains(&"promise_".to_owned()));
    }
}
