//! The process runner where there are no cgroups, namespaces or spawner: commands are process groups of the worker, and containment
//! is weak. It exists so that a laptop of another kind can run the same program; limits, a terminal, another user and a sweep are refused
//! or do nothing, and say so.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_ports::runner::{
    Containment, Control, DiskSpace, Exit, ExitStatus, Limits, Protection, Runner, Start, StartError, Started, Unread, WorkDir, WorkFile,
};
use tokio::sync::oneshot;

use crate::command::{attempt_name, check, exit_code, is_attempt_name, readable};
use crate::config::{Config, User};
use crate::leftover;
use crate::usage;

/// Runs commands as process groups of this machine.
pub struct ProcessRunner {
    config: Config,
}

impl ProcessRunner {
    /// Makes the work root.
    pub async fn new(config: Config) -> Result<Self, StartError> {
        if config.user != User::Worker {
            return Err(StartError { message: "commands can run as another user only on Linux".to_owned(), exit_code: None });
        }
        if !matches!(config.containment, None | Some(Containment::Weak)) {
            return Err(StartError { message: "this machine can contain commands only by process groups".to_owned(), exit_code: None });
        }
        let root = &config.work_root;
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|error| StartError {
            message: format!("work root {} could not be created: {error}", root.display()),
            exit_code: None,
        })?;
        Ok(Self { config })
    }
}

/// There is no spawner here.
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux has its own"))]
pub fn run_spawner() -> ExitCode {
    ExitCode::FAILURE
}

struct ProcessGroup(i32);

impl ProcessGroup {
    fn signal(&self, signal: i32) {
        #[expect(unsafe_code, reason = "the standard library cannot signal a group")]
        // SAFETY: sending a signal touches no memory.
        unsafe {
            libc::kill(-self.0, signal)
        };
    }
}

impl Control for ProcessGroup {
    fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    fn kill(&self) {
        self.signal(libc::SIGKILL);
    }
}

#[async_trait]
impl Runner for ProcessRunner {
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
        check(&start)?;
        if start.limits != Limits::default() {
            return Err(StartError { message: "limits cannot be enforced on this worker: they need Linux".to_owned(), exit_code: None });
        }
        if start.terminal {
            return Err(StartError { message: "commands have a terminal only on Linux".to_owned(), exit_code: None });
        }
        let work_dir = self.config.work_root.join(attempt_name(start.execution, start.attempt));
        let new = match &start.work_dir {
            WorkDir::New(files) => make_work_dir(&work_dir, files).map(|()| true).map_err(|error| StartError {
                message: format!("work directory {} could not be created: {error}", work_dir.display()),
                exit_code: None,
            })?,
            WorkDir::Kept => false,
        };
        // The system tells a directory that is not there as it tells a program that is not there.
        let has_directory = work_dir.join(&start.directory).is_dir();
        let mut child = Command::new(&start.argv[0])
            .args(&start.argv[1..])
            .env_clear()
            .envs(&start.env)
            .current_dir(work_dir.join(&start.directory))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                if new {
                    drop(fs::remove_dir_all(&work_dir));
                }
                let exit_code = error.raw_os_error().filter(|_| has_directory).and_then(|errno| exit_code(&start.argv[0], errno));
                StartError { message: format!("{}: could not be run: {error}", start.argv[0]), exit_code }
            })?;
        let pid = child.id();
        let stdout = readable(child.stdout.take().expect("it was asked for").into())?;
        let stderr = readable(child.stderr.take().expect("it was asked for").into())?;
        let (sender, exit) = oneshot::channel();
        std::thread::spawn(move || {
            // Whoever does not wait for the end does not want it.
            let _ = sender.send(wait(child));
        });
        let control = Box::new(ProcessGroup(pid.cast_signed()));
        Ok(Started { handle: format!("{{\"pid\":{pid}}}"), pid: Some(pid), work_dir, stdout, stderr, exit, control })
    }

    fn work_dir(&self, execution: ExecutionId, attempt: u32) -> PathBuf {
        self.config.work_root.join(attempt_name(execution, attempt))
    }

    async fn read(&self, execution: ExecutionId, attempt: u32, name: &str, limit: usize) -> Result<Vec<u8>, Unread> {
        leftover::read(&self.work_dir(execution, attempt), name, limit).await
    }

    async fn sweep(&self) -> Result<usize, StartError> {
        let fail = |error: io::Error| StartError {
            message: format!("{} could not be read: {error}", self.config.work_root.display()),
            exit_code: None,
        };
        for entry in fs::read_dir(&self.config.work_root).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_name().to_str().is_some_and(is_attempt_name) {
                drop(fs::remove_dir_all(entry.path()));
            }
        }
        Ok(0)
    }

    async fn disk_space(&self) -> Option<DiskSpace> {
        usage::space(&self.config.work_root, self.config.set_aside.as_deref())
    }

    async fn disk_usage(&self, execution: ExecutionId, attempt: u32) -> u64 {
        usage::usage(vec![self.work_dir(execution, attempt)]).await
    }

    async fn clean_up(&self, execution: ExecutionId, attempt: u32) {
        let directory = self.config.work_root.join(attempt_name(execution, attempt));
        if let Err(error) = fs::remove_dir_all(&directory)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, directory = %directory.display(), "a work directory could not be removed");
        }
    }
}

fn make_work_dir(path: &Path, files: &[WorkFile]) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    for file in files {
        File::options().write(true).create_new(true).mode(0o600).open(path.join(&file.name))?.write_all(&file.contents)?;
    }
    Ok(())
}

fn wait(mut child: Child) -> Exit {
    let group = ProcessGroup(child.id().cast_signed());
    let status = match child.wait() {
        Ok(status) => status.code().map(ExitStatus::Code).or_else(|| status.signal().map(ExitStatus::Signal)),
        Err(_) => None,
    };
    // The group keeps its number while anybody is in it, so this reaches what was left or nobody.
    group.kill();
    Exit { status: status.unwrap_or(ExitStatus::Lost), oom_killed: false, cpu_ms: 0, max_rss_bytes: 0 }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn runner(root: &std::path::Path) -> ProcessRunner {
        let config = Config {
            spawner_program: "/nonexistent".into(),
            spawner_args: Vec::new(),
            work_root: root.join("work"),
            instance: "test".to_owned(),
            user: User::Worker,
            isolation: crate::config::Isolation::default(),
            set_aside: None,
            containment: None,
        };
        ProcessRunner::new(config).await.unwrap()
    }

    fn start(script: &str) -> Start {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let execution = ExecutionId::from_bytes([1; 16]);
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let (limits, directory, work_dir) = (Limits::default(), String::new(), WorkDir::New(Vec::new()));
        Start { execution, attempt: 1, argv, env, limits, directory, work_dir, live_for: None, terminal: false, container: None }
    }

    #[tokio::test]
    async fn a_command_runs_and_its_end_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let runner = runner(root.path()).await;
        let mut started = runner.start(start("echo hello; sleep 100 & exit 7")).await.unwrap();
        let mut text = String::new();
        started.stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello\n");
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(7));
        runner.clean_up(ExecutionId::from_bytes([1; 16]), 1).await;
        assert!(!started.work_dir.exists());
    }

    #[tokio::test]
    async fn a_second_command_finds_the_files_and_the_directory_of_the_first() {
        let root = tempfile::tempdir().unwrap();
        let runner = runner(root.path()).await;
        let files = vec![WorkFile { name: "a".to_owned(), contents: b"one ".to_vec() }];
        let first = runner.start(Start { work_dir: WorkDir::New(files), ..start("mkdir in; cp a in/b") }).await.unwrap();
        assert_eq!(first.exit.await.unwrap().status, ExitStatus::Code(0));
        let second = Start { work_dir: WorkDir::Kept, directory: "in".to_owned(), ..start("cat b ../a") };
        let mut second = runner.start(second).await.unwrap();
        let mut text = String::new();
        second.stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one one ");
    }

    #[tokio::test]
    async fn a_terminal_is_refused_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let runner = runner(root.path()).await;
        let error = runner.start(Start { terminal: true, ..start("true") }).await.err().unwrap();
        assert!(error.message.contains("terminal"), "{error}");
        assert_eq!(fs::read_dir(root.path().join("work")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_kill_reaches_the_group() {
        let root = tempfile::tempdir().unwrap();
        let runner = runner(root.path()).await;
        let started = runner.start(start("sleep 100 & sleep 100")).await.unwrap();
        started.control.kill();
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Signal(libc::SIGKILL));
    }
}
