//! Emulators of AWS for tests: started once a process on free loopback ports, or given by whoever runs the tests, and gone when the process is.
//! Every test gets an installation of its own, so that none meets another. [`fault`] stands between the clients and an emulator.
#![expect(dead_code, reason = "each test file uses its own part of this")]

mod answer;
pub mod count;
pub mod fault;
mod lag;
pub mod unit;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_config::{Region, retry::RetryConfig};
use aws_sdk_dynamodb::config::Credentials;
use runvoy_aws::{Clients, Config};

use self::count::Counter;
use self::fault::Faults;

/// What an emulator is started with: it says its address, and ends with its stdin.
const START: &str = include_str!("start.py");

/// A running emulator.
#[derive(Debug)]
pub struct Emulator {
    /// Which one.
    pub name: &'static str,
    /// Where it answers.
    pub url: String,
    // Never read: when this process ends, however it does, the kernel closes the pipe and the emulator goes.
    _own: Option<(Child, ChildStdin)>,
}

impl Emulator {
    /// The one that everything is tested against.
    pub fn ministack() -> &'static Self {
        static RUNNING: OnceLock<Emulator> = OnceLock::new();
        RUNNING.get_or_init(|| Self::run("ministack", "RUNVOY_MINISTACK_URL"))
    }

    /// A second opinion on tables, objects and the mirror of logs.
    pub fn moto() -> &'static Self {
        static RUNNING: OnceLock<Emulator> = OnceLock::new();
        RUNNING.get_or_init(|| Self::run("moto", "RUNVOY_MOTO_URL"))
    }

    fn run(name: &'static str, given: &str) -> Self {
        if let Ok(url) = std::env::var(given) {
            return Self { name, url, _own: None };
        }
        let place = std::env::var_os("RUNVOY_EMULATORS").unwrap_or_else(|| {
            panic!(
                "neither {given} nor RUNVOY_EMULATORS is set: `cargo xtask test` installs the emulators of AWS and runs the tests with them"
            )
        });
        let python = PathBuf::from(place).join("bin/python3");
        let mut child = Command::new(&python)
            .args(["-c", START, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {} ({error}): `cargo xtask test` installs it", python.display()));
        let held = child.stdin.take().expect("stdin is piped");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut url).expect("an address");
        let mut said = child.stderr.take().expect("stderr is piped");
        if url.is_empty() {
            let mut text = String::new();
            let _ = said.read_to_string(&mut text);
            panic!("{name} did not start:\n{text}");
        }
        // Somebody has to read what it says, or it stands still when the pipe is full.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { name, url: url.trim().to_owned(), _own: Some((child, held)) }
    }

    /// An installation that no other test has.
    pub fn config(&self) -> Config {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut random = [0; 6];
        getrandom::fill(&mut random).expect("randomness");
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let prefix = format!("t{random}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Config { log_group: Some(format!("/runvoy/{prefix}")), ..Config::new(&prefix) }
    }
}

/// So far an index lags at most behind the layer of faults.
pub const fn longest_lag() -> Duration {
    lag::MOST
}

/// Clients of an emulator.
pub async fn clients(emulator: &Emulator) -> Clients {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let settings = Clients::settings().http_client(http);
    load(emulator, settings).await
}

/// Clients of an emulator through a layer that fails as AWS does. What is tried again is so at once: the layer is no busy server.
pub async fn clients_through(emulator: &Emulator, faults: &Faults) -> Clients {
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(1));
    let settings = Clients::settings().http_client(faults.client()).retry_config(retries);
    load(emulator, settings).await
}

/// Clients of an emulator that count what they do. Nothing is tried twice: it would be counted twice.
pub async fn clients_counted(emulator: &Emulator, counter: &Counter) -> Clients {
    let settings = Clients::settings().http_client(counter.client()).retry_config(RetryConfig::disabled());
    load(emulator, settings).await
}

async fn load(emulator: &Emulator, settings: aws_config::ConfigLoader) -> Clients {
    let credentials = Credentials::new("test", "test", None, None, "emulator");
    let settings = settings.region(Region::new("us-east-1")).endpoint_url(&emulator.url).credentials_provider(credentials);
    Clients::new(&settings.load().await)
}
