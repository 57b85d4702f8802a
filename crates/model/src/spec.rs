//! What was asked for: the immutable part of an execution.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::git::GitSource;
use crate::image::{Image, ImageSettings};
use crate::job::TaskRef;
use crate::name::Name;
use crate::rpc::{PROTOCOL_LABEL, RpcParams};

/// The queue that is used when none is named.
pub const DEFAULT_QUEUE: &str = "default";
/// The image of the process runner's own environment.
pub const LOCAL_IMAGE: &str = "local";
/// Words and their values.
pub type Labels = BTreeMap<String, String>;
/// So many labels of one kind at most.
pub const MOST_LABELS: usize = 64;
const LONGEST_LABEL: usize = 256;

/// The middle of the five priorities; 1 goes first.
pub const DEFAULT_PRIORITY: u8 = 3;

/// One command and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// A shell command; or, where there are `args`, a program.
    pub command: String,
    /// Arguments of the program, passed as they are, without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image it runs in.
    pub image: String,
    /// What a container of that image is made with; absent for the worker's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerSpec>>,
    /// The user's own environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The lock it holds from submit to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Name>,
    /// How long it may wait for that lock; absent means not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait_ms: Option<u64>,
    /// The line it waits in.
    pub queue: Name,
    /// 1 goes first, 5 last.
    pub priority: u8,
    /// Free words to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: Labels,
    /// It runs on a terminal of its own: one stream, as people see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// How many further attempts it may have.
    pub retries: u32,
    /// How many further attempts it may have where its worker was lost, even without retries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redeliveries: u32,
    /// Secrets that its environment gets when an attempt begins. Names only: no value is ever kept here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Name>,
    /// A repository that is cloned before the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// The task that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRef>,
    /// The playbook that it is a run of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<PlaybookRef>,
    /// What a client of `job.v1` said beside all this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc: Option<Box<RpcParams>>,
}

/// What a container is made with: what was registered for its image when the execution was submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The whole reference: `docker.io/library/alpine:3.20`.
    pub reference: String,
    /// CPU units: 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// MiB of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// `Linux/X86_64`, `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
}

impl From<&Image> for ContainerSpec {
    fn from(image: &Image) -> Self {
        let ImageSettings { cpu, memory, runtime_platform, .. } = &image.settings;
        Self { reference: image.reference.to_string(), cpu: *cpu, memory: *memory, platform: runtime_platform.clone() }
    }
}

/// One version of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaybookRef {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Whether a label can have this value.
pub fn is_label_value(value: &str) -> bool {
    value.len() <= LONGEST_LABEL && !value.chars().any(char::is_control)
}

/// Whether this can be a label.
pub fn is_label(key: &str, value: &str) -> bool {
    Name::new(key).is_ok() && is_label_value(value)
}

/// What an image asks of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Needs {
    /// The worker's own environment.
    Process,
    /// A registered image.
    Image,
}

impl Needs {
    /// Every need, in the order that ready executions are kept by.
    pub const ALL: [Self; 2] = [Self::Process, Self::Image];
}

impl Spec {
    /// What is left of a spec that a store cannot read any more: where its execution stands, and not what it was to run.
    pub fn lost(queue: Name, priority: u8) -> Self {
        Self {
            command: String::new(),
            args: None,
            image: String::new(),
            container: None,
            env: BTreeMap::new(),
            timeout_ms: None,
            lock: None,
            lock_wait_ms: None,
            queue,
            priority,
            labels: BTreeMap::new(),
            worker_labels: Labels::new(),
            terminal: false,
            retries: 0,
            redeliveries: 0,
            secrets: Vec::new(),
            git: None,
            task: None,
            playbook: None,
            rpc: None,
        }
    }

    /// Nobody knows any more what it was to run. Everything that is submitted has a command.
    pub fn is_lost(&self) -> bool {
        self.command.is_empty()
    }

    /// How many further attempts it may have where its worker was lost.
    pub fn attempts_after_loss(&self) -> u32 {
        self.retries.max(self.redeliveries)
    }

    /// What it asks of a worker.
    pub fn needs(&self) -> Needs {
        if self.image == LOCAL_IMAGE { Needs::Process } else { Needs::Image }
    }

    /// Whether a worker with these labels may take it.
    pub fn fits(&self, labels: &Labels) -> bool {
        self.worker_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Only a worker that reads the parameters of `job.v1` itself may take it.
    pub fn is_for_job_v1(&self) -> bool {
        self.worker_labels.contains_key(PROTOCOL_LABEL)
    }

    /// The labels that were asked for, as a message goes on with them.
    pub fn asked_labels(&self) -> String {
        let asked = self.worker_labels.iter().filter(|(key, _)| key.as_str() != PROTOCOL_LABEL);
        let labels: Vec<String> = asked.map(|(key, value)| format!("{key}={value}")).collect();
        if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(", ")) }
    }

    /// The program and its arguments: the shell text stays one argument.
    pub fn argv(&self) -> Vec<String> {
        match &self.args {
            Some(args) => std::iter::once(&self.command).chain(args).cloned().collect(),
            None => vec!["/bin/sh".into(), "-c".into(), self.command.clone()],
        }
    }
}
