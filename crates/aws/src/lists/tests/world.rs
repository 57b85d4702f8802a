//! A world of random executions: all of them as they are, and an installation that holds them, with indexes that lag behind.

use std::sync::Arc;
use std::time::Duration;

use runvoy_conformance::chance::Chance;
use runvoy_memory::MemoryBlobStore;
use runvoy_model::chain::ChainHead;
use runvoy_model::execution::{Execution, Lease, LockClaim, RanOn};
use runvoy_model::id::{ExecutionId, JobId, LeaseId, WorkerId};
use runvoy_model::job::TaskRef;
use runvoy_model::name::Name;
use runvoy_model::spec::Labels;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_model::view::PassOver;

use super::super::Lists;
use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::emulator::{Emulator, prefix};
use crate::execution;
use crate::item::{Item, item, s};
use crate::recent::Recent;
use crate::setup::set_up;
use crate::table::Table;

pub(super) const BEGINNING: UnixMs = UnixMs(1_800_000_000_000);
pub(super) const DAY_MS: i64 = 86_400_000;
pub(super) const QUEUES: [&str; 3] = ["default", "gpu", "team/x"];
pub(super) const USERS: [&str; 3] = ["ann@x", "bob@x", "c#2027-01-15#0"];
/// What the indexes of an item are made of.
const INDEXED: [&str; 7] = ["stand", "stand_sort", "day_shard", "user_day_shard", "status_day_shard", "job_id", "suffix"];

pub(super) struct World {
    pub lists: Lists,
    /// By id.
    pub all: Vec<Execution>,
    clients: Clients,
    made: u64,
}

impl World {
    pub async fn new() -> Self {
        let clients = Clients::new(&Emulator::ministack().settings().await);
        let config = Config { shards: 2, ..Config::new(&prefix()) };
        set_up(&clients, &config).await.expect("an installation");
        let lists = lists(&clients, Arc::new(config));
        Self { lists, all: Vec::new(), clients, made: 0 }
    }

    /// Writes another execution: with its indexes, without any, or with those of an earlier version.
    pub async fn add(&mut self, chance: &mut Chance) {
        self.made += 1;
        let mut new = execution(chance, self.made);
        self.lists.note_new(&new).await.expect("noted");
        let config = Arc::clone(&self.lists.config);
        match chance.below(10) {
            0..6 => self.put(execution::to_item(&new, &config)).await,
            6..8 => {
                let mut item = execution::to_item(&new, &config);
                INDEXED.iter().for_each(|name| drop(item.remove(*name)));
                self.put(item).await;
                let first = Execution { version: 1, ..new.clone() };
                self.lists.wrote(&first);
                self.lists.wrote(&new);
            }
            _ => {
                let old = new.clone();
                new = changed(chance, &old);
                let mut item = execution::to_item(&new, &config);
                let mut before = execution::to_item(&old, &config);
                for name in INDEXED {
                    item.remove(name);
                    item.extend(before.remove_entry(name));
                }
                self.put(item).await;
                self.lists.wrote(&old);
                self.lists.wrote(&new);
            }
        }
        let place = self.all.partition_point(|known| known.id < new.id);
        self.all.insert(place, new);
    }

    /// Who has written nothing.
    pub fn another_process(&self) -> Lists {
        lists(&self.clients, Arc::clone(&self.lists.config))
    }

    pub async fn put(&self, item: Item) {
        self.lists.dynamo.put(Table::Executions, item).await.expect("written");
    }

    pub async fn mark(&self, name: &str) -> Option<Item> {
        self.lists.dynamo.get(Table::Marks, item([("mark", s(name))])).await.expect("read")
    }
}

fn lists(clients: &Clients, config: Arc<Config>) -> Lists {
    let mut lists = Lists::new(Dynamo::new(clients, Arc::clone(&config)), Arc::new(MemoryBlobStore::default()), config);
    // However slow the machine is: nothing is forgotten during a test.
    lists.recent = Recent::bounded(Duration::from_secs(3_600), 10_000);
    lists
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

fn below(chance: &mut Chance, limit: u8) -> u8 {
    u8::try_from(chance.below(usize::from(limit))).expect("below a small number")
}

pub(super) fn job(chance: &mut Chance) -> JobId {
    JobId::from_bytes([below(chance, 3); 16])
}

/// Half of them on one day, the others on those around it.
pub(super) fn time(chance: &mut Chance) -> UnixMs {
    let day = if chance.percent(50) { 0 } else { i64::from(below(chance, 8)) - 4 };
    BEGINNING.plus_ms(day * DAY_MS + i64::try_from(chance.below(50_000_000)).expect("less than a day"))
}

pub(super) fn execution(chance: &mut Chance, number: u64) -> Execution {
    let at = time(chance);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&at.0.to_be_bytes()[2..]);
    bytes[6..10].copy_from_slice(&number.to_be_bytes()[4..]);
    // Some end alike.
    (bytes[13], bytes[15]) = (below(chance, 4), below(chance, 7));
    let submitted_at = match chance.below(10) {
        0 => time(chance),
        1 => UnixMs(i64::MAX),
        _ => at,
    };
    let user = USERS[chance.below(USERS.len())].to_owned();
    let mut execution: Execution = serde_json::from_value(serde_json::json!({
        "id": ExecutionId::from_bytes(bytes),
        "created_by": user,
        "owned_by": if chance.percent(50) { vec![user] } else { Vec::new() },
        "created_by_request_id": "r1",
        "modified_by_request_id": "r2",
        "submitted_at": submitted_at,
        "status": "PENDING",
        "attempt": 0,
        "ready_at": at,
        "chain": ChainHead::default(),
        "version": 1 + chance.below(5),
    }))
    .expect("an execution");
    let spec = &mut execution.spec;
    spec.command = format!("echo {number}");
    spec.image = if chance.percent(70) { "local".into() } else { "alpine:3.20-0123456789ab".into() };
    spec.queue = name(QUEUES[chance.below(QUEUES.len())]);
    spec.priority = 1 + below(chance, 5);
    if chance.percent(30) {
        spec.worker_labels = label(chance);
    }
    spec.lock = chance.percent(40).then(|| name(if chance.percent(50) { "prod" } else { "other" }));
    spec.task = chance.percent(30).then(|| TaskRef { job: job(chance), task: name("t"), generation: 0, name: None });
    stand(chance, &mut execution);
    execution
}

fn label(chance: &mut Chance) -> Labels {
    [("zone".to_owned(), ["a", "b"][chance.below(2)].to_owned())].into()
}

/// What a worker passes over.
pub(super) fn pass(chance: &mut Chance) -> PassOver {
    let labels = if chance.percent(50) { label(chance) } else { Labels::new() };
    let one = |chance: &mut Chance| (name(QUEUES[chance.below(QUEUES.len())]), USERS[chance.below(USERS.len())].to_owned());
    PassOver { labels, users: (0..chance.below(4)).map(|_| one(chance)).collect() }
}

/// The same one later.
pub(super) fn changed(chance: &mut Chance, execution: &Execution) -> Execution {
    let mut changed = execution.clone();
    changed.version += 1;
    stand(chance, &mut changed);
    changed
}

/// Gives an execution another standing, of which nothing of the one before is left.
fn stand(chance: &mut Chance, execution: &mut Execution) {
    execution.status = if chance.percent(40) { Status::Pending } else { Status::ALL[chance.below(7)] };
    (execution.lock, execution.lease, execution.completed_at, execution.dead) = (LockClaim::None, None, None, false);
    (execution.exit_code, execution.ran_on, execution.started_at, execution.cost_micro_usd) = (None, None, None, None);
    execution.attempt = 0;
    match execution.status {
        Status::Pending => {
            execution.ready_at = if chance.percent(5) { UnixMs(i64::MAX) } else { time(chance) };
            if execution.spec.lock.is_some() && chance.percent(50) {
                execution.lock = LockClaim::Waiting { until: if chance.percent(10) { UnixMs(i64::MAX) } else { time(chance) } };
            }
        }
        Status::Starting | Status::Running | Status::Terminating => {
            execution.attempt = 1;
            execution.started_at = Some(time(chance));
            execution.lease = Some(lease(chance));
        }
        Status::Succeeded | Status::Failed | Status::Stopped => {
            execution.started_at = Some(BEGINNING);
            execution.completed_at = Some(time(chance));
            execution.exit_code = Some(-1);
            execution.cost_micro_usd = Some(chance.number() % 3_000_000);
            execution.ran_on = Some(RanOn { worker: WorkerId::from_bytes([4; 16]), host: "h".into(), runner: "process".into() });
            execution.dead = chance.percent(70);
        }
    }
}

fn lease(chance: &mut Chance) -> Lease {
    Lease {
        id: LeaseId::from_bytes([3; 16]),
        attempt: 1,
        worker: WorkerId::from_bytes([4; 16]),
        in_process: false,
        ttl_ms: 30_000,
        deadline: time(chance),
        begun: true,
        at_once: false,
        extensions: chance.number() % 9,
        heartbeat_at: None,
        heartbeats: 0,
        permit: false,
        account: None,
        lost_after_ms: None,
        preparing: None,
    }
}
