//! What a job asks for as a request to run it. What has a field there goes there; the rest is kept as it was said, and what could not be kept is refused by
//! its field's name.

use std::collections::BTreeMap;

use runvoy_engine::{RunRequest, Subject, command_line};
use runvoy_model::name::Name;
use runvoy_model::rpc::{RpcClone, RpcContainer, RpcMount, RpcParams};
use runvoy_model::spec::{LOCAL_IMAGE, Labels, MOST_LABELS, is_label};
use runvoy_rpc::job::v1::{EnqueueJobRequest, JobParams, ProcessType};

use super::error::RpcFault;
use super::params::{BRANCH, CARRIED, COMMIT, OWNER, REPOSITORY, guessed};

/// Of how many jobs of a refused call the trail shows the command.
const MAX_SHOWN_JOBS: usize = 20;
/// The directory that everything starts in.
const HERE: &str = ".";

/// How often a job that says nothing of retries is delivered again when its worker was lost: three deliveries in all.
const REDELIVERIES: u32 = 2;

/// What a job asks for. Without `args` its command is a shell text, unless it says otherwise.
pub(super) fn run_request(request: EnqueueJobRequest) -> Result<RunRequest, RpcFault> {
    let Some(params) = request.job_params.into_option() else {
        return Err(RpcFault::invalid("job_params", "is missing"));
    };
    refuse(&params)?;
    let clones = params.git_clone.enabled;
    let (labels, rpc) = said(&params);
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let reference = given(params.commit).or_else(|| given(params.branch));
    Ok(RunRequest {
        command: params.command,
        args: (!params.args.is_empty() || params.no_shell).then_some(params.args),
        image: params.container.into_option().filter(|container| container.enabled).and_then(|container| given(container.image)),
        env: params.environment.into_iter().collect(),
        timeout: Some(i64::from(params.timeout_seconds)).filter(|seconds| *seconds != 0),
        lock: given(params.lock),
        lock_wait: Some(i64::from(params.lock_wait_seconds)).filter(|seconds| *seconds != 0),
        queue: given(request.queue),
        priority: Some(i64::from(params.priority)).filter(|priority| *priority != 0),
        labels,
        worker_labels: params.worker_labels.into_iter().collect(),
        terminal: params.process_type == ProcessType::Pty,
        retries: retries(params.retries),
        redeliveries: if params.retries.is_none() { REDELIVERIES } else { 0 },
        secrets: params.secrets,
        git_repo: given(params.repository).filter(|_| clones),
        git_ref: reference.filter(|_| clones),
        git_path: given(params.working_directory).filter(|path| clones && path != HERE),
        git_token: None,
        rpc: Some(Box::new(rpc)).filter(|rpc| **rpc != RpcParams::default()),
        idempotency_key: given(request.request_id),
    })
}

/// Further attempts after failures. Absent and 0 both come to none, and are different requests: the fingerprint of one without them has held a 0 since before they could
/// be told apart, and still does.
fn retries(said: Option<u32>) -> Option<i64> {
    match said {
        None => Some(0),
        Some(said) => Some(i64::from(said)).filter(|said| *said != 0),
    }
}

/// What jobs ask for, as the trail says it where they are refused.
pub(super) fn subject<'j>(jobs: impl Iterator<Item = &'j EnqueueJobRequest>) -> Subject {
    let runs = jobs.take(MAX_SHOWN_JOBS).filter_map(|job| run_request(job.clone()).ok());
    let mut all = Subject::default();
    for one in runs.map(|run| subject_of_run(&run)) {
        let lines: Vec<String> = all.command.into_iter().chain(one.command).collect();
        all.command = Some(lines.join("\n"));
        all.secrets.extend(one.secrets);
    }
    all
}

/// What a request to run asks for.
pub(super) fn subject_of_run(run: &RunRequest) -> Subject {
    let command = Some(command_line(&run.command, run.args.as_deref()));
    let secrets = run.secrets.iter().filter_map(|name| Name::new(name.as_str()).ok()).collect();
    Subject { command, secrets, target: None }
}

/// Refuses what means nothing to anybody.
fn refuse(params: &JobParams) -> Result<(), RpcFault> {
    let (container, git) = (&params.container, &params.git_clone);
    let wrong = [
        (params.process_type.is_unknown(), "process_type", "is unknown to this server"),
        (container.enabled && container.image.is_empty(), "container.image", "must name an image"),
        (container.enabled && container.image == LOCAL_IMAGE, "container.image", "is the worker's own environment, not a container"),
        (git.enabled && params.repository.is_empty(), "repository", "is required by git_clone"),
        (git.depth < 0, "git_clone.depth", "must not be negative"),
    ];
    match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, field, message)) => Err(RpcFault::invalid(&format!("job_params.{field}"), message)),
        None => Ok(()),
    }
}

/// What a job says beside what a request has fields for: as labels, to find it by, where it can be; else as it was said.
fn said(params: &JobParams) -> (Labels, RpcParams) {
    let mut rpc = RpcParams {
        working_directory: working_directory(params),
        container: container(params),
        git_clone: git_clone(params),
        ..RpcParams::default()
    };
    let mut labels = Labels::new();
    if !params.owner.is_empty() {
        labels.insert(OWNER.to_owned(), params.owner.clone());
    }
    if params.git_clone.enabled {
        (rpc.commit, rpc.branch) = references(params);
    } else {
        let places = [
            (REPOSITORY, &params.repository, &mut rpc.repository),
            (COMMIT, &params.commit, &mut rpc.commit),
            (BRANCH, &params.branch, &mut rpc.branch),
        ];
        for (key, value, place) in places.into_iter().filter(|(_, value, _)| !value.is_empty()) {
            if is_label(key, value) {
                labels.insert(key.to_owned(), value.clone());
            } else {
                *place = Some(value.clone());
            }
        }
    }
    // In order: which of too many are labels must not differ from one time to the next.
    for (key, value) in params.metadata.iter().collect::<BTreeMap<_, _>>() {
        let is_free = labels.len() < MOST_LABELS && !CARRIED.contains(&key.as_str());
        let place = if is_free && is_label(key, value) { &mut labels } else { &mut rpc.metadata };
        place.insert(key.clone(), value.clone());
    }
    (labels, rpc)
}

/// Commit and branch of a repository that is cloned, where the one reference that is kept would not tell.
fn references(params: &JobParams) -> (Option<String>, Option<String>) {
    let reference = [&params.commit, &params.branch].into_iter().find(|text| !text.is_empty());
    let said = (params.commit.clone(), params.branch.clone());
    if guessed(reference.map(String::as_str)) == said { (None, None) } else { (Some(said.0), Some(said.1)) }
}

/// A directory that is none of a repository, and so no field of a request.
fn working_directory(params: &JobParams) -> Option<String> {
    let directory = Some(&params.working_directory).filter(|directory| !directory.is_empty())?;
    (!params.git_clone.enabled || directory == HERE).then(|| directory.clone())
}

fn container(params: &JobParams) -> Option<RpcContainer> {
    let container = params.container.as_option()?;
    let mount = |mount: &runvoy_rpc::job::v1::ContainerMount| RpcMount {
        source: mount.source.clone(),
        target: mount.target.clone(),
        read_only: mount.read_only,
    };
    let said = RpcContainer {
        enabled: container.enabled,
        image: container.image.clone(),
        runtime: container.runtime.clone(),
        mounts: container.mounts.iter().map(mount).collect(),
    };
    Some(said).filter(|said| *said != RpcContainer::default())
}

fn git_clone(params: &JobParams) -> Option<RpcClone> {
    let git = params.git_clone.as_option()?;
    let said = RpcClone {
        enabled: git.enabled,
        depth: u32::try_from(git.depth).unwrap_or_default(),
        single_branch: git.single_branch,
        submodules: git.submodules.clone(),
    };
    Some(said).filter(|said| *said != RpcClone::default() && *said != RpcClone::OURS)
}

/// The field of a job that this field of a request to run came from.
pub(super) fn field(name: &str) -> String {
    let (head, rest) = name.split_once('.').map_or((name, String::new()), |(head, rest)| (head, format!(".{rest}")));
    let field = match head {
        "Idempotency-Key" => return "request_id".to_owned(),
        "queue" => return "queue".to_owned(),
        "rpc" => return format!("job_params{rest}"),
        "env" => "environment",
        "labels" => match rest.trim_start_matches('.') {
            carried if CARRIED.contains(&carried) => return format!("job_params.{carried}"),
            _ => "metadata",
        },
        "timeout" => "timeout_seconds",
        "lock_wait" => "lock_wait_seconds",
        "image" => "container.image",
        "git_repo" => "repository",
        "git_ref" => "commit",
        "git_path" => "working_directory",
        other => other,
    };
    format!("job_params.{field}{rest}")
}

#[cfg(test)]
mod tests;
