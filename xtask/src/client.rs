//! Programs of others that tests need: clients that speak the RPC, packages of npm beside their journeys in `e2e/rpc`, and of Python in a virtual environment under
//! `target/`; beside them what tries the HTTP API by its OpenAPI document, and what generates a client from it. Installed once; the journeys themselves are started by the tests of the binary.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::{need, tool, venv, web};

/// What is installed for Python. What is for Node is in the lock file of `e2e/rpc`.
const PACKAGES: [&str; 5] =
    ["grpcio==1.85.1", "grpcio-tools==1.85.1", "cryptography==50.0.2", "schemathesis==4.32.5", "openapi-python-client==0.29.1"];

/// What the names of the tests that need them begin with.
pub const CLIENT: &str = "third_party_";

/// What tests must be told of the installed clients.
#[derive(Default)]
pub struct Clients(Vec<(&'static str, OsString)>);

impl Clients {
    /// Installs what is missing. Where that is not possible it is said, and the tests that need it fail and say so too.
    pub fn install() -> Self {
        Self::try_install().unwrap_or_else(|error| {
            eprintln!("no programs of others: {error:#}; the tests that need them will fail");
            Self::default()
        })
    }

    /// The same, where `args` name those tests: the inner loop leaves them out otherwise.
    pub fn install_for(args: &[String]) -> Self {
        if are_named(args) { Self::install() } else { Self::default() }
    }

    fn try_install() -> Result<Self> {
        need::provide()?;
        tool::run(web::install().arg("rpc"))?;
        Ok(Self(vec![("RUNVOY_CLIENTS", venv::install("clients", &PACKAGES)?.into())]))
    }

    /// Tells a command where they are.
    pub fn tell(&self, mut command: Command) -> Command {
        command.envs(self.0.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Whether `args` ask for the tests that need them.
pub fn are_named(args: &[String]) -> bool {
    args.iter().any(|arg| arg == "clients" || arg == "schema" || arg.starts_with(CLIENT))
}
