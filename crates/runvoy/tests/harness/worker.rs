//! The real worker against a server of the same binary: a process with a directory of its own, which outlives it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::{Server, binary, docker, process};

/// A worker that ends with the test.
pub struct Worker {
    child: Child,
    /// What it said when it was ready.
    pub ready: String,
    pub dir: PathBuf,
    _own: Option<tempfile::TempDir>,
}

/// How to start a worker.
#[derive(Clone)]
pub struct WorkerSetup {
    url: String,
    key: String,
    args: Vec<String>,
    /// A program to run the worker under, with its arguments.
    wrapper: Vec<String>,
    env: Vec<(String, String)>,
}

impl WorkerSetup {
    /// A worker of this server with an account of its own.
    pub fn of(server: &Server, account: &str) -> Self {
        let made = server.cli(&["workers", "create", account]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let key = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let args = vec!["--allow-shared-uid".to_owned()];
        Self { url: server.url.clone(), key, args, wrapper: Vec::new(), env: Vec::new() }
    }

    /// Without the arguments so far, the usual ones too.
    pub fn bare(mut self) -> Self {
        self.args.clear();
        self
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    pub fn key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    pub fn wrapper(mut self, wrapper: Vec<String>) -> Self {
        self.wrapper = wrapper;
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn url(mut self, url: &str) -> Self {
        self.url = url.to_owned();
        self
    }

    /// The process, not waited for.
    pub fn spawn_in(&self, dir: &Path) -> Child {
        let words: Vec<&str> = self.wrapper.iter().map(String::as_str).chain([binary()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("worker").arg("--worker-dir").arg(dir).args(&self.args).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", dir);
        command.env("RUNVOY_API_ENDPOINT", &self.url).env("RUNVOY_API_KEY", &self.key);
        command.env("DOCKER_HOST", docker::NOWHERE).envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }

    pub fn start_in(&self, dir: &Path) -> Worker {
        let mut child = self.spawn_in(dir);
        let mut ready = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut ready).expect("a line");
        let mut stderr = child.stderr.take().expect("piped");
        if !ready.starts_with("worker ") {
            let mut said = String::new();
            stderr.read_to_string(&mut said).expect("text");
            panic!("the worker did not start: {said}");
        }
        let log = std::env::var_os("RUNVOY_TEST_LOG").is_some();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if log {
                    eprintln!("worker: {line}");
                }
            }
        });
        Worker { child, ready, dir: dir.to_owned(), _own: None }
    }

    pub fn start(&self) -> Worker {
        let own = tempfile::tempdir().expect("a temporary directory");
        let mut worker = self.start_in(&own.path().join("worker"));
        worker._own = Some(own);
        worker
    }
}

impl Worker {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop; it may take its time.
    pub fn signal(&self, signal: i32) {
        process::signal(self.child.id(), signal);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub fn kill_9(&mut self) {
        self.signal(libc::SIGKILL);
        self.wait();
    }

    /// What it has not brought to the server yet: so many attempts.
    pub fn left(&self) -> usize {
        std::fs::read_dir(self.dir.join("wal")).expect("the directory of logs").count()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(libc::SIGTERM);
            self.signal(libc::SIGTERM);
            // A second one that came with the first counts once.
            std::thread::sleep(std::time::Duration::from_millis(200));
            self.signal(libc::SIGTERM);
            self.child.wait().ok();
        }
    }
}
