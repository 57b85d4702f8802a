//! The two configuration files of a client: the user's own `~/.runvoy/config.yaml`, and a project's `.runvoy/project.yaml`.
//! The user's file is written whole, by rename, readable by its owner alone, and keeps keys that this version does not know.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::private_file::PrivateFile;
use crate::sanitize::one_line;

/// Keys at the top and in every profile.
const KEYS: [&str; 4] = ["api_endpoint", "api_key", "web_url", "ca_file"];
/// Keys of profiles alone.
const PROFILE_KEYS: [&str; 1] = ["confirm"];
/// Keys at the top alone.
const TOP_KEYS: [&str; 2] = ["profile", "profiles"];
/// From here on two words are taken for the same word with a slip.
const ALIKE: f64 = 0.7;

/// The user's file, or an empty one where there is none yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UserFile {
    pub(crate) path: PathBuf,
    content: Map<String, Value>,
}

impl UserFile {
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), content: read_mapping(path)? })
    }

    /// A value, at the top or in a profile.
    pub(crate) fn text(&self, profile: Option<&str>, key: &str) -> Option<&str> {
        let scope = match profile {
            None => &self.content,
            Some(name) => self.content.get("profiles")?.as_object()?.get(name)?.as_object()?,
        };
        scope.get(key)?.as_str().filter(|value| !value.is_empty())
    }

    /// Whether a profile asks for its name before anything that changes. A value that is neither true nor false asks too.
    pub(crate) fn asks(&self, profile: &str) -> bool {
        let asks = self.content.get("profiles").and_then(|profiles| profiles.get(profile)?.get("confirm"));
        asks.is_some_and(|asks| !asks.is_null() && asks.as_bool() != Some(false))
    }

    /// Makes a profile ask for its name.
    pub(crate) fn set_asks(&mut self, profile: &str) -> Result<(), Failure> {
        self.put(Some(profile), "confirm", Some(true.into()))
    }

    pub(crate) fn has_profile(&self, name: &str) -> bool {
        self.content.get("profiles").and_then(|profiles| profiles.get(name)).is_some()
    }

    /// The profiles by name.
    pub(crate) fn profiles(&self) -> Vec<&str> {
        let profiles = self.content.get("profiles").and_then(Value::as_object);
        profiles.into_iter().flat_map(|profiles| profiles.keys().map(String::as_str)).collect()
    }

    /// Sets or, with `None`, removes a value.
    pub(crate) fn set(&mut self, profile: Option<&str>, key: &str, value: Option<&str>) -> Result<(), Failure> {
        self.put(profile, key, value.map(Value::from))
    }

    fn put(&mut self, profile: Option<&str>, key: &str, value: Option<Value>) -> Result<(), Failure> {
        let path = self.path.display().to_string();
        let scope = match profile {
            None => &mut self.content,
            Some(name) => {
                let odd = |what: &str| Failure::usage(format!("{what} in {path} is not a mapping")).next("correct the file by hand");
                let profiles = self.content.entry("profiles").or_insert_with(|| Value::Object(Map::new()));
                let profiles = profiles.as_object_mut().ok_or_else(|| odd("`profiles`"))?;
                let profile = profiles.entry(name).or_insert_with(|| Value::Object(Map::new()));
                profile.as_object_mut().ok_or_else(|| odd(&format!("profile `{name}`")))?
            }
        };
        match value {
            Some(value) => scope.insert(key.to_owned(), value),
            None => scope.remove(key),
        };
        Ok(())
    }

    /// Writes the file: complete or not at all.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        if self.path.as_os_str().is_empty() {
            return Err(Failure::usage("HOME is not set, so there is no configuration file to write").next("set HOME"));
        }
        self.write().map_err(|error| Failure::other(format!("cannot write {}", self.path.display())).why(error.to_string()))
    }

    fn write(&self) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let text = serde_saphyr::to_string(&self.content).map_err(io::Error::other)?;
        PrivateFile::prepare(&self.path)?.write(&text)
    }

    /// What has no effect, a sentence each: keys that are not known, and values that are not text. Values are never shown.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.scope_remarks(&self.content, "", &[&KEYS[..], &TOP_KEYS].concat());
        let profiles = self.content.get("profiles").and_then(Value::as_object);
        for (name, profile) in profiles.into_iter().flatten() {
            if let Some(profile) = profile.as_object() {
                remarks.extend(self.scope_remarks(profile, &format!(" of profile `{name}`"), &[&KEYS[..], &PROFILE_KEYS].concat()));
            }
        }
        remarks.iter().map(|remark| one_line(remark)).collect()
    }

    fn scope_remarks(&self, scope: &Map<String, Value>, place: &str, known: &[&str]) -> Vec<String> {
        let path = self.path.display();
        let remark = |(key, value): (&String, &Value)| match known.iter().find(|known| *known == key) {
            None => {
                let hint = meant(key, known).map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
                Some(format!("unknown key `{key}`{place} in {path} is ignored{hint}"))
            }
            Some(&"profiles") => None,
            Some(&"confirm") if value.is_boolean() || value.is_null() => None,
            Some(&"confirm") => Some(format!("`{key}`{place} in {path} is neither true nor false; treated as true")),
            Some(_) if value.is_string() || value.is_null() => None,
            Some(_) => Some(format!("`{key}`{place} in {path} is ignored: it is not text; put its value into quotes")),
        };
        scope.iter().filter_map(remark).collect()
    }

    /// Others can read the file, although it holds a key.
    pub(crate) fn is_exposed(&self) -> bool {
        is_exposed(&self.path)
    }
}

/// Whether others than its owner can read a file, or change it.
pub(crate) fn is_exposed(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0)
}

/// A project's file: it may name a profile, and nothing that decides where a key is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    pub(crate) path: PathBuf,
    pub(crate) profile: Option<String>,
}

impl ProjectFile {
    /// The nearest `.runvoy/project.yaml` at or above `directory`.
    pub(crate) fn find(directory: &Path) -> Result<Self, Failure> {
        for directory in directory.ancestors() {
            let path = directory.join(".runvoy/project.yaml");
            if path.is_file() {
                return Self::load(&path);
            }
        }
        Ok(Self::default())
    }

    fn load(path: &Path) -> Result<Self, Failure> {
        let content = read_mapping(path)?;
        for key in ["api_endpoint", "api_key", "endpoint", "key", "web_url", "profiles"] {
            if content.contains_key(key) {
                return Err(Failure::usage(format!("{} may not set `{key}`", path.display()))
                    .why("a project's files must not decide which server gets your key")
                    .next(format!("set it in ~/.runvoy/config.yaml under `profiles`, and name that profile here: remove `{key}`")));
            }
        }
        // A slip must not choose another server without a word. What else stands there is somebody else's.
        let is_slip = |key: &&String| strsim::damerau_levenshtein(&key.to_ascii_lowercase(), "profile") <= 2;
        if let Some(slip) = content.keys().find(is_slip).filter(|_| !content.contains_key("profile")) {
            return Err(Failure::usage(format!("unknown key `{slip}` in {}", path.display())).next("did you mean `profile`?"));
        }
        let profile = match content.get("profile") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(_) => return Err(Failure::usage(format!("`profile` in {} is not a name", path.display()))),
        };
        Ok(Self { path: path.to_owned(), profile })
    }
}

/// The known key that was probably meant.
fn meant<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = key.to_ascii_lowercase().replace('-', "_");
    let likeness = |known: &str| if plain.len() >= 3 && known.contains(&plain) { 1.0 } else { strsim::jaro(&plain, known) };
    let best = known.iter().map(|known| (likeness(known), *known)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness > ALIKE).map(|(_, known)| known)
}

fn read_mapping(path: &Path) -> Result<Map<String, Value>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(Failure::usage(format!("cannot read {}", path.display())).why(error.to_string())),
    };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // The parser's own message quotes lines of the file, and one of them may be the key.
    let broken =
        || Failure::usage(format!("{} is not a YAML mapping", path.display())).next("correct it, or remove it and run `runvoy configure`");
    match serde_saphyr::from_str::<Value>(&text) {
        Ok(Value::Object(content)) => Ok(content),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) | Err(_) => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_s_file_keeps_what_it_does_not_know_and_is_private() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join(".runvoy/config.yaml");
        fs::create_dir(home.path().join(".runvoy")).expect("made");
        fs::write(&path, "api_endpoint: http://old\ntheirs:\n  deep: [1, two]\nprofiles:\n  prod:\n    api_key: k1\n").expect("written");
        let mut file = UserFile::load(&path).expect("readable");
        assert!(file.is_exposed());
        file.set(None, "api_endpoint", Some("http://new")).expect("a mapping");
        file.set(Some("prod"), "api_endpoint", Some("https://prod")).expect("a mapping");
        file.set(Some("test"), "api_key", Some("true")).expect("a mapping");
        file.save().expect("written");
        let again = UserFile::load(&path).expect("readable");
        assert_eq!(again, file);
        assert!(!again.is_exposed());
        assert_eq!(again.content["theirs"]["deep"], serde_json::json!([1, "two"]));
        assert_eq!(again.text(None, "api_endpoint"), Some("http://new"));
        assert_eq!(again.text(Some("prod"), "api_key"), Some("k1"));
        assert_eq!(again.text(Some("test"), "api_key"), Some("true"), "a key that looks like a boolean stays text");
        assert_eq!(fs::read_dir(path.parent().expect("has one")).expect("readable").count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_project_names_a_profile_and_never_a_server_or_a_key() {
        let root = tempfile::tempdir().expect("a directory");
        let below = root.path().join("a/b");
        fs::create_dir_all(&below).expect("made");
        fs::create_dir(root.path().join(".runvoy")).expect("made");
        let path = root.path().join(".runvoy/project.yaml");
        fs::write(&path, "profile: prod\nother: kept\n").expect("written");
        assert_eq!(ProjectFile::find(&below).expect("fine").profile.as_deref(), Some("prod"));
        for text in ["api_key: x", "api_endpoint: http://evil", "profiles: {prod: {api_endpoint: http://evil}}"] {
            fs::write(&path, text).expect("written");
            let failure = ProjectFile::find(&below).expect_err("refused");
            assert_eq!(failure.exit_code(1), 2);
            assert!(failure.text(false).contains("may not set"), "{text}");
        }
        for text in ["profil: prod", "Profile: prod", "proflie: prod"] {
            fs::write(&path, text).expect("written");
            let failure = ProjectFile::find(&below).expect_err("a slip");
            assert!(failure.exit_code(1) == 2 && failure.text(false).contains("did you mean `profile`?"), "{text}");
        }
        fs::write(&path, "owner: ops\nproject: shop\n").expect("written");
        assert_eq!(ProjectFile::find(&below).expect("not ours").profile, None);
    }

    #[test]
    fn what_has_no_effect_is_told_with_what_was_probably_meant() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.yaml");
        let text =
            "endpoint: http://x\napi_key: 12345\nweb_url: null\nprofile: prod\nunrelated: 1\nprofiles:\n  prod:\n    api-kye: hunter2\n";
        fs::write(&path, text).expect("written");
        let remarks = UserFile::load(&path).expect("a mapping").remarks().join("\n").replace(&*path.to_string_lossy(), "FILE");
        let mut lines: Vec<&str> = remarks.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "`api_key` in FILE is ignored: it is not text; put its value into quotes",
                "unknown key `api-kye` of profile `prod` in FILE is ignored; did you mean `api_key`?",
                "unknown key `endpoint` in FILE is ignored; did you mean `api_endpoint`?",
                "unknown key `unrelated` in FILE is ignored",
            ]
        );
    }

    #[test]
    fn a_broken_file_is_told_without_its_content() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.yaml");
        for text in ["api_key: [hunter2", "- hunter2", "hunter2"] {
            fs::write(&path, text).expect("written");
            let failure = UserFile::load(&path).expect_err("not a mapping");
            assert!(!failure.text(false).contains("hunter2"), "{text}");
        }
    }
}
