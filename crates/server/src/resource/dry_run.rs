//! What a run would be, as an answer. The routes that
//! run something have each a path below them that asks for it, and take `?dry_run=1` as well.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{DryRun, Plan};
use runvoy_model::rule::{Decision, Effect};
use runvoy_model::spec::LOCAL_IMAGE;
use runvoy_wire as wire;

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::view::{dollars, reason};

/// The parameter that asks for it.
pub(super) const DRY_RUN: (&str, &str) =
    ("dry_run", "Only say what would happen. Prefer the path of the dry run, which cannot run anything");

/// Whether a call asks for it.
pub(super) fn is_asked(call: &Call) -> Result<bool, Fault> {
    let query = call.query()?;
    // Whoever misspells it would run what they only wanted to know of.
    query.refuse_slips(&[DRY_RUN.0])?;
    query.flag(DRY_RUN.0)
}

/// What would come of a plan.
pub(super) async fn respond(call: &Call, plan: &Plan) -> Result<Response<Body>, Fault> {
    let dry_run = call.engine().dry_run(plan).await?;
    let (spec, limits, git) = (&plan.spec, dry_run.limits, plan.spec.git.as_ref());
    let secrets = spec.secrets.iter().zip(&plan.secret_keys);
    let role = call.caller()?.role.as_str();
    let response = wire::DryRunResponse {
        allowed: dry_run.takes(plan),
        image_id: spec.image.clone(),
        image: plan.image.as_ref().map_or(LOCAL_IMAGE, |image| image.image.as_str()).to_owned(),
        command: spec.command.clone(),
        args: spec.args.clone(),
        env: spec.env.keys().cloned().collect(),
        secrets: secrets.map(|(name, key)| wire::DryRunSecret { name: name.to_string(), key_name: key.clone() }).collect(),
        git_repo: git.map(|git| git.repo.clone()),
        git_ref: git.and_then(|git| git.reference.clone()),
        git_path: git.and_then(|git| git.path.clone()),
        playbook: spec.playbook.as_ref().map(|playbook| format!("{}@{}", playbook.name, playbook.version)),
        lock: spec.lock.as_ref().map(ToString::to_string),
        lock_held: lock_held(call, &dry_run),
        lock_wait: spec.lock_wait_ms.map(|ms| ms / 1000),
        waiting_for: dry_run.waiting_for.clone().map(reason),
        queue: spec.queue.to_string(),
        priority: spec.priority,
        retries: spec.retries,
        timeout: spec.timeout_ms.map(|ms| ms / 1000),
        limits: wire::DryRunLimits {
            cpu: limits.cpu_units,
            memory: limits.memory_mib,
            processes: limits.processes,
            log_bytes: limits.log_bytes,
        },
        rules: plan.verdict.decisions.iter().map(|decision| verdict(decision, role)).collect(),
        cost_usd_per_hour: dry_run.cost_micro_usd_per_hour.map(dollars),
    };
    Ok(answer::json(StatusCode::OK, &response))
}

fn lock_held(call: &Call, dry_run: &DryRun) -> Option<wire::LockHeld> {
    let held = dry_run.lock_held.as_ref()?;
    Some(wire::LockHeld {
        lock_name: held.name.to_string(),
        held_by: held.holder.held_by.clone(),
        since: held.holder.since.into(),
        execution_id: held.holder.execution.to_string(),
        log_url: call.reached.log_url(&call.state, held.holder.execution),
    })
}

/// Where no single rule decided, all of them together did, or the role.
fn verdict(decision: &Decision, role: &str) -> wire::Verdict {
    wire::Verdict {
        rule: decision
            .rule
            .clone()
            .unwrap_or_else(|| if decision.effect == Effect::Deny { "rules".into() } else { format!("role:{role}") }),
        effect: match decision.effect {
            Effect::Allow => wire::Effect::Allow,
            Effect::Deny => wire::Effect::Deny,
        },
        why: decision.why.clone(),
    }
}
