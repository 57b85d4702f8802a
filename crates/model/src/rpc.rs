//! What clients of `job.v1` say that a spec has no field of its own for. It is kept, so that whoever leases or looks is given what was sent. What the
//! runners of this program would not do as it says is for workers that read it themselves: the spec asks for them by a label.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::git::check_reference;

/// The label of workers that read the parameters of `job.v1` themselves. It is no name, for names have no colon: nobody can ask for it or claim to have it.
pub const PROTOCOL_LABEL: &str = "runvoy:protocol";
/// The value of that label.
pub const JOB_V1: &str = "job.v1";

const LONGEST_REPOSITORY: usize = 2_048;
const LONGEST_IMAGE: usize = 512;
const LONGEST_PATH: usize = 1_024;
const LONGEST_WORD: usize = 64;
const MOST_MOUNTS: usize = 32;
const LONGEST_KEY: usize = 256;
const MOST_METADATA: usize = 128;
/// Keys and values together.
const MOST_METADATA_BYTES: usize = 64 << 10;

/// What is not said by other fields of a spec; what is absent is said by them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcParams {
    /// A repository that is not cloned, where it cannot be a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The commit; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where it runs, where that is no directory of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Its container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<RpcContainer>,
    /// How its repository is cloned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_clone: Option<RpcClone>,
    /// Metadata that are no labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A container as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcContainer {
    /// Whether it runs in one.
    #[serde(default)]
    pub enabled: bool,
    /// The image as it was named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What makes the container; empty leaves that to the worker.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// What it sees of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<RpcMount>,
}

/// A part of the machine that a container sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcMount {
    /// Where it is.
    pub source: String,
    /// Where it appears.
    pub target: String,
    /// It cannot be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// How a repository is cloned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcClone {
    /// Whether it is.
    #[serde(default)]
    pub enabled: bool,
    /// How many commits; 0 is all.
    #[serde(default)]
    pub depth: u32,
    /// Only the one branch.
    #[serde(default)]
    pub single_branch: bool,
    /// Which of its submodules.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub submodules: String,
}

impl RpcClone {
    /// As the runners of this program clone.
    pub const OURS: Self = Self { enabled: true, depth: 1, single_branch: true, submodules: String::new() };

    /// Whether a clone by the runners of this program is what it says. One commit is of one branch, whatever is said of branches.
    fn is_ours(&self) -> bool {
        self.depth == 1 && matches!(self.submodules.as_str(), "" | "none" | "false")
    }
}

/// What cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct InvalidParam {
    /// The field, as the protocol calls it.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl RpcParams {
    /// Whether only a worker that reads these itself does what they say.
    pub fn is_for_job_v1(&self) -> bool {
        let container = self.container.as_ref().filter(|container| container.enabled);
        let clone = self.git_clone.as_ref().filter(|clone| clone.enabled);
        container.is_some_and(|container| !container.runtime.is_empty() || !container.mounts.is_empty())
            || clone.is_some_and(|clone| !clone.is_ours())
            || self.working_directory.as_deref().is_some_and(|directory| directory != ".")
    }

    /// Refuses what is larger than any use of it, or could be more than the text that it should be.
    pub fn check(&self) -> Result<(), InvalidParam> {
        for (field, reference) in [("commit", &self.commit), ("branch", &self.branch)] {
            let given = reference.as_deref().filter(|reference| !reference.is_empty());
            given.map_or(Ok(()), check_reference).map_err(|why| invalid(field, why))?;
        }
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        check_text("repository", &given(&self.repository), LONGEST_REPOSITORY)?;
        check_text("working_directory", &given(&self.working_directory), LONGEST_PATH)?;
        if let Some(clone) = &self.git_clone {
            check_text("git_clone.submodules", &clone.submodules, LONGEST_WORD)?;
        }
        self.container.as_ref().map_or(Ok(()), RpcContainer::check)?;
        check_metadata(&self.metadata)
    }
}

impl RpcContainer {
    fn check(&self) -> Result<(), InvalidParam> {
        check_text("container.image", &self.image, LONGEST_IMAGE)?;
        check_text("container.runtime", &self.runtime, LONGEST_WORD)?;
        if self.mounts.len() > MOST_MOUNTS {
            return Err(invalid("container.mounts", format!("at most {MOST_MOUNTS}")));
        }
        for path in self.mounts.iter().flat_map(|mount| [&mount.source, &mount.target]) {
            if path.is_empty() {
                return Err(invalid("container.mounts", "each needs a source and a target"));
            }
            check_text("container.mounts", path, LONGEST_PATH)?;
        }
        Ok(())
    }
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), InvalidParam> {
    if metadata.len() > MOST_METADATA {
        return Err(invalid("metadata", format!("at most {MOST_METADATA} that are no labels")));
    }
    if metadata.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > MOST_METADATA_BYTES {
        return Err(invalid("metadata", format!("at most {MOST_METADATA_BYTES} bytes that are no labels")));
    }
    for (key, value) in metadata {
        if key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control) {
            return Err(invalid("metadata", format!("keys have 1 to {LONGEST_KEY} bytes without control characters")));
        }
        if value.contains('\0') {
            return Err(invalid(format!("metadata.{key}"), "must not contain NUL"));
        }
    }
    Ok(())
}

fn check_text(field: &str, text: &str, longest: usize) -> Result<(), InvalidParam> {
    if text.len() > longest || text.chars().any(char::is_control) {
        return Err(invalid(field, format!("at most {longest} bytes without control characters")));
    }
    Ok(())
}

fn invalid(field: impl Into<String>, message: impl Into<String>) -> InvalidParam {
    InvalidParam { field: field.into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;
    use crate::spec::Spec;

    fn container(runtime: &str, mounts: usize) -> RpcContainer {
        let mount = RpcMount { source: "/srv".into(), target: "/data".into(), read_only: true };
        RpcContainer { enabled: true, runtime: runtime.into(), mounts: vec![mount; mounts], ..RpcContainer::default() }
    }

    fn clone(depth: u32, submodules: &str) -> RpcClone {
        RpcClone { enabled: true, depth, submodules: submodules.into(), ..RpcClone::default() }
    }

    #[test]
    fn what_our_runners_would_not_do_is_for_workers_that_read_it_themselves() {
        let of = |change: fn(&mut RpcParams)| {
            let mut params = RpcParams::default();
            change(&mut params);
            params.is_for_job_v1()
        };
        assert!(of(|params| params.container = Some(container("podman", 0))));
        assert!(of(|params| params.container = Some(container("", 1))));
        assert!(of(|params| params.git_clone = Some(clone(0, ""))), "all of the history");
        assert!(of(|params| params.git_clone = Some(clone(7, ""))));
        assert!(of(|params| params.git_clone = Some(clone(1, "recursive"))));
        assert!(of(|params| params.working_directory = Some("/srv".into())));
        for ours in [
            (|_| {}) as fn(&mut RpcParams),
            |params| params.container = Some(container("", 0)),
            |params| params.container = Some(RpcContainer { enabled: false, ..container("podman", 1) }),
            |params| params.git_clone = Some(clone(1, "none")),
            |params| params.git_clone = Some(RpcClone { enabled: false, ..clone(7, "recursive") }),
            |params| params.working_directory = Some(".".into()),
            |params| drop(params.metadata.insert("message".into(), "a\nb".into())),
        ] {
            assert!(!of(ours));
        }
    }

    #[test]
    fn the_field_that_is_too_large_or_no_text_is_named() {
        let refused = |change: &dyn Fn(&mut RpcParams)| {
            let mut params = RpcParams::default();
            change(&mut params);
            params.check().map_or_else(|error| error.field, |()| "nothing".into())
        };
        let kept = |key: &str, value: &str| {
            let (key, value) = (key.to_owned(), value.to_owned());
            refused(&move |params| drop(params.metadata.insert(key.clone(), value.clone())))
        };
        assert_eq!(kept("a commit's message", "one\n\ntwo\n"), "nothing");
        assert_eq!(kept("big", &"x".repeat(65_000)), "nothing");
        assert_eq!(
            (kept("big", &"x".repeat(66_000)), kept("", "x"), kept("a\nb", "x")),
            ("metadata".into(), "metadata".into(), "metadata".into())
        );
        assert_eq!(kept("nul", "\0"), "metadata.nul");
        assert_eq!(refused(&|params| params.metadata = (0..129).map(|n| (format!("k{n}"), String::new())).collect()), "metadata");
        assert_eq!(refused(&|params| params.commit = Some("--upload-pack=x".into())), "commit");
        assert_eq!(refused(&|params| params.branch = Some("a b".into())), "branch");
        assert_eq!(refused(&|params| params.branch = Some(String::new())), "nothing");
        assert_eq!(refused(&|params| params.repository = Some("x".repeat(2_049))), "repository");
        assert_eq!(refused(&|params| params.working_directory = Some("a\nb".into())), "working_directory");
        assert_eq!(refused(&|params| params.git_clone = Some(clone(1, &"x".repeat(65)))), "git_clone.submodules");
        assert_eq!(refused(&|params| params.container = Some(container(&"x".repeat(65), 0))), "container.runtime");
        assert_eq!(refused(&|params| params.container = Some(container("docker", 32))), "nothing");
        assert_eq!(refused(&|params| params.container = Some(container("", 33))), "container.mounts");
        let nowhere = RpcContainer { mounts: vec![RpcMount::default()], ..RpcContainer::default() };
        assert_eq!(refused(&|params| params.container = Some(nowhere.clone())), "container.mounts");
    }

    #[test]
    fn nobody_can_name_the_label_of_the_protocol() {
        assert!(Name::new(PROTOCOL_LABEL).is_err());
    }

    #[test]
    fn a_spec_of_before_is_read_and_written_as_it_was() {
        let text = r#"{"command":"true","image":"local","queue":"default","priority":3,"retries":0}"#;
        let spec: Spec = serde_json::from_str(text).expect("a spec");
        assert_eq!((spec.rpc.is_none(), spec.terminal, spec.is_for_job_v1()), (true, false, false));
        assert_eq!(serde_json::to_string(&spec).expect("JSON"), text);
    }

    #[test]
    fn what_is_kept_survives_its_text_form_and_what_is_absent_takes_no_room() {
        let params = RpcParams { container: Some(container("docker", 1)), git_clone: Some(RpcClone::OURS), ..RpcParams::default() };
        let kept = serde_json::to_string(&params).expect("JSON");
        assert_eq!(serde_json::from_str::<RpcParams>(&kept).expect("params"), params);
        assert_eq!(serde_json::to_string(&RpcParams::default()).expect("JSON"), "{}");
    }
}
