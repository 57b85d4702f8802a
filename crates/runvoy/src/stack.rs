//! Everything under the listeners: backend, engine, worker and agents, wired together.
//!
//! The order of opening matters: leftovers of commands are killed before their leases are reaped, and those are reaped before anything
//! new is leased.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runvoy_engine::{
    Alerts, Auditor, Config as EngineConfig, CostCounter, DeliveryWatch, DigestKey, Dispatcher, Engine, HealthConfig, HealthWatch,
    Keymaker, LocalLeases, Ports, Predecessors, Pruner, Reaper, RetentionConfig, RollCall, RunLimits,
};
use runvoy_model::command::Worker as WorkerIdentity;
use runvoy_model::cost::Rates;
use runvoy_model::health::Thresholds;
use runvoy_model::id::WorkerId;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_ports::runner::Runner;
use runvoy_server::{App, ServerConfig, ServerParts};
use runvoy_sqlite::DiskReserve;
use runvoy_worker::Worker;
use tokio::task::JoinHandle;

use crate::admin::ensure_admin;
use crate::backend::{Backend, Opening, Upkeep};
use crate::clock::{SystemClock, UuidSource};
use crate::containers::Ability;
use crate::data_dir::DataDir;
use crate::machine::Machine;
use crate::metrics;
use crate::open_files::OpenFiles;
use crate::predecessor::Line;
use crate::runner::{self, LEASE, PATIENT_WITH_NETWORK, YIELD_BEFORE};
use crate::settings::Settings;

/// How often the backend is asked whether it still works.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The last checkpoint of the audit trail has this long.
const CHECKPOINT_WITHIN: Duration = Duration::from_secs(10);

/// A server without its listeners.
pub struct Stack {
    pub settings: Settings,
    pub engine: Arc<Engine>,
    pub app: App,
    /// The first admin, where this start made them.
    pub first_admin: Option<String>,
    worker: Option<Arc<Worker>>,
    upkeep: Arc<dyn Upkeep>,
    auditor: Arc<Auditor>,
    agents: Vec<JoinHandle<()>>,
}

impl Stack {
    /// Opens the backend and wires everything over it; nothing is leased before [`Stack::start`]. `url` is where the server will be reached. A server that the command line started
    /// (`ephemeral`) serves one user only: it was told nothing of how to keep several apart.
    pub async fn open(data: &DataDir, mut settings: Settings, url: Option<&str>, ephemeral: bool) -> Result<Self> {
        runner::settle_concurrency(&mut settings);
        let open_files = OpenFiles::raise();
        let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) = (Arc::new(SystemClock::new()), Arc::new(UuidSource));
        let worker_id = WorkerId(ids.next_id());
        let name = worker_id.to_string();
        let backend = Backend::open(Opening { data, settings: &settings, open_files, clock: &clock, name: &name }).await?;
        if backend.is_shared && data.store().exists() {
            tracing::warn!(path = %data.store().display(), "the data directory holds an embedded store, which this server does not use");
        }
        let first_admin = ensure_admin(data, &settings.admin_email, &backend, &*clock, &*ids).await?;
        let ability = Ability::find(&settings).await?;
        let identity = WorkerIdentity {
            id: worker_id,
            host: runner::host(),
            runner: ability.describe(),
            in_process: true,
            serves: ability.serves(),
            labels: Default::default(),
        };
        let line = backend.is_shared.then(|| Line::join(data, identity.id, &identity.host)).transpose()?;
        let mut config = EngineConfig { events: backend.scope.clone(), ..engine_config(&settings, url) };
        if let Some(line) = &line {
            config.predecessors = Predecessors::These(line.gone().to_vec());
        }
        let engine = Engine::new(ports(&backend, Arc::clone(&clock), ids), config, identity.clone());
        if ephemeral && engine.has_many_users().await.context("cannot read the users")? {
            bail!(several_users(data));
        }
        // Also without a worker: what an earlier start left running is ended before it is recorded as ended.
        let runner = Some(runner::start(data, &settings, open_files, &ability).await?).filter(|_| settings.worker);
        if let Some(alerter) = settings.alerter()? {
            engine.attach_alerter(Arc::new(alerter));
        }
        engine.signing_ring().await.context("cannot load the keys of task tokens")?;
        let reaped = engine.recover().await.context("cannot recover what an earlier start left")?;
        if reaped > 0 {
            tracing::warn!(reaped, "executions of an earlier start were recorded as lost");
        }
        line.map_or(Ok(()), Line::settle)?;
        let metrics = metrics::install()?;
        let rendered = metrics.clone();
        let app = App::new(ServerParts {
            engine: Arc::clone(&engine),
            config: server_config(&settings, &backend, url),
            metrics: Arc::new(move || rendered.render()),
            host: Arc::new(Machine {
                data: data.clone(),
                reserve: backend.reserve.clone().unwrap_or_else(|| DiskReserve::watch(data.path(), settings.disk_reserve_bytes)),
                upkeep: Arc::clone(&backend.upkeep),
                runner: runner.clone(),
                containers: ability.daemon.filter(|_| settings.worker),
            }),
        });
        let auditor = Arc::new(Auditor::new(Arc::clone(&engine), Arc::clone(&backend.witnesses)));
        if let Err(error) = auditor.catch_up().await {
            tracing::error!(error = format!("{:#}", anyhow::Error::new(error)), "checkpoints of the audit trail cannot be exported");
        }
        let woken = Arc::clone(&engine);
        let mut agents: Vec<_> = (backend.agents)(Arc::new(move || woken.wake_worker())).into_iter().map(tokio::spawn).collect();
        agents.push(tokio::spawn(metrics::keep_up(move || metrics.run_upkeep())));
        let mut stack = Self { settings, engine, app, first_admin, worker: None, upkeep: backend.upkeep, auditor, agents };
        if let Some(runner) = runner {
            stack.attach_worker(runner, clock, identity.host);
        }
        Ok(stack)
    }

    /// Starts the worker and the agents.
    pub fn start(&mut self) {
        self.agents.extend(self.worker.iter().map(|worker| tokio::spawn(Arc::clone(worker).run())));
        self.agents.push(tokio::spawn(Reaper::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(RollCall::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(Dispatcher::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(HealthWatch::new(Arc::clone(&self.engine)).run()));
        self.agents.extend(Alerts::new(Arc::clone(&self.engine)).map(|alerts| tokio::spawn(alerts.run())));
        self.agents.push(tokio::spawn(Keymaker::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(Pruner::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(CostCounter::new(Arc::clone(&self.engine)).run()));
        self.agents.push(tokio::spawn(Arc::clone(&self.auditor).run()));
        let upkeep = Arc::clone(&self.upkeep);
        self.agents.push(tokio::spawn(DeliveryWatch::new(Arc::clone(&self.engine), "eventbridge", move || upkeep.delivery()).run()));
    }

    fn attach_worker(&mut self, runner: Arc<dyn Runner>, clock: Arc<dyn Clock>, host: String) {
        let settings = &self.settings;
        let is_shared = self.engine.config().predecessors != Predecessors::All;
        let mut config = runner::worker_config(settings, LEASE, host);
        if is_shared {
            config.yields_before = Some(YIELD_BEFORE);
            config.output_patience = PATIENT_WITH_NETWORK;
        }
        config.memory = self.engine.memory().clone();
        let leases = Arc::new(LocalLeases::new(Arc::clone(&self.engine)));
        let worker = Worker::new(leases, runner, clock, config);
        self.engine.attach_worker(worker.slots());
        self.worker = Some(worker);
    }

    /// Takes no new executions; those that run have this long, then they are ended. Comes back when all are recorded.
    pub async fn stop_worker(&self, patience: Duration) {
        if let Some(worker) = &self.worker {
            worker.stop(patience).await;
        }
        // It fades by itself where this fails.
        if let Err(error) = self.engine.leave_roster().await {
            tracing::debug!(%error, "the worker of this server is still on the roster");
        }
    }

    /// Comes back when the backend has failed for good, with the reason. Whatever happens then can be recorded by the next start only.
    pub async fn failed(&self) -> anyhow::Error {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.upkeep.alive() {
                return error;
            }
        }
    }

    /// Puts everything away.
    pub async fn close(self) -> Result<()> {
        for agent in &self.agents {
            agent.abort();
        }
        match tokio::time::timeout(CHECKPOINT_WITHIN, self.auditor.checkpoint()).await {
            Ok(Ok(_)) => {}
            // The next start covers what this one could not.
            Ok(Err(error)) => tracing::error!(error = format!("{:#}", anyhow::Error::new(error)), "no last checkpoint was written"),
            Err(_) => tracing::error!("no last checkpoint was written in time"),
        }
        self.upkeep.close().await
    }
}

/// The backend as the engine sees it.
pub fn ports(backend: &Backend, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Ports {
    Ports {
        store: Arc::clone(&backend.store),
        jobs: Arc::clone(&backend.jobs),
        blobs: Arc::clone(&backend.blobs),
        records: Arc::clone(&backend.records),
        roster: Arc::clone(&backend.roster),
        costs: Arc::clone(&backend.costs),
        trail: Arc::clone(&backend.trail),
        seal_keys: Arc::clone(&backend.seal_keys),
        signing_keys: Arc::clone(&backend.signing_keys),
        digest_key: DigestKey::new(&backend.keys.signing),
        logs: Arc::clone(&backend.logs),
        clock,
        ids,
    }
}

fn several_users(data: &DataDir) -> String {
    let path = data.path().display();
    format!(
        "commands do not start the server of {path}, because it has several users: runvoy serve --data-dir {path} --run-as-uids FIRST-LAST \
         (or --run-as USER, or --no-worker)"
    )
}

/// Where others find the server, if it listens at an address and not at all of them.
fn own_url(url: Option<&str>) -> Option<&str> {
    let url = url?;
    let (_, authority) = url.split_once("://")?;
    let is_nowhere = authority.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_unspecified());
    (!is_nowhere).then_some(url)
}

fn engine_config(settings: &Settings, url: Option<&str>) -> EngineConfig {
    EngineConfig {
        web_url: settings.web_url.clone(),
        own_url: own_url(url).unwrap_or_default().to_owned(),
        public_url: settings.public_url.clone().unwrap_or_default(),
        queues: settings.queues.clone(),
        worker_audience: settings.worker_audience.clone(),
        concurrency: if settings.worker { settings.concurrency } else { 0 },
        lease_ttl_ms: u64::try_from(LEASE.as_millis()).expect("a small constant"),
        denials_per_minute: settings.denials_per_minute,
        max_waiting_per_user: settings.max_waiting_per_user,
        max_waiting_per_queue: settings.max_waiting_per_queue,
        health: health_config(settings),
        alert_every: settings.alerts_interval,
        token_key_days: settings.token_key_days,
        retention: RetentionConfig { log_days: settings.retention_log_days, heartbeat_days: settings.retention_heartbeat_days },
        rates: Rates { vcpu_hour_usd: settings.cost_vcpu_hour_usd, gb_hour_usd: settings.cost_gb_hour_usd },
        limits: RunLimits {
            cpu_units: settings.limit_cpu_millis.and_then(|millis| u32::try_from(millis * 1024 / 1000).ok()),
            memory_mib: settings.limit_memory_bytes.and_then(|bytes| u32::try_from(bytes >> 20).ok()),
            processes: settings.limit_pids,
            log_bytes: Some(settings.log_max_bytes),
        },
        shares_uid: settings.worker && settings.run_as.is_none() && settings.run_as_uids.is_none(),
        uid_per_execution: settings.run_as_uids.is_some(),
        allow_shared_uid: settings.allow_shared_uid,
        git_private: settings.git_allow_private,
        ..EngineConfig::default()
    }
}

fn health_config(settings: &Settings) -> HealthConfig {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    HealthConfig {
        every: settings.health_interval,
        thresholds: Thresholds {
            healthy_within_ms: ms(settings.health_healthy_within),
            warning_within_ms: ms(settings.health_warning_within),
            overtime_after_ms: ms(settings.health_overtime_after),
        },
    }
}

fn server_config(settings: &Settings, backend: &Backend, url: Option<&str>) -> ServerConfig {
    let mut config = ServerConfig::new(url.unwrap_or_default(), backend.keys.signing);
    let (provider, region) = backend.place.clone();
    (config.provider, config.region) = (provider.to_owned(), region);
    config.public_url.clone_from(&settings.public_url);
    config.cors_origins.clone_from(&settings.cors_origins);
    config.metrics_public = settings.metrics_public;
    config.failed_keys_per_minute = settings.failed_keys_per_minute;
    config.failed_claims_per_minute = settings.failed_claims_per_minute;
    config.trusted_proxies.clone_from(&settings.trusted_proxies);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_at_an_address_that_leads_somewhere() {
        assert_eq!(own_url(Some("http://127.0.0.1:56212")), Some("http://127.0.0.1:56212"));
        assert_eq!(own_url(Some("https://[2001:db8::1]:443")), Some("https://[2001:db8::1]:443"));
        for nowhere in [Some("http://0.0.0.0:56212"), Some("https://[::]:443"), None] {
            assert_eq!(own_url(nowhere), None);
        }
    }
}
