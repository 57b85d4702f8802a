//! Where playbook files are: the nearest `.runvoy` directory at or above the current one, then `~/.runvoy`. A project's file hides one of
//! the same name at home. The configuration files beside them are no playbooks.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::file::PlaybookFile;
use crate::document::Document;
use crate::environment::Environment;
use crate::failure::Failure;

/// Files of these names hold settings.
const SETTINGS: [&str; 2] = ["project", "config"];

/// Which of the directories a file is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Project,
    Home,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Project => "project",
            Self::Home => "home",
        })
    }
}

/// A file, not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
}

impl Found {
    pub(crate) fn read(&self) -> Result<PlaybookFile, Failure> {
        PlaybookFile::parse(&Document::open(&self.path)?)
    }
}

/// Every playbook file there is, a project's before those at home, each by name.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    files: Vec<Found>,
}

impl Shelf {
    pub(crate) fn of(environment: &Environment) -> Self {
        let home = environment.runvoy_directory();
        let project = environment.directory.ancestors().map(|directory| directory.join(".runvoy")).find(|directory| directory.is_dir());
        let project = project.filter(|project| home.as_ref() != Some(project));
        let mut files = Vec::new();
        for (place, directory) in [(Place::Project, project), (Place::Home, home)] {
            files.extend(directory.iter().flat_map(|directory| look(directory, place)));
        }
        Self { files }
    }

    /// Every file, also the hidden ones.
    pub(crate) fn files(&self) -> &[Found] {
        &self.files
    }

    /// The file of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<&Found>, Failure> {
        let Some(first) = self.files.iter().find(|file| file.name == name) else {
            return Ok(None);
        };
        match self.files.iter().find(|file| file.name == name && file.place == first.place && file.path != first.path) {
            None => Ok(Some(first)),
            Some(second) => {
                Err(Failure::usage(format!("two files are playbook {name}: {} and {}", first.path.display(), second.path.display()))
                    .next("remove or rename one of them"))
            }
        }
    }
}

fn look(directory: &Path, place: Place) -> Vec<Found> {
    // A directory that is not there, or is not ours to read, holds no playbooks.
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let is_yaml = |path: &Path| ["yaml", "yml"].iter().any(|extension| path.extension() == Some(OsStr::new(extension)));
    let file = |path: PathBuf| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let fits = is_yaml(&path) && path.is_file() && !name.starts_with('.') && !SETTINGS.contains(&name.as_str());
        fits.then_some(Found { name, place, path })
    };
    let mut files: Vec<Found> = entries.filter_map(|entry| file(entry.path())).collect();
    files.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(shelf: &Shelf) -> Vec<(String, Place)> {
        shelf.files().iter().map(|file| (file.name.clone(), file.place)).collect()
    }

    #[test]
    fn a_project_comes_before_home_and_settings_are_no_playbooks() {
        let root = tempfile::tempdir().expect("a directory");
        let (home, below) = (root.path().join("home"), root.path().join("home/work/deep"));
        fs::create_dir_all(home.join(".runvoy")).expect("made");
        fs::create_dir_all(&below).expect("made");
        for name in ["config.yaml", "deploy.yaml", "backup.yml", ".hidden.yaml", "notes.txt"] {
            fs::write(home.join(".runvoy").join(name), "commands: [home]\n").expect("written");
        }
        let environment = Environment::new([("HOME", home.to_str().expect("UTF-8"))], &below);
        assert_eq!(names(&Shelf::of(&environment)), [("backup".to_owned(), Place::Home), ("deploy".to_owned(), Place::Home)]);
        fs::create_dir(home.join("work/.runvoy")).expect("made");
        for name in ["project.yaml", "deploy.yaml"] {
            fs::write(home.join("work/.runvoy").join(name), "commands: [project]\n").expect("written");
        }
        let shelf = Shelf::of(&environment);
        assert_eq!(names(&shelf).first(), Some(&("deploy".to_owned(), Place::Project)));
        let found = shelf.find("deploy").expect("one").expect("there");
        assert_eq!(
            (found.place, found.read().expect("fine").request("deploy").expect("a run").command.as_str()),
            (Place::Project, "set -eu\nproject")
        );
        assert_eq!(shelf.find("nothing").expect("none"), None);
        fs::write(home.join("work/.runvoy/deploy.yml"), "commands: [other]\n").expect("written");
        assert!(Shelf::of(&environment).find("deploy").expect_err("two").text(false).contains("two files"));
    }
}
