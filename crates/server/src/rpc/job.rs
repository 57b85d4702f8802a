//! An execution as a job, in the words of the protocol; and back: what a job asks for as a request to run it. What this server cannot do is refused by its
//! field's name, never left out.

use std::collections::BTreeMap;

use runvoy_engine::{Engine, RunRequest};
use runvoy_model::execution::Execution;
use runvoy_model::spec::{LOCAL_IMAGE, Spec};
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_rpc::job::v1::{
    BatchingConfig, ContainerConfig, EnqueueJobRequest, ExecutionConfig, GitCloneConfig, Job, JobParams, JobState, ProcessType,
};
use runvoy_rpc::protobuf::Timestamp;

use super::error::RpcFault;

/// The shell that a text is leased with.
const SHELL: &str = "sh";
/// Labels that carry what a job says beside its metadata.
const OWNER: &str = "owner";
const REPOSITORY: &str = "repository";
const COMMIT: &str = "commit";
const BRANCH: &str = "branch";
const CARRIED: [&str; 4] = [OWNER, REPOSITORY, COMMIT, BRANCH];

/// A job, without the values of its environment.
pub(super) fn job(engine: &Engine, execution: &Execution) -> Job {
    let reason = execution.end_reason.as_ref();
    Job {
        job_id: execution.id.to_string(),
        job_params: params(execution).into(),
        state: state(execution.status).into(),
        created_at: timestamp(execution.submitted_at).into(),
        updated_at: timestamp(moved_at(execution)).into(),
        execution_config: execution_config().into(),
        queue: execution.spec.queue.to_string(),
        attempt: execution.attempt,
        exit_code: execution.exit_code,
        status: execution.status.as_str().to_owned(),
        end_reason: reason.map(|reason| reason.message.clone()).unwrap_or_default(),
        waiting_for: engine.waiting_for(execution).map(|waiting| waiting.message).unwrap_or_default(),
        ..Job::default()
    }
}

/// A time.
pub(super) fn timestamp(at: UnixMs) -> Timestamp {
    let nanos = i32::try_from(at.0.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
    Timestamp { seconds: at.0.div_euclid(1000), nanos, ..Timestamp::default() }
}

/// The time that a client says, where it says one.
pub(super) fn unix_ms(at: &Timestamp) -> UnixMs {
    UnixMs(at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos / 1_000_000)))
}

/// Where a job stands.
pub(super) const fn state(status: Status) -> JobState {
    match status {
        Status::Pending => JobState::Scheduled,
        Status::Starting | Status::Running | Status::Terminating => JobState::Running,
        Status::Succeeded => JobState::Completed,
        Status::Failed => JobState::Failed,
        Status::Stopped => JobState::Cancelled,
    }
}

/// The statuses of a state; none for any.
pub(super) fn statuses(state: JobState) -> Vec<Status> {
    match state {
        JobState::Unspecified => Vec::new(),
        JobState::Scheduled => vec![Status::Pending],
        JobState::Running => vec![Status::Starting, Status::Running, Status::Terminating],
        JobState::Completed => vec![Status::Succeeded],
        JobState::Failed => vec![Status::Failed],
        JobState::Cancelled => vec![Status::Stopped],
    }
}

fn moved_at(execution: &Execution) -> UnixMs {
    execution.completed_at.or(execution.attempt_started_at).unwrap_or(execution.submitted_at)
}

/// What a worker should do unless it knows better: as our own does.
fn execution_config() -> ExecutionConfig {
    let batching =
        BatchingConfig { flush_interval_seconds: 2, max_batch_size: 50, max_batch_bytes: 256 << 10, ..BatchingConfig::default() };
    ExecutionConfig {
        batching: batching.into(),
        heartbeat_interval_seconds: 30,
        output_flush_interval_millis: 200,
        ..ExecutionConfig::default()
    }
}

fn params(execution: &Execution) -> JobParams {
    let Execution { spec, created_by, .. } = execution;
    let label = |name: &str| spec.labels.get(name).cloned();
    let (command, args) = match &spec.args {
        Some(args) => (spec.command.clone(), args.clone()),
        None => (SHELL.to_owned(), vec!["-c".to_owned(), spec.command.clone()]),
    };
    let mut params = JobParams {
        repository: label(REPOSITORY).unwrap_or_default(),
        commit: label(COMMIT).unwrap_or_default(),
        branch: label(BRANCH).unwrap_or_default(),
        metadata: spec.labels.iter().filter(|(key, _)| !CARRIED.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect(),
        owner: label(OWNER).unwrap_or_else(|| created_by.clone()),
        command,
        args,
        process_type: ProcessType::Pipe.into(),
        timeout_seconds: spec.timeout_ms.map_or(0, |ms| i32::try_from(ms / 1000).unwrap_or(i32::MAX)),
        priority: u32::from(spec.priority),
        retries: spec.retries,
        lock: spec.lock.as_ref().map(ToString::to_string).unwrap_or_default(),
        lock_wait_seconds: spec.lock_wait_ms.map_or(0, |ms| u32::try_from(ms / 1000).unwrap_or(u32::MAX)),
        secrets: spec.secrets.iter().map(ToString::to_string).collect(),
        worker_labels: spec.worker_labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        ..JobParams::default()
    };
    show_git(spec, &mut params);
    if spec.image != LOCAL_IMAGE {
        params.container = ContainerConfig { enabled: true, image: spec.image.clone(), ..ContainerConfig::default() }.into();
    }
    params
}

fn show_git(spec: &Spec, params: &mut JobParams) {
    let Some(git) = &spec.git else { return };
    params.repository.clone_from(&git.repo);
    match &git.reference {
        Some(reference) if is_commit(reference) => params.commit.clone_from(reference),
        Some(reference) => params.branch.clone_from(reference),
        None => {}
    }
    params.working_directory = git.path.clone().unwrap_or_default();
    params.git_clone = GitCloneConfig { enabled: true, depth: 1, single_branch: true, ..GitCloneConfig::default() }.into();
}

fn is_commit(reference: &str) -> bool {
    reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a job asks for. Without `args` its command is a shell text, unless it says otherwise.
pub(super) fn run_request(request: EnqueueJobRequest) -> Result<RunRequest, RpcFault> {
    let Some(params) = request.job_params.into_option() else {
        return Err(RpcFault::invalid("job_params", "must be there"));
    };
    refuse_unknown(&params)?;
    let clones = params.git_clone.enabled;
    let labels = labels(&params, clones)?;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let reference = given(params.commit).or_else(|| given(params.branch));
    Ok(RunRequest {
        command: params.command,
        args: (!params.args.is_empty() || params.no_shell).then_some(params.args),
        image: params.container.into_option().filter(|container| container.enabled).map(|container| container.image),
        env: params.environment.into_iter().collect(),
        timeout: Some(i64::from(params.timeout_seconds)).filter(|seconds| *seconds != 0),
        lock: given(params.lock),
        lock_wait: Some(i64::from(params.lock_wait_seconds)).filter(|seconds| *seconds != 0),
        queue: given(request.queue),
        priority: Some(i64::from(params.priority)).filter(|priority| *priority != 0),
        labels,
        worker_labels: params.worker_labels.into_iter().collect(),
        terminal: false,
        retries: Some(i64::from(params.retries)),
        secrets: params.secrets,
        git_repo: given(params.repository).filter(|_| clones),
        git_ref: reference.filter(|_| clones),
        git_path: given(params.working_directory).filter(|path| path != "."),
        git_token: None,
        idempotency_key: given(request.request_id),
    })
}

/// A job says things that this server would not do: better refused than done otherwise.
fn refuse_unknown(params: &JobParams) -> Result<(), RpcFault> {
    let (container, git) = (&params.container, &params.git_clone);
    let wrong = [
        (params.process_type == ProcessType::Pty, "process_type", "only pipes are known here"),
        (params.process_type.is_unknown(), "process_type", "is none that is known here"),
        (container.enabled && container.image.is_empty(), "container.image", "must name an image"),
        (!container.runtime.is_empty(), "container.runtime", "is the worker's own matter"),
        (!container.mounts.is_empty(), "container.mounts", "are not known here"),
        (git.enabled && params.repository.is_empty(), "repository", "must be there to be cloned"),
        (git.depth > 1 || git.depth < 0, "git_clone.depth", "only the newest commit is cloned"),
        (!matches!(&*git.submodules, "" | "none" | "false"), "git_clone.submodules", "are not cloned"),
    ];
    match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, field, message)) => Err(RpcFault::invalid(&format!("job_params.{field}"), message)),
        None => Ok(()),
    }
}

/// Metadata becomes labels; so does what a job says of its owner, and of a repository that is not cloned.
fn labels(params: &JobParams, clones: bool) -> Result<BTreeMap<String, String>, RpcFault> {
    let mut labels: BTreeMap<String, String> = params.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let repository = [(REPOSITORY, &params.repository), (COMMIT, &params.commit), (BRANCH, &params.branch)];
    let carried = std::iter::once((OWNER, &params.owner)).chain(repository.into_iter().filter(|_| !clones));
    for (key, value) in carried.filter(|(_, value)| !value.is_empty()) {
        if labels.insert(key.to_owned(), value.clone()).is_some_and(|other| other != *value) {
            return Err(RpcFault::invalid(&format!("job_params.metadata.{key}"), "says something else than the field of that name"));
        }
    }
    Ok(labels)
}

/// The field of a job that this field of a request to run came from.
pub(super) fn field(name: &str) -> String {
    let (head, rest) = name.split_once('.').map_or((name, String::new()), |(head, rest)| (head, format!(".{rest}")));
    let field = match head {
        "Idempotency-Key" => return "request_id".to_owned(),
        "queue" => return "queue".to_owned(),
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
mod tests {
    use super::*;

    fn asked(change: impl FnOnce(&mut JobParams)) -> Result<RunRequest, String> {
        let mut params = JobParams { command: "make".into(), ..JobParams::default() };
        change(&mut params);
        let request = EnqueueJobRequest { queue: "default".into(), job_params: params.into(), ..EnqueueJobRequest::default() };
        run_request(request).map_err(|fault| fault.into_status("r").message.unwrap_or_default())
    }

    #[test]
    fn a_command_without_arguments_is_a_shell_text_unless_it_says_otherwise() {
        assert_eq!(asked(|_| {}).expect("a job").args, None);
        assert_eq!(asked(|job| job.no_shell = true).expect("a job").args, Some(vec![]));
        assert_eq!(asked(|job| job.args = vec!["all".into()]).expect("a job").args, Some(vec!["all".into()]));
    }

    #[test]
    fn what_this_server_cannot_do_is_refused_by_name() {
        for (change, field) in [
            ((|job| job.process_type = ProcessType::Pty.into()) as fn(&mut JobParams), "job_params.process_type"),
            (|job| job.container.get_or_insert_default().enabled = true, "job_params.container.image"),
            (|job| job.container.get_or_insert_default().runtime = "runsc".into(), "job_params.container.runtime"),
            (|job| job.git_clone.get_or_insert_default().enabled = true, "job_params.repository"),
            (|job| job.git_clone.get_or_insert_default().depth = 7, "job_params.git_clone.depth"),
            (|job| job.git_clone.get_or_insert_default().submodules = "recursive".into(), "job_params.git_clone.submodules"),
        ] {
            let refused = asked(change).expect_err(field);
            assert!(refused.starts_with(field), "{refused}");
        }
    }

    #[test]
    fn a_repository_is_cloned_only_where_that_is_asked_for() {
        let named = |job: &mut JobParams| (job.repository, job.branch) = ("https://git.example.com/a.git".into(), "main".into());
        let carried = asked(named).expect("a job");
        assert_eq!((carried.git_repo, carried.labels.get("branch").map(String::as_str)), (None, Some("main")));
        let cloned = asked(|job| {
            named(job);
            job.git_clone.get_or_insert_default().enabled = true;
        });
        let cloned = cloned.expect("a job");
        assert_eq!((cloned.git_ref.as_deref(), cloned.labels.len()), (Some("main"), 0));
    }

    #[test]
    fn an_owner_is_a_label_and_metadata_must_not_say_otherwise() {
        assert_eq!(asked(|job| job.owner = "ana@x".into()).expect("a job").labels["owner"], "ana@x");
        let both = asked(|job| {
            job.owner = "ana@x".into();
            job.metadata.insert("owner".into(), "ben@x".into());
        });
        assert!(both.expect_err("two owners").starts_with("job_params.metadata.owner"));
    }

    #[test]
    fn a_wrong_field_is_named_as_the_client_knows_it() {
        for (ours, theirs) in [
            ("command", "job_params.command"),
            ("env.1A", "job_params.environment.1A"),
            ("labels.a b", "job_params.metadata.a b"),
            ("labels.owner", "job_params.owner"),
            ("queue", "queue"),
            ("Idempotency-Key", "request_id"),
        ] {
            assert_eq!(field(ours), theirs);
        }
    }
}
