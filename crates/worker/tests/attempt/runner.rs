//! A runner of plain process groups: enough for a worker's tests, which must not depend on another crate's containment.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_ports::runner::{
    Containment, Control, DiskSpace, Exit, ExitStatus, Output, Protection, Runner, Start, StartError, Started, Unread, WorkDir,
};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

#[derive(Default)]
pub struct GroupRunner {
    pub root: PathBuf,
    /// How many commands were started.
    pub starts: AtomicUsize,
    /// Of how many it has said how they ended.
    pub exits: Arc<AtomicUsize>,
    /// How many of them were to have a terminal; they get pipes all the same.
    pub terminals: AtomicUsize,
    /// It says of every command that something in it went over the memory limit.
    pub oom_kills: bool,
    /// What it says of its disk.
    pub disk: Option<DiskSpace>,
    /// What it says that every command has written; what is in its directory where that is not set.
    pub usage: Option<u64>,
}

struct Group(u32);

impl Group {
    fn signal(&self, name: &str) {
        // A group that is gone cannot be signalled, which is as good.
        drop(Command::new("/bin/kill").args([name, "--", &format!("-{}", self.0)]).stderr(Stdio::null()).status());
    }
}

impl Control for Group {
    fn terminate(&self) {
        self.signal("-TERM");
    }

    fn kill(&self) {
        self.signal("-KILL");
    }
}

#[async_trait]
impl Runner for GroupRunner {
    fn name(&self) -> &'static str {
        "process"
    }

    fn containment(&self) -> Containment {
        Containment::Weak
    }

    fn protections(&self) -> Vec<Protection> {
        Vec::new()
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        self.terminals.fetch_add(usize::from(start.terminal), Ordering::SeqCst);
        let fail = |error: std::io::Error| StartError { message: error.to_string(), exit_code: None };
        let work_dir = self.root.join(format!("{}-{}", start.execution, start.attempt));
        if let WorkDir::New(files) = &start.work_dir {
            DirBuilder::new().mode(0o700).create(&work_dir).map_err(fail)?;
            for file in files {
                let mut open = File::options().write(true).create_new(true).mode(0o600).open(work_dir.join(&file.name)).map_err(fail)?;
                open.write_all(&file.contents).map_err(fail)?;
            }
        }
        let mut command = Command::new(&start.argv[0]);
        command.args(&start.argv[1..]).env_clear().envs(&start.env).current_dir(work_dir.join(&start.directory)).process_group(0);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(fail)?;
        let (stdout, stderr) = (child.stdout.take().expect("asked for"), child.stderr.take().expect("asked for"));
        let (pid, oom_killed, (sender, exit)) = (child.id(), self.oom_kills, oneshot::channel());
        let exits = Arc::clone(&self.exits);
        std::thread::spawn(move || {
            let status = child
                .wait()
                .ok()
                .and_then(|status| status.code().map(ExitStatus::Code).or_else(|| status.signal().map(ExitStatus::Signal)));
            // Whoever does not wait for the end does not want it.
            let _ = sender.send(Exit { status: status.unwrap_or(ExitStatus::Lost), oom_killed, cpu_ms: 0, max_rss_bytes: 0 });
            exits.fetch_add(1, Ordering::SeqCst);
        });
        let open = |pipe: OwnedFd| pipe::Receiver::from_owned_fd(pipe).map(|pipe| Box::new(pipe) as Output).map_err(fail);
        let (stdout, stderr) = (open(stdout.into())?, open(stderr.into())?);
        Ok(Started { handle: String::new(), pid: Some(pid), work_dir, stdout, stderr, exit, control: Box::new(Group(pid)) })
    }

    fn work_dir(&self, execution: ExecutionId, attempt: u32) -> PathBuf {
        self.root.join(format!("{execution}-{attempt}"))
    }

    async fn read(&self, execution: ExecutionId, attempt: u32, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
        let path = self.work_dir(execution, attempt).join(name);
        // What a runner must guard against is its own matter, and tested there.
        match fs::symlink_metadata(&path) {
            Err(_) => Err(Unread::Missing),
            Ok(found) if !found.is_file() => Err(Unread::NotAFile),
            Ok(found) if found.len() > limit as u64 => Err(Unread::TooLarge { limit }),
            Ok(_) => fs::read(&path).map_err(|error| Unread::Failed(error.to_string())),
        }
    }

    async fn sweep(&self) -> Result<usize, StartError> {
        Ok(0)
    }

    async fn disk_space(&self) -> Option<DiskSpace> {
        self.disk
    }

    async fn disk_usage(&self, execution: ExecutionId, attempt: u32) -> u64 {
        if let Some(usage) = self.usage {
            return usage;
        }
        let files = fs::read_dir(self.work_dir(execution, attempt)).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    async fn clean_up(&self, execution: ExecutionId, attempt: u32) {
        drop(fs::remove_dir_all(self.root.join(format!("{execution}-{attempt}"))));
    }
}
