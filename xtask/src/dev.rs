//! `cargo xtask dev`: `runvoy serve` on a data directory of its own under `target/dev`. The directory is named after
//! the process, and the next start removes those whose process is gone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tool;

/// Becomes the server; returns only if that fails.
pub fn run(args: &[String]) -> Result<()> {
    let dev = tool::root().join("target/dev");
    fs::create_dir_all(&dev).with_context(|| format!("cannot create {}", dev.display()))?;
    // Without /proc nothing is known about other processes, and nothing is removed.
    let proc = Path::new("/proc");
    remove_stale(&dev, |pid| !proc.exists() || proc.join(pid).exists())?;
    let data = dev.join(std::process::id().to_string());
    let mut command = tool::cargo(&["run", "--package", "runvoy", "--", "serve", "--data-dir"]);
    command.arg(&data).args(args);
    become_it(command)
}

// The same process id from here to the server: Ctrl-C reaches it directly and `remove_stale` can trust the name.
#[cfg(unix)]
fn become_it(mut command: std::process::Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec()).with_context(|| format!("cannot start `{}`", tool::line(&command)))
}

#[cfg(not(unix))]
fn become_it(mut command: std::process::Command) -> Result<()> {
    tool::run(&mut command)
}

fn remove_stale(dev: &Path, is_alive: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(dev).with_context(|| format!("cannot read {}", dev.display()))? {
        let entry = entry?;
        if !is_alive(&entry.file_name().to_string_lossy()) {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_go() {
        let dev = std::env::temp_dir().join(format!("xtask-dev-{}", std::process::id()));
        for pid in ["1", "2"] {
            fs::create_dir_all(dev.join(pid)).expect("a temporary directory can be made");
        }
        remove_stale(&dev, |pid| pid == "2").expect("the stale one can be removed");
        assert!(!dev.join("1").exists());
        assert!(dev.join("2").exists());
        fs::remove_dir_all(&dev).expect("the temporary directory can be removed");
    }
}
