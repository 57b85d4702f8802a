//! What the server finds when it looks at itself: what the engine knows, then what the program around it can probe.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::Engine;
use runvoy_model::role::Action;
use runvoy_model::worker::Drain;
use runvoy_ports::store::Counts;
use runvoy_wire::{DoctorResponse, Probe, ProbeStatus, Rfc3339};

use crate::answer;
use crate::call::Call;
use crate::fault::{Fault, chain};
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("diagnoseServer", "Diagnose the server")
        .about(
            "Runs the server's own checks, such as disk, store, worker and alerts, and says what \
             to do where one fails.",
        )
        .gives::<DoctorResponse>(200, "The checks with their results");
    routes.get("/api/v1/doctor", Rule::Key(Action::Diagnose), operation, doctor);
}

async fn doctor(call: Call) -> Result<Response<Body>, Fault> {
    let engine = call.engine();
    let mut probes = store(engine).await;
    probes.push(worker(engine));
    probes.extend(draining(engine).await);
    probes.push(shared_uid(engine).await);
    probes.push(alerts(engine));
    probes.extend(call.state.host.probes().await);
    Ok(answer::json(StatusCode::OK, &DoctorResponse { probes }))
}

fn probe(name: &str, status: ProbeStatus, detail: String) -> Probe {
    Probe { name: name.into(), status, detail }
}

async fn store(engine: &Engine) -> Vec<Probe> {
    match engine.ports().store.counts().await {
        Ok(counts) => vec![probe("store", ProbeStatus::Ok, "answers".into()), growth(engine, counts)],
        Err(error) => vec![probe("store", ProbeStatus::Fail, format!("does not answer: {}", chain(&error)))],
    }
}

fn growth(engine: &Engine, counts: Counts) -> Probe {
    let Counts { pending, active, executions, events, bytes } = counts;
    let retention = engine.config().retention;
    let detail = format!(
        "{executions} executions ({pending} pending, {active} active), {events} events, {} MiB; logs are kept {} days, heartbeats {} days",
        bytes >> 20,
        retention.log_days,
        retention.heartbeat_days
    );
    probe("growth", ProbeStatus::Ok, detail)
}

fn worker(engine: &Engine) -> Probe {
    let config = engine.config();
    let queues: Vec<&str> = config.queues.iter().map(|queue| queue.as_str()).collect();
    match config.concurrency {
        0 => probe("worker", ProbeStatus::Warn, "none in this server: commands run only on workers elsewhere".into()),
        slots => probe("worker", ProbeStatus::Ok, format!("in this server, {slots} at once, from {}", queues.join(", "))),
    }
}

/// Workers that are kept from taking work, which is easily forgotten. Nothing where there are none.
async fn draining(engine: &Engine) -> Option<Probe> {
    let drained = engine.drained_workers().await.unwrap_or_default();
    let told = |(name, drain): &(String, Drain)| format!("{name} (by {} at {})", drain.by, Rfc3339::from(drain.at));
    let workers: Vec<String> = drained.iter().map(told).collect();
    let (name, _) = drained.first()?;
    let detail = format!("drained, take no new work: {}; resume one: runvoy workers resume {name}", workers.join(", "));
    Some(probe("drained workers", ProbeStatus::Warn, detail))
}

fn alerts(engine: &Engine) -> Probe {
    let standing = engine.alert_standing();
    let Some(place) = standing.place else {
        let detail = "no alerts are sent: set alerts.slack_webhook_url (RUNVOY_SLACK_WEBHOOK_URL) to \
            a Slack-compatible webhook";
        return probe("alerts", ProbeStatus::Ok, detail.into());
    };
    let told = standing.told_at.map_or("no message since the start".to_owned(), |at| format!("last message {}", Rfc3339::from(at)));
    match standing.failed {
        Some((at, why)) => {
            let detail = format!("{why} (at {}); {} incidents wait to be reported; {told}", Rfc3339::from(at), standing.waiting);
            probe("alerts", ProbeStatus::Warn, detail)
        }
        None => probe("alerts", ProbeStatus::Ok, format!("to {place}; {told}")),
    }
}

async fn shared_uid(engine: &Engine) -> Probe {
    let config = engine.config();
    if config.concurrency == 0 {
        return probe("uid", ProbeStatus::Ok, "this server runs no commands itself".into());
    }
    if config.uid_per_execution {
        return probe("uid", ProbeStatus::Ok, "each execution runs as a user of its own".into());
    }
    let many = engine.has_many_users().await.unwrap_or(true);
    match (many, config.allow_shared_uid) {
        (false, _) if !config.shares_uid => probe("uid", ProbeStatus::Ok, "commands run as a user of their own".into()),
        (true, _) if !config.shares_uid => {
            let detail = "commands of different users share one user and can see each other's environment, secrets too; \
                          start the server with --run-as-uids FIRST-LAST instead of --run-as";
            probe("uid", ProbeStatus::Warn, detail.into())
        }
        (false, _) => probe("uid", ProbeStatus::Ok, "commands run as the server's own user, which is for one user only".into()),
        (true, true) => {
            let detail = "commands of several users run as the server's own user and can read each other's \
                data (--allow-shared-uid)";
            probe("uid", ProbeStatus::Warn, detail.into())
        }
        (true, false) => {
            let detail = "commands are refused: they would run as the server's own user; start it with \
                --run-as-uids FIRST-LAST";
            probe("uid", ProbeStatus::Fail, detail.into())
        }
    }
}
