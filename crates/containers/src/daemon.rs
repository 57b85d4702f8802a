//! The container daemon: how it is found, and the few things that are asked of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{InspectContainerOptions, KillContainerOptions, ListContainersOptions, RemoveContainerOptions};
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::time::timeout;

/// How long the daemon may take to answer. The first word of a pull comes after the registry was asked.
const ANSWERS_WITHIN_S: u64 = 120;
/// How long it may take to say that it is there.
const PONG_WITHIN: Duration = Duration::from_secs(5);

/// Where a daemon listens if nothing else is said.
const USUAL_SOCKET: &str = "/var/run/docker.sock";

/// A daemon that answered when it was looked for.
#[derive(Debug, Clone)]
pub struct Daemon {
    pub(crate) docker: Docker,
    pub(crate) socket: PathBuf,
    version: String,
    /// As images name it: `amd64`, `arm64`.
    pub(crate) architecture: String,
    pub(crate) cores: u64,
}

impl Daemon {
    /// The socket that `DOCKER_HOST` names, else the usual one; an error where `DOCKER_HOST` names something else.
    pub fn socket() -> Result<PathBuf, String> {
        match std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()) {
            None => Ok(PathBuf::from(USUAL_SOCKET)),
            Some(host) => match host.strip_prefix("unix://") {
                Some(path) => Ok(PathBuf::from(path)),
                None => Err(format!("DOCKER_HOST is {host}: only a daemon on this machine, as unix:///PATH, can be used")),
            },
        }
    }

    /// Asks the daemon at a socket who it is; or what is wrong with it.
    pub async fn find(socket: &Path, within: Duration) -> Result<Self, String> {
        let shown = socket.display();
        let wrong = |error: &dyn std::fmt::Display| format!("no container daemon answers at {shown}: {error}");
        if !socket.exists() {
            return Err(format!("no container daemon at {shown}: the socket does not exist"));
        }
        let docker = Docker::connect_with_unix(&socket.to_string_lossy(), ANSWERS_WITHIN_S, API_DEFAULT_VERSION);
        let docker = docker.map_err(|error| wrong(&error))?;
        let asked = async {
            let docker = docker.negotiate_version().await?;
            let info = docker.info().await?;
            Ok::<_, Error>((docker, info))
        };
        let (docker, info) = match timeout(within, asked).await {
            Ok(answered) => answered.map_err(|error| wrong(&error))?,
            Err(_) => return Err(wrong(&format!("no answer within {} s", within.as_secs()))),
        };
        let architecture = match info.architecture.as_deref() {
            Some("x86_64") => "amd64".to_owned(),
            Some("aarch64") => "arm64".to_owned(),
            other => other.unwrap_or_default().to_owned(),
        };
        let cores = info.ncpu.and_then(|cores| u64::try_from(cores).ok()).unwrap_or(1).max(1);
        Ok(Self { docker, socket: socket.to_owned(), version: info.server_version.unwrap_or_default(), architecture, cores })
    }

    /// Its name and version, such as `Docker 27.3.1`.
    pub fn describe(&self) -> String {
        format!("Docker {}", self.version)
    }

    /// Where it listens.
    pub fn place(&self) -> &Path {
        &self.socket
    }

    /// Whether it answers now.
    pub async fn answers(&self) -> Result<(), String> {
        match timeout(PONG_WITHIN, self.docker.ping()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PONG_WITHIN.as_secs())),
        }
    }

    pub(crate) async fn signal(&self, name: &str, signal: &str) -> Result<(), Error> {
        self.docker.kill_container(name, Some(KillContainerOptions { signal: signal.to_owned() })).await
    }

    pub(crate) async fn inspect(&self, name: &str) -> Result<ContainerInspectResponse, Error> {
        self.docker.inspect_container(name, None::<InspectContainerOptions>).await
    }

    /// Kills and removes a container with its anonymous volumes. One that is not there is removed.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
        match self.docker.remove_container(name, Some(options)).await {
            Err(error) if is_missing(&error) => Ok(()),
            // Somebody else is removing it.
            Err(Error::DockerResponseServerError { status_code: 409, .. }) => Ok(()),
            removed => removed,
        }
    }

    /// Every container, running or not, that carries all of these labels.
    pub(crate) async fn labelled(&self, labels: &[String]) -> Result<Vec<ContainerSummary>, Error> {
        let filters = HashMap::from([("label".to_owned(), labels.to_vec())]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..ListContainersOptions::default() };
        self.docker.list_containers(Some(options)).await
    }
}

/// Whether what was asked about does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// Whether a daemon answered at all.
pub(crate) fn is_answer(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { .. })
}
