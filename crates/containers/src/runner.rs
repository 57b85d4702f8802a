//! The runner of a worker that has containers: commands of images go to the daemon, everything else to the process runner.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::errors::Error;
use bollard::query_parameters::{CreateContainerOptions, ResizeContainerTTYOptions, StartContainerOptions};
use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::spec::ContainerSpec;
use runvoy_ports::runner::{
    Container, Containment, DiskSpace, ExitStatus, ImageError, Protection, Runner, Start, StartError, Started, Unread, WorkDir,
};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::attach::{attach, taps};
use crate::blueprint::{Ground, Network, blueprint};
use crate::daemon::Daemon;
use crate::follow::{Follow, REMOVED_WITHIN, Stop, Stopped, remove};
use crate::guard::{Guard, sweep};
use crate::init::Init;
use crate::owner;
use crate::pull::Pulls;
use crate::usage::Gauges;
use crate::words::{said, start_error};

/// A start that was given up may still become a container: it is removed again after this.
const REMOVE_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What a container runner is told when it is made.
#[derive(Debug, Clone)]
pub struct Config {
    /// A name that stays the same over restarts of one worker and differs between two of them.
    pub instance: String,
    /// A name of this start of it.
    pub worker: String,
    /// The network of containers.
    pub network: Network,
    /// The memory of a container without another limit.
    pub memory_bytes: Option<u64>,
    /// The program that becomes the guard: the `runvoy` binary itself.
    pub guard_program: PathBuf,
    /// The hidden subcommand that does it.
    pub guard_command: String,
}

/// Runs commands of images in containers, and all others as before.
pub struct ContainerRunner {
    process: Arc<dyn Runner>,
    daemon: Daemon,
    ground: Ground,
    guard: Arc<Guard>,
    pulls: Pulls,
    given_up: GivenUp,
}

/// Starts that were given up, by the name of their container, until that is removed.
type GivenUp = Arc<Mutex<HashMap<String, watch::Receiver<bool>>>>;

impl ContainerRunner {
    /// Starts the guard. Nothing of an earlier start is touched before [`Runner::sweep`].
    pub fn new(process: Arc<dyn Runner>, daemon: Daemon, config: Config) -> Result<Self, StartError> {
        let socket = daemon.socket.to_string_lossy().into_owned();
        let args = vec![config.guard_command, socket, config.instance.clone(), config.worker.clone()];
        let guard = Guard::start(config.guard_program, args).map_err(guardless)?;
        let ground = Ground {
            instance: config.instance,
            worker: config.worker,
            network: config.network,
            cores: daemon.cores,
            memory_bytes: config.memory_bytes,
        };
        Ok(Self { process, pulls: Pulls::new(daemon.clone()), daemon, ground, guard: Arc::new(guard), given_up: GivenUp::default() })
    }

    /// The process runner alone knows how a work directory is made and whose it is: a command that does nothing makes one.
    async fn make_work_dir(&self, start: &Start) -> Result<(), StartError> {
        let argv = ["/bin/sh", "-c", ":"].map(str::to_owned).to_vec();
        let (env, directory) = ([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(), String::new());
        let nothing = Start { argv, env, directory, terminal: false, container: None, ..start.clone() };
        let started = self.process.start(nothing).await?;
        match started.exit.await.map(|exit| exit.status) {
            Ok(ExitStatus::Code(0)) => Ok(()),
            _ => Err(StartError { message: "the work directory could not be made".to_owned(), exit_code: None }),
        }
    }

    /// The first process of a container that was started, where it can be seen from here.
    async fn first_process(&self, name: &str) -> (Option<u32>, Init) {
        let found = self.daemon.inspect(name).await.ok();
        let id = found.as_ref().and_then(|found| found.id.clone()).unwrap_or_default();
        let pid = found.and_then(|found| u32::try_from(found.state?.pid?).ok()).filter(|pid| *pid > 0 && !id.is_empty());
        let init = pid.map(|pid| Init::of(pid, &id)).unwrap_or_default();
        (pid.filter(|_| init.is_visible()), init)
    }

    async fn start_container(&self, start: Start, container: &Container) -> Result<Started, StartError> {
        if let WorkDir::New(_) = start.work_dir {
            self.make_work_dir(&start).await?;
        }
        let work_dir = self.work_dir(start.execution, start.attempt);
        let owner = owner::settle(&work_dir).await.map_err(|error| StartError {
            message: format!("the work directory could not be handed to the container: {error}"),
            exit_code: None,
        })?;
        self.guard.renew().map_err(guardless)?;
        let name = container_name(start.execution, start.attempt);
        let body = blueprint(&self.ground, &start, container, &work_dir, owner);
        let mut making = Making { daemon: &self.daemon, guard: &self.guard, name: &name, given_up: &self.given_up, is_done: false };
        self.guard.here(&name);
        if let Some(time) = start.live_for {
            self.guard.live(&name, time);
        }
        let options = CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() };
        self.daemon.docker.create_container(Some(options), body).await.map_err(explain)?;
        let attached = attach(&self.daemon.socket, &name, start.terminal).await.map_err(|error| start_error(&error.to_string()))?;
        self.daemon.docker.start_container(&name, None::<StartContainerOptions>).await.map_err(explain)?;
        if start.terminal {
            // A command that has ended by now needs no size.
            self.daemon.docker.resize_container_tty(&name, size(&start.env)).await.ok();
        }
        let (pid, init) = self.first_process(&name).await;
        making.is_done = true;
        let gauges = pid.map(Gauges::of).unwrap_or_default();
        let (taps, stdout, stderr) = taps();
        let output = tokio::spawn(attached.forward(taps, start.terminal, move || pid.is_none_or(is_alive)));
        let (daemon, guard, stopped) = (self.daemon.clone(), Arc::clone(&self.guard), Arc::new(Stopped::default()));
        let control = Box::new(Stop {
            daemon: daemon.clone(),
            guard: Arc::clone(&guard),
            name: name.clone(),
            gauges: gauges.clone(),
            init: init.clone(),
            stopped: Arc::clone(&stopped),
            runtime: Handle::current(),
        });
        let (sender, exit) = oneshot::channel();
        tokio::spawn(Follow { daemon, guard, name: name.clone(), gauges, init, stopped, output }.run(sender));
        Ok(Started { handle: name.clone(), pid, work_dir, stdout, stderr, exit, control })
    }
}

/// Whether a process is there.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The size of a terminal: what the environment says, else the usual one.
fn size(env: &BTreeMap<String, String>) -> ResizeContainerTTYOptions {
    let said = |name: &str| env.get(name).and_then(|text| text.parse::<u16>().ok()).filter(|size| *size > 0);
    ResizeContainerTTYOptions { h: said("LINES").unwrap_or(24).into(), w: said("COLUMNS").unwrap_or(80).into() }
}

fn container_name(execution: ExecutionId, attempt: u32) -> String {
    format!("runvoy-{execution}-{attempt}")
}

fn explain(error: Error) -> StartError {
    start_error(&said(&error))
}

fn guardless(error: std::io::Error) -> StartError {
    StartError { message: format!("the guard of the containers could not be started: {error}"), exit_code: None }
}

/// A container that may be there. Unless it is taken over it is removed, also where the caller gives up waiting.
struct Making<'a> {
    daemon: &'a Daemon,
    guard: &'a Arc<Guard>,
    name: &'a str,
    given_up: &'a GivenUp,
    is_done: bool,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (daemon, guard, name) = (self.daemon.clone(), Arc::clone(self.guard), self.name.to_owned());
        let (removed, is_removed) = watch::channel(false);
        self.given_up.lock().insert(name.clone(), is_removed);
        let given_up = Arc::clone(self.given_up);
        tokio::spawn(async move {
            remove(daemon.clone(), Arc::clone(&guard), name.clone()).await;
            removed.send_replace(true);
            sleep(REMOVE_AGAIN_AFTER).await;
            remove(daemon, guard, name.clone()).await;
            given_up.lock().remove(&name);
        });
    }
}

#[async_trait]
impl Runner for ContainerRunner {
    fn name(&self) -> &'static str {
        self.process.name()
    }

    fn containment(&self) -> Containment {
        self.process.containment()
    }

    fn protections(&self) -> Vec<Protection> {
        self.process.protections()
    }

    async fn fetch(&self, container: &ContainerSpec, progress: &watch::Sender<Option<String>>) -> Result<bool, ImageError> {
        self.pulls.fetch(container, progress).await
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        match start.container.clone() {
            None => self.process.start(start).await,
            Some(container) => self.start_container(start, &container).await,
        }
    }

    async fn given_up(&self, execution: ExecutionId, attempt: u32) {
        let waiting = self.given_up.lock().get(&container_name(execution, attempt)).cloned();
        if let Some(mut is_removed) = waiting {
            timeout(REMOVED_WITHIN, is_removed.wait_for(|is_removed| *is_removed)).await.ok();
        }
    }

    fn work_dir(&self, execution: ExecutionId, attempt: u32) -> PathBuf {
        self.process.work_dir(execution, attempt)
    }

    async fn read(&self, execution: ExecutionId, attempt: u32, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
        self.process.read(execution, attempt, name, limit).await
    }

    async fn sweep(&self) -> Result<usize, StartError> {
        let removed = sweep(&self.daemon, &self.ground.instance_labels()).await.map_err(|error| StartError {
            message: format!("containers of an earlier start could not be removed: {}", said(&error)),
            exit_code: None,
        })?;
        Ok(removed + self.process.sweep().await?)
    }

    async fn disk_space(&self) -> Option<DiskSpace> {
        self.process.disk_space().await
    }

    async fn disk_usage(&self, execution: ExecutionId, attempt: u32) -> u64 {
        self.process.disk_usage(execution, attempt).await
    }

    async fn clean_up(&self, execution: ExecutionId, attempt: u32) {
        self.process.clean_up(execution, attempt).await;
    }
}
