//! Which runners the worker of this machine has: processes, and containers where a daemon answers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use runvoy_containers::{Config, ContainerRunner, Daemon};
use runvoy_model::spec::Needs;
use runvoy_ports::runner::Runner;

use crate::runner::default_memory;
use crate::settings::Settings;
use crate::settings::value::Runners;

/// A daemon that nobody named is not waited for: most starts are those of a laptop.
const DETECTED_WITHIN: Duration = Duration::from_secs(1);
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// What the worker of this machine can run.
#[derive(Debug, Clone)]
pub struct Ability {
    pub daemon: Option<Daemon>,
    runners: Runners,
}

impl Ability {
    /// Looks for what the settings name; without them, for what is there.
    pub async fn find(settings: &Settings) -> Result<Self> {
        match settings.runners {
            Some(runners) if !runners.container => Ok(Self { daemon: None, runners }),
            Some(runners) => {
                let socket = Daemon::socket().map_err(|error| anyhow!(error))?;
                let found = Daemon::find(&socket, NAMED_WITHIN).await.map_err(|error| anyhow!(error));
                let daemon = found.context("runners: container was asked for")?;
                Ok(Self { daemon: Some(daemon), runners })
            }
            None => {
                let daemon = match Daemon::socket() {
                    Ok(socket) => Daemon::find(&socket, DETECTED_WITHIN).await,
                    Err(error) => Err(error),
                };
                let daemon = daemon.inspect_err(|why| tracing::debug!(why, "no containers: only image local is run")).ok();
                let runners = Runners { process: true, container: daemon.is_some() };
                Ok(Self { daemon, runners })
            }
        }
    }

    /// What it takes.
    pub fn serves(&self) -> Vec<Needs> {
        let each = [(Needs::Process, self.runners.process), (Needs::Image, self.runners.container)];
        each.into_iter().filter(|(_, has)| *has).map(|(needs, _)| needs).collect()
    }

    /// Its runners, for people: `process, container (Docker 27.3.1)`.
    pub fn describe(&self) -> String {
        let process = self.runners.process.then(|| "process".to_owned());
        let container = self.daemon.as_ref().map(|daemon| format!("container ({})", daemon.describe()));
        process.into_iter().chain(container).collect::<Vec<_>>().join(", ")
    }

    /// Puts the containers beside the processes of this machine.
    pub fn join(&self, process: Arc<dyn Runner>, settings: &Settings, instance: String) -> Result<Arc<dyn Runner>> {
        let Some(daemon) = self.daemon.clone() else { return Ok(process) };
        let config = Config {
            instance,
            worker: uuid::Uuid::now_v7().simple().to_string(),
            network: settings.container_network.clone(),
            memory_bytes: default_memory(settings),
            guard_program: std::env::current_exe().context("cannot find this program")?,
            guard_command: crate::CONTAINER_GUARD.to_owned(),
        };
        Ok(Arc::new(ContainerRunner::new(process, daemon, config).context("cannot start the container runner")?))
    }
}
