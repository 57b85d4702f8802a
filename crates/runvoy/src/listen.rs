//! The sockets of a server: TCP or TLS where it has an address, and always the Unix socket of its data directory.

use std::net::SocketAddr;
use std::path::PathBuf;
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
    socket: PathBuf,
    url: Option<String>,
}

/// Sockets that are served.
pub struct Serving {
    tasks: JoinSet<()>,
    app: App,
    limits: Limits,
    socket: PathBuf,
    url: Option<String>,
}

impl Listeners {
    /// Binds them all. TCP connections wait until they are served; the Unix socket is found only then, because whoever can connect to it
    /// takes it for a server that has started.
    pub async fn bind(data: &DataDir, settings: &Settings, address: Option<SocketAddr>) -> Result<Self> {
        let tcp = match (address, &settings.tls_cert, &settings.tls_key) {
            (None, ..) => None,
            (Some(address), Some(cert), Some(key)) => Some(("https", Listener::tls(address, cert, key).await?)),
            (Some(address), ..) => Some(("http", Listener::tcp(address).await?)),
        };
        let url = tcp.as_ref().and_then(|(scheme, listener)| Some(format!("{scheme}://{}", listener.address()?)));
        let socket = data.socket();
        Ok(Self { tcp: tcp.map(|(_, listener)| listener), unix: Listener::unix_hidden(&socket)?, socket, url })
    }

    /// Where the server is reached over TCP.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Serves them from now on.
    pub fn serve(self, app: &App, drain: Duration) -> Result<Serving> {
        self.unix.publish()?;
        let limits = Limits { drain, ..Limits::default() };
        let mut serving = Serving { tasks: JoinSet::new(), app: app.clone(), limits, socket: self.socket, url: self.url };
        for listener in self.tcp.into_iter().chain([self.unix]) {
            serving.add(listener);
        }
        Ok(serving)
    }
}

impl Serving {
    fn add(&mut self, listener: Listener) {
        self.tasks.spawn(serve(listener, self.app.clone(), self.limits, std::future::pending()));
    }

    /// Where the server is reached over TCP.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Stops accepting, lets requests finish, and comes back when the last connection is gone.
    pub async fn stop(&mut self) {
        self.app.stop();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Serves the Unix socket again after a stop.
    pub fn reopen(&mut self) -> Result<()> {
        let listener = Listener::unix(&self.socket)?;
        self.app.resume();
        self.add(listener);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runvoy_engine::Engine;
    use runvoy_model::command::Worker;
    use runvoy_model::id::WorkerId;
    use runvoy_model::spec::Needs;
    use runvoy_ports::clock::IdSource;
    use runvoy_server::{ServerConfig, ServerParts};
    use runvoy_sqlite::DiskReserve;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;
    use crate::backend::embedded;
    use crate::clock::{SystemClock, UuidSource};
    use crate::idle::is_deserted;
    use crate::machine::Machine;
    use crate::open_files::OpenFiles;

    /// The edge over an empty store, without a worker.
    async fn edge(data: &DataDir) -> (Arc<Engine>, App) {
        let backend = embedded::open(data, &Settings::of_defaults(), OpenFiles::raise()).await.expect("a store");
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(UuidSource));
        crate::admin::ensure_admin(data, "ana@localhost", &backend, &*clock, &*ids).await.expect("an admin");
        let serves = vec![Needs::Process];
        let worker = Worker {
            id: WorkerId(ids.next_id()),
            host: "here".into(),
            runner: "process".into(),
            in_process: true,
            serves,
            labels: Default::default(),
        };
        let ports = crate::stack::ports(&backend, clock, ids);
        let engine = Engine::new(ports, runvoy_engine::Config::default(), worker);
        let host = Arc::new(Machine {
            data: data.clone(),
            reserve: DiskReserve::default(),
            upkeep: backend.upkeep,
            runner: None,
            containers: None,
        });
        let config = ServerConfig::new("", [7; 32]);
        (engine.clone(), App::new(ServerParts { engine, config, metrics: Arc::new(String::new), host }))
    }

    async fn ask(data: &DataDir, request: &str) -> String {
        let mut stream = UnixStream::connect(data.socket()).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer
    }

    #[tokio::test]
    async fn a_server_that_closed_its_door_on_a_client_opens_it_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        let (engine, app) = edge(&data).await;
        let listeners = Listeners::bind(&data, &Settings::default(), None).await.expect("bound");
        assert!(!data.socket().exists(), "whoever connects would take it for a server that has started");
        let mut serving = listeners.serve(&app, Duration::from_secs(5)).expect("served");
        let visits = app.visits();
        assert!(is_deserted(&engine, &app, visits).await);

        let body = r#"{"command":"true"}"#;
        let head = "POST /api/v1/run HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
        let taken = ask(&data, &format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
        assert!(taken.starts_with("HTTP/1.1 202"), "{taken}");
        serving.stop().await;
        assert!(!data.socket().exists());
        assert!(!is_deserted(&engine, &app, visits).await, "somebody came");
        assert!(!is_deserted(&engine, &app, app.visits()).await, "an execution waits");

        serving.reopen().expect("opened");
        let ready = ask(&data, "GET /api/v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        serving.stop().await;
        assert!(!data.socket().exists());
    }
}
