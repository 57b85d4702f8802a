//! The real binary on a free port in a temporary directory, and a small HTTP client of its own: what end-to-end tests share. It knows
//! nothing of the program's code.
#![expect(dead_code, reason = "each test file uses its own part of this")]

pub mod aws;
pub mod chance;
pub mod connect;
pub mod docker;
pub mod http;
pub mod ledger;
pub mod network;
pub mod page;
pub mod process;
pub mod socket;
pub mod worker;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::http::{Answer, Http};

/// The binary under test.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_runvoy")
}

/// Full counts, as `cargo xtask prove` asks for them; else reduced ones. With AWS as the store a hundredth: an emulator is slow.
pub fn count(reduced: usize, full: usize) -> usize {
    let asked = if std::env::var_os("RUNVOY_PROVE").is_some() { full } else { reduced };
    if aws::is_asked_for() { asked.min(full / 100).max(1) } else { asked }
}

/// Prints the line that the table of promises is made of.
pub fn promise(number: u32, name: &str, count: impl std::fmt::Display, result: impl std::fmt::Display) {
    println!("PROMISE {number:02} | {name} | {count} | {result}");
}

/// A server that ends with the test.
pub struct Server {
    child: Child,
    pub url: String,
    pub data: PathBuf,
    _own: Option<tempfile::TempDir>,
}

/// How to start a server.
#[derive(Default, Clone)]
pub struct Setup {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// A program to run the server under, with its arguments.
    pub wrapper: Vec<String>,
}

impl Setup {
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn start(self) -> Server {
        let own = tempfile::tempdir().expect("a temporary directory");
        let data = own.path().join("data");
        let mut server = self.start_in(&data);
        server._own = Some(own);
        server
    }

    pub fn start_in(self, data: &Path) -> Server {
        self.try_start_in(data).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// Starts a server, or gives back what it said instead.
    pub fn try_start_in(self, data: &Path) -> Result<Server, String> {
        let mut words = self.wrapper.clone();
        words.push(binary().to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("serve").arg("--data-dir").arg(data);
        if !self.args.iter().any(|arg| arg == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if aws::is_asked_for() {
            command.envs(aws::environment(&aws::prefix_of(data)));
        }
        // A daemon of the machine is nobody's here: a test that wants one starts its own.
        command.env("DOCKER_HOST", docker::NOWHERE);
        command.args(&self.args).envs(self.env.iter().cloned());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let Some(url) = line.trim().strip_prefix("listening on ").map(str::to_owned) else {
            let mut said = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
            child.wait().expect("it has ended");
            return Err(said);
        };
        let stderr = child.stderr.take().expect("piped");
        let log = std::env::var_os("RUNVOY_TEST_LOG").is_some();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if log {
                    eprintln!("{line}");
                }
            }
        });
        Ok(Server { child, url, data: data.to_owned(), _own: None })
    }
}

impl Server {
    /// A server with nothing special about it.
    pub fn start() -> Self {
        Setup::default().start()
    }

    /// The server's own pid, also where it runs under a wrapper.
    pub fn pid(&self) -> u32 {
        let holder = std::fs::read_to_string(self.data.join("lock")).expect("the lock file");
        holder.trim().parse().expect("a pid")
    }

    pub fn key(&self) -> String {
        let path = self.data.join("admin.key");
        std::fs::read_to_string(path).expect("the admin's key").trim().to_owned()
    }

    /// A client with the admin's key.
    pub fn http(&self) -> Http {
        Http::new(&self.url, Some(&self.key()))
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub fn kill_9(&mut self) {
        process::signal(self.pid(), libc::SIGKILL);
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop and waits; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        process::signal(self.pid(), libc::SIGTERM);
        self.child.wait().expect("it ends").code()
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    /// Runs the command line against this server.
    pub fn cli(&self, args: &[&str]) -> Output {
        self.cli_command(args).output().expect("the command line runs")
    }

    pub fn cli_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        let home = self.data.join("home");
        std::fs::create_dir_all(&home).expect("a home");
        command.args(args).current_dir(&home).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
        command.env("RUNVOY_API_ENDPOINT", &self.url).env("RUNVOY_API_KEY", self.key()).stdin(Stdio::null());
        command
    }

    /// Submits a command; its id.
    pub fn run(&self, command: &str) -> String {
        self.run_with(json!({"command": command}))
    }

    pub fn run_with(&self, request: Value) -> String {
        let answer = self.http().post("/api/v1/run", &request);
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["execution_id"].as_str().expect("an id").to_owned()
    }

    pub fn status(&self, id: &str) -> Value {
        let answer = self.http().get(&format!("/api/v1/executions/{id}/status"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Waits for the end; the status then.
    pub fn wait(&self, id: &str) -> Value {
        let answer = self.http().get(&format!("/api/v1/executions/{id}/wait?timeout=120"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let status = answer.json();
        assert!(!status["exit_code"].is_null(), "still not ended: {status}");
        status
    }

    /// Waits until an execution has this status.
    pub fn wait_until(&self, id: &str, status: &str) {
        eventually(&format!("{id} is {status}"), || self.status(id)["status"] == status);
    }

    /// The raw output of an execution.
    pub fn raw(&self, id: &str) -> Vec<u8> {
        let answer = self.http().get(&format!("/api/v1/executions/{id}/logs?format=raw"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    }

    pub fn get(&self, path: &str) -> Answer {
        self.http().get(path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            process::signal(self.pid(), libc::SIGTERM);
            let began = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(10));
            }
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Looks until something holds; fails, naming it, after a long time.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(Duration::from_secs(90), what, holds);
}

/// The same for what may take longer.
pub fn eventually_within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
