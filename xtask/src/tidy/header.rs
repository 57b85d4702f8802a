//! Every Rust file opens with `//!`: what it is responsible for and what it never does, in one to eight lines.

use super::file::SourceFile;
use super::finding::Finding;

const MAX_LINES: usize = 8;

/// A missing header, or one that is an essay. Essays are welcome where crashes or concurrency need one, as exceptions.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let lines = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    let message = match lines {
        0 => "does not open with a `//!` header that says what it is responsible for".to_owned(),
        1..=MAX_LINES => return Vec::new(),
        _ => format!("its header has {lines} lines: at most {MAX_LINES}, or an exception with a reason"),
    };
    vec![Finding::new("header", &file.path, 1, message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&SourceFile::new("a.rs", text)).len()
    }

    #[test]
    fn a_header_must_be_there_and_short() {
        assert_eq!(findings("//! What it is.\nfn f() {}"), 0);
        assert_eq!(findings(&"//! line\n".repeat(8)), 0);
        assert_eq!(findings(&"//! line\n".repeat(9)), 1);
        assert_eq!(findings("use std::fs;\n//! late"), 1);
        assert_eq!(findings(""), 1);
    }

    #[test]
    fn other_files_need_none() {
        assert!(check(&SourceFile::new("a.md", "text")).is_empty());
    }
}
