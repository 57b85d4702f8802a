//! A link in a document leads to a file that exists. Addresses on the net and places inside a page are not followed.

use super::file::SourceFile;
use super::finding::Finding;

/// Links of a Markdown file to paths that `exists`, asked relative to the root, denies.
pub fn check(file: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let dir = file.path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let broken = targets(&file.text).filter(|(_, target)| !exists(&resolve(dir, target)));
    broken.map(|(line, target)| Finding::new("link", &file.path, line, format!("`{target}` does not exist"))).collect()
}

/// The local targets of all links outside code, with their lines.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    prose
        .flat_map(|(index, line)| {
            // Every second piece between backticks is code.
            let outside = line.split('`').step_by(2);
            let links = outside.flat_map(|piece| piece.match_indices("](").map(|(at, _)| &piece[at + 2..]));
            links.filter_map(|rest| rest.split([')', ' ', '#']).next()).map(move |target| (index + 1, target))
        })
        .filter(|(_, target)| !target.is_empty() && !target.contains(':'))
}

fn resolve(dir: &str, target: &str) -> String {
    let start = if target.starts_with('/') { "" } else { dir };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<usize> {
        let exists = |path: &str| ["README.md", "docs/a.md", "docs/decisions"].contains(&path);
        check(&SourceFile::new(path, text), exists).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn missing_files_are_found_relative_to_the_document() {
        assert_eq!(broken("docs/b.md", "[a](a.md)\n[r](../README.md#top) [x](gone.md) [y](../a.md)"), [2, 2]);
        assert_eq!(broken("README.md", "[d](docs/decisions/) [abs](/docs/a.md \"title\")"), [] as [usize; 0]);
    }

    #[test]
    fn addresses_anchors_and_code_are_not_followed() {
        let text = "[w](https://example.org/x) [m](mailto:a@b) [h](#here) `[c](gone.md)`\n```\n[c](gone.md)\n```\n";
        assert!(broken("README.md", text).is_empty());
    }
}
