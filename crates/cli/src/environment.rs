//! What the process was started with: variables, home and directory, read once at the edge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A snapshot of the environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The directory that the command was given in.
    pub directory: PathBuf,
}

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    pub fn from_process() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        Self { variables, directory: std::env::current_dir().unwrap_or_default() }
    }

    /// An environment made of these variables.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>, directory: &Path) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { variables, directory: directory.to_owned() }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A variable as it is, also where it is empty.
    pub fn get_exact(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The path of the user's configuration file; empty without a home.
    pub fn user_file(&self) -> PathBuf {
        self.runvoy_directory().map_or_else(PathBuf::new, |directory| directory.join("config.yaml"))
    }

    /// `~/.runvoy`.
    pub fn runvoy_directory(&self) -> Option<PathBuf> {
        self.get("HOME").map(|home| Path::new(home).join(".runvoy"))
    }
}
