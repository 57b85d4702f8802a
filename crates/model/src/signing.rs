//! The ring of keys that sign task tokens. Each signs the leases of its own time and is believed of no later ones: a key that got out is worth nothing for
//! leases that are made once it has a successor, and what was signed with it before goes on to hold, for months if the lease does. Keys are never taken out.

use zeroize::Zeroizing;

use crate::time::UnixMs;

/// A key signs from so long after it was made: whoever is shown a token has then either looked at the ring since, or may look.
const SETTLES_MS: i64 = 60_000;
/// A server may learn of a key so late, and signs with the one before until then.
const LEARNED_WITHIN_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// A key that signs task tokens. The moment it was made names it.
#[derive(Clone)]
pub struct SigningKey {
    made_at: UnixMs,
    bytes: Zeroizing<[u8; 32]>,
}

/// Every key there is, in the order they were made. There is always one.
#[derive(Debug, Clone)]
pub struct SigningRing {
    first: SigningKey,
    later: Vec<SigningKey>,
}

/// Why no key speaks for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is not in the ring, as far as that is known here.
    Unknown,
    /// The lease was made when another one had long taken its place.
    Over,
}

impl SigningKey {
    /// Wraps a key from where keys are kept.
    pub fn new(made_at: UnixMs, bytes: [u8; 32]) -> Self {
        Self { made_at, bytes: Zeroizing::new(bytes) }
    }

    /// When it was made.
    pub const fn made_at(&self) -> UnixMs {
        self.made_at
    }

    /// Its bytes, for whoever keeps it or signs with it.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.made_at.0)
    }
}

impl SigningRing {
    /// The ring of these keys, in whatever order they come. `None` without any.
    pub fn new(mut keys: Vec<SigningKey>) -> Option<Self> {
        keys.sort_by_key(SigningKey::made_at);
        keys.dedup_by_key(|key| key.made_at);
        let mut keys = keys.into_iter();
        Some(Self { first: keys.next()?, later: keys.collect() })
    }

    /// The same with one more.
    #[must_use]
    pub fn with(&self, key: SigningKey) -> Self {
        let mut ring = self.clone();
        let at = ring.later.partition_point(|one| one.made_at <= key.made_at);
        ring.later.insert(at, key);
        ring
    }

    /// The key that was made last.
    pub fn newest(&self) -> &SigningKey {
        self.later.last().unwrap_or(&self.first)
    }

    /// The key that signs for a lease made then.
    pub fn signer(&self, leased_at: UnixMs) -> &SigningKey {
        let settled = self.later.iter().rev().find(|key| key.made_at.plus_ms(SETTLES_MS) <= leased_at);
        settled.unwrap_or(&self.first)
    }

    /// The key with this name, if it may speak for a lease made then.
    pub fn verifier(&self, made_at: UnixMs, leased_at: UnixMs) -> Result<&SigningKey, Unfit> {
        let mut from_it = std::iter::once(&self.first).chain(&self.later).skip_while(|key| key.made_at != made_at);
        let key = from_it.next().ok_or(Unfit::Unknown)?;
        match from_it.next() {
            Some(next) if next.is_known_at(leased_at) => Err(Unfit::Over),
            _ => Ok(key),
        }
    }

    /// Whether a lease made then may have been signed before there was a ring.
    pub fn may_precede(&self, leased_at: UnixMs) -> bool {
        !self.first.is_known_at(leased_at)
    }

    /// Whether it is time for another key, in a ring that gets one after so many days; 0 is never.
    pub fn is_due(&self, now: UnixMs, days: u32) -> bool {
        days > 0 && now.ms_since(self.newest().made_at) >= i64::from(days) * DAY_MS
    }

    /// The name of a key that is made now, which is after every other. `None` where the newest is from a time to come: then no key could take its place.
    pub fn next_name(&self, now: UnixMs) -> Option<UnixMs> {
        let newest = self.newest().made_at;
        (newest <= now.plus_ms(SETTLES_MS)).then(|| now.max(newest.plus_ms(1)))
    }
}

impl SigningKey {
    /// Whether every server knew of it then.
    fn is_known_at(&self, at: UnixMs) -> bool {
        self.made_at.plus_ms(LEARNED_WITHIN_MS) < at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn key(made_at: i64) -> SigningKey {
        SigningKey::new(UnixMs(made_at), [7; 32])
    }

    fn ring(made_at: &[i64]) -> SigningRing {
        SigningRing::new(made_at.iter().copied().map(key).collect()).expect("a key")
    }

    #[test]
    fn a_key_signs_the_leases_of_its_own_time() {
        let ring = ring(&[20 * HOUR_MS, 10 * HOUR_MS, 30 * HOUR_MS]);
        let signer = |at: i64| ring.signer(UnixMs(at)).made_at().0 / HOUR_MS;
        let settled = |hours: i64| hours * HOUR_MS + SETTLES_MS;
        assert_eq!((signer(0), signer(15 * HOUR_MS)), (10, 10), "the first also those from before it");
        assert_eq!((signer(settled(20) - 1), signer(settled(20)), signer(settled(30) - 1), signer(settled(30))), (10, 20, 20, 30));
        assert_eq!(ring.newest().made_at(), UnixMs(30 * HOUR_MS));
        assert!(SigningRing::new(Vec::new()).is_none());
    }

    #[test]
    fn a_key_is_believed_of_no_lease_that_is_later_than_its_successor_by_an_hour() {
        let ring = ring(&[10 * HOUR_MS, 20 * HOUR_MS]);
        let fits = |made_at: i64, leased_at: i64| ring.verifier(UnixMs(made_at), UnixMs(leased_at)).map(|key| key.made_at().0);
        let (one, two) = (10 * HOUR_MS, 20 * HOUR_MS);
        assert_eq!((fits(one, 0), fits(one, 21 * HOUR_MS)), (Ok(one), Ok(one)));
        assert_eq!(fits(one, 21 * HOUR_MS + 1), Err(Unfit::Over));
        assert_eq!((fits(two, 21 * HOUR_MS + 1), fits(two, i64::MAX)), (Ok(two), Ok(two)));
        assert_eq!((fits(one + 1, one), fits(i64::MIN, one)), (Err(Unfit::Unknown), Err(Unfit::Unknown)));
        assert!(ring.may_precede(UnixMs(11 * HOUR_MS)) && !ring.may_precede(UnixMs(11 * HOUR_MS + 1)));
    }

    #[test]
    fn whoever_signs_is_believed_however_much_of_the_ring_they_know() {
        let (known, whole) = (ring(&[0, 50 * HOUR_MS]), ring(&[0, 50 * HOUR_MS, 50 * HOUR_MS + 5, 80 * HOUR_MS]));
        for leased_at in (0..200 * HOUR_MS).step_by(100_000).map(UnixMs) {
            let signer = whole.signer(leased_at);
            assert!(whole.verifier(signer.made_at(), leased_at).is_ok(), "{leased_at:?}");
            if leased_at.0 <= 81 * HOUR_MS && leased_at.0 > 52 * HOUR_MS {
                let late = known.signer(leased_at);
                assert_eq!(whole.verifier(late.made_at(), leased_at).map(drop), Err(Unfit::Over), "an hour later it must have learned");
            }
        }
        let late = known.signer(UnixMs(50 * HOUR_MS + SETTLES_MS + 5));
        assert!(whole.verifier(late.made_at(), UnixMs(51 * HOUR_MS)).is_ok());
    }

    #[test]
    fn another_key_is_due_after_so_many_days_and_comes_after_every_other() {
        let ring = ring(&[10, 1_000]);
        let due = |days, now: i64| ring.is_due(UnixMs(now), days);
        assert!(!due(30, 999 + 30 * DAY_MS) && due(30, 1_000 + 30 * DAY_MS));
        assert!(!due(0, i64::MAX) && !due(1, 0), "never by itself; and a clock that went back makes none");
        assert_eq!(ring.next_name(UnixMs(5_000)), Some(UnixMs(5_000)));
        assert_eq!((ring.next_name(UnixMs(1_000)), ring.next_name(UnixMs(3))), (Some(UnixMs(1_001)), Some(UnixMs(1_001))));
        assert_eq!(super::tests::ring(&[10 * HOUR_MS]).next_name(UnixMs(0)), None);
        let with = ring.with(key(500));
        assert_eq!((with.newest().made_at().0, with.later.len(), with.later[0].made_at.0), (1_000, 2, 500));
    }

    #[test]
    fn no_debug_form_shows_a_key() {
        assert_eq!(format!("{:?}", key(7)), "SigningKey(7)");
    }
}
