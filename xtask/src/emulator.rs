//! The emulators of AWS that tests of `runvoy-aws` talk to: installed once in a virtual environment under `target/`, and one of each running
//! while tests do, on free loopback ports. They end with this process, however it ends.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{tool, venv};

/// What is installed. Other versions may behave differently: a new one is tried on purpose, not met by chance.
const PACKAGES: [&str; 2] = ["ministack[full]==1.5.33", "moto[server]==5.2.5"];

/// Name, and how tests are told where it answers.
const EMULATORS: [(&str, &str); 2] = [("ministack", "RUNVOY_MINISTACK_URL"), ("moto", "RUNVOY_MOTO_URL")];

/// The packages whose tests need them.
const USERS: [&str; 1] = ["runvoy-aws"];

/// Running emulators, and what tests must be told of them.
#[derive(Default)]
pub struct Emulators {
    environment: Vec<(&'static str, OsString)>,
    // Never read: closed when this is dropped or the process ends, which ends them.
    running: Vec<(Child, ChildStdin)>,
}

impl Emulators {
    /// Installs what is missing and starts both. Where that is not possible it is said, and the tests that need them fail and say so too.
    pub fn start() -> Self {
        Self::try_start().unwrap_or_else(|error| {
            eprintln!("no emulators of AWS: {error:#}; the tests that need them will fail");
            Self::default()
        })
    }

    /// The same, where `args` name a package whose tests talk to one: the inner loop leaves them out otherwise.
    pub fn start_for(args: &[String]) -> Self {
        if concerns(args) { Self::start() } else { Self::default() }
    }

    fn try_start() -> Result<Self> {
        let place = match std::env::var_os("RUNVOY_EMULATORS") {
            Some(place) => PathBuf::from(place),
            None => venv::install("emulators", &PACKAGES)?,
        };
        let mut all = Self { environment: vec![("RUNVOY_EMULATORS", place.clone().into())], running: Vec::new() };
        for (name, variable) in EMULATORS {
            if std::env::var_os(variable).is_none() {
                let (url, child, held) = run(&place, name)?;
                all.environment.push((variable, url.into()));
                all.running.push((child, held));
            }
        }
        Ok(all)
    }

    /// Tells a command where they are.
    pub fn tell(&self, command: &mut Command) {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }
}

impl Drop for Emulators {
    fn drop(&mut self) {
        for (mut child, held) in self.running.drain(..) {
            drop(held);
            // It ends by itself; waiting only keeps it from being left as a zombie.
            let _ = child.wait();
        }
    }
}

/// Whether tests that `args` leave may need an emulator.
fn concerns(args: &[String]) -> bool {
    let mut named = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--package=") {
            Some(package) => named.push(package),
            None if word == "-p" || word == "--package" => named.extend(words.next().map(String::as_str)),
            None => {}
        }
    }
    named.iter().any(|package| USERS.contains(package))
}

fn run(place: &Path, name: &str) -> Result<(String, Child, ChildStdin)> {
    let program = tool::root().join("crates/aws/tests/emulator/start.py");
    let mut command = Command::new(place.join("bin/python3"));
    command.args([program.as_os_str(), OsStr::new(name)]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", tool::line(&command)))?;
    let held = child.stdin.take().expect("stdin is piped");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut url)?;
    if url.is_empty() {
        bail!("`{}` ended without an address: {}", tool::line(&command), child.wait()?);
    }
    Ok((url.trim().to_owned(), child, held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_may_talk_to_one_start_one() {
        let concerns = |line: &str| concerns(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(concerns("-p runvoy-model -p runvoy-aws"));
        assert!(concerns("--package=runvoy-aws"));
        assert!(!concerns(""));
        assert!(!concerns("a_name"));
        assert!(!concerns("-p runvoy-model a_name"));
        assert!(!concerns("--package runvoy-sqlite"));
    }
}
