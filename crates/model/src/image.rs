//! Images: registered environments that commands may run in. A reference as people write it becomes registry, name and tag here; the id tells apart
//! what only looks the same.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::time::UnixMs;

/// A registered image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its id.
    pub image_id: String,
    /// The reference as it was registered.
    pub image: String,
    /// Its parts.
    pub reference: Reference,
    /// What it is run with.
    pub settings: ImageSettings,
    /// Who registered it.
    pub created_by: String,
    /// Who else may change it.
    pub owned_by: Vec<String>,
    /// When.
    pub created_at: UnixMs,
    /// The request that registered it.
    pub created_by_request_id: String,
    /// The request that changed it last.
    pub modified_by_request_id: String,
}

/// What an image is run with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageSettings {
    /// CPU units: 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// MiB of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// `Linux/X86_64`, `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_platform: Option<String>,
    /// The role of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_role_name: Option<String>,
    /// The role of whoever starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_execution_role_name: Option<String>,
}

/// The parts of a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Where it is kept: `docker.io`, `ghcr.io`, `localhost:5000`.
    pub registry: String,
    /// Its name there: `library/alpine`.
    pub name: String,
    /// Its tag, or its digest with `sha256:` before it.
    pub tag: String,
}

/// A text that is no reference to an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an image such as alpine:3.20, ghcr.io/team/tool:1 or name@sha256:…, at most 512 characters")]
pub struct InvalidReference;

impl Reference {
    /// Reads a reference; what is left out is Docker's own default.
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        if text.len() > 512 || !text.is_ascii() {
            return Err(InvalidReference);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if is_digest(digest) => (rest, Some(digest)),
            Some(_) => return Err(InvalidReference),
            None => (text, None),
        };
        // A colon after the last slash begins a tag; before it, a port.
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(InvalidReference);
        }
        let (registry, name) = match path.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DOCKER_HUB, path),
        };
        if !is_registry(registry) || !name.split('/').all(is_component) {
            return Err(InvalidReference);
        }
        let (registry, name) = canonical(registry, name);
        let tag = digest.or(tag).unwrap_or("latest").to_owned();
        Ok(Self { registry, name, tag })
    }

    /// The last part of the name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().expect("a split has a last part")
    }
}

impl fmt::Display for Reference {
    /// The whole reference, nothing left out: `docker.io/library/alpine:3.20`, `ghcr.io/team/tool@sha256:…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = if is_digest(&self.tag) { '@' } else { ':' };
        write!(f, "{}/{}{joint}{}", self.registry, self.name, self.tag)
    }
}

/// The id of an image: its short name and tag for people, and a digest over everything that makes it what it is.
pub fn image_id(reference: &Reference, settings: &ImageSettings) -> String {
    let mut hash = Sha256::new();
    let parts = serde_json::to_vec(&(reference, settings)).expect("plain fields can be written as JSON");
    hash.update(parts);
    let digest: [u8; 32] = hash.finalize().into();
    let tag: String = reference.tag.chars().map(|c| if c == ':' { '-' } else { c }).take(24).collect();
    format!("{}:{tag}-{}", reference.short_name(), &hex(&digest)[..12])
}

const DOCKER_HUB: &str = "docker.io";
/// What Docker's registry was called once; Docker takes both for the same.
const DOCKER_HUB_OF_OLD: &str = "index.docker.io";

/// One spelling of what is the same place: rules compare it as text.
fn canonical(registry: &str, name: &str) -> (String, String) {
    let registry = registry.to_ascii_lowercase();
    if registry != DOCKER_HUB && registry != DOCKER_HUB_OF_OLD {
        return (registry, name.to_owned());
    }
    let name = if name.contains('/') { name.to_owned() } else { format!("library/{name}") };
    (DOCKER_HUB.to_owned(), name)
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let host_ok =
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-') && !host.starts_with(['-', '.']);
    host_ok && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_component(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let inside = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    inside && edge(text.bytes().next()) && edge(text.bytes().last())
}

fn is_tag(text: &str) -> bool {
    let inside = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    inside && (1..=128).contains(&text.len()) && !text.starts_with(['.', '-'])
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_registry_name_and_tag() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let pinned = format!("ghcr.io/a/b@{digest}");
        for (text, registry, name, tag) in [
            ("alpine", "docker.io", "library/alpine", "latest"),
            ("alpine:3.20", "docker.io", "library/alpine", "3.20"),
            ("team/tool", "docker.io", "team/tool", "latest"),
            ("ghcr.io/team/tool:v1", "ghcr.io", "team/tool", "v1"),
            ("localhost:5000/x", "localhost:5000", "x", "latest"),
            ("1.dkr.ecr.eu-west-1.amazonaws.com/a/b:c", "1.dkr.ecr.eu-west-1.amazonaws.com", "a/b", "c"),
            (pinned.as_str(), "ghcr.io", "a/b", digest.as_str()),
        ] {
            let reference = Reference::parse(text).expect(text);
            assert_eq!((reference.registry.as_str(), reference.name.as_str(), reference.tag.as_str()), (registry, name, tag), "{text}");
        }
    }

    #[test]
    fn what_is_the_same_place_is_spelled_one_way() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, whole) in [
            ("alpine", "docker.io/library/alpine:latest".to_owned()),
            ("docker.io/alpine", "docker.io/library/alpine:latest".to_owned()),
            ("Docker.IO/library/alpine", "docker.io/library/alpine:latest".to_owned()),
            ("index.docker.io/alpine:3", "docker.io/library/alpine:3".to_owned()),
            ("GHCR.io/team/tool:V1", "ghcr.io/team/tool:V1".to_owned()),
            ("localhost:5000/x", "localhost:5000/x:latest".to_owned()),
            (&format!("ghcr.io/a/b:1@{digest}"), format!("ghcr.io/a/b@{digest}")),
        ] {
            assert_eq!(Reference::parse(text).expect(text).to_string(), whole, "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for bad in ["", ":x", "a:", "A", "a b", "-a", "a/", "/a", "a//b", "a@b", "a@sha256:12", "x.y:99999/a", "ä", "a;b", "$(a)", "a\n"] {
            assert_eq!(Reference::parse(bad), Err(InvalidReference), "{bad:?}");
        }
    }

    #[test]
    fn ids_tell_registries_and_settings_apart() {
        let id = |text: &str, cpu| image_id(&Reference::parse(text).expect(text), &ImageSettings { cpu, ..ImageSettings::default() });
        assert_eq!(id("alpine", None), id("docker.io/library/alpine:latest", None));
        assert_ne!(id("alpine", None), id("ghcr.io/library/alpine", None));
        assert_ne!(id("alpine", None), id("alpine", Some(256)));
        assert!(id("ghcr.io/a/tool:v1", None).starts_with("tool:v1-"));
    }
}
