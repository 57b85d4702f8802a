//! Which packages may be built at all. The same bans stand in deny.toml for those who have cargo-deny; here they need
//! no tool.

use std::collections::BTreeMap;

use super::finding::Finding;

/// Nowhere in the workspace.
const BANNED: [(&str, &str); 5] = [
    ("native-tls", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls; no C library of the system is linked"),
    ("reqwest", "runvoy-client speaks HTTP over hyper"),
    ("serde_yaml", "deprecated; YAML is serde-saphyr"),
    ("serde_yml", "has an advisory; YAML is serde-saphyr"),
];

/// Not in what a newcomer builds first.
const BANNED_BY_DEFAULT: [(&str, &str); 2] =
    [("aws-lc-sys", "needs cmake and minutes; rustls runs on ring"), ("aws-config", "the AWS crates are outside the default build")];

/// Two of these in one program do not understand each other.
const SINGLE: [&str; 4] = ["axum", "hyper", "rusqlite", "tokio"];

/// Banned and doubled packages, from Cargo.lock and from `cargo tree --prefix none --format {p}` of the default build.
pub fn check(lock: &str, default_build: &str) -> Vec<Finding> {
    let locked = locked(lock);
    let finding = |package: &Locked<'_>, message: String| Finding::new("package", "Cargo.lock", package.line, message);
    let mut findings = Vec::new();
    for package in &locked {
        let in_default = default_build.lines().any(|line| line.split_whitespace().next() == Some(package.name));
        let everywhere = BANNED.iter().find(|(name, _)| *name == package.name);
        let by_default = BANNED_BY_DEFAULT.iter().find(|(name, _)| *name == package.name && in_default);
        if let Some((name, why)) = everywhere.or(by_default) {
            findings.push(finding(package, format!("`{name}` is banned: {why}; `cargo tree --invert {name}` shows who wants it")));
        }
    }
    for name in SINGLE {
        let lines: BTreeMap<String, &Locked<'_>> =
            locked.iter().filter(|package| package.name == name).map(|package| (line_of_versions(package.version), package)).collect();
        if lines.len() > 1 {
            let versions: Vec<String> = lines.keys().cloned().collect();
            findings.extend(
                lines
                    .values()
                    .next()
                    .map(|first| finding(first, format!("`{name}` is there {} times: {}", lines.len(), versions.join(", ")))),
            );
        }
    }
    findings
}

struct Locked<'a> {
    name: &'a str,
    version: &'a str,
    line: usize,
}

/// The packages of a Cargo.lock. The format is fixed: `name = "…"` and, on the next line, `version = "…"`.
fn locked(lock: &str) -> Vec<Locked<'_>> {
    let value = |line: &'_ str, key: &str| -> Option<(usize, usize)> {
        let start = key.len() + 4;
        (line.starts_with(&format!("{key} = \"")) && line.ends_with('"')).then(|| (start, line.len() - 1))
    };
    let lines: Vec<&str> = lock.lines().collect();
    let pairs = lines.windows(2).enumerate().filter_map(|(index, pair)| {
        let name = value(pair[0], "name")?;
        let version = value(pair[1], "version")?;
        Some(Locked { name: &pair[0][name.0..name.1], version: &pair[1][version.0..version.1], line: index + 1 })
    });
    pairs.collect()
}

/// What cargo takes as compatible: the major version, or the minor one before 1.0.
fn line_of_versions(version: &str) -> String {
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (Some(major), _) => major.to_owned(),
        _ => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(packages: &[(&str, &str)]) -> String {
        packages.iter().map(|(name, version)| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")).collect()
    }

    #[test]
    fn a_banned_package_is_found_where_it_is_locked() {
        let found = check(&lock(&[("serde", "1.0.0"), ("openssl-sys", "0.9.1")]), "");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 6);
    }

    #[test]
    fn what_is_banned_by_default_may_be_in_other_builds() {
        let lock = lock(&[("aws-lc-sys", "0.30.0")]);
        assert!(check(&lock, "runvoy v0.1.0\nring v0.17.0").is_empty());
        assert_eq!(check(&lock, "runvoy v0.1.0\naws-lc-sys v0.30.0").len(), 1);
    }

    #[test]
    fn only_incompatible_versions_count_as_two() {
        assert!(check(&lock(&[("tokio", "1.2.0"), ("tokio", "1.9.0"), ("sha2", "0.10.0"), ("sha2", "0.11.0")]), "").is_empty());
        assert_eq!(check(&lock(&[("axum", "0.7.0"), ("axum", "0.8.0")]), "").len(), 1);
    }

    #[test]
    fn the_bans_are_those_of_the_deny_file() {
        let deny = include_str!("../../../deny.toml");
        for name in BANNED.iter().map(|(name, _)| *name).chain(SINGLE) {
            assert!(deny.contains(&format!("{{ crate = \"{name}\"")), "{name} is not in deny.toml");
        }
    }
}
