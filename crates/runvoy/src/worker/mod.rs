//! The worker's role: run what a server elsewhere hands out, until told to stop. The first signal lets what runs come to its end, the second
//! ends it.

mod failure;
mod place;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use runvoy_cli::GlobalArgs;
use runvoy_model::phrase::counted;
use runvoy_model::spec::Needs;
use runvoy_ports::clock::{Clock, IdSource};
use runvoy_remote::{Attendant, Attended, Config, Fault, RemoteLeases, WorkerInfo, WorkerNeed};
use runvoy_worker::{OwnKey, Worker};
use tokio::time::{sleep, timeout};

pub use self::failure::Failure;
use self::place::{Place, labels};
use crate::args::WorkerArgs;
use crate::clock::{SystemClock, UuidSource};
use crate::containers::Ability;
use crate::logging;
use crate::open_files::OpenFiles;
use crate::runner::{self, YIELD_BEFORE};
use crate::settings::value::duration;
use crate::settings::{self, Settings};
use crate::signal::Stops;

/// How long a server that cannot be reached is left alone before the next try.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// How much longer than they may take a stop waits for commands to be gone and their ends to be written down.
const COMMANDS_END_WITHIN: Duration = Duration::from_secs(10);
/// How long a stop waits after that until the server has heard everything.
const TELL_WITHIN: Duration = Duration::from_secs(10);

/// What a worker says that leaves although something of a command may still be there.
const UNENDED: &str = "some commands could not be killed in time; the next start kills them";

/// Runs a worker until it is told to stop.
pub async fn run(args: &WorkerArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let mut settings = settings::gather(Vec::new(), args.config.as_deref(), args.flags()).map_err(Failure::usage)?;
    let times = Times::of(args).map_err(Failure::usage)?;
    refuse_local_flags(global).map_err(Failure::usage)?;
    refuse_shared_uid(&settings).map_err(Failure::usage)?;
    let worker_dir = place::named(args.worker_dir.clone());
    place::leave_work_dir(&mut settings, worker_dir.as_deref()).map_err(Failure::usage)?;
    let endpoint = place::endpoint(global)?;
    let labels = labels(args.labels.as_deref().unwrap_or_default()).map_err(Failure::usage)?;
    logging::start(&settings.log_level, &settings.log_format)?;
    runner::settle_concurrency(&mut settings);
    let mut stops = Stops::catch()?;
    let place = Place::take(worker_dir)?;
    let ability = Ability::find(&settings).await?;
    let runner = runner::start(&place.dir, &settings, OpenFiles::raise(), &ability).await?;
    let (clock, host): (Arc<dyn Clock>, _) = (Arc::new(SystemClock::new()), runner::host());
    let info = WorkerInfo {
        id: runvoy_model::id::WorkerId(UuidSource.next_id()).to_string(),
        name: args.name.clone().unwrap_or_else(|| host.clone()),
        host: host.clone(),
        runner: ability.describe(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: labels.into_iter().collect(),
        concurrency: u32::try_from(settings.concurrency).unwrap_or(u32::MAX),
        serves: ability.serves().into_iter().map(need).map(Into::into).collect(),
        place: place.digest(),
        ..WorkerInfo::default()
    };
    let (url, own_key) = (endpoint.address.to_string(), OwnKey::new(&endpoint.key));
    let config = Config {
        endpoint,
        worker: info,
        queues: settings.queues.clone(),
        lease_ttl: times.lease,
        lost_after: times.lost_after,
        dir: place.dir.wal(),
    };
    let leases = Arc::new(RemoteLeases::new(config, Arc::clone(&clock)));
    let attendant = leases.attendant();
    let Some(name) = introduce(&attendant, &mut stops, &url).await? else { return Ok(()) };
    let left = leases.take_up().await.context("cannot read what an earlier start left")?;
    if left > 0 {
        tracing::warn!(attempts = left, "delivering what an earlier start left");
    }
    let config = runvoy_worker::Config {
        // A short lease is given up late in its life too.
        yields_before: Some(YIELD_BEFORE.min(times.lease / 3)),
        lost_after: Some(times.lost_after),
        own_key: Some(own_key),
        ..runner::worker_config(&settings, times.lease, host)
    };
    let worker = Worker::new(Arc::clone(&leases) as _, runner, clock, config);
    announce(&name, &settings, &url);
    serve(&worker, &leases, &attendant, &mut stops, &times, settings.grace).await
}

fn need(needs: Needs) -> WorkerNeed {
    match needs {
        Needs::Process => WorkerNeed::Process,
        Needs::Image => WorkerNeed::Image,
    }
}

/// Flags of every command that mean nothing to a worker are not passed over in silence.
fn refuse_local_flags(global: &GlobalArgs) -> anyhow::Result<()> {
    if global.data_dir.is_some() {
        return Err(anyhow!("--data-dir is for servers: give a worker --worker-dir DIR"));
    }
    if global.profile.is_some() {
        return Err(anyhow!("--profile is for users: give a worker --endpoint URL and --api-key-file FILE"));
    }
    Ok(())
}

/// A command of the worker's own user could act as the worker: that is for whoever starts it to accept.
fn refuse_shared_uid(settings: &Settings) -> anyhow::Result<()> {
    if settings.run_as.is_some() || settings.run_as_uids.is_some() || settings.allow_shared_uid {
        return Ok(());
    }
    Err(anyhow!(
        "commands would run as the worker's own user, and could read its key and the tokens of its leases: give --run-as-uids FIRST-LAST (a user \
         for each execution), --run-as USER (one for all), or --allow-shared-uid to accept that"
    ))
}

/// What a worker is told about time.
struct Times {
    lease: Duration,
    lost_after: Duration,
    drain: Option<Duration>,
}

impl Times {
    fn of(args: &WorkerArgs) -> anyhow::Result<Self> {
        let time = |flag: &str, text: &str| duration(text).map_err(|why| anyhow!("--{flag}: {why}"));
        let times = Self {
            lease: time("lease", &args.lease)?,
            lost_after: time("lost-after", &args.lost_after)?,
            drain: args.drain_timeout.as_deref().map(|text| time("drain-timeout", text)).transpose()?,
        };
        if times.lease < Duration::from_secs(1) || times.lease > Duration::from_secs(12 * 3600) {
            return Err(anyhow!("--lease: must be from 1s to 12h"));
        }
        if times.lost_after < times.lease {
            return Err(anyhow!("--lost-after: must not be shorter than --lease"));
        }
        Ok(times)
    }
}

/// Says that the worker is there until the server has heard it, and gives the name that it is known by; `None` if it was told to stop meanwhile.
async fn introduce(attendant: &Attendant, stops: &mut Stops, url: &str) -> Result<Option<String>, Failure> {
    loop {
        match attendant.introduce().await {
            Ok(name) => return Ok(Some(name)),
            Err(Fault::Away(why)) => tracing::warn!(server = url, why, "cannot reach the server: retrying"),
            Err(fault) => return Err(Failure::of(fault)),
        }
        tokio::select! {
            () = sleep(ASK_AGAIN_AFTER) => {}
            () = stops.next() => return Ok(None),
        }
    }
}

/// Says that the worker is ready to whoever started it.
fn announce(name: &str, settings: &Settings, url: &str) {
    let queues: Vec<&str> = settings.queues.iter().map(|queue| queue.as_str()).collect();
    let mut out = std::io::stdout().lock();
    // Whoever started it may not be reading.
    writeln!(out, "worker {name} serves {} at {url}", queues.join(",")).and_then(|()| out.flush()).ok();
}

async fn serve(
    worker: &Arc<Worker>,
    leases: &RemoteLeases,
    attendant: &Attendant,
    stops: &mut Stops,
    times: &Times,
    grace: Duration,
) -> Result<(), Failure> {
    let running = tokio::spawn(Arc::clone(worker).run());
    let held = Arc::clone(worker);
    let attended = Attended { slots: worker.slots(), held: Box::new(move || held.held()) };
    let (is_stopped, denied) = tokio::select! {
        ended = until_the_end(worker, leases, stops, times, grace) => ended,
        () = attendant.run(&attended) => unreachable!("it speaks for the worker until it is dropped"),
    };
    attendant.leave().await;
    if is_stopped {
        running.await.context("the worker failed")?;
    }
    verdict(is_stopped, denied, leases.untold())
}

/// How a worker ends: well only if everything has ended and was heard. That the server refused it comes first, the rest is in its log then.
fn verdict(is_stopped: bool, denied: Option<Fault>, untold: usize) -> Result<(), Failure> {
    let unended = (!is_stopped).then(|| UNENDED.to_owned());
    let left: Vec<String> = unended.into_iter().chain((untold > 0).then(|| unheard(untold))).collect();
    match denied {
        Some(fault) => {
            left.iter().for_each(|what| tracing::warn!("{what}"));
            Err(Failure::of(fault))
        }
        None if left.is_empty() => Ok(()),
        None => Err(anyhow!(left.join("; ")).into()),
    }
}

/// What is left when a worker leaves before the server has heard everything. Whatever still runs ends with the worker.
fn unheard(untold: usize) -> String {
    let attempts = counted(untold as u64, "attempt");
    format!("the server does not have everything of {attempts}: the rest is in the worker's directory, and the next start delivers it")
}

/// Waits for a reason to stop, and stops: whether every attempt has come to its end, and whether the server refused this worker.
async fn until_the_end(worker: &Worker, leases: &RemoteLeases, stops: &mut Stops, times: &Times, grace: Duration) -> (bool, Option<Fault>) {
    let denied = tokio::select! {
        () = stops.next() => None,
        fault = leases.denied() => Some(fault),
    };
    tracing::info!(running = worker.running(), "draining: taking no new work");
    let patience = times.drain.unwrap_or(Duration::MAX);
    let is_drained = tokio::select! {
        drained = timeout(patience, worker.stop(Duration::MAX)) => drained.is_ok(),
        () = stops.next() => false,
    };
    if !is_drained {
        tracing::info!(running = worker.running(), "second signal, or drain timeout: killing what runs");
        if timeout(grace + COMMANDS_END_WITHIN, worker.stop(Duration::ZERO)).await.is_err() {
            return (false, denied);
        }
    }
    // Attempts that were given up, and those that an earlier start left, have nobody else who waits for them.
    // Whoever does not take the key takes nothing of this start.
    if leases.untold() > 0 && !matches!(denied, Some(Fault::Key(_))) {
        tracing::info!(attempts = leases.untold(), "waiting until the server has everything");
        tokio::select! {
            told = timeout(TELL_WITHIN, leases.told_all()) => drop(told),
            () = stops.next() => {}
        }
    }
    (true, denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_ends_well_only_if_nothing_is_left() {
        assert!(verdict(true, None, 0).is_ok());
        for (is_stopped, untold, words) in [(false, 0, [true, false]), (true, 1, [false, true]), (false, 2, [true, true])] {
            let failure = verdict(is_stopped, None, untold).expect_err("something is left");
            let said = failure.error.to_string();
            assert_eq!((failure.code, [said.contains(UNENDED), said.contains("does not have everything")]), (1, words), "{said}");
            let denied = verdict(is_stopped, Some(Fault::Key("it is revoked".into())), untold);
            assert_eq!(denied.expect_err("the key is refused").code, 4);
        }
    }

    #[test]
    fn what_the_server_has_not_heard_is_counted() {
        assert!(unheard(1).contains(" 1 attempt:") && unheard(2).contains(" 2 attempts:"), "{} {}", unheard(1), unheard(2));
    }
}
