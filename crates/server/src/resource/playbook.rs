//! Playbooks on the server: push, look, run, remove.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::PlaybookRun;
use runvoy_model::git::GitSource;
use runvoy_model::name::Name;
use runvoy_model::playbook::{self as model, PlaybookBody};
use runvoy_model::role::Action;
use runvoy_wire::{
    Code, DryRunResponse, Parameter, ParameterAllowance, ParameterType, Playbook, PlaybookTerms, PlaybooksResponse, PutPlaybookResponse,
    RemovePlaybookResponse, RunPlaybookRequest, RunResponse,
};

use super::dry_run::{self, DRY_RUN};
use super::run;
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, flag, name, number};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

const PATH: &str = "/api/v1/playbooks/{name}";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("listPlaybooks", "List playbooks")
        .about("Lists the newest version of each playbook that you may run or manage.")
        .paged()
        .gives::<PlaybooksResponse>(200, "The playbooks, by name");
    routes.get("/api/v1/playbooks", Rule::Key(Action::ReadPlaybooks), operation, list);
    let named = |operation: Operation| operation.path("name", name(), "The playbook's name").refuses(&[Code::NotFound]);
    let operation = named(Operation::new("getPlaybook", "Get a playbook"))
        .about(
            "Returns the newest version, or the one that `version` names. The versions of a \
             deleted playbook are gone.",
        )
        .query("version", number(1, Some(u64::from(u32::MAX))), "The version; default: the newest")
        .gives::<Playbook>(200, "The playbook");
    routes.get(PATH, Rule::Key(Action::ReadPlaybooks), operation, get);
    let operation = named(Operation::new("putPlaybook", "Save a new version of a playbook"))
        .about(
            "Creates the playbook, or adds a version to it; older versions remain. Unknown fields \
             are refused.",
        )
        .takes_strictly::<PlaybookTerms>("PutPlaybookRequest")
        .gives::<PutPlaybookResponse>(200, "The version was saved and is the newest one");
    routes.put(PATH, Rule::Key(Action::ManagePlaybooks), operation, put);
    let operation = named(Operation::new("deletePlaybook", "Delete a playbook"))
        .about("Deletes all versions. Executions of it that were submitted before go on.")
        .gives::<RemovePlaybookResponse>(200, "The playbook was deleted");
    routes.delete(PATH, Rule::Key(Action::ManagePlaybooks), operation, remove);
    let run = |id, summary| named(Operation::new(id, summary)).takes::<RunPlaybookRequest>(false);
    let operation = run("runPlaybook", "Run a playbook")
        .idempotent()
        .refuses(&[Code::LockHeld, Code::RateLimited])
        .about(
            "Checks the parameters and submits the playbook's command. Parameters reach the \
             command as data, never as part of a shell text. The response is sent when the \
             execution is recorded durably. `?dry_run=1` is an older way to call \
             `dryRunPlaybook`.",
        )
        .query(DRY_RUN.0, flag(), DRY_RUN.1)
        .gives::<RunResponse>(202, "The execution was recorded and will run")
        .gives::<DryRunResponse>(200, "With `dry_run`: what would happen; nothing was recorded");
    routes.post("/api/v1/playbooks/{name}/run", Rule::Key(Action::Run), operation, start);
    let operation = run("dryRunPlaybook", "Check a run of a playbook without running it")
        .about(
            "Checks the same request as `runPlaybook` and says what would happen. Nothing is \
             recorded or run.",
        )
        .gives::<DryRunResponse>(200, "What would happen");
    routes.post("/api/v1/playbooks/{name}/run/dry-run", Rule::Key(Action::Run), operation, plan);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let mut playbooks: Vec<Playbook> = call.engine().playbooks(call.caller()?).await?.iter().map(shown).collect();
    let next = pager.cut(&mut playbooks, |playbook| playbook.name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &PlaybooksResponse { playbooks })))
}

async fn get(call: Call) -> Result<Response<Body>, Fault> {
    let version = call.query()?.number("version", 1..=u64::from(u32::MAX))?.and_then(|version| u32::try_from(version).ok());
    let playbook = call.engine().playbook(call.caller()?, call.params.get("name"), version).await?;
    Ok(answer::json(StatusCode::OK, &shown(&playbook)))
}

async fn put(call: Call) -> Result<Response<Body>, Fault> {
    let body: serde_json::Value = call.json().await?.ok_or_else(|| Fault::invalid("body", "must be a playbook"))?;
    let terms: PlaybookTerms = serde_json::from_value(body.clone()).map_err(|error| Fault::invalid("body", error.to_string()))?;
    refuse_unknown(&body, &terms)?;
    let playbook = call.engine().push_playbook(call.caller()?, call.params.get("name"), kept(terms)?).await?;
    let (name, version) = (playbook.name.to_string(), playbook.version);
    let message = format!("playbook {name} was saved as version {version}");
    Ok(answer::json(StatusCode::OK, &PutPlaybookResponse { name, version, message }))
}

async fn remove(call: Call) -> Result<Response<Body>, Fault> {
    let name = call.engine().remove_playbook(call.caller()?, call.params.get("name")).await?.to_string();
    let message = format!("playbook {name} was deleted; running executions go on");
    Ok(answer::json(StatusCode::OK, &RemovePlaybookResponse { name, message }))
}

async fn start(call: Call) -> Result<Response<Body>, Fault> {
    let asked = requested(&call).await?;
    if dry_run::is_asked(&call)? {
        return planned(&call, &asked).await;
    }
    let execution = call.engine().run_playbook(call.caller()?, call.params.get("name"), &asked).await?;
    run::submitted(&call, &execution)
}

async fn plan(call: Call) -> Result<Response<Body>, Fault> {
    let asked = requested(&call).await?;
    planned(&call, &asked).await
}

async fn planned(call: &Call, asked: &PlaybookRun) -> Result<Response<Body>, Fault> {
    let plan = call.engine().plan_playbook(call.caller()?, call.params.get("name"), asked).await?;
    dry_run::respond(call, &plan).await
}

async fn requested(call: &Call) -> Result<PlaybookRun, Fault> {
    let request: RunPlaybookRequest = call.json_without_slips(&[DRY_RUN.0]).await?.unwrap_or_default();
    let lock_wait = request.lock_wait.map(|wait| i64::try_from(wait).map_err(|_| Fault::invalid("lock_wait", "is too large")));
    Ok(PlaybookRun {
        parameters: request.parameters,
        version: request.version,
        lock_wait: lock_wait.transpose()?,
        idempotency_key: call.idempotency_key()?,
    })
}

/// A word that is not known is a mistake of whoever wrote it, not something to be forgotten.
fn refuse_unknown(body: &serde_json::Value, terms: &PlaybookTerms) -> Result<(), Fault> {
    let known = serde_json::to_value(terms).expect("terms are plain data");
    let unknown = |given: &serde_json::Value, known: &serde_json::Value, model: &[&str]| {
        let keys = given.as_object().into_iter().flat_map(|map| map.iter());
        let extra = keys.filter(|(key, value)| !value.is_null() && known.get(key.as_str()).is_none() && !model.contains(&key.as_str()));
        extra.map(|(key, _)| key.clone()).next()
    };
    // What is empty is left out when it is written: these may be there and say nothing.
    let empty = ["secrets", "env", "labels", "worker_labels", "terminal", "parameters"];
    if let Some(key) = unknown(body, &known, &empty) {
        return Err(Fault::invalid(&key, "unknown field of a playbook"));
    }
    for (name, parameter) in body["parameters"].as_object().into_iter().flatten() {
        if let Some(key) = unknown(parameter, &known["parameters"][name], &["choices", "allow"]) {
            return Err(Fault::invalid(&format!("parameters.{name}.{key}"), "unknown field of a parameter"));
        }
    }
    Ok(())
}

fn kept(terms: PlaybookTerms) -> Result<PlaybookBody, Fault> {
    let name = |field: &str, text: String| Name::new(text).map_err(|error| Fault::invalid(field, error.to_string()));
    let seconds = |field: &str, value: Option<u64>| {
        value.map(|value| i64::try_from(value).map_err(|_| Fault::invalid(field, "is too large"))).transpose()
    };
    let git = match terms.git_repo {
        Some(repo) => {
            let token = terms.git_token.map(|token| name("git_token", token)).transpose()?;
            Some(GitSource { repo, reference: terms.git_ref, path: terms.git_path, token })
        }
        None if terms.git_ref.is_some() || terms.git_path.is_some() || terms.git_token.is_some() => {
            return Err(Fault::invalid("git_repo", "is missing: git_ref, git_path and git_token need it"));
        }
        None => None,
    };
    Ok(PlaybookBody {
        description: terms.description,
        command: terms.command,
        args: terms.args,
        image: terms.image,
        env: terms.env,
        secrets: terms.secrets.into_iter().map(|secret| name("secrets", secret)).collect::<Result<_, _>>()?,
        git,
        timeout: seconds("timeout", terms.timeout)?,
        lock: terms.lock,
        lock_wait: seconds("lock_wait", terms.lock_wait)?,
        queue: terms.queue,
        priority: terms.priority.map(i64::from),
        retries: terms.retries.map(i64::from),
        labels: terms.labels,
        worker_labels: terms.worker_labels,
        terminal: terms.terminal,
        parameters: terms.parameters.into_iter().map(|(name, parameter)| (name, kept_parameter(parameter))).collect(),
    })
}

fn kept_parameter(parameter: Parameter) -> model::Parameter {
    let kind = match parameter.kind {
        ParameterType::String => model::ParameterKind::String,
        ParameterType::Integer => model::ParameterKind::Integer,
        ParameterType::Boolean => model::ParameterKind::Boolean,
        ParameterType::Choice => model::ParameterKind::Choice,
    };
    let allow = parameter.allow.into_iter().map(|allowance| match allowance {
        ParameterAllowance::LeadingDash => model::Allowance::LeadingDash,
        ParameterAllowance::Control => model::Allowance::Control,
    });
    let allow = allow.collect();
    let Parameter { description, default, pattern, max_length, min, max, choices, regex, .. } = parameter;
    model::Parameter { kind, description, default, pattern, max_length, min, max, choices, regex, allow }
}

/// A playbook as the wire shows it.
pub(super) fn shown(playbook: &model::Playbook) -> Playbook {
    let steps = playbook.steps.clone();
    let (repo, reference, path, token) = match steps.git {
        Some(git) => (Some(git.repo), git.reference, git.path, git.token.map(|token| token.to_string())),
        None => (None, None, None, None),
    };
    let seconds = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let terms = PlaybookTerms {
        description: steps.description,
        command: steps.command,
        args: steps.args,
        image: steps.image,
        git_repo: repo,
        git_ref: reference,
        git_path: path,
        git_token: token,
        secrets: steps.secrets.iter().map(ToString::to_string).collect(),
        env: steps.env,
        timeout: seconds(steps.timeout),
        lock: steps.lock,
        lock_wait: seconds(steps.lock_wait),
        queue: steps.queue,
        priority: steps.priority.and_then(|priority| u8::try_from(priority).ok()),
        retries: steps.retries.and_then(|retries| u32::try_from(retries).ok()),
        labels: steps.labels,
        worker_labels: steps.worker_labels,
        terminal: steps.terminal,
        parameters: steps.parameters.into_iter().map(|(name, parameter)| (name, shown_parameter(parameter))).collect(),
    };
    Playbook {
        name: playbook.name.to_string(),
        version: playbook.version,
        terms,
        created_at: playbook.created_at.into(),
        created_by: playbook.created_by.clone(),
        created_by_request_id: playbook.created_by_request_id.clone(),
    }
}

fn shown_parameter(parameter: model::Parameter) -> Parameter {
    let kind = match parameter.kind {
        model::ParameterKind::String => ParameterType::String,
        model::ParameterKind::Integer => ParameterType::Integer,
        model::ParameterKind::Boolean => ParameterType::Boolean,
        model::ParameterKind::Choice => ParameterType::Choice,
    };
    let allow = parameter.allow.into_iter().map(|allowance| match allowance {
        model::Allowance::LeadingDash => ParameterAllowance::LeadingDash,
        model::Allowance::Control => ParameterAllowance::Control,
    });
    let allow = allow.collect();
    let model::Parameter { description, default, pattern, max_length, min, max, choices, regex, .. } = parameter;
    Parameter { kind, description, default, pattern, max_length, min, max, choices, regex, allow }
}
