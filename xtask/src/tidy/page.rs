//! Documents are easy to read: lines of at most 100 columns, pages of `docs/` with at most 200 lines of prose. Code and tables count
//! neither way.

use super::file::SourceFile;
use super::finding::Finding;

const MAX_COLUMNS: usize = 100;
const MAX_PROSE_LINES: usize = 200;

/// Lines of a Markdown file that are too wide, and a page that is too long.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let mut in_code = false;
    let mut prose_lines = 0;
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || line.trim().is_empty() || line.trim_start().starts_with('|') {
            continue;
        }
        prose_lines += 1;
        let columns = line.chars().count();
        if columns > MAX_COLUMNS {
            findings.push(Finding::new("page", &file.path, index + 1, format!("has {columns} columns: wrap it at {MAX_COLUMNS}")));
        }
    }
    if file.path.starts_with("docs/") && prose_lines > MAX_PROSE_LINES {
        let message = format!("has {prose_lines} lines of prose: at most {MAX_PROSE_LINES}; split it by topic");
        findings.push(Finding::new("page", &file.path, 1, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn wide_lines_are_found_outside_code_and_tables() {
        let wide = "é".repeat(101);
        let text = format!("{wide}\n```sh\n{wide}\n```\n| {wide} |\n{}\n{wide}\n", "é".repeat(100));
        assert_eq!(lines("README.md", &text), [1, 7]);
        assert!(lines("a.rs", &text).is_empty());
    }

    #[test]
    fn long_pages_of_docs_are_found() {
        let page = |lines: usize| "text\n\n".repeat(lines);
        assert!(lines("docs/a.md", &page(200)).is_empty());
        assert_eq!(lines("docs/a.md", &page(201)), [1]);
        assert!(lines("README.md", &page(201)).is_empty());
    }
}
