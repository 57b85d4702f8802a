//! The worker's end of the socket to one spawner: requests go out, reports come in and find whoever waits for them. When the spawner
//! ends, nobody is left waiting. It never starts a second spawner; the runner does.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use runvoy_ports::runner::{Control, Exit, ExitStatus, Protection, StartError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::message::{self, Failure, Hello, PACKET_MAX, REPORT_MAX, Report, Rung, Setup};
use super::pool::LentUid;
use super::socket::{self, Wait};
use super::tree;
use crate::config::Config;

/// How long a new spawner may take to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a spawner.
pub(crate) struct Link {
    socket: AsyncFd<OwnedFd>,
    runtime: Runtime,
    table: Mutex<Table>,
    pub(crate) containment: Rung,
    /// The directory that holds the cgroup by which each command is killed.
    pub(crate) home: Option<PathBuf>,
    /// Every directory that may hold cgroups of commands.
    pub(crate) cgroups: Vec<PathBuf>,
    pub(crate) protections: Vec<Protection>,
    pub(crate) spawner_pid: u32,
    pub(crate) spawner_start_time: u64,
}

#[derive(Default)]
struct Table {
    closed: bool,
    last_id: u64,
    entries: HashMap<u64, Entry>,
}

struct Entry {
    name: String,
    /// Who waits for the start; taken when it is answered.
    reply: Option<oneshot::Sender<Result<Begun, NotBegun>>>,
    exit: oneshot::Sender<Exit>,
    /// Held until the spawner says that no process of the command is left.
    lent: Option<Arc<LentUid>>,
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
}

/// Why a command does not run.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// The spawner said why.
    Failed(Failure),
    /// The spawner is gone.
    Gone,
}

/// What a start waits for.
pub(crate) struct Pending {
    pub(crate) id: u64,
    pub(crate) reply: oneshot::Receiver<Result<Begun, NotBegun>>,
    pub(crate) exit: oneshot::Receiver<Exit>,
}

/// A command that the spawner's end left without an owner.
pub(crate) struct Orphan {
    pub(crate) name: String,
    pub(crate) exit: oneshot::Sender<Exit>,
    pub(crate) lent: Option<Arc<LentUid>>,
}

impl Link {
    /// Starts a spawner and waits until it is ready. `on_loss` gets what was running when it ends.
    pub(crate) async fn open<F>(config: &Config, on_loss: F) -> Result<Arc<Self>, StartError>
    where
        F: FnOnce(Vec<Orphan>) + Send + 'static,
    {
        let program = config.spawner_program.display();
        let fail =
            |error: io::Error| StartError { message: format!("the spawner {program} could not be started: {error}"), exit_code: None };
        let (ours, theirs) = socket::pair().map_err(fail)?;
        let mut child = Command::new(&config.spawner_program)
            .args(&config.spawner_args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(fail)?;
        match Self::greet(ours, config, child.id()).await {
            Ok(link) => {
                let link = Arc::new(link);
                tokio::spawn(Arc::clone(&link).read(child, on_loss));
                Ok(link)
            }
            Err(error) => {
                // Its socket is closed by now, so it ends by itself; a program that is no spawner may not.
                drop(child.kill());
                drop(child.wait());
                Err(error)
            }
        }
    }

    async fn greet(socket: OwnedFd, config: &Config, pid: u32) -> Result<Self, StartError> {
        let program = config.spawner_program.display();
        let fail = |why: String| StartError { message: format!("the spawner {program} did not get ready: {why}"), exit_code: None };
        let setup = Setup {
            work_root: config.work_root.clone(),
            instance: config.instance.clone(),
            user: config.user.clone(),
            isolation: config.isolation.clone(),
            containment: config.containment.map(Rung::from),
        };
        let setup = serde_json::to_vec(&setup).map_err(|error| fail(error.to_string()))?;
        let socket = socket::register(socket).map_err(|error| fail(error.to_string()))?;
        socket::send(socket.as_fd(), &setup, &[], Wait::Never).map_err(|error| fail(error.to_string()))?;
        let mut buffer = vec![0; PACKET_MAX];
        let received = timeout(PATIENCE, receive(&socket, &mut buffer)).await;
        let length = received.map_err(|_| fail(format!("no answer in {PATIENCE:?}")))?.map_err(|error| fail(error.to_string()))?;
        if length == 0 {
            return Err(fail("it ended at once (is it the right program?)".to_owned()));
        }
        match serde_json::from_slice(&buffer[..length]).map_err(|error| fail(error.to_string()))? {
            Hello::Refused { message } => Err(StartError { message, exit_code: None }),
            Hello::Ready { containment, home, cgroups, protections } => Ok(Self {
                socket,
                runtime: Runtime::current(),
                table: Mutex::default(),
                containment,
                home,
                cgroups,
                protections,
                spawner_pid: pid,
                spawner_start_time: tree::look(pid.cast_signed()).map_or(0, |process| process.start_time),
            }),
        }
    }

    /// Whether the spawner was there when last heard of.
    pub(crate) fn is_open(&self) -> bool {
        !self.table().closed
    }

    /// Closes the socket, upon which the spawner kills everything and ends.
    pub(crate) fn shut_down(&self) {
        socket::shut_down(&self.socket);
    }

    /// Enters a command that is about to be asked for; `None` if the spawner is gone.
    pub(crate) fn expect(&self, name: &str, lent: Option<Arc<LentUid>>) -> Option<Pending> {
        let mut table = self.table();
        if table.closed {
            return None;
        }
        table.last_id += 1;
        let id = table.last_id;
        let ((reply, wait_reply), (exit, wait_exit)) = (oneshot::channel(), oneshot::channel());
        table.entries.insert(id, Entry { name: name.to_owned(), reply: Some(reply), exit, lent });
        Some(Pending { id, reply: wait_reply, exit: wait_exit })
    }

    /// Forgets a command that could not be asked for, and with it the spawner.
    pub(crate) fn give_up(&self, id: u64) {
        let mut table = self.table();
        table.entries.remove(&id);
        table.closed = true;
    }

    /// Sends a request, waiting while the socket is full.
    pub(crate) async fn send(&self, packet: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        match socket::send(self.socket.as_fd(), packet, files, Wait::Never) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.async_io(Interest::WRITABLE, |socket| socket::send(socket.as_fd(), packet, files, Wait::Never)).await
            }
            sent => sent,
        }
    }

    /// Sends a request from where nobody can wait.
    fn request(self: &Arc<Self>, packet: Vec<u8>) {
        let sent = socket::send(self.socket.as_fd(), &packet, &[], Wait::Never);
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let link = Arc::clone(self);
            self.runtime.spawn(async move { link.send(&packet, &[]).await });
        }
    }

    async fn read(self: Arc<Self>, mut child: Child, on_loss: impl FnOnce(Vec<Orphan>) + Send + 'static) {
        let mut buffer = vec![0; REPORT_MAX];
        loop {
            match receive(&self.socket, &mut buffer).await {
                Ok(0) => break,
                Ok(length) => Report::decode(&buffer[..length]).into_iter().for_each(|report| self.deliver(report)),
                Err(error) => {
                    tracing::warn!(%error, "the socket to the spawner failed");
                    break;
                }
            }
        }
        // If it was the socket that failed and not the spawner, this makes it end.
        self.shut_down();
        let orphans = self.close();
        let ended = tokio::task::spawn_blocking(move || {
            let status = child.wait();
            on_loss(orphans);
            status
        });
        if let Ok(Ok(status)) = ended.await {
            tracing::debug!(%status, "the spawner ended");
        }
    }

    fn deliver(self: &Arc<Self>, report: Report) {
        let mut table = self.table();
        match report {
            Report::Started { id, pid, start_time } => {
                let reply = table.entries.get_mut(&id).and_then(|entry| entry.reply.take());
                drop(table);
                // Nobody waits for the start any more, so nobody could ever stop the command.
                if reply.is_some_and(|reply| reply.send(Ok(Begun { pid, start_time })).is_err()) {
                    self.request(message::encode_kill(id));
                }
            }
            Report::Failed { id, failure } => {
                if let Some(reply) = table.entries.remove(&id).and_then(|entry| entry.reply) {
                    drop(reply.send(Err(NotBegun::Failed(failure))));
                }
            }
            Report::Exited { id, exit } => {
                if let Some(entry) = table.entries.remove(&id) {
                    if let Some(lent) = entry.lent.filter(|_| exit.status == ExitStatus::Lost) {
                        // Somebody killed what watches over the command, and with it the proof that all of it is gone.
                        lent.lose();
                    }
                    // Whoever does not wait for the end does not want it.
                    let _ = entry.exit.send(exit);
                }
            }
        }
    }

    fn close(&self) -> Vec<Orphan> {
        let mut table = self.table();
        table.closed = true;
        let orphaned = std::mem::take(&mut table.entries).into_values().map(|mut entry| {
            if let Some(reply) = entry.reply.take() {
                drop(reply.send(Err(NotBegun::Gone)));
            }
            Orphan { name: entry.name, exit: entry.exit, lent: entry.lent }
        });
        orphaned.collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn receive(socket: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
    socket.async_io(Interest::READABLE, |socket| socket::receive(socket.as_fd(), buffer, &mut Vec::new(), Wait::Never)).await
}

/// Stops one command.
pub(crate) struct Stop {
    pub(crate) link: Arc<Link>,
    pub(crate) id: u64,
}

impl Control for Stop {
    fn terminate(&self) {
        self.link.request(message::encode_terminate(self.id));
    }

    fn kill(&self) {
        self.link.request(message::encode_kill(self.id));
    }

    fn live_for(&self, time: Duration) {
        self.link.request(message::encode_live(self.id, time));
    }
}
