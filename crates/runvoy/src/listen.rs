//! The sockets of a server: TCP or TLS where it has an address, and always the Unix socket of its data directory.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use runvoy_server::{App, Limits, Listener, serve};
use tokio::task::JoinSet;

use crate::data_dir::DataDir;
use crate::settings::Settings;

/// Sockets that nobody serves yet.
pub struct Listeners {
    tcp: Option<Listener>,
    unix: Listener,
    url: Option<String>,
}

/// Sockets that are served.
pub struct Serving {
    tasks: JoinSet<()>,
    app: App,
    url: Option<String>,
}

impl Listeners {
    /// Binds them all; connections wait until they are served.
    pub async fn bind(data: &DataDir, settings: &Settings, address: Option<SocketAddr>) -> Result<Self> {
        let tcp = match (address, &settings.tls_cert, &settings.tls_key) {
            (None, ..) => None,
            (Some(address), Some(cert), Some(key)) => Some(("https", Listener::tls(address, cert, key).await?)),
            (Some(address), ..) => Some(("http", Listener::tcp(address).await?)),
        };
        let url = tcp.as_ref().and_then(|(scheme, listener)| Some(format!("{scheme}://{}", listener.address()?)));
        Ok(Self { tcp: tcp.map(|(_, listener)| listener), unix: Listener::unix(&data.socket())?, url })
    }

    /// Where the server is reached over TCP.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Serves them from now on.
    pub fn serve(self, app: &App, drain: Duration) -> Serving {
        let limits = Limits { drain, ..Limits::default() };
        let mut tasks = JoinSet::new();
        for listener in self.tcp.into_iter().chain([self.unix]) {
            tasks.spawn(serve(listener, app.clone(), limits, std::future::pending()));
        }
        Serving { tasks, app: app.clone(), url: self.url }
    }
}

impl Serving {
    /// Where the server is reached over TCP.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// How many connections are open.
    pub fn clients(&self) -> usize {
        self.app.clients()
    }

    /// Stops accepting, lets requests finish, and comes back when the last connection is gone.
    pub async fn stop(mut self) {
        self.app.stop();
        while self.tasks.join_next().await.is_some() {}
    }
}
