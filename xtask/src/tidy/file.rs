//! The files that rules judge: everything that is or could be committed and is text.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::mask::mask;

/// A text file of the tree.
pub struct SourceFile {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What it says.
    pub text: String,
    /// Rust only: the same bytes, with comments and literals blanked.
    pub code: String,
}

impl SourceFile {
    /// A file of that path and text.
    pub fn new(path: &str, text: &str) -> SourceFile {
        let code = if path.ends_with(".rs") { mask(text) } else { String::new() };
        SourceFile { path: path.to_owned(), text: text.to_owned(), code }
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The directory under `crates/` that it is in.
    pub fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The line, from 1, of a byte offset.
    pub fn line_at(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// All files of the tree at `root`: what git tracks or would, else (an unpacked archive) all but build output.
pub fn tree(root: &Path) -> Result<Vec<SourceFile>> {
    let mut paths = git_files(root).map_or_else(|| walk(root, root), Ok)?;
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        // Deleted but still in git's index, a link to a directory, or gone since the listing.
        let Ok(bytes) = fs::read(root.join(&path)) else { continue };
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile::new(&path, &text));
        }
    }
    Ok(files)
}

fn git_files(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    // Inside somebody else's repository, where we are ignored, git knows nothing of us.
    (!paths.is_empty()).then_some(paths)
}

fn walk(root: &Path, dir: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && !["target", ".git", "node_modules"].contains(&&*entry.file_name().to_string_lossy()) {
            paths.extend(walk(root, &entry.path())?);
        } else if kind.is_file() {
            let path = entry.path();
            let relative = path.strip_prefix(root).expect("the walk starts at the root");
            paths.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_knows_its_crate_and_its_lines() {
        let file = SourceFile::new("crates/model/src/lease.rs", "a\nb\nc");
        assert_eq!(file.krate(), Some("model"));
        assert_eq!((file.line_at(0), file.line_at(2), file.line_at(5)), (1, 2, 3));
        assert_eq!(SourceFile::new("xtask/src/main.rs", "").krate(), None);
    }

    #[test]
    fn the_walk_finds_this_file_and_no_build_output() {
        let root = crate::tool::root();
        let paths = walk(root, root).expect("the tree can be read");
        assert!(paths.iter().any(|path| path == "xtask/src/tidy/file.rs"));
        assert!(!paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
