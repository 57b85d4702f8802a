//! An emulator of AWS for one test: given by whoever runs the tests, or started here and ended with it.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;

use crate::clients::Clients;

pub(super) struct Emulator {
    url: String,
    own: Option<Child>,
}

impl Emulator {
    pub fn start() -> Self {
        if let Ok(url) = std::env::var("RUNVOY_MINISTACK_URL") {
            return Self { url, own: None };
        }
        let place = std::env::var_os("RUNVOY_EMULATORS").expect("RUNVOY_EMULATORS names a directory with bin/ministack");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
        let child = Command::new(PathBuf::from(place).join("bin/ministack"))
            .env("BIND_HOST", "127.0.0.1")
            .env("IOT_MTLS_ENABLED", "0")
            .env("GATEWAY_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ministack starts");
        let address = format!("127.0.0.1:{port}");
        for _ in 0..1_000 {
            if TcpStream::connect(&address).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { url: format!("http://{address}"), own: Some(child) }
    }

    pub async fn clients(&self) -> Clients {
        let http = aws_smithy_http_client::Builder::new().build_http();
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .region(Region::new("us-east-1"))
            .endpoint_url(&self.url)
            .credentials_provider(Credentials::new("test", "test", None, None, "emulator"));
        Clients::new(&loader.load().await)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(child) = &mut self.own {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
