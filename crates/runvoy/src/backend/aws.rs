//! The backend on AWS: DynamoDB, S3, SQS, EventBridge and CloudWatch Logs, with the keys in SSM. Any number of servers may share it; the data
//! directory of each holds only what is its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::{BoxFuture, join};
use runvoy_aws::{
    BucketWitnesses, Clients, Config, Dependencies, Dependency, DynamoLogStore, DynamoStore, EventLayout, Listener, LogConfig, Mirror,
    MirrorConfig, Publisher, Queues, S3BlobStore, ServerKeys, SsmSealKeys, SsmSigningKeys, Sweep, Wakes, blob_place, check_queue,
    choose_bucket, claim_bucket, set_up,
};
use runvoy_engine::Delivery;
use runvoy_model::chain::AuditKey;
use runvoy_model::event::EventScope;
use runvoy_model::execution::Execution;
use runvoy_model::view::Writes;
use runvoy_ports::clock::Clock;
use runvoy_server::BackupFault;
use runvoy_wire::{Probe, ProbeStatus};

use super::{Agents, Backend, Upkeep, fits_first_event, probe, scope, used_seal_keys};
use crate::keys::Keys;
use crate::settings::{self, Settings};

/// What waits to be sent or mirrored has this long at the stop; what is left is found by others.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Opens an installation; an empty one gets its keys first, and what it lacks where the settings say so. `name` tells this server from others.
pub async fn open(settings: &Settings, clock: Arc<dyn Clock>, name: String) -> Result<Backend> {
    let clients = Clients::connect(settings.aws.region.as_deref(), settings.aws.endpoint.as_deref()).await;
    let asked = settings.aws.bucket.as_deref();
    let bucket = choose_bucket(&clients, &config(settings, String::new()), asked).await.context("cannot choose the bucket (aws.bucket)")?;
    let config = Arc::new(config(settings, bucket));
    if settings.aws.set_up {
        set_up(&clients, &config).await.with_context(|| format!("cannot create what {}-… needs (aws.set_up)", config.prefix))?;
    }
    claim_bucket(&clients, &config).await.context("cannot use the bucket (aws.bucket)")?;
    for (queue, url) in &settings.aws.queue_urls {
        check_queue(&clients, &config, queue.as_str(), url).await.context("aws.queue_urls")?;
    }
    let ServerKeys { audit, signing } = ServerKeys::load_or_make(&clients, &config).await.context("cannot load the server's keys")?;
    let queues = Queues::new(&clients, Arc::clone(&config));
    let store = open_store(&clients, &config, &audit, Hints { queues: queues.clone(), clock: Arc::clone(&clock) }).await?;
    let used = used_seal_keys(&*store).await?;
    let seal_keys = SsmSealKeys::open(&clients, &config, &used).await.context("cannot load the encryption keys")?;
    let mirror = Mirror::start(&clients, &config, MirrorConfig::default());
    let log_config = LogConfig { max_log_bytes: settings.log_max_bytes, ..LogConfig::default() };
    let logs = DynamoLogStore::open(&clients, &config, log_config, mirror.clone()).context("cannot open the logs")?;
    let publisher = Arc::new(Publisher::new(&clients, Arc::clone(&config), Arc::clone(&clock), name));
    let witnesses = || BucketWitnesses::new(&clients, &config, audit.clone());
    Ok(Backend {
        store: Arc::clone(&store) as _,
        jobs: Arc::clone(&store) as _,
        records: Arc::clone(&store) as _,
        roster: Arc::clone(&store) as _,
        blobs: Arc::new(S3BlobStore::new(&clients, &config)),
        logs: Arc::new(logs),
        trail: store.trail(witnesses()),
        witnesses: Arc::new(witnesses()),
        seal_keys: Arc::new(seal_keys),
        signing_keys: Arc::new(SsmSigningKeys::new(&clients, &config)),
        reserve: None,
        is_shared: true,
        scope: config.scope.clone(),
        place: ("aws", clients.region()),
        agents: agents(settings, queues.clone(), Arc::clone(&publisher), store, clock),
        upkeep: Arc::new(Installation { dependencies: Dependencies::new(clients.clone(), Arc::clone(&config)), queues, publisher, mirror }),
        keys: Keys { audit, signing },
    })
}

async fn open_store(clients: &Clients, config: &Arc<Config>, audit: &AuditKey, hints: Hints) -> Result<Arc<DynamoStore>> {
    let store = Arc::new(DynamoStore::new(clients, Arc::clone(config), audit.clone()).waking(Arc::new(hints)));
    if !fits_first_event(&*store, audit).await? {
        bail!(
            "the audit key in the SSM parameter /{}/keys/audit is not the one that the store's events were made with, or its first event was \
             changed; put the key back",
            config.prefix
        );
    }
    Ok(store)
}

/// What runs as long as the backend is used: messages are sent and heard, and sent again where one was lost; events are published.
fn agents(settings: &Settings, queues: Queues, publisher: Arc<Publisher>, store: Arc<DynamoStore>, clock: Arc<dyn Clock>) -> Agents {
    let served = if settings.worker { settings.queues.clone() } else { Vec::new() };
    Box::new(move |wake| {
        let listener = Listener::new(queues.clone(), Arc::clone(&store) as _, Arc::clone(&clock), wake);
        let sweep = Sweep::new(queues.clone(), store, clock);
        let mut agents: Vec<BoxFuture<'static, ()>> = vec![Box::pin(publisher.run()), Box::pin(sweep.run())];
        agents.push(Box::pin(async move { queues.run().await }));
        agents.push(Box::pin(async move { listener.run(&served).await }));
        agents
    })
}

/// Tells the queues what a step has made ready or taken.
struct Hints {
    queues: Queues,
    clock: Arc<dyn Clock>,
}

impl Wakes for Hints {
    fn committed(&self, writes: &Writes) {
        let now = self.clock.now();
        writes.executions.iter().for_each(|execution| self.queues.changed(None, execution, now));
    }

    fn gave_up(&self, execution: &Execution) {
        self.queues.gave_up(execution);
    }
}

fn config(settings: &Settings, bucket: String) -> Config {
    let aws = &settings.aws;
    let named = Config::new(&aws.prefix);
    Config {
        queue_prefix: aws.queue_prefix.clone().unwrap_or(named.queue_prefix),
        scope: EventScope { blobs: Some(blob_place(&bucket)), ..scope(settings) },
        bucket,
        event_bus: aws.event_bus.clone().unwrap_or(named.event_bus),
        layout: match aws.event_layout {
            settings::EventLayout::Seed => EventLayout::Seed,
            settings::EventLayout::Sharded => EventLayout::Sharded,
        },
        shards: aws.shards,
        log_group: aws.log_group.clone(),
        log_stream_prefix: aws.log_stream_prefix.clone(),
        events_ttl_days: (aws.events_ttl_days > 0).then_some(aws.events_ttl_days),
        executions_table: aws.executions_table.clone(),
        events_table: aws.events_table.clone(),
        max_receives: named.max_receives,
        give_up_after: named.give_up_after,
        prefix: named.prefix,
    }
}

/// An installation on AWS, as its server looks after it.
struct Installation {
    dependencies: Dependencies,
    queues: Queues,
    publisher: Arc<Publisher>,
    mirror: Option<Mirror>,
}

impl Upkeep for Installation {
    fn alive(&self) -> Result<()> {
        // What is away comes back: meanwhile requests fail, commands run on, and `/readyz` says why.
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        let mirrored = async {
            if let Some(mirror) = &self.mirror {
                mirror.idle().await;
            }
        };
        Box::pin(async move {
            if tokio::time::timeout(CLOSE_WITHIN, join(self.queues.flush(), mirrored)).await.is_err() {
                tracing::warn!("not every wake-up was sent, or not every line mirrored, before the end");
            }
            Ok(())
        })
    }

    fn dependencies(&self) -> BoxFuture<'_, Vec<Probe>> {
        // What an agent ran into may name accounts: that is for admins.
        let brief_trouble = |one: &Dependency| self.trouble(one).map(|_| "answers, but the last call failed".to_owned());
        Box::pin(async move { self.dependencies.look().await.iter().map(|one| shown(one, brief(one), brief_trouble(one))).collect() })
    }

    fn probes(&self) -> BoxFuture<'_, Vec<Probe>> {
        let whole = |one: &Dependency| one.whole_error.clone().unwrap_or_else(|| "answers".to_owned());
        Box::pin(async move { self.dependencies.look().await.iter().map(|one| shown(one, whole(one), self.trouble(one))).collect() })
    }

    fn delivery(&self) -> Delivery {
        match self.publisher.handed_on() {
            None => Delivery::Elsewhere,
            Some(Ok(())) => Delivery::Works,
            Some(Err(why)) => Delivery::Fails(why),
        }
    }

    fn backup(&self, _: PathBuf) -> BoxFuture<'_, Result<(), BackupFault>> {
        let how = "everything is on AWS: use point-in-time recovery of the tables and versions of the bucket (docs/aws.md)";
        Box::pin(async move { Err(BackupFault::Elsewhere(how.to_owned())) })
    }
}

impl Installation {
    /// What whoever uses this part has run into and not got over.
    fn trouble(&self, one: &Dependency) -> Option<String> {
        match one.name {
            "SQS" => self.queues.trouble(),
            "EventBridge" => self.publisher.last_error(),
            _ => None,
        }
    }
}

fn shown(one: &Dependency, detail: String, trouble: Option<String>) -> Probe {
    match (one.is_there, one.is_needed, trouble) {
        (false, true, _) => probe(one.name, ProbeStatus::Fail, &detail),
        (false, false, _) => probe(one.name, ProbeStatus::Warn, &detail),
        (true, _, Some(trouble)) => probe(one.name, ProbeStatus::Warn, &trouble),
        (true, _, None) => probe(one.name, ProbeStatus::Ok, &detail),
    }
}

fn brief(one: &Dependency) -> String {
    match &one.last_error {
        None => String::new(),
        Some((error, _)) if !one.is_there => error.clone(),
        Some((error, ago)) => format!("last error {} s ago: {error}", ago.max(&Duration::from_secs(1)).as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_named_after_the_prefix() {
        let mut settings = Settings::of_defaults();
        let bucket = || "logs-of-prod".to_owned();
        let there = EventScope { blobs: Some(blob_place(&bucket())), ..EventScope::default() };
        assert_eq!(config(&settings, bucket()), Config { bucket: bucket(), scope: there.clone(), ..Config::new("runvoy") });
        settings.aws.prefix = "prod".to_owned();
        (settings.aws.shards, settings.aws.events_ttl_days) = (8, 30);
        let expected = Config { bucket: bucket(), scope: there, shards: 8, events_ttl_days: Some(30), ..Config::new("prod") };
        assert_eq!(config(&settings, bucket()), expected);
    }

    #[test]
    fn what_is_away_is_named_with_its_error_and_what_came_back_with_its_last() {
        let one = |is_there, is_needed, last_error: Option<(&str, u64)>| {
            let last_error = last_error.map(|(error, ago)| (error.to_owned(), Duration::from_secs(ago)));
            let one = Dependency { name: "S3", is_needed, is_there, last_error, whole_error: None };
            let probe = shown(&one, brief(&one), None);
            (probe.status, probe.detail)
        };
        assert_eq!(one(true, true, None), (ProbeStatus::Ok, String::new()));
        assert_eq!(one(false, true, Some(("refuses (X)", 0))), (ProbeStatus::Fail, "refuses (X)".to_owned()));
        assert_eq!(one(false, false, Some(("refuses (X)", 0))), (ProbeStatus::Warn, "refuses (X)".to_owned()));
        assert_eq!(one(true, true, Some(("refuses (X)", 70))), (ProbeStatus::Ok, "last error 70 s ago: refuses (X)".to_owned()));
    }
}
