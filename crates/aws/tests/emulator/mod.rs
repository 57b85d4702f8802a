//! Emulators of AWS for tests ([`process`]), and their clients. Every test gets an installation of its own, so that none meets another. [`fault`] stands between the clients and an emulator.
#![expect(dead_code, reason = "each test file uses its own part of this")]

mod answer;
pub mod count;
pub mod fault;
mod lag;
mod process;
pub mod unit;

use std::time::Duration;

use aws_config::retry::RetryConfig;
use runvoy_aws::{Clients, Config};

use self::count::Counter;
use self::fault::Faults;
pub use self::process::Emulator;

impl Emulator {
    /// An installation that no other test has.
    pub fn config(&self) -> Config {
        let prefix = process::prefix();
        Config { log_group: Some(format!("/runvoy/{prefix}")), ..Config::new(&prefix) }
    }
}

/// So far an index lags at most behind the layer of faults.
pub const fn longest_lag() -> Duration {
    lag::MOST
}

/// Clients of an emulator.
pub async fn clients(emulator: &Emulator) -> Clients {
    clients_at(&emulator.url).await
}

/// Clients of whatever answers at an address.
pub async fn clients_at(url: &str) -> Clients {
    let http = aws_smithy_http_client::Builder::new().build_http();
    Clients::new(&process::at(url, Clients::settings().http_client(http)).await)
}

/// Clients of an emulator through a layer that fails as AWS does. What is tried again is so at once: the layer is no busy server.
pub async fn clients_through(emulator: &Emulator, faults: &Faults) -> Clients {
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(1));
    let settings = Clients::settings().http_client(faults.client()).retry_config(retries);
    Clients::new(&process::at(&emulator.url, settings).await)
}

/// Clients of an emulator that count what they do. Nothing is tried twice: it would be counted twice.
pub async fn clients_counted(emulator: &Emulator, counter: &Counter) -> Clients {
    let settings = Clients::settings().http_client(counter.client()).retry_config(RetryConfig::disabled());
    Clients::new(&process::at(&emulator.url, settings).await)
}
