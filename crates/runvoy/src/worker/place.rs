//! What a worker needs around it: a directory of its own, the server's address, a key, and what it says of itself.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use runvoy_cli::GlobalArgs;
use runvoy_client::TlsTrouble;
use runvoy_remote::{Address, Endpoint, InvalidAddress, Trust};
use sha2::{Digest as _, Sha256};

use super::Failure;
use crate::data_dir::{DataDir, DirLock, check_private};
use crate::settings::Settings;

/// So much of a digest tells the directories of one machine apart.
const PLACE_BYTES: usize = 8;

/// The worker's own directory, while it has it.
pub struct Place {
    pub dir: DataDir,
    _lock: DirLock,
}

impl Place {
    /// Takes the directory that is named, or the usual one.
    pub fn take(named: Option<PathBuf>) -> Result<Self> {
        let path = match named {
            Some(path) => path,
            None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set: choose the worker's directory with --worker-dir")?)
                .join(".runvoy/worker"),
        };
        let dir = DataDir::new(std::path::absolute(path)?);
        dir.create()?;
        if dir.store().exists() {
            bail!("{} is the data directory of a server: choose another with --worker-dir", dir.path().display());
        }
        let lock = dir.lock().context("the worker's directory (--worker-dir) is in use")?;
        dir.close_to_others()?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir.wal())
            .with_context(|| format!("cannot create {}", dir.wal().display()))?;
        Ok(Self { dir, _lock: lock })
    }

    /// What tells this directory from others of the machine, without its path.
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(self.dir.path().as_os_str().as_encoded_bytes());
        digest.iter().take(PLACE_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The directory that a flag or the environment names.
pub fn named(flag: Option<PathBuf>) -> Option<PathBuf> {
    flag.or_else(|| variable("RUNVOY_WORKER_DIR").map(PathBuf::from))
}

/// Leaves `work_dir` to a server on the same machine: two that run commands in one place would end each other's. A worker's own directory there
/// holds what its server does not have yet, so that one is not left in silence for the usual one.
pub fn leave_work_dir(settings: &mut Settings, named: Option<&Path>) -> Result<()> {
    match settings.work_dir.take() {
        Some(dir) if named.is_none() && DataDir::new(dir.clone()).wal().is_dir() => {
            bail!("work_dir is for servers, and {} is a worker's directory: set it with --worker-dir or RUNVOY_WORKER_DIR", dir.display())
        }
        _ => Ok(()),
    }
}

/// Where the server is, and the key for it. A key is never an argument, and never a person's own from their configuration.
pub fn endpoint(global: &GlobalArgs) -> Result<Endpoint, Failure> {
    let url = global.endpoint.clone().or_else(|| variable("RUNVOY_API_ENDPOINT"));
    let url =
        url.ok_or_else(|| Failure::usage(anyhow!("no server is configured: give --endpoint URL, or the variable RUNVOY_API_ENDPOINT")))?;
    let address: Address = url.parse().map_err(|error: InvalidAddress| Failure::usage(error.into()))?;
    let key_file = global.api_key_file.clone();
    let key = match (key_file, variable("RUNVOY_API_KEY"), variable("RUNVOY_API_KEY_FILE")) {
        (Some(path), ..) => read_key(&path)?,
        (None, Some(key), _) => usable_key(&key, "the variable RUNVOY_API_KEY")?,
        (None, None, Some(path)) => read_key(Path::new(&path))?,
        (None, None, None) => {
            return Err(Failure::key(anyhow!(
                "no API key: give --api-key-file FILE, or the variable RUNVOY_API_KEY_FILE or RUNVOY_API_KEY"
            )));
        }
    };
    let ca_file = global.ca_file.clone().or_else(|| variable("RUNVOY_CA_FILE").map(PathBuf::from));
    let trust = |config| Trust { config: Arc::new(config), explain: |error| TlsTrouble::of_io(error).to_string() };
    let tls = address.is_tls().then(|| runvoy_client::tls_config(ca_file.as_deref()).map(trust)).transpose();
    Ok(Endpoint { address, key, tls: tls.map_err(|error| Failure::usage(error.into()))? })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A key that commands or other users can read is theirs too.
fn read_key(path: &Path) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::key(anyhow!("cannot read the key file {}: {error}", path.display())))?;
    check_private(path).map_err(|error| Failure::key(anyhow!("the key file is open to others: {error}")))?;
    usable_key(&text, &format!("the key file {}", path.display()))
}

/// A key as it is sent: one word of visible ASCII, whatever stands around it. What is wrong is said without the key.
fn usable_key(text: &str, origin: &str) -> Result<String, Failure> {
    match text.trim() {
        "" => Err(Failure::key(anyhow!("{origin} is empty"))),
        key if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key.to_owned()),
        key if key.lines().count() > 1 => Err(Failure::key(anyhow!("{origin} has several lines: it must hold the key and nothing else"))),
        _ => Err(Failure::key(anyhow!("{origin} holds no key: a key has neither blanks nor characters outside ASCII"))),
    }
}

/// `name=value`, separated by commas.
pub fn labels(text: &str) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (name, value) = item.split_once('=').with_context(|| format!("--labels: expected NAME=VALUE, not `{item}`"))?;
        if name.is_empty() || labels.insert(name.to_owned(), value.to_owned()).is_some() {
            bail!("--labels: `{item}` has no name, or a name that was given before");
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_servers_work_dir_is_left_to_it_and_a_workers_is_asked_for() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let leave = |named| {
            let mut settings = Settings { work_dir: Some(dir.path().to_owned()), ..Settings::default() };
            leave_work_dir(&mut settings, named).map(|()| settings.work_dir)
        };
        assert_eq!(leave(None).expect("a server's"), None);
        std::fs::create_dir(dir.path().join("wal")).expect("a directory");
        let said = leave(None).expect_err("a worker's").to_string();
        assert!(said.contains(&dir.path().display().to_string()) && said.contains("--worker-dir"), "{said}");
        assert_eq!(leave(Some(dir.path())).expect("named"), None);
    }

    #[test]
    fn a_key_is_one_word_that_a_header_can_carry() {
        assert_eq!(usable_key(" rv_abc-1.2\r\n", "the file").expect("a key"), "rv_abc-1.2");
        for (wrong, word) in
            [("\n", "empty"), ("rv_a\nrv_b\n", "several lines"), ("rv a", "blanks"), ("rv_\u{e9}", "ASCII"), ("rv\0", "ASCII")]
        {
            let failure = usable_key(wrong, "the file").expect_err(word);
            let said = failure.error.to_string();
            assert!(failure.code == 4 && said.starts_with("the file ") && said.contains(word) && !said.contains("rv"), "{said}");
        }
    }

    #[test]
    fn a_key_file_is_its_owners_only() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("worker.key");
        std::fs::write(&path, "rv_abc\n").expect("written");
        for (mode, is_taken) in [(0o644, false), (0o640, false), (0o602, false), (0o600, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("permissions");
            match read_key(&path) {
                Ok(key) => assert!(is_taken && key == "rv_abc", "{mode:o}"),
                Err(failure) => {
                    let said = failure.error.to_string();
                    assert!(!is_taken && failure.code == 4 && said.contains("chmod 600") && !said.contains("rv_abc"), "{mode:o}: {said}");
                }
            }
        }
    }

    #[test]
    fn labels_are_names_with_values() {
        let read = |text| labels(text).map(|labels| labels.into_iter().collect::<Vec<_>>());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("").expect("none"), []);
        assert_eq!(read("region=eu, gpu=a=b").expect("two"), [pair("gpu", "a=b"), pair("region", "eu")]);
        for wrong in ["region", "=eu", "a=1,a=2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
