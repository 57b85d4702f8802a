//! How often a client may fail to show who it is: per address, and per target. The target of a guess is the beginning of the key, or the public key that a
//! signed token names. Only failures count. Once there were too many, a key is refused before it is looked up, but where that would lock its owner out.
//!
//! A bucket is one time: when the last of its failures will have been forgotten. What has been forgotten takes no memory, and there are never
//! more than a fixed number of buckets.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_engine::token_fingerprint;

use crate::fault::Fault;
use crate::peer::Peer;

const WINDOW: Duration = Duration::from_secs(60);
/// So many buckets of each kind at most.
const MOST_BUCKETS: usize = 10_000;
/// So much of a key is looked at: what is shown of it, without what can be written in more than one way.
const PREFIX_CHARS: usize = 10;

/// Failed attempts at one kind of thing.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// What one failure costs; `None` where failures cost nothing.
    cost: Option<Duration>,
    addresses: Mutex<Buckets<IpAddr>>,
    targets: Mutex<Buckets<Target>>,
    /// Hashes of keys that worked, and of public keys with the address that their tokens came from. Two with one hash cost a lookup, nothing else.
    worked: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

/// What a guess is at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Target {
    /// Keys that begin like this.
    Prefix(String),
    /// Tokens of the public key with this fingerprint.
    Signer([u8; 32]),
}

impl Target {
    fn of(key: &str) -> Self {
        token_fingerprint(key).map_or_else(|| Self::Prefix(prefix(key)), Self::Signer)
    }
}

impl Attempts {
    /// So many failures in a minute; 0 is any number.
    pub(crate) fn new(per_minute: u32) -> Self {
        let cost = (per_minute > 0).then(|| WINDOW / per_minute);
        Self { cost, addresses: Mutex::default(), targets: Mutex::default(), worked: Mutex::default(), hasher: RandomState::new() }
    }

    /// Refuses whoever has failed too often from this address, before anything is looked at.
    pub(crate) fn check(&self, peer: Peer, now: Duration) -> Result<(), Fault> {
        let (Some(cost), Some(address)) = (self.cost, network(peer)) else { return Ok(()) };
        self.addresses.lock().wait(&address, cost, now).map_or(Ok(()), |wait| Err(Fault::TooManyAttempts(wait)))
    }

    /// Refuses a key before it is looked up, where there were too many failures from its address or at its target. So that guesses of others lock no owner out:
    ///
    /// * A key that has worked on this server is looked up. So is a token of a public key that has worked from the same address: its owner signs new tokens all
    ///   the time. From another address it is not, because anybody can write a token that names that public key.
    /// * Failures at a target refuse only addresses that have failed lately themselves. After a restart no key has worked yet, and its owner comes in from an
    ///   address of their own all the same; an address that guesses has one guess before it is refused.
    pub(crate) fn check_key(&self, peer: Peer, key: &str, now: Duration) -> Result<(), Fault> {
        let Some(cost) = self.cost.filter(|_| !matches!(peer, Peer::Unix { .. })) else { return Ok(()) };
        let (by_address, has_failed) = network(peer).map_or((None, true), |address| {
            let addresses = self.addresses.lock();
            (addresses.wait(&address, cost, now), addresses.has_failed(&address, now))
        });
        let by_target = if has_failed { self.targets.lock().wait(&Target::of(key), cost, now) } else { None };
        match by_address.max(by_target) {
            Some(wait) if !self.worked.lock().contains(&self.hash(peer, key)) => Err(Fault::TooManyAttempts(wait)),
            _ => Ok(()),
        }
    }

    /// Remembers that a key worked from there.
    pub(crate) fn worked(&self, peer: Peer, key: &str) {
        let (fingerprint, mut worked) = (self.hash(peer, key), self.worked.lock());
        if worked.len() >= MOST_BUCKETS && !worked.contains(&fingerprint) {
            // Any other one: it is remembered again with its next request, unless its address is being refused.
            let other = worked.iter().next().copied();
            other.map(|other| worked.remove(&other));
        }
        worked.insert(fingerprint);
    }

    /// Counts a failure; an error where it is one too many.
    pub(crate) fn failed(&self, peer: Peer, key: Option<&str>, now: Duration) -> Result<(), Fault> {
        let Some(cost) = self.cost.filter(|_| !matches!(peer, Peer::Unix { .. })) else { return Ok(()) };
        let by_address = network(peer).and_then(|address| self.addresses.lock().take(address, cost, now));
        let by_target = key.and_then(|key| self.targets.lock().take(Target::of(key), cost, now));
        by_address.max(by_target).map_or(Ok(()), |wait| Err(Fault::TooManyAttempts(wait)))
    }

    /// What stands for a key among those that worked.
    fn hash(&self, peer: Peer, key: &str) -> u64 {
        match Target::of(key) {
            Target::Signer(fingerprint) => self.hasher.hash_one((network(peer), fingerprint)),
            Target::Prefix(_) => self.hasher.hash_one(key),
        }
    }
}

/// What counts as one address. Whoever has one address of IPv6 has the 2^64 beside it; the local socket is nobody's guess.
pub(crate) fn network(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Tcp(address) => Some(match address.ip().to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
            ip @ IpAddr::V4(_) => ip,
        }),
        Peer::Unix { .. } | Peer::Unknown => None,
    }
}

/// The beginning of a key in one form, however it was written.
fn prefix(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).take(PREFIX_CHARS).map(|c| c.to_ascii_lowercase()).collect()
}

/// By whose failures are counted: when the last of them will have been forgotten.
#[derive(Debug)]
struct Buckets<K>(HashMap<K, Duration>);

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    /// How long until one more failure is allowed; `None` if it is now.
    fn wait(&self, key: &K, cost: Duration, now: Duration) -> Option<Duration> {
        let forgotten = self.0.get(key)?;
        (*forgotten + cost).checked_sub(now + WINDOW).filter(|wait| !wait.is_zero())
    }

    /// Whether there was a failure lately. It is remembered for longer than it counts, so that slow guesses are seen too.
    fn has_failed(&self, key: &K, now: Duration) -> bool {
        self.0.get(key).is_some_and(|forgotten| *forgotten + WINDOW > now)
    }

    /// Counts a failure, unless it is one too many: then how long until one is allowed.
    fn take(&mut self, key: K, cost: Duration, now: Duration) -> Option<Duration> {
        if let Some(wait) = self.wait(&key, cost, now) {
            return Some(wait);
        }
        if self.0.len() >= MOST_BUCKETS && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let forgotten = self.0.entry(key).or_default();
        *forgotten = (*forgotten).max(now) + cost;
        None
    }

    fn make_room(&mut self, now: Duration) {
        self.0.retain(|_, forgotten| *forgotten + WINDOW > now);
        if self.0.len() >= MOST_BUCKETS {
            // Whoever failed least is forgotten first: whoever guesses must not be able to clear their own name with many others.
            let least = self.0.iter().min_by_key(|(_, forgotten)| **forgotten).map(|(key, _)| key.clone());
            least.map(|key| self.0.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(ip: &str) -> Peer {
        Peer::Tcp((ip.parse::<IpAddr>().expect("an address"), 4711).into())
    }

    const START: Duration = Duration::from_secs(1_000);

    #[test]
    fn a_minute_allows_so_many_failures_and_then_one_at_a_time() {
        let attempts = Attempts::new(6);
        let peer = tcp("10.0.0.1");
        for _ in 0..6 {
            attempts.check(peer, START).expect("not yet");
            attempts.failed(peer, None, START).expect("not yet");
        }
        assert!(matches!(attempts.check(peer, START), Err(Fault::TooManyAttempts(wait)) if wait == Duration::from_secs(10)));
        assert!(attempts.failed(peer, None, START).is_err(), "also for those who were let in at the same time");
        let later = START + Duration::from_secs(10);
        attempts.check(peer, later).expect("one is forgotten");
        attempts.failed(peer, None, later).expect("one is forgotten");
        assert!(attempts.check(peer, later).is_err());
        assert!(attempts.check(tcp("10.0.0.2"), START).is_ok(), "others have their own");
    }

    #[test]
    fn security_03_slow_guesses_at_one_key_are_refused_too() {
        let attempts = Attempts::new(4);
        let addresses: Vec<Peer> = (1..=8).map(|n| tcp(&format!("10.0.0.{n}"))).collect();
        let mut now = START;
        let mut refused = 0;
        for _ in 0..4 {
            for peer in &addresses {
                now += Duration::from_secs(2);
                match attempts.check_key(*peer, "rv_guess-at-one-key", now) {
                    Ok(()) => drop(attempts.failed(*peer, Some("rv_guess-at-one-key"), now)),
                    Err(_) => refused += 1,
                }
            }
        }
        // 64 seconds allow eight failures at most.
        assert!(refused >= 16, "{refused} of 32");
        attempts.check_key(tcp("10.9.9.9"), "rv_guess-at-one-key", now).expect("its owner has not failed");
    }

    #[test]
    fn nobody_is_limited_without_a_limit_and_the_local_socket_never() {
        let (none, one) = (Attempts::new(0), Attempts::new(1));
        for _ in 0..100 {
            none.failed(tcp("10.0.0.1"), Some("k"), START).expect("no limit");
            one.failed(Peer::Unix { uid: 7, owner: false }, Some("k"), START).expect("the local socket");
        }
    }

    #[test]
    fn neighbours_of_one_network_of_ipv6_and_mapped_addresses_are_one() {
        assert_eq!(network(tcp("2001:db8::1")), network(tcp("2001:db8::ffff:2")));
        assert_ne!(network(tcp("2001:db8::1")), network(tcp("2001:db8:0:1::1")));
        assert_eq!(network(tcp("::ffff:10.0.0.1")), network(tcp("10.0.0.1")));
    }

    #[test]
    fn security_03_case_space_and_unicode_do_not_make_another_prefix() {
        let one = prefix("rv_AbCdEfGhIjKlMn");
        for same in ["RV_abcdefghij", " rv_ AbCd EfGh", "rv-abcdefgh", "rv_\u{200b}AbCdEfGh", "rv_AbCdEfGhXYZ"] {
            assert_eq!(prefix(same), one, "{same}");
        }
        assert_ne!(prefix("rv_AbCdEfGx"), one);
    }

    #[test]
    fn there_are_never_more_buckets_than_so_many_and_the_worst_stays() {
        let attempts = Attempts::new(4);
        let worst = tcp("10.255.0.1");
        for _ in 0..4 {
            attempts.failed(worst, None, START).expect("not yet");
        }
        for n in 0..u32::try_from(MOST_BUCKETS).expect("few") + 500 {
            let ip = IpAddr::from(std::net::Ipv4Addr::from_bits(0x0b00_0000 + n));
            attempts.failed(Peer::Tcp((ip, 1).into()), None, START).expect("their first");
        }
        assert!(attempts.addresses.lock().0.len() <= MOST_BUCKETS);
        assert!(attempts.check(worst, START).is_err(), "nobody clears their name with many others");
    }
}
