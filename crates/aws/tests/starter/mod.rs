//! An emulator of AWS for one test, on a free loopback port, gone with it.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use runvoy_aws::{Clients, Config};

/// A running emulator.
pub struct Started {
    child: Child,
    /// Where it answers.
    pub url: String,
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Started {
    /// Starts one.
    pub fn new() -> Self {
        let place = std::env::var_os("RUNVOY_EMULATORS").expect("RUNVOY_EMULATORS names the directory that has bin/ministack");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let child = Command::new(PathBuf::from(place).join("bin/ministack"))
            .envs([("BIND_HOST", "127.0.0.1"), ("IOT_MTLS_ENABLED", "0"), ("GATEWAY_PORT", &port.to_string())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ministack starts");
        let started = Self { child, url: format!("http://127.0.0.1:{port}") };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "ministack does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        started
    }

    /// Clients of it.
    pub async fn clients(&self) -> Clients {
        clients(&self.url).await
    }
}

/// Clients of whatever is there.
pub async fn clients(url: &str) -> Clients {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let settings = aws_config::defaults(BehaviorVersion::latest()).http_client(http).region(Region::new("us-east-1"));
    let settings = settings.endpoint_url(url).credentials_provider(Credentials::new("test", "test", None, None, "emulator"));
    Clients::new(&settings.load().await)
}

/// An installation.
pub fn config() -> Config {
    Config::new("prod")
}
