//! `docs/security-tests.md` names the tests of each point: every one that it names exists, and every one that exists is named.

use std::collections::BTreeSet;

use super::file::SourceFile;
use super::finding::Finding;

const DOCUMENT: &str = "docs/security-tests.md";
/// What the names of these tests begin with.
const PREFIX: &str = "security_";

/// Names without a test, and tests without a name.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else { return Vec::new() };
    let named: BTreeSet<&str> = document.text.split_whitespace().filter(|word| word.starts_with(PREFIX)).collect();
    let mut findings = Vec::new();
    let mut there = BTreeSet::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && file.path.starts_with("crates/")) {
        for (index, line) in file.text.lines().enumerate() {
            let Some(name) = test_name(line) else { continue };
            there.insert(name);
            if !named.contains(name) {
                findings.push(Finding::new("proof", &file.path, index + 1, format!("`{name}` is not named in {DOCUMENT}")));
            }
        }
    }
    let line_of = |name: &str| document.text.lines().position(|line| line.contains(name)).map_or(1, |index| index + 1);
    let gone = named.difference(&there);
    findings.extend(gone.map(|name| Finding::new("proof", DOCUMENT, line_of(name), format!("there is no test `{name}`"))));
    findings
}

fn test_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    let name = rest.split('(').next()?;
    name.starts_with(PREFIX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_test_and_a_test_without_a_name_are_found() {
        let files = [
            SourceFile::new(DOCUMENT, "1\n    security_01_a\n    security_02_gone\n"),
            SourceFile::new("crates/a/tests/t.rs", "#[test]\nfn security_01_a() {}\n    async fn security_03_new() {}\n"),
        ];
        let found: Vec<(String, usize)> = check(&files).into_iter().map(|finding| (finding.path, finding.line)).collect();
        assert_eq!(found, [("crates/a/tests/t.rs".to_owned(), 3), (DOCUMENT.to_owned(), 3)]);
    }
}
