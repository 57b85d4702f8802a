//! What a container is made of: the one place that says what a command in it may do. Pure.
//!
//! Every container has a root file system that it cannot write, no capability, no way to new privileges, a user that is not root, and of
//! the machine only its own work directory. A request cannot change that: it names a command, its environment and a registered image.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits};
use runvoy_ports::runner::{CONTAINER_WORK_DIR, Container, Limits, Start};

use crate::owner::Owner;

/// Processes and threads of a container without another limit.
const DEFAULT_PIDS: u64 = 4096;
/// The size of `/tmp` without a limit of memory, which it counts towards.
const DEFAULT_TMP_BYTES: u64 = 1 << 30;

/// The label that all containers of one data directory carry.
pub(crate) const INSTANCE: &str = "runvoy.instance";
/// The label of one start of its worker.
pub(crate) const WORKER: &str = "runvoy.worker";
const EXECUTION: &str = "runvoy.execution";
const ATTEMPT: &str = "runvoy.attempt";
const LEASE: &str = "runvoy.lease";

/// The network of containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// The default one of the daemon.
    #[default]
    Default,
    /// None but a loopback of their own.
    None,
    /// One of this name, which exists.
    Named(String),
}

impl FromStr for Network {
    type Err = String;

    /// Never that of the machine, or of another container.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        match text {
            "" | "default" => Ok(Self::Default),
            "none" => Ok(Self::None),
            "host" => Err("containers never get the network of the machine: name none, default, or a network of the daemon".to_owned()),
            name if is_name(name) => Ok(Self::Named(name.to_owned())),
            _ => Err(format!("expected none, default or the name of a network, not `{text}`")),
        }
    }
}

impl Network {
    fn mode(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::None => "none",
            Self::Named(name) => name,
        }
    }
}

/// What all containers of a worker share.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) instance: String,
    pub(crate) worker: String,
    pub(crate) network: Network,
    pub(crate) cores: u64,
    /// The memory of a container without another limit.
    pub(crate) memory_bytes: Option<u64>,
}

impl Ground {
    /// The label that every start finds them by.
    pub(crate) fn instance_labels(&self) -> Vec<String> {
        vec![format!("{INSTANCE}={}", self.instance)]
    }
}

/// The container of a command.
pub(crate) fn blueprint(ground: &Ground, start: &Start, container: &Container, work_dir: &Path, owner: Owner) -> ContainerCreateBody {
    let labels = [
        (INSTANCE, ground.instance.clone()),
        (WORKER, ground.worker.clone()),
        (EXECUTION, start.execution.to_string()),
        (ATTEMPT, start.attempt.to_string()),
        (LEASE, container.lease.to_string()),
    ];
    let directory = Path::new(CONTAINER_WORK_DIR).join(&start.directory);
    ContainerCreateBody {
        image: Some(container.spec.reference.clone()),
        entrypoint: Some(start.argv.clone()),
        env: Some(start.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        user: Some(format!("{}:{}", owner.uid, owner.gid)),
        working_dir: Some(directory.to_string_lossy().into_owned()),
        tty: Some(start.terminal),
        // A terminal is its own input.
        open_stdin: Some(start.terminal),
        stdin_once: Some(start.terminal),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        // A check of the image would run beside the command, and be no part of it.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value)).into()),
        host_config: Some(host_config(ground, start, container, work_dir, owner)),
        ..ContainerCreateBody::default()
    }
}

fn host_config(ground: &Ground, start: &Start, container: &Container, work_dir: &Path, owner: Owner) -> HostConfig {
    let memory = container.spec.memory.map(|mib| u64::from(mib) << 20).or(start.limits.memory_bytes).or(ground.memory_bytes);
    let tmp_bytes = memory.unwrap_or(DEFAULT_TMP_BYTES);
    // The mode alone does not do: a directory of the image in the same place goes before it.
    let tmp = format!("rw,exec,nosuid,nodev,mode=1777,uid={},gid={},size={tmp_bytes}", owner.uid, owner.gid);
    let work = Mount {
        target: Some(CONTAINER_WORK_DIR.to_owned()),
        source: Some(work_dir.to_string_lossy().into_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(false),
        ..Mount::default()
    };
    HostConfig {
        mounts: Some(vec![work]),
        tmpfs: Some(HashMap::from([("/tmp".to_owned(), tmp)])),
        readonly_rootfs: Some(true),
        network_mode: Some(ground.network.mode().to_owned()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        privileged: Some(false),
        // Reaps what a command leaves behind, and lets SIGTERM end a command that does not handle it.
        init: Some(true),
        pids_limit: Some(signed(start.limits.pids.unwrap_or(DEFAULT_PIDS))),
        memory: memory.map(signed),
        memory_swap: memory.map(signed),
        nano_cpus: nano_cpus(container.spec.cpu, &start.limits, ground.cores).map(signed),
        ulimits: Some(ulimits(&start.limits)),
        // The runner reads the output itself; nothing of it is kept by the daemon.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    }
}

/// CPU in billionths of a core; the daemon refuses more than the machine has.
fn nano_cpus(units: Option<u32>, limits: &Limits, cores: u64) -> Option<u64> {
    let nanos = units.map(|units| u64::from(units) * 1_000_000_000 / 1024).or(limits.cpu_millis.map(|millis| millis * 1_000_000));
    nanos.map(|nanos| nanos.min(cores * 1_000_000_000))
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    let named = [("nofile", limits.open_files), ("fsize", limits.file_bytes), ("core", Some(0))];
    let one = |(name, limit): (&str, Option<u64>)| {
        let limit = signed(limit?);
        Some(ResourcesUlimits { name: Some(name.to_owned()), soft: Some(limit), hard: Some(limit) })
    };
    named.into_iter().filter_map(one).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runvoy_model::id::{ExecutionId, LeaseId};
    use runvoy_model::spec::ContainerSpec;
    use runvoy_ports::runner::WorkDir;

    use super::*;

    fn made(spec: ContainerSpec, limits: Limits, network: Network) -> ContainerCreateBody {
        let container = Container { spec, lease: LeaseId::from_bytes([2; 16]) };
        let start = Start {
            execution: ExecutionId::from_bytes([1; 16]),
            attempt: 3,
            argv: vec!["/bin/sh".into(), "-c".into(), "echo $(id); rm -rf /".into()],
            env: BTreeMap::from([("A".into(), "b=c\nd".into())]),
            limits,
            directory: "repo/sub".into(),
            work_dir: WorkDir::Kept,
            live_for: None,
            terminal: false,
            container: Some(container.clone()),
        };
        let ground = Ground { instance: "i".into(), worker: "w".into(), network, cores: 2, memory_bytes: Some(3 << 30) };
        blueprint(&ground, &start, &container, Path::new("/data/work/x"), Owner { uid: 70_001, gid: 70_001 })
    }

    #[test]
    fn every_container_is_closed_whatever_was_registered() {
        let specs = [ContainerSpec::default(), ContainerSpec { cpu: Some(8192), memory: Some(512), ..ContainerSpec::default() }];
        for spec in specs {
            let made = made(spec, Limits::default(), Network::Default);
            assert_eq!(made.user.as_deref(), Some("70001:70001"));
            let host = made.host_config.expect("a host configuration");
            assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
            assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
            assert_eq!((host.readonly_rootfs, host.privileged, host.binds, host.cap_add), (Some(true), Some(false), None, None));
            let mounts = host.mounts.expect("mounts");
            assert_eq!(mounts.iter().map(|mount| mount.source.as_deref()).collect::<Vec<_>>(), [Some("/data/work/x")]);
            assert_ne!(host.network_mode.as_deref(), Some("host"));
            assert_eq!((host.pids_limit, host.memory.is_some()), (Some(4096), true));
        }
    }

    #[test]
    fn registered_limits_go_before_those_of_the_worker() {
        let limits = Limits { memory_bytes: Some(1 << 30), cpu_millis: Some(1500), ..Limits::default() };
        let host = |spec| made(spec, limits, Network::None).host_config.expect("a host configuration");
        let plain = host(ContainerSpec::default());
        assert_eq!((plain.memory, plain.memory_swap, plain.nano_cpus), (Some(1 << 30), Some(1 << 30), Some(1_500_000_000)));
        let registered = host(ContainerSpec { cpu: Some(512), memory: Some(64), ..ContainerSpec::default() });
        assert_eq!((registered.memory, registered.nano_cpus), (Some(64 << 20), Some(500_000_000)));
        let large = host(ContainerSpec { cpu: Some(8192), ..ContainerSpec::default() });
        assert_eq!(large.nano_cpus, Some(2_000_000_000), "no more than the machine has");
    }

    #[test]
    fn the_command_is_the_entrypoint_and_its_environment_is_data() {
        let made = made(ContainerSpec::default(), Limits::default(), Network::Default);
        assert_eq!(made.entrypoint, Some(vec!["/bin/sh".into(), "-c".into(), "echo $(id); rm -rf /".into()]));
        assert_eq!((made.cmd, made.env), (None, Some(vec!["A=b=c\nd".to_owned()])));
        assert_eq!(made.working_dir.as_deref(), Some("/workspace/repo/sub"));
        assert_eq!(made.labels.expect("labels")[ATTEMPT], "3");
    }

    #[test]
    fn the_network_of_the_machine_cannot_be_named() {
        for refused in ["host", "container:abc", "a b", "ns:/proc/1/ns/net"] {
            assert!(refused.parse::<Network>().is_err(), "{refused}");
        }
        assert_eq!("none".parse(), Ok(Network::None));
        assert_eq!("build-net".parse(), Ok(Network::Named("build-net".into())));
    }
}
