//! A file and a module are named after one concept. Names that only say "and other things" are refused.

use super::file::SourceFile;
use super::finding::Finding;

const FORBIDDEN: [&str; 11] = ["common", "helper", "helpers", "impl", "manager", "misc", "service", "types", "util", "utils", "stuff"];

/// Forbidden names in the path of a Rust file, and modules declared inside it.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let in_path = path.split('/').filter_map(forbidden_part).map(|part| (1, part));
    let in_code = inline_modules(file).filter_map(|(line, name)| forbidden_part(name).map(|part| (line, part)));
    let found = in_path.chain(in_code);
    found.map(|(line, part)| Finding::new("name", &file.path, line, format!("`{part}` names no concept: say what is in there"))).collect()
}

fn forbidden_part(name: &str) -> Option<&str> {
    name.split(['_', '-']).find(|part| FORBIDDEN.contains(part))
}

/// Modules with a body here; those without have a file, whose own path is judged.
fn inline_modules(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    file.code.match_indices("mod ").filter_map(move |(at, keyword)| {
        let rest = &file.code[at + keyword.len()..];
        let (name, body) = rest.split_at(rest.find(|c| !is_word(c))?);
        let is_module = !file.code[..at].ends_with(is_word) && body.trim_start().starts_with('{');
        is_module.then(|| (file.line_at(at), name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn forbidden_files_directories_and_modules_are_found() {
        assert_eq!(lines("crates/model/src/util.rs", ""), [1]);
        assert_eq!(lines("crates/model/src/lock_manager.rs", ""), [1]);
        assert_eq!(lines("crates/runvoy/tests/common/mod.rs", ""), [1]);
        assert_eq!(lines("a.rs", "\nmod helpers {\n}\n"), [2]);
    }

    #[test]
    fn names_that_say_something_pass() {
        assert!(lines("crates/model/src/lease.rs", "mod tests {\n}\n// mod util {\nfn utility() {}").is_empty());
        assert!(lines("crates/model/src/implied.rs", "").is_empty());
        assert!(lines("docs/types.md", "").is_empty());
    }
}
