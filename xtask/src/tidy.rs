//! `cargo xtask tidy`: the rules of the house that no compiler knows. Each rule is a pure function over one file, or
//! over the manifests, in a file of its own; this one gathers the input and prints `file:line: what is wrong`.

mod exception;
mod file;
mod finding;
mod function;
mod header;
mod layer;
mod length;
mod link;
mod mask;
mod name;
mod package;
mod page;
mod proof;
mod purity;
mod sql;
mod trace;
mod word;

use anyhow::{Result, bail};

use self::exception::EXCEPTIONS;
use self::file::SourceFile;
use self::finding::Finding;
use crate::tool;

/// The rules that need nothing but the file.
const FILE_RULES: [fn(&SourceFile) -> Vec<Finding>; 9] =
    [function::check, header::check, length::check, name::check, page::check, purity::check, sql::check, trace::check, word::check];

/// What is made from `proto/` and read by no one; a test of its crate says that it is current.
const GENERATED: &str = "crates/rpc/src/generated/";

/// Checks the whole tree.
pub fn run() -> Result<()> {
    let mut files = file::tree(tool::root())?;
    files.retain(|file| !file.path.starts_with(GENERATED));
    let metadata = tool::output(&mut tool::cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let default_build = tool::output(&mut tool::cargo(&["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]))?;

    let mut findings: Vec<Finding> = files.iter().flat_map(|file| FILE_RULES.iter().flat_map(|rule| rule(file))).collect();
    findings.extend(files.iter().flat_map(|file| link::check(file, |path| tool::root().join(path).exists())));
    findings.extend(proof::check(&files));
    findings.extend(layer::check(&layer::manifests(&metadata, &files)?));
    if let Some(lock) = files.iter().find(|file| file.path == "Cargo.lock") {
        findings.extend(package::check(&lock.text, &default_build));
    }
    let mut findings = exception::apply(EXCEPTIONS, findings);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings in {} files", findings.len(), files.len());
    }
    eprintln!("{} files are tidy", files.len());
    Ok(())
}
