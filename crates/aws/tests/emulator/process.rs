//! Emulators of AWS for all tests of this crate, those within it and those beside it: one of a kind a process, started on a free loopback port, or
//! given by whoever runs the tests, and gone when the process is.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;

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

    /// How its clients are made.
    pub async fn settings(&self) -> SdkConfig {
        let http = aws_smithy_http_client::Builder::new().build_http();
        at(&self.url, aws_config::defaults(BehaviorVersion::latest()).http_client(http)).await
    }
}

/// Settings of whatever answers at an address.
pub async fn at(url: &str, settings: ConfigLoader) -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "emulator");
    settings.region(Region::new("us-east-1")).endpoint_url(url).credentials_provider(credentials).load().await
}

/// The prefix of an installation that no other test has.
pub fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut random = [0; 6];
    getrandom::fill(&mut random).expect("randomness");
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t{random}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
