//! The sealing keys in the Parameter Store of SSM: `/{prefix}/keys/seal/{id}`, and the id of the current one in `/{prefix}/keys/seal/current`.
//!
//! The port is not asynchronous: a thread of its own speaks to SSM, keeps the ring in memory and looks every two seconds whether another
//! server has made another key the current one. So a server may seal with the key of before for a moment. That is why it refuses to seal when
//! SSM has not been heard of for a minute, and why a key that seals nothing is removed only when it had a successor for ten minutes before
//! the newest key was made: nobody can be about to seal with it then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runvoy_model::seal::SealKey;
use runvoy_ports::seal::{SealKeys, SealKeysError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::parameter::{Parameter, Parameters, decoded, encoded, random};

/// How often it is looked whether another key is the current one.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What was not confirmed for so long is not sealed with.
const UNCONFIRMED_FOR: Duration = Duration::from_secs(60);
/// A key had a successor for so long before it is removed.
const SUPERSEDED_FOR_MS: i64 = 10 * 60 * 1_000;
/// Whoever needs a key that is not in memory waits so long.
const MISS_PATIENCE: Duration = Duration::from_secs(5);
/// Whoever changes the ring waits so long.
const CHANGE_PATIENCE: Duration = Duration::from_secs(60);

const DIRECTORY: &str = "seal";
/// The parameter that names the current key.
const CURRENT: &str = "current";

/// The ring of an installation.
pub struct SsmSealKeys {
    ring: Arc<Mutex<Ring>>,
    errands: UnboundedSender<Errand>,
}

/// What is known of the ring.
struct Ring {
    current: String,
    /// The version of the parameter that names it.
    version: i64,
    keys: HashMap<String, SealKey>,
    confirmed: Instant,
}

enum Errand {
    Refresh(Reply<()>),
    Rotate(Reply<SealKey>),
    Retire(Vec<String>, Reply<()>),
}

type Reply<T> = SyncSender<Result<T, Fault>>;

impl SsmSealKeys {
    /// Opens the ring of a store whose secrets are sealed with these keys. Where there are no secrets and no ring it is made, with its first key;
    /// a store that lacks a key of its secrets is refused.
    pub async fn open(clients: &Clients, config: &Config, used: &[String]) -> Result<Self, Fault> {
        let parameters = Parameters::new(clients, config);
        if used.is_empty() && parameters.get(&below(CURRENT)).await?.is_none() {
            make_first(&parameters).await?;
        }
        let began = Instant::now();
        let found = parameters.get(&below(CURRENT)).await?;
        let found = found.ok_or_else(|| missing(&parameters, CURRENT))?;
        let mut ring = Ring { current: found.value, version: found.version, keys: HashMap::new(), confirmed: began };
        ring.keys = keys(&parameters, &ring.current).await?;
        if let Some(lost) = used.iter().chain([&ring.current]).find(|id| !ring.keys.contains_key(*id)) {
            return Err(missing(&parameters, lost));
        }
        // What a rotation that was cut off would have done last. A key too many harms nobody.
        if let Err(error) = retire(&parameters, &ring.current, used).await {
            tracing::warn!(%error, "encryption keys that no secret needs were not removed");
        }
        let ring = Arc::new(Mutex::new(ring));
        let (errands, inbox) = unbounded_channel();
        let keeper = Keeper { parameters, ring: Arc::clone(&ring), is_failing: false };
        let started = std::thread::Builder::new().name("seal-keys".to_owned()).spawn(move || keeper.run(inbox));
        started.map_err(|error| Fault::Damaged(format!("no thread for the encryption keys: {error}")))?;
        Ok(Self { ring, errands })
    }

    fn ask<T>(&self, patience: Duration, errand: impl FnOnce(Reply<T>) -> Errand) -> Result<T, SealKeysError> {
        let unavailable = |why: &str| SealKeysError::Unavailable(why.to_owned().into());
        let (reply, answer) = sync_channel(1);
        self.errands.send(errand(reply)).map_err(|_| unavailable("the thread of the encryption keys has stopped"))?;
        let answered = answer.recv_timeout(patience).map_err(|_| unavailable("SSM does not answer in time"))?;
        answered.map_err(|fault| SealKeysError::Unavailable(Box::new(fault)))
    }
}

impl SealKeys for SsmSealKeys {
    fn current(&self) -> Result<SealKey, SealKeysError> {
        let ring = self.ring.lock();
        if ring.confirmed.elapsed() > UNCONFIRMED_FOR {
            let why = "no contact to SSM for a minute: another server may have changed the current key";
            return Err(SealKeysError::Unavailable(why.into()));
        }
        ring.keys.get(&ring.current).cloned().ok_or_else(|| SealKeysError::Missing(ring.current.clone()))
    }

    fn by_id(&self, id: &str) -> Result<SealKey, SealKeysError> {
        let known = || self.ring.lock().keys.get(id).cloned();
        if let Some(key) = known() {
            return Ok(key);
        }
        if id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
            self.ask(MISS_PATIENCE, Errand::Refresh)?;
        }
        known().ok_or_else(|| SealKeysError::Missing(id.to_owned()))
    }

    fn rotate(&self) -> Result<SealKey, SealKeysError> {
        self.ask(CHANGE_PATIENCE, Errand::Rotate)
    }

    fn retire_all_but(&self, ids: &[String]) -> Result<(), SealKeysError> {
        self.ask(CHANGE_PATIENCE, |reply| Errand::Retire(ids.to_vec(), reply))
    }
}

/// Whoever speaks to SSM.
struct Keeper {
    parameters: Parameters,
    ring: Arc<Mutex<Ring>>,
    is_failing: bool,
}

impl Keeper {
    /// Does errands, and looks in between, until the ring is dropped.
    fn run(mut self, mut inbox: UnboundedReceiver<Errand>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime.inspect_err(|error| tracing::error!(%error, "the encryption keys are not kept up to date")) else {
            return;
        };
        runtime.block_on(async {
            loop {
                match tokio::time::timeout(LOOK_EVERY, inbox.recv()).await {
                    Ok(Some(errand)) => self.run_errand(errand).await,
                    Ok(None) => return,
                    Err(_) => self.look().await,
                }
            }
        });
    }

    async fn run_errand(&self, errand: Errand) {
        // Whoever asked may have lost their patience.
        match errand {
            Errand::Refresh(reply) => drop(reply.send(self.refresh(true).await)),
            Errand::Rotate(reply) => drop(reply.send(self.rotate().await)),
            Errand::Retire(used, reply) => {
                let current = self.ring.lock().current.clone();
                drop(reply.send(retire(&self.parameters, &current, &used).await));
            }
        }
    }

    async fn look(&mut self) {
        let looked = self.refresh(false).await;
        if looked.is_err() != self.is_failing {
            self.is_failing = !self.is_failing;
            match looked {
                Ok(()) => tracing::info!("the encryption keys can be read again"),
                Err(error) => tracing::warn!(%error, "the encryption keys cannot be read: after a minute of this, no secret is encrypted"),
            }
        }
    }

    /// Looks which key is the current one, and reads all of them if that is another one or if somebody misses one.
    async fn refresh(&self, is_missed: bool) -> Result<(), Fault> {
        let began = Instant::now();
        let found = self.parameters.get(&below(CURRENT)).await?;
        let found = found.ok_or_else(|| missing(&self.parameters, CURRENT))?;
        // An answer from before our own change says nothing new.
        let is_news = found.version > self.ring.lock().version;
        if is_news || is_missed {
            let keys = keys(&self.parameters, &found.value).await?;
            self.ring.lock().keys.extend(keys);
        }
        let mut ring = self.ring.lock();
        if is_news {
            if !ring.keys.contains_key(&found.value) {
                return Err(missing(&self.parameters, &found.value));
            }
            (ring.current, ring.version) = (found.value, found.version);
        }
        ring.confirmed = ring.confirmed.max(began);
        Ok(())
    }

    async fn rotate(&self) -> Result<SealKey, Fault> {
        let key = SealKey::new(random()?);
        self.parameters.put_new_secret(&below(key.id()), &encoded(key.bytes())).await?;
        let began = Instant::now();
        let version = self.parameters.put_text(&below(CURRENT), key.id()).await?;
        let mut ring = self.ring.lock();
        ring.keys.insert(key.id().to_owned(), key.clone());
        if version > ring.version {
            (ring.current, ring.version) = (key.id().to_owned(), version);
        }
        ring.confirmed = ring.confirmed.max(began);
        Ok(key)
    }
}

/// Makes the first key. Of several servers that do so at once, one names its key; the others' are removed.
async fn make_first(parameters: &Parameters) -> Result<(), Fault> {
    let key = SealKey::new(random()?);
    parameters.put_new_secret(&below(key.id()), &encoded(key.bytes())).await?;
    // That it was there already may be the echo of a first try whose answer was lost: only a key that is not named is removed.
    if !parameters.put_new_text(&below(CURRENT), key.id()).await? {
        let named = parameters.get(&below(CURRENT)).await?;
        if named.is_some_and(|named| named.value != key.id()) {
            parameters.delete(&below(key.id())).await?;
        }
    }
    // What was just made may take a moment to show.
    for round in 0..10 {
        if parameters.get(&below(CURRENT)).await?.is_some() {
            break;
        }
        crate::dynamo::pause(round).await;
    }
    Ok(())
}

/// Every key there is, by its id; the current one also where a list does not show it yet.
async fn keys(parameters: &Parameters, current: &str) -> Result<HashMap<String, SealKey>, Fault> {
    let mut found = HashMap::new();
    for one in parameters.below(DIRECTORY).await?.iter().filter(|one| one.name != CURRENT) {
        found.extend(seal_key(parameters, one)?);
    }
    if !found.contains_key(current)
        && let Some(one) = parameters.get(&below(current)).await?
    {
        found.extend(seal_key(parameters, &one)?);
    }
    Ok(found)
}

/// A key under its own id; one under another's name is none.
fn seal_key(parameters: &Parameters, found: &Parameter) -> Result<Option<(String, SealKey)>, Fault> {
    let key = SealKey::new(decoded(parameters, found)?);
    Ok((key.id() == found.name).then(|| (found.name.clone(), key)))
}

/// Removes keys that are neither current nor among these, if their time is long over.
async fn retire(parameters: &Parameters, current: &str, used: &[String]) -> Result<(), Fault> {
    let found = parameters.below(DIRECTORY).await?;
    let made: Vec<(&str, i64)> = found.iter().filter(|one| one.name != CURRENT).map(|one| (one.name.as_str(), one.modified_ms)).collect();
    for id in superseded(&made) {
        if id != current && !used.iter().any(|used| used == id) {
            parameters.delete(&below(id)).await?;
        }
    }
    Ok(())
}

/// The keys that had a successor for long enough before the newest was made. All times are the same clock's.
fn superseded<'a>(made: &[(&'a str, i64)]) -> Vec<&'a str> {
    let Some(newest) = made.iter().map(|(_, at)| *at).max() else { return Vec::new() };
    let successor = |at: i64| made.iter().map(|(_, other)| *other).filter(|other| *other > at).min();
    let is_over = |at: i64| successor(at).is_some_and(|next| next + SUPERSEDED_FOR_MS < newest);
    made.iter().filter(|(_, at)| is_over(*at)).map(|(id, _)| *id).collect()
}

fn below(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

fn missing(parameters: &Parameters, id: &str) -> Fault {
    Fault::Damaged(format!(
        "the secrets need the parameter {}, which is not in the Parameter Store of SSM: put it back",
        parameters.path(&below(id))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_removed_only_when_it_had_a_successor_for_long() {
        let minutes = |minutes: i64| minutes * 60_000;
        assert!(superseded(&[]).is_empty());
        assert!(superseded(&[("a", 0)]).is_empty());
        assert!(superseded(&[("a", 0), ("b", minutes(1_000))]).is_empty(), "a server may still seal with the one before");
        assert!(superseded(&[("c", minutes(1_005)), ("a", 0), ("b", minutes(1_000))]).is_empty());
        assert_eq!(superseded(&[("c", minutes(1_011)), ("a", 0), ("b", minutes(1_000))]), ["a"]);
    }
}
