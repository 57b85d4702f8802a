//! Dependencies point inward: runvoy → {server, cli, adapters} → {engine | ports} → model. Adapters see neither the engine nor
//! each other, `cli` sees only `client` and `wire`, and only `runvoy` picks adapters.

use anyhow::{Context, Result};
use serde_json::Value;

use super::file::SourceFile;
use super::finding::Finding;
use crate::tool;

/// What each crate may see of the others. `None`: all of them.
const LAYERS: [(&str, Option<&[&str]>); 23] = [
    ("runvoy-model", Some(&[])),
    ("runvoy-ports", Some(&["runvoy-model"])),
    ("runvoy-engine", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-worker", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-remote", Some(&["runvoy-model", "runvoy-ports", "runvoy-rpc"])),
    ("runvoy-conformance", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-memory", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-sqlite", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-runners", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-containers", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-alerts", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-aws", Some(&["runvoy-model", "runvoy-ports"])),
    ("runvoy-wire", Some(&["runvoy-model"])),
    ("runvoy-rpc", Some(&[])),
    ("runvoy-client", Some(&["runvoy-wire"])),
    ("runvoy-cli", Some(&["runvoy-client", "runvoy-wire"])),
    ("runvoy-server", Some(&["runvoy-engine", "runvoy-model", "runvoy-ports", "runvoy-rpc", "runvoy-wire"])),
    ("runvoy", None),
    ("runvoy-lambda", None),
    ("runvoy-admin", None),
    ("runvoy-bench", None),
    ("runvoy-fuzz", None),
    ("xtask", None),
];

/// What tests of any crate may see besides: the suite that every adapter must pass, and the reference it is compared to.
const FOR_TESTS: [&str; 2] = ["runvoy-conformance", "runvoy-memory"];

/// A crate of the workspace and what it names as dependencies.
pub struct Manifest {
    name: String,
    path: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    is_for_tests: bool,
    line: usize,
}

/// Every dependency that the table does not have.
pub fn check(manifests: &[Manifest]) -> Vec<Finding> {
    manifests.iter().flat_map(|manifest| check_one(manifest, manifests)).collect()
}

fn check_one(manifest: &Manifest, all: &[Manifest]) -> Vec<Finding> {
    let finding = |line: usize, message: String| Finding::new("layer", &manifest.path, line, message);
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == manifest.name) else {
        return vec![finding(1, format!("`{}` has no place in the layers: give it a row in xtask/src/tidy/layer.rs", manifest.name))];
    };
    let Some(allowed) = allowed else { return Vec::new() };
    let ours = manifest.dependencies.iter().filter(|dependency| all.iter().any(|other| other.name == dependency.name));
    let is_allowed = |dependency: &&Dependency| {
        let name = dependency.name.as_str();
        allowed.contains(&name) || (dependency.is_for_tests && FOR_TESTS.contains(&name))
    };
    let wrong = ours.filter(|dependency| !is_allowed(dependency));
    wrong.map(|dependency| finding(dependency.line, format!("`{}` must not see `{}`", manifest.name, dependency.name))).collect()
}

/// The manifests, from `cargo metadata --no-deps`; lines are looked up in the files themselves.
pub fn manifests(metadata: &str, files: &[SourceFile]) -> Result<Vec<Manifest>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata wrote no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    packages.iter().map(|package| manifest(package, files)).collect()
}

fn manifest(package: &Value, files: &[SourceFile]) -> Result<Manifest> {
    let name = package["name"].as_str().context("a package has no name")?;
    let absolute = package["manifest_path"].as_str().context("a package has no path")?;
    let path = absolute.strip_prefix(&*tool::root().to_string_lossy()).unwrap_or(absolute).trim_start_matches('/');
    let text = files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    let dependencies = package["dependencies"].as_array().context("a package has no list of dependencies")?;
    let dependencies = dependencies.iter().filter_map(|dependency| {
        let name = dependency["name"].as_str()?.to_owned();
        let is_for_tests = dependency["kind"].as_str() == Some("dev");
        Some(Dependency { line: line_of(text, &name, is_for_tests), name, is_for_tests })
    });
    Ok(Manifest { name: name.to_owned(), path: path.to_owned(), dependencies: dependencies.collect() })
}

fn line_of(text: &str, name: &str, is_for_tests: bool) -> usize {
    let section = if is_for_tests { text.find("[dev-dependencies]").unwrap_or(0) } else { 0 };
    let before = text[..section].lines().count();
    let is_it = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    before + text[section..].lines().position(is_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(name: &str, dependencies: &[(&str, bool)]) -> Manifest {
        let dependencies =
            dependencies.iter().map(|(name, is_for_tests)| Dependency { name: (*name).to_owned(), is_for_tests: *is_for_tests, line: 1 });
        Manifest { name: name.to_owned(), path: format!("crates/{name}/Cargo.toml"), dependencies: dependencies.collect() }
    }

    /// What is wrong with a crate among empty ones of every other name.
    fn wrong(manifest: Manifest) -> Vec<String> {
        let mut all: Vec<Manifest> = LAYERS.iter().filter(|(name, _)| *name != manifest.name).map(|(name, _)| krate(name, &[])).collect();
        all.push(manifest);
        check(&all).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn dependencies_that_point_inward_pass() {
        assert!(wrong(krate("runvoy-sqlite", &[("runvoy-ports", false), ("runvoy-model", false), ("rusqlite", false)])).is_empty());
        assert!(wrong(krate("runvoy", &[("runvoy-sqlite", false), ("runvoy-cli", false), ("runvoy-server", false)])).is_empty());
        assert!(wrong(krate("runvoy-bench", &[("runvoy-client", false)])).is_empty());
    }

    #[test]
    fn every_other_direction_is_found() {
        for (name, other) in [
            ("runvoy-model", "runvoy-ports"),
            ("runvoy-sqlite", "runvoy-engine"),
            ("runvoy-sqlite", "runvoy-memory"),
            ("runvoy-cli", "runvoy-model"),
            ("runvoy-server", "runvoy-sqlite"),
            ("runvoy-engine", "runvoy-worker"),
        ] {
            assert_eq!(wrong(krate(name, &[(other, false)])), [format!("`{name}` must not see `{other}`")]);
        }
    }

    #[test]
    fn the_reference_and_the_suite_are_for_tests_only() {
        assert!(wrong(krate("runvoy-sqlite", &[("runvoy-memory", true), ("runvoy-conformance", true)])).is_empty());
        assert_eq!(wrong(krate("runvoy-engine", &[("runvoy-memory", false)])).len(), 1);
        assert_eq!(wrong(krate("runvoy-engine", &[("runvoy-sqlite", true)])).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        assert_eq!(wrong(krate("runvoy-new", &[])).len(), 1);
    }

    #[test]
    fn the_line_of_a_dependency_is_found_in_its_section() {
        let text = "[dependencies]\nrunvoy-model.workspace = true\n\n[dev-dependencies]\nrunvoy-model = { path = \"x\" }\n";
        assert_eq!(line_of(text, "runvoy-model", false), 2);
        assert_eq!(line_of(text, "runvoy-model", true), 5);
        assert_eq!(line_of(text, "absent", false), 1);
    }
}
