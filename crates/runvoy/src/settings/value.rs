//! Values of settings, as they are written: each parser says what it expected.

use std::path::PathBuf;
use std::time::Duration;

use runvoy_client::Endpoint;
use runvoy_model::name::Name;
use runvoy_runners::{IsolationLevel, UidRange};
use runvoy_server::Network;

use super::BackendName;
use super::Hidden;
use super::aws::EventLayout;

pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

pub(super) fn hidden(text: &str) -> Result<Hidden, String> {
    Ok(Hidden((!text.is_empty()).then(|| text.to_owned())))
}

pub(super) fn optional(text: &str) -> Result<Option<String>, String> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// The address of a server as clients are given it, in one form. What was given is not repeated.
pub(super) fn address(text: &str) -> Result<String, String> {
    match text.parse::<Endpoint>() {
        Ok(endpoint @ Endpoint::Tcp { .. }) if !text.contains('#') => Ok(endpoint.to_string()),
        _ => Err("expected http://HOST:PORT or https://HOST, without user, query and fragment".to_owned()),
    }
}

pub(super) fn uids(text: &str) -> Result<Option<UidRange>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|error: runvoy_runners::UnfitUids| error.to_string()) }
}

pub(super) fn isolation(text: &str) -> Result<Option<IsolationLevel>, String> {
    match text {
        "" => Ok(None),
        "strict" => Ok(Some(IsolationLevel::Strict)),
        "basic" => Ok(Some(IsolationLevel::Basic)),
        "off" => Ok(Some(IsolationLevel::Off)),
        _ => Err(format!("expected strict, basic or off, not `{text}`")),
    }
}

/// What runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runners {
    /// Commands of the image `local` run as processes of the machine.
    pub process: bool,
    /// Commands of other images run in containers.
    pub container: bool,
}

pub(super) fn runners(text: &str) -> Result<Option<Runners>, String> {
    let mut runners = Runners { process: false, container: false };
    for name in list(text)? {
        match name.as_str() {
            "process" => runners.process = true,
            "container" => runners.container = true,
            _ => return Err(format!("expected process, container or both, not `{name}`")),
        }
    }
    Ok(Some(runners).filter(|runners| runners.process || runners.container))
}

pub(super) fn network(text: &str) -> Result<runvoy_containers::Network, String> {
    text.parse()
}

pub(super) fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("expected true or false, not `{text}`")),
    }
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, not `{text}`"))
}

pub(super) fn optional_number(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() { Ok(None) } else { number(text).map(Some) }
}

pub(super) fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

pub(super) fn names(text: &str) -> Result<Vec<Name>, String> {
    list(text)?.into_iter().map(|item| Name::new(item.clone()).map_err(|error| format!("`{item}` {error}"))).collect()
}

pub(super) fn networks(text: &str) -> Result<Vec<Network>, String> {
    list(text)?.into_iter().map(|item| item.parse().map_err(|error| format!("`{item}` {error}"))).collect()
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        unit => return Err(format!("unknown unit `{unit}`: use KiB, MiB, GiB or TiB")),
    };
    number::<u64>(digits)?.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

pub(super) fn optional_bytes(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() { Ok(None) } else { bytes(text).map(Some) }
}

/// A time with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        unit => return Err(format!("unknown unit `{unit}`: use ms, s, m or h")),
    };
    number::<u64>(digits)?.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

pub(super) fn backend(text: &str) -> Result<BackendName, String> {
    match text {
        "embedded" => Ok(BackendName::Embedded),
        "aws" => Ok(BackendName::Aws),
        _ => Err(format!("expected embedded or aws, not `{text}`")),
    }
}

pub(super) fn event_layout(text: &str) -> Result<EventLayout, String> {
    match text {
        "seed" => Ok(EventLayout::Seed),
        "sharded" => Ok(EventLayout::Sharded),
        _ => Err(format!("expected seed or sharded, not `{text}`")),
    }
}

/// `name=value`, separated by commas.
pub(super) fn pairs(text: &str) -> Result<Vec<(Name, String)>, String> {
    let pair = |item: String| {
        let (name, value) = item.split_once('=').ok_or_else(|| format!("expected NAME=URL, not `{item}`"))?;
        let name = Name::new(name).map_err(|error| format!("`{name}` {error}"))?;
        Ok((name, value.to_owned()))
    };
    list(text)?.into_iter().map(pair).collect()
}
