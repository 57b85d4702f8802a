//! The tail: no source file grows beyond what a person reads in one go.

use super::file::SourceFile;
use super::finding::Finding;

const MAX_LINES: usize = 600;

/// A source file that is too long.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let is_source = [".rs", ".ts", ".svelte"].iter().any(|ending| file.path.ends_with(ending));
    let lines = file.text.lines().count();
    if !is_source || lines <= MAX_LINES {
        return Vec::new();
    }
    vec![Finding::new("file-length", &file.path, lines, format!("has {lines} lines: at most {MAX_LINES}; split it by concept"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_sources_are_found() {
        let findings = |path: &str, lines: usize| check(&SourceFile::new(path, &"\n".repeat(lines))).len();
        assert_eq!(findings("a.rs", 600), 0);
        assert_eq!(findings("a.rs", 601), 1);
        assert_eq!(findings("a.svelte", 601), 1);
        assert_eq!(findings("a.md", 5000), 0);
    }
}
