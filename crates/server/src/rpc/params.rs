//! What an execution was asked to do, as the parameters of a job: what was sent, wherever it is kept.

use std::collections::BTreeMap;

use runvoy_engine::Engine;
use runvoy_model::execution::Execution;
use runvoy_model::rpc::{PROTOCOL_LABEL, RpcClone, RpcContainer};
use runvoy_model::spec::{LOCAL_IMAGE, Spec};
use runvoy_rpc::job::v1::{ContainerConfig, ContainerMount, GitCloneConfig, JobParams, ProcessType};

use super::error::RpcFault;

/// The shell that a text is leased with.
const SHELL: &str = "sh";
/// Labels that carry what a job says beside its metadata.
pub(super) const OWNER: &str = "owner";
pub(super) const REPOSITORY: &str = "repository";
pub(super) const COMMIT: &str = "commit";
pub(super) const BRANCH: &str = "branch";
pub(super) const CARRIED: [&str; 4] = [OWNER, REPOSITORY, COMMIT, BRANCH];

/// What the images of some executions are pulled by, by their ids; nothing for those that are registered no more.
#[derive(Default)]
pub(super) struct References(BTreeMap<String, Option<String>>);

impl References {
    /// Of these executions. An image that was named by its reference needs no look.
    pub(super) async fn of(engine: &Engine, executions: &[Execution]) -> Result<Self, RpcFault> {
        let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
        for spec in executions.iter().map(|execution| &execution.spec) {
            let is_known = spec.image == LOCAL_IMAGE || spec.is_lost() || named(spec).is_some() || found.contains_key(&spec.image);
            if !is_known {
                found.insert(spec.image.clone(), engine.image_reference(&spec.image).await?);
            }
        }
        Ok(Self(found))
    }

    /// What a worker pulls; an image that is registered no more has nothing but its id.
    fn image(&self, spec: &Spec) -> String {
        named(spec).or_else(|| self.0.get(&spec.image)?.as_deref()).unwrap_or(&spec.image).to_owned()
    }
}

/// The reference that an image was named by, where it was not its id.
fn named(spec: &Spec) -> Option<&str> {
    let container = spec.rpc.as_ref()?.container.as_ref().filter(|container| container.enabled)?;
    Some(container.image.as_str()).filter(|image| *image != spec.image && !image.is_empty())
}

/// The parameters, without the values of the environment.
pub(super) fn params(execution: &Execution, references: &References) -> JobParams {
    let Execution { spec, created_by, .. } = execution;
    let label = |name: &str| spec.labels.get(name).cloned();
    let (command, args) = match &spec.args {
        Some(args) => (spec.command.clone(), args.clone()),
        None => (SHELL.to_owned(), vec!["-c".to_owned(), spec.command.clone()]),
    };
    let process_type = if spec.terminal { ProcessType::Pty } else { ProcessType::Pipe };
    let mut params = JobParams {
        repository: label(REPOSITORY).unwrap_or_default(),
        commit: label(COMMIT).unwrap_or_default(),
        branch: label(BRANCH).unwrap_or_default(),
        metadata: spec.labels.iter().filter(|(key, _)| !CARRIED.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect(),
        owner: label(OWNER).unwrap_or_else(|| created_by.clone()),
        command,
        args,
        process_type: process_type.into(),
        timeout_seconds: spec.timeout_ms.map_or(0, |ms| i32::try_from(ms / 1000).unwrap_or(i32::MAX)),
        priority: u32::from(spec.priority),
        retries: (spec.redeliveries == 0).then_some(spec.retries),
        lock: spec.lock.as_ref().map(ToString::to_string).unwrap_or_default(),
        lock_wait_seconds: spec.lock_wait_ms.map_or(0, |ms| u32::try_from(ms / 1000).unwrap_or(u32::MAX)),
        secrets: spec.secrets.iter().map(ToString::to_string).collect(),
        worker_labels: spec
            .worker_labels
            .iter()
            .filter(|(k, _)| k.as_str() != PROTOCOL_LABEL)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
        ..JobParams::default()
    };
    show_git(spec, &mut params);
    show_container(spec, references, &mut params);
    show_said(spec, &mut params);
    params
}

fn show_git(spec: &Spec, params: &mut JobParams) {
    let Some(git) = &spec.git else { return };
    params.repository.clone_from(&git.repo);
    (params.commit, params.branch) = guessed(git.reference.as_deref());
    params.working_directory = git.path.clone().unwrap_or_default();
    params.git_clone = clone_config(&RpcClone::OURS).into();
}

fn show_container(spec: &Spec, references: &References, params: &mut JobParams) {
    let enabled = spec.image != LOCAL_IMAGE;
    // Whoever asked for no container may have got one, by the default image: what they said of another is not about this one.
    let said = spec.rpc.as_ref().and_then(|rpc| rpc.container.clone()).filter(|said| said.enabled == enabled);
    if !enabled && said.is_none() {
        return;
    }
    let RpcContainer { image, runtime, mounts, .. } = said.unwrap_or_default();
    let image = if enabled { references.image(spec) } else { image };
    let mount = |mount: runvoy_model::rpc::RpcMount| ContainerMount {
        source: mount.source,
        target: mount.target,
        read_only: mount.read_only,
        ..ContainerMount::default()
    };
    let mounts = mounts.into_iter().map(mount).collect();
    params.container = ContainerConfig { enabled, image, runtime, mounts, ..ContainerConfig::default() }.into();
}

/// What was said beside all that takes the place of what was made of it.
fn show_said(spec: &Spec, params: &mut JobParams) {
    let Some(rpc) = &spec.rpc else { return };
    let places = [
        (&rpc.repository, &mut params.repository),
        (&rpc.commit, &mut params.commit),
        (&rpc.branch, &mut params.branch),
        (&rpc.working_directory, &mut params.working_directory),
    ];
    for (said, place) in places {
        if let Some(said) = said {
            place.clone_from(said);
        }
    }
    if let Some(clone) = &rpc.git_clone {
        params.git_clone = clone_config(clone).into();
    }
    params.metadata.extend(rpc.metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
}

fn clone_config(clone: &RpcClone) -> GitCloneConfig {
    GitCloneConfig {
        enabled: clone.enabled,
        depth: i32::try_from(clone.depth).unwrap_or(i32::MAX),
        single_branch: clone.single_branch,
        submodules: clone.submodules.clone(),
        ..GitCloneConfig::default()
    }
}

/// Commit and branch, as far as a reference alone can tell.
pub(super) fn guessed(reference: Option<&str>) -> (String, String) {
    let is_commit = |reference: &str| reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    match reference {
        Some(reference) if is_commit(reference) => (reference.to_owned(), String::new()),
        Some(reference) => (String::new(), reference.to_owned()),
        None => (String::new(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::name::Name;
    use runvoy_model::rpc::RpcParams;

    use super::*;

    fn spec(image: &str, named: Option<&str>) -> Spec {
        let container = named.map(|image| RpcContainer { enabled: true, image: image.to_owned(), ..RpcContainer::default() });
        let rpc = Some(Box::new(RpcParams { container, ..RpcParams::default() }));
        Spec { image: image.to_owned(), rpc, ..Spec::lost(Name::new("default").expect("a name"), 3) }
    }

    #[test]
    fn a_worker_is_told_what_it_can_pull() {
        let id = "alpine:3-8efe83fcf033";
        let registered = References(BTreeMap::from([(id.to_owned(), Some("docker.io/library/alpine:3".to_owned()))]));
        for (named, shown) in
            [(None, "docker.io/library/alpine:3"), (Some(id), "docker.io/library/alpine:3"), (Some("alpine:3"), "alpine:3")]
        {
            assert_eq!(registered.image(&spec(id, named)), shown, "{named:?}");
        }
        assert_eq!(References::default().image(&spec(id, Some("alpine:3"))), "alpine:3", "also where it is registered no more");
        assert_eq!(References::default().image(&spec(id, None)), id);
    }

    #[test]
    fn a_whole_hash_is_a_commit_and_anything_else_a_branch() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(guessed(Some(hash)), (hash.to_owned(), String::new()));
        assert_eq!(guessed(Some("main")), (String::new(), "main".to_owned()));
        assert_eq!(guessed(None), (String::new(), String::new()));
    }
}
