//! Task tokens: what proves a lease to any server with the same ring of keys. A token binds execution, attempt, lease, worker, queue and the account that leased. It does not expire by
//! itself, for there is no way to hand out another; the lease decides. It names the key that signed it, and that key speaks for leases of its own time alone
//! ([`SigningRing`]).
//!
//! Its text is the base64url of: version byte 3, the name of the key (8 bytes big-endian), account (16 bytes of SHA-256), execution (16), attempt (4), lease (16),
//! worker (16), queue, then HMAC-SHA256 (32) over all before it. Version 2 has no account; it is read for leases from then, and never issued. Version 1, from before there was a ring, has a day (4) in the place of the name, and a key made for that day from the
//! store's own; it is read for leases from then, and never issued.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runvoy_model::command::Fence;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, LeaseId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::signing::{SigningRing, Unfit};
use runvoy_model::time::UnixMs;
use sha2::{Digest as _, Sha256};

const OF_DAY: u8 = 1;
const OF_RING: u8 = 2;
const OF_ACCOUNT: u8 = 3;
const ACCOUNT_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// No token of ours is longer.
const MOST_CHARS: usize = 400;

/// What signed task tokens before there was a ring: the store's own key.
pub(crate) struct TokenKey([u8; 32]);

/// A lease, as its token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// What proves it to the store.
    pub(crate) fence: Fence,
    /// Who was given it.
    pub(crate) worker: WorkerId,
    /// The execution's queue.
    pub(crate) queue: Name,
    /// The account that leased it; absent in what comes from the record, and in old tokens.
    pub(crate) account: Option<AccountTag>,
}

/// What a token holds of an account: enough to tell it from others.
pub(crate) type AccountTag = [u8; ACCOUNT_BYTES];

/// The tag of the account in [`Caller::account`](runvoy_engine::Caller::account). Its keys may change; an account that takes the name of a revoked one has
/// another tag.
pub(crate) fn account_tag(account: &str) -> AccountTag {
    *Sha256::digest(account.as_bytes()).first_chunk().expect("a hash is longer")
}

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadToken {
    /// It does not even look like one.
    Unreadable,
    /// It names a key that is not in the ring, as far as that is known.
    UnknownKey,
    /// It was signed by nobody here, or by a key whose time was over when the lease was made.
    Forged,
    /// It proves a lease of another account.
    OtherAccount,
}

/// What a token says of its signature.
enum Signed {
    OnDay(u32),
    ByKey(UnixMs),
}

impl Task {
    /// The lease that an execution was given.
    pub(crate) fn of(execution: &Execution) -> Option<Self> {
        let lease = execution.lease.as_ref()?;
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        Some(Self { fence, worker: lease.worker, queue: execution.spec.queue.clone(), account: None })
    }

    /// When the lease was made, which its id says: whoever says otherwise speaks of another lease.
    fn leased_at(&self) -> UnixMs {
        UnixMs(self.fence.lease.0.unix_ms())
    }
}

/// The token of a lease.
pub(crate) fn issue(ring: &SigningRing, task: &Task) -> String {
    let key = ring.signer(task.leased_at());
    let mut bytes = Vec::with_capacity(128 + task.queue.as_str().len());
    bytes.push(if task.account.is_some() { OF_ACCOUNT } else { OF_RING });
    bytes.extend_from_slice(&key.made_at().0.to_be_bytes());
    write(&mut bytes, task);
    let mac = mac(key.bytes(), &bytes).finalize().into_bytes();
    bytes.extend_from_slice(&mac);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl TokenKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The lease that a token proves.
    pub(crate) fn read(&self, ring: &SigningRing, text: &str) -> Result<Task, BadToken> {
        if text.len() > MOST_CHARS {
            return Err(BadToken::Unreadable);
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| BadToken::Unreadable)?;
        let (said, told) = bytes.split_at_checked(bytes.len().saturating_sub(MAC_BYTES)).ok_or(BadToken::Unreadable)?;
        let (signed, task) = parse(said).ok_or(BadToken::Unreadable)?;
        let expected = match signed {
            Signed::OnDay(day) if ring.may_precede(task.leased_at()) => mac(&self.of_day(day), said),
            Signed::OnDay(_) => return Err(BadToken::Forged),
            Signed::ByKey(made_at) => match ring.verifier(made_at, task.leased_at()) {
                Ok(key) => mac(key.bytes(), said),
                Err(Unfit::Unknown) => return Err(BadToken::UnknownKey),
                Err(Unfit::Over) => return Err(BadToken::Forged),
            },
        };
        // Compared in constant time.
        expected.verify_slice(told).map_err(|_| BadToken::Forged)?;
        Ok(task)
    }

    fn of_day(&self, day: u32) -> [u8; 32] {
        let mut of_day = mac(&self.0, b"runvoy task token\0");
        of_day.update(&day.to_be_bytes());
        of_day.finalize().into_bytes().into()
    }
}

fn mac(key: &[u8; 32], said: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(said);
    mac
}

fn write(bytes: &mut Vec<u8>, task: &Task) {
    bytes.extend(task.account.iter().flatten());
    bytes.extend_from_slice(task.fence.execution.as_bytes());
    bytes.extend_from_slice(&task.fence.attempt.to_be_bytes());
    bytes.extend_from_slice(task.fence.lease.as_bytes());
    bytes.extend_from_slice(task.worker.as_bytes());
    bytes.extend_from_slice(task.queue.as_str().as_bytes());
}

fn parse(said: &[u8]) -> Option<(Signed, Task)> {
    let (version, rest) = said.split_first()?;
    let (signed, rest) = match *version {
        OF_DAY => rest.split_first_chunk::<4>().map(|(day, rest)| (Signed::OnDay(u32::from_be_bytes(*day)), rest))?,
        OF_RING | OF_ACCOUNT => rest.split_first_chunk::<8>().map(|(key, rest)| (Signed::ByKey(UnixMs(i64::from_be_bytes(*key))), rest))?,
        _ => return None,
    };
    let (account, rest) = match *version {
        OF_ACCOUNT => rest.split_first_chunk::<ACCOUNT_BYTES>().map(|(account, rest)| (Some(*account), rest))?,
        _ => (None, rest),
    };
    let (execution, rest) = rest.split_first_chunk::<16>()?;
    let (attempt, rest) = rest.split_first_chunk::<4>()?;
    let (lease, rest) = rest.split_first_chunk::<16>()?;
    let (worker, queue) = rest.split_first_chunk::<16>()?;
    let queue = Name::new(std::str::from_utf8(queue).ok()?).ok()?;
    let fence =
        Fence { execution: ExecutionId::from_bytes(*execution), attempt: u32::from_be_bytes(*attempt), lease: LeaseId::from_bytes(*lease) };
    Some((signed, Task { fence, worker: WorkerId::from_bytes(*worker), queue, account }))
}

#[cfg(test)]
mod tests {
    use runvoy_model::signing::SigningKey;

    use super::*;

    const NOW: i64 = 1_767_450_139_640;
    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;
    const STORE: TokenKey = TokenKey::new([9; 32]);

    /// A lease that was made then.
    fn task(leased_at: i64) -> Task {
        let mut lease = [8; 16];
        lease[..6].copy_from_slice(&leased_at.to_be_bytes()[2..]);
        let fence = Fence { execution: ExecutionId::from_bytes([7; 16]), attempt: 3, lease: LeaseId::from_bytes(lease) };
        Task { fence, worker: WorkerId::from_bytes([9; 16]), queue: Name::new("gpu").expect("a name"), account: None }
    }

    /// A ring of keys that were made then; each is another one.
    fn ring(made_at: &[i64]) -> SigningRing {
        let key = |at: &i64| SigningKey::new(UnixMs(*at), [u8::try_from(at % 251).expect("small"); 32]);
        SigningRing::new(made_at.iter().map(key).collect()).expect("a key")
    }

    /// A token as it was made before there was a ring.
    fn of_day(key: &TokenKey, task: &Task) -> String {
        let day = u32::try_from(task.leased_at().0 / DAY_MS).expect("a day");
        let mut bytes = vec![OF_DAY];
        bytes.extend_from_slice(&day.to_be_bytes());
        write(&mut bytes, task);
        let mac = mac(&key.of_day(day), &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    #[test]
    fn a_token_comes_back_at_any_server_with_the_same_ring() {
        let (one, other) = (ring(&[NOW]), ring(&[NOW]));
        let token = issue(&one, &task(NOW + 7));
        assert_eq!(STORE.read(&other, &token), Ok(task(NOW + 7)));
        assert_eq!(TokenKey::new([1; 32]).read(&other, &token), Ok(task(NOW + 7)), "the store's own key is no part of it");
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token} can stand in an address");
        let longest = Task { queue: Name::new("q".repeat(128)).expect("a name"), ..task(NOW) };
        assert_eq!(STORE.read(&one, &issue(&one, &longest)), Ok(longest));
    }

    #[test]
    fn a_lease_is_proved_by_its_first_token_however_many_keys_come_after() {
        let before = ring(&[NOW]);
        let old = issue(&before, &task(NOW + HOUR_MS));
        let after = ring(&[NOW, NOW + DAY_MS, NOW + 90 * DAY_MS]);
        assert_eq!(STORE.read(&after, &old), Ok(task(NOW + HOUR_MS)));
        let new = issue(&after, &task(NOW + 91 * DAY_MS));
        assert_eq!(STORE.read(&after, &new), Ok(task(NOW + 91 * DAY_MS)));
        assert_eq!(STORE.read(&before, &new), Err(BadToken::UnknownKey), "it may have been made elsewhere");
    }

    #[test]
    fn a_key_whose_time_is_over_signs_for_no_new_lease() {
        let (leaked, ring) = (ring(&[NOW]), ring(&[NOW, NOW + DAY_MS]));
        let of = |leased_at: i64| STORE.read(&ring, &issue(&leaked, &task(leased_at)));
        assert_eq!(of(NOW + DAY_MS + HOUR_MS), Ok(task(NOW + DAY_MS + HOUR_MS)), "a server may not have known of the next one");
        assert_eq!(of(NOW + DAY_MS + HOUR_MS + 1), Err(BadToken::Forged));
        assert_eq!(of(NOW + 300 * DAY_MS), Err(BadToken::Forged));
    }

    #[test]
    fn a_token_from_before_there_was_a_ring_proves_the_leases_of_that_time() {
        let ring = ring(&[NOW]);
        let of = |leased_at: i64| STORE.read(&ring, &of_day(&STORE, &task(leased_at)));
        assert_eq!((of(NOW - 40 * DAY_MS), of(NOW + HOUR_MS)), (Ok(task(NOW - 40 * DAY_MS)), Ok(task(NOW + HOUR_MS))));
        assert_eq!((of(NOW + HOUR_MS + 1), of(NOW + DAY_MS)), (Err(BadToken::Forged), Err(BadToken::Forged)));
        let stranger = of_day(&TokenKey::new([1; 32]), &task(NOW - 1));
        assert_eq!(STORE.read(&ring, &stranger), Err(BadToken::Forged));
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let ring = ring(&[NOW, NOW + 1]);
        let bound = Task { account: Some(account_tag("worker:one")), ..task(NOW) };
        assert_eq!(STORE.read(&ring, &issue(&ring, &bound)), Ok(bound.clone()));
        for token in [issue(&ring, &task(NOW)), issue(&ring, &bound), of_day(&STORE, &task(NOW))] {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).expect("own encoding");
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    assert!(STORE.read(&ring, &BASE64_URL_SAFE_NO_PAD.encode(changed)).is_err(), "bit {bit} of byte {at}");
                }
                assert!(STORE.read(&ring, &BASE64_URL_SAFE_NO_PAD.encode(&bytes[..at])).is_err(), "cut at {at}");
            }
        }
        let stranger = SigningRing::new(vec![SigningKey::new(UnixMs(NOW), [0xee; 32])]).expect("a key");
        assert_eq!(STORE.read(&stranger, &issue(&ring, &task(NOW))), Err(BadToken::Forged));
    }

    #[test]
    fn what_is_no_token_is_told_from_what_is_forged() {
        let ring = ring(&[NOW]);
        for unreadable in ["", "AQ", "Ag", "not base64!", &"A".repeat(100_000), &"A".repeat(200)] {
            assert_eq!(STORE.read(&ring, unreadable), Err(BadToken::Unreadable), "{unreadable:.40}");
        }
    }
}
