//! Task tokens: what proves a lease to any server that has the signing key. A token binds execution, attempt, lease, worker and queue. It does not expire by
//! itself, for there is no way to hand out another; the lease decides. What signs it is made anew for every day from the signing key, and the token
//! names its day.
//!
//! Its text is the base64url of: version byte, day (4 bytes big-endian), execution (16), attempt (4), lease (16), worker (16), queue, then HMAC-SHA256 (32)
//! over all before it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runvoy_model::command::Fence;
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, LeaseId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use sha2::Sha256;

const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// No token of ours is longer.
const MOST_CHARS: usize = 400;

/// What signs task tokens.
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
}

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadToken {
    /// It does not even look like one.
    Unreadable,
    /// It was signed by nobody here.
    Forged,
}

impl Task {
    /// The lease that an execution was given.
    pub(crate) fn of(execution: &Execution) -> Option<Self> {
        let lease = execution.lease.as_ref()?;
        let fence = Fence { execution: execution.id, attempt: lease.attempt, lease: lease.id };
        Some(Self { fence, worker: lease.worker, queue: execution.spec.queue.clone() })
    }
}

impl TokenKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The token of a lease.
    pub(crate) fn issue(&self, task: &Task, now: UnixMs) -> String {
        let day = u32::try_from(now.0.div_euclid(DAY_MS)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(128 + task.queue.as_str().len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&day.to_be_bytes());
        bytes.extend_from_slice(task.fence.execution.as_bytes());
        bytes.extend_from_slice(&task.fence.attempt.to_be_bytes());
        bytes.extend_from_slice(task.fence.lease.as_bytes());
        bytes.extend_from_slice(task.worker.as_bytes());
        bytes.extend_from_slice(task.queue.as_str().as_bytes());
        let mac = self.mac(day, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The lease that a token proves.
    pub(crate) fn read(&self, text: &str) -> Result<Task, BadToken> {
        if text.len() > MOST_CHARS {
            return Err(BadToken::Unreadable);
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| BadToken::Unreadable)?;
        let (said, mac) = bytes.split_at_checked(bytes.len().saturating_sub(MAC_BYTES)).ok_or(BadToken::Unreadable)?;
        let (day, task) = parse(said).ok_or(BadToken::Unreadable)?;
        // Compared in constant time.
        self.mac(day, said).verify_slice(mac).map_err(|_| BadToken::Forged)?;
        Ok(task)
    }

    fn mac(&self, day: u32, said: &[u8]) -> Hmac<Sha256> {
        let mut of_day = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        of_day.update(b"runvoy task token\0");
        of_day.update(&day.to_be_bytes());
        let mut mac = Hmac::<Sha256>::new_from_slice(&of_day.finalize().into_bytes()).expect("HMAC takes keys of any length");
        mac.update(said);
        mac
    }
}

fn parse(said: &[u8]) -> Option<(u32, Task)> {
    let (version, rest) = said.split_first()?;
    let (day, rest) = rest.split_first_chunk::<4>()?;
    let (execution, rest) = rest.split_first_chunk::<16>()?;
    let (attempt, rest) = rest.split_first_chunk::<4>()?;
    let (lease, rest) = rest.split_first_chunk::<16>()?;
    let (worker, queue) = rest.split_first_chunk::<16>()?;
    let queue = Name::new(std::str::from_utf8(queue).ok()?).ok()?;
    let fence =
        Fence { execution: ExecutionId::from_bytes(*execution), attempt: u32::from_be_bytes(*attempt), lease: LeaseId::from_bytes(*lease) };
    (*version == VERSION).then(|| (u32::from_be_bytes(*day), Task { fence, worker: WorkerId::from_bytes(*worker), queue }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_767_450_139_640);

    fn task() -> Task {
        let fence = Fence { execution: ExecutionId::from_bytes([7; 16]), attempt: 3, lease: LeaseId::from_bytes([8; 16]) };
        Task { fence, worker: WorkerId::from_bytes([9; 16]), queue: Name::new("gpu").expect("a name") }
    }

    #[test]
    fn a_token_comes_back_at_any_server_with_the_same_key_and_on_any_day() {
        let (one, other) = (TokenKey::new([1; 32]), TokenKey::new([1; 32]));
        let today = one.issue(&task(), NOW);
        let later = one.issue(&task(), NOW.plus_ms(40 * DAY_MS));
        assert_ne!(today, later, "another day signs otherwise");
        assert_eq!((other.read(&today), other.read(&later)), (Ok(task()), Ok(task())));
        assert!(today.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{today} can stand in an address");
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let key = TokenKey::new([1; 32]);
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(key.issue(&task(), NOW)).expect("own encoding");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(key.read(&BASE64_URL_SAFE_NO_PAD.encode(changed)).is_err(), "byte {at}");
            assert!(key.read(&BASE64_URL_SAFE_NO_PAD.encode(&bytes[..at])).is_err(), "cut at {at}");
        }
        assert_eq!(TokenKey::new([2; 32]).read(&key.issue(&task(), NOW)), Err(BadToken::Forged));
    }

    #[test]
    fn what_is_no_token_is_told_from_what_is_forged() {
        let key = TokenKey::new([1; 32]);
        for unreadable in ["", "AQ", "not base64!", &"A".repeat(100_000), &"A".repeat(200)] {
            assert_eq!(key.read(unreadable), Err(BadToken::Unreadable), "{unreadable:.40}");
        }
    }
}
