//! The keys that sign task tokens, as this server knows them. They are remembered, and looked at again every ten minutes ([`crate::keymaker`]) and where
//! somebody shows a token of a key that is not among them: then once in a few seconds at most, whatever is shown. Another server may have made that key, and
//! a key signs nothing in its first minute, so that a look of a few seconds ago has seen every key there are tokens of.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use runvoy_model::change::Change;
use runvoy_model::role::Action;
use runvoy_model::signing::{SigningKey, SigningRing};
use runvoy_model::time::UnixMs;
use tokio::sync::Mutex;

use crate::Engine;
use crate::access::Caller;
use crate::error::{EngineError, NOTHING_CHANGED};

/// Tokens of unknown keys make nobody look more often.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What is known of the ring.
#[derive(Default)]
pub(crate) struct Keyring {
    known: RwLock<Option<Arc<SigningRing>>>,
    /// The last look; held by whoever looks or makes a key.
    look: Mutex<Option<Look>>,
}

/// One look at the ring.
struct Look {
    at: Duration,
    /// Nothing came of it.
    failed: bool,
}

impl Engine {
    /// The ring as it is known. The first look makes its first key where there is none.
    pub async fn signing_ring(&self) -> Result<Arc<SigningRing>, EngineError> {
        if let Some(known) = self.known_ring() {
            return Ok(known);
        }
        let mut look = self.keyring.look.lock().await;
        match self.known_ring() {
            Some(known) => Ok(known),
            None => self.look_at_ring(&mut look).await,
        }
    }

    /// The ring as it was a few seconds ago at most.
    pub async fn fresh_signing_ring(&self) -> Result<Arc<SigningRing>, EngineError> {
        let mut look = self.keyring.look.lock().await;
        let since = |look: &Look| self.ports.clock.monotonic().saturating_sub(look.at);
        match (&*look, self.known_ring()) {
            (Some(last), Some(known)) if since(last) < LOOK_AGAIN_AFTER => {
                let why = "the keys of task tokens could not be read a moment ago";
                if last.failed { Err(EngineError::Unavailable(why.into())) } else { Ok(known) }
            }
            _ => self.look_at_ring(&mut look).await,
        }
    }

    /// Makes a new key that signs the task tokens of new leases. Leases that are held go on with theirs.
    pub async fn rotate_signing_key(&self, caller: &Caller) -> Result<SigningKey, EngineError> {
        caller.may(Action::ManageWorkers)?;
        // On record before anything happens.
        let noted = Change::NoteSigningKey(caller.email.clone());
        self.ports.store.change(self.user_step(caller, "workers.rotate-signing-key"), noted, None).await?;
        let mut look = self.keyring.look.lock().await;
        let ring = self.look_at_ring(&mut look).await?;
        self.add_key(&ring).await
    }

    /// Looks at the ring, and makes a new key where the newest is old.
    pub(crate) async fn keep_signing_keys(&self) -> Result<(), EngineError> {
        let mut look = self.keyring.look.lock().await;
        let ring = self.look_at_ring(&mut look).await?;
        if ring.is_due(self.now(), self.config.token_key_days) {
            let made = self.add_key(&ring).await?;
            tracing::info!(key = made.made_at().0, "task tokens of new leases are signed with a new key");
        } else if ring.next_name(self.newest_id_at()).is_none() {
            tracing::warn!(
                newest = ring.newest().made_at().0,
                "the newest key of task tokens is dated in the future: until then no other replaces it"
            );
        }
        Ok(())
    }

    /// The latest time that an id of this server says. Ids never go back, so after a clock that was set back they are ahead of it; a key is of the time of the
    /// leases that it signs.
    fn newest_id_at(&self) -> UnixMs {
        self.now().max(UnixMs(self.ports.ids.next_id().unix_ms()))
    }

    fn known_ring(&self) -> Option<Arc<SigningRing>> {
        self.keyring.known.read().clone()
    }

    fn remember_ring(&self, ring: SigningRing) -> Arc<SigningRing> {
        let ring = Arc::new(ring);
        *self.keyring.known.write() = Some(Arc::clone(&ring));
        ring
    }

    async fn look_at_ring(&self, look: &mut Option<Look>) -> Result<Arc<SigningRing>, EngineError> {
        // Before the answer: whoever goes away meanwhile has looked all the same.
        *look = Some(Look { at: self.ports.clock.monotonic(), failed: true });
        let ring = match SigningRing::new(self.ports.signing_keys.all().await?) {
            Some(ring) => ring,
            None => {
                let first = self.ports.signing_keys.make(self.newest_id_at()).await?;
                // Another server may have made one at the same time.
                let mut keys = self.ports.signing_keys.all().await?;
                keys.push(first);
                SigningRing::new(keys).expect("it has a key")
            }
        };
        *look = Some(Look { at: self.ports.clock.monotonic(), failed: false });
        Ok(self.remember_ring(ring))
    }

    /// Only for whoever holds the look: one key is made at a time.
    async fn add_key(&self, ring: &SigningRing) -> Result<SigningKey, EngineError> {
        let name = ring.next_name(self.newest_id_at()).ok_or_else(|| {
            let newest = ring.newest().made_at().0;
            let what = format!("the newest key of task tokens, {newest}, is dated in the future, and no other can replace it");
            let remedy = "correct the clock; or remove that key and restart the server, which ends the leases that it signed";
            EngineError::conflict(format!("{what}: {remedy}"), NOTHING_CHANGED)
        })?;
        let made = self.ports.signing_keys.make(name).await?;
        self.remember_ring(ring.with(made.clone()));
        Ok(made)
    }
}
