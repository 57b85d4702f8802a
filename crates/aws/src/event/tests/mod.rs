//! The log of events on an emulator: every test has tables of its own.

mod drain;
mod page;
mod publish;
mod trail;

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use runvoy_conformance::chance::Chance;
use runvoy_model::chain::ChainHead;
use runvoy_model::event::{Entity, EntityType, Event, EventType};
use runvoy_model::id::{Id, StepId};
use runvoy_model::time::UnixMs;
use serde_json::json;

use super::EventLog;
use super::journal::{follow, journal_items};
use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::setup::set_up;
use crate::table::Table;

const KEY: runvoy_model::chain::AuditKey = runvoy_model::chain::AuditKey::new([0x5a; 32]);

/// The emulator of this process. It ends when its stdin does, and so with this process, however that ends.
fn emulator() -> &'static str {
    static RUNNING: OnceLock<(String, Option<Child>)> = OnceLock::new();
    let (url, _) = RUNNING.get_or_init(|| {
        if let Ok(url) = std::env::var("RUNVOY_MINISTACK_URL") {
            return (url, None);
        }
        let place = std::env::var("RUNVOY_EMULATORS").expect("RUNVOY_EMULATORS names a directory with bin/ministack");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let child = Command::new("sh")
            .args(["-c", "\"$0\" >/dev/null 2>&1 & own=$!; read -r end; kill $own", &format!("{place}/bin/ministack")])
            .envs([("BIND_HOST", "127.0.0.1"), ("IOT_MTLS_ENABLED", "0"), ("GATEWAY_PORT", &port.to_string())])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let is_up = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(is_up, "the emulator did not start");
        (format!("http://127.0.0.1:{port}"), Some(child))
    });
    url
}

/// An installation of a test's own.
struct Stand {
    clients: Clients,
    config: Arc<Config>,
    dynamo: Dynamo,
}

impl Stand {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut random = [0; 5];
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random)).expect("randomness");
        let mut config = Config::new(&format!("e{}-{}", runvoy_model::hex::hex(&random), NEXT.fetch_add(1, Ordering::Relaxed)));
        change(&mut config);
        let http = aws_smithy_http_client::Builder::new().build_http();
        let settings = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .region(Region::new("us-east-1"))
            .endpoint_url(emulator())
            .credentials_provider(Credentials::new("test", "test", None, None, "emulator"));
        let clients = Clients::new(&settings.load().await);
        set_up(&clients, &config).await.expect("set up");
        let config = Arc::new(config);
        Self { dynamo: Dynamo::new(&clients, Arc::clone(&config)), clients, config }
    }

    /// The log as another process would open it.
    fn log(&self) -> EventLog {
        EventLog::new(self.dynamo.clone())
    }

    /// What the transaction of a step leaves.
    async fn commit(&self, step: StepId, events: &[Event], before: &[StepId]) {
        let mut items = journal_items(step, UnixMs(0), events);
        follow(&mut items, before);
        for item in items {
            self.dynamo.put(Table::Events, item).await.expect("a step");
        }
    }
}

/// Somebody whose chain grows.
struct Subject {
    entity: Entity,
    head: ChainHead,
}

impl Subject {
    fn new(kind: EntityType, id: impl Into<String>) -> Self {
        Self { entity: Entity { kind, id: id.into() }, head: ChainHead::default() }
    }

    /// The next event about it.
    fn event(&mut self, id: Id, kind: EventType, at: UnixMs, properties: serde_json::Value) -> Event {
        let context = json!({"origin": "test"});
        let mut event = Event { id, entity: self.entity.clone(), number: 0, kind, at, context, properties, mac: [0; 32] };
        if kind.is_chained() {
            self.head = KEY.link(&self.head, &event.canonical());
            event.mac = self.head.mac;
        }
        event.number = self.head.count;
        event
    }
}

/// An id that nobody else has; those of one series rise.
fn id(series: u32, number: u64) -> Id {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..12].copy_from_slice(&series.to_be_bytes());
    bytes[15] = u8::try_from(number % 251).expect("small");
    Id::from_bytes(bytes)
}

/// An id that sorts anywhere.
fn scattered(chance: &mut Chance) -> Id {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&chance.number().to_be_bytes());
    bytes[8..].copy_from_slice(&chance.number().to_be_bytes());
    Id::from_bytes(bytes)
}
