//! Tickets of log streams: a browser cannot send headers with a WebSocket, and a key never stands in an address. A ticket is bound to one
//! execution and one user's key, lives ten minutes, may be used again in that time, and is worth no more than the key behind it: whoever takes
//! one looks the key up again.
//!
//! Its text is the base64url of: version byte, expiry (Unix ms, 8 bytes big-endian), execution (16), 1 and the key's sealed hash (48) or 0, e-mail,
//! then HMAC-SHA256 (32) over all before it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runvoy_engine::Caller;
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use sha2::Sha256;

use crate::sealed_hash::{SEALED_BYTES, open, seal};

const VERSION: u8 = 2;
const LIVES_MS: i64 = 10 * 60 * 1000;
const MAC_BYTES: usize = 32;
/// No ticket of ours is longer: version, expiry, execution, hash, the longest e-mail there is, and the MAC.
const MOST_CHARS: usize = 600;

/// What signs tickets.
pub(crate) struct TicketKey([u8; 32]);

/// What a ticket says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The one execution.
    pub(crate) execution: ExecutionId,
    /// The one user.
    pub(crate) email: String,
    /// The key that the user called with; absent on the local socket.
    pub(crate) key_hash: Option<[u8; 32]>,
    /// It works until then.
    pub(crate) expires_at: UnixMs,
}

impl Ticket {
    /// When it was given: all of them live equally long.
    pub(crate) fn issued_at(&self) -> UnixMs {
        self.expires_at.plus_ms(-LIVES_MS)
    }
}

/// A text that is no ticket, not ours, or too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadTicket;

impl TicketKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// A ticket for a caller to an execution.
    pub(crate) fn issue(&self, caller: &Caller, execution: ExecutionId, now: UnixMs) -> String {
        let expires_at = now.plus_ms(LIVES_MS);
        self.sign(&Ticket { execution, email: caller.email.clone(), key_hash: caller.key_hash, expires_at })
    }

    fn sign(&self, ticket: &Ticket) -> String {
        let mut bytes = Vec::with_capacity(128 + ticket.email.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&ticket.expires_at.0.to_be_bytes());
        bytes.extend_from_slice(ticket.execution.as_bytes());
        match &ticket.key_hash {
            Some(hash) => {
                bytes.push(1);
                bytes.extend_from_slice(&seal(&self.0, hash));
            }
            None => bytes.push(0),
        }
        bytes.extend_from_slice(ticket.email.as_bytes());
        let mac = self.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a ticket says, if it is one of ours and not too old.
    pub(crate) fn read(&self, text: &str, now: UnixMs) -> Result<Ticket, BadTicket> {
        if text.len() > MOST_CHARS {
            return Err(BadTicket);
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| BadTicket)?;
        let (said, mac) = bytes.split_at_checked(bytes.len().saturating_sub(MAC_BYTES)).ok_or(BadTicket)?;
        self.mac(said).verify_slice(mac).map_err(|_| BadTicket)?;
        let ticket = self.parse(said).ok_or(BadTicket)?;
        if ticket.expires_at > now { Ok(ticket) } else { Err(BadTicket) }
    }

    fn mac(&self, said: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        // The same key may sign other things one day; none of them may pass for a ticket.
        mac.update(b"runvoy stream ticket\0");
        mac.update(said);
        mac
    }

    fn parse(&self, said: &[u8]) -> Option<Ticket> {
        let (version, rest) = said.split_first()?;
        let (expiry, rest) = rest.split_first_chunk::<8>()?;
        let (execution, rest) = rest.split_first_chunk::<16>()?;
        let (has_key, rest) = rest.split_first()?;
        let (key_hash, email) = match has_key {
            1 => {
                let (sealed, rest) = rest.split_first_chunk::<SEALED_BYTES>()?;
                (Some(open(&self.0, sealed)), rest)
            }
            _ => (None, rest),
        };
        let email = String::from_utf8(email.to_vec()).ok()?;
        let ticket =
            Ticket { execution: ExecutionId::from_bytes(*execution), email, key_hash, expires_at: UnixMs(i64::from_be_bytes(*expiry)) };
        (*version == VERSION).then_some(ticket)
    }
}

/// Whether a text could be a ticket of ours; says nothing about whether it is a good one. No API key does: they begin with other bytes.
pub(crate) fn looks_like_ticket(text: &str) -> bool {
    text.len() <= MOST_CHARS && BASE64_URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() > MAC_BYTES && bytes[0] == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let execution = ExecutionId::from_bytes([7; 16]);
        Ticket { execution, email: "ana@example.com".into(), key_hash: Some([9; 32]), expires_at: UnixMs(1_000) }
    }

    #[test]
    fn a_ticket_comes_back_until_it_expires() {
        let key = TicketKey::new([1; 32]);
        for ticket in [ticket(), Ticket { key_hash: None, ..ticket() }] {
            let text = key.sign(&ticket);
            assert_eq!(key.read(&text, UnixMs(999)), Ok(ticket));
            assert_eq!(key.read(&text, UnixMs(1_000)), Err(BadTicket));
        }
    }

    #[test]
    fn whoever_has_a_ticket_does_not_learn_the_hash_of_a_key() {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(TicketKey::new([1; 32]).sign(&ticket())).expect("own encoding");
        assert!(!bytes.windows(8).any(|part| part == [9; 8]));
    }

    #[test]
    fn a_ticket_tells_when_it_was_given() {
        let now = UnixMs(1_767_450_139_640);
        assert_eq!(Ticket { expires_at: now.plus_ms(LIVES_MS), ..ticket() }.issued_at(), now);
    }

    #[test]
    fn a_key_does_not_look_like_a_ticket() {
        assert!(looks_like_ticket(&TicketKey::new([1; 32]).sign(&ticket())));
        for other in [&runvoy_model::key::key_text(&[1; 32]), "", "AQ", "not base64!", &"A".repeat(100_000)] {
            assert!(!looks_like_ticket(other), "{other:.40}");
        }
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let key = TicketKey::new([1; 32]);
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(key.sign(&ticket())).expect("own encoding");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(key.read(&BASE64_URL_SAFE_NO_PAD.encode(changed), UnixMs(0)), Err(BadTicket), "byte {at}");
            assert_eq!(key.read(&BASE64_URL_SAFE_NO_PAD.encode(&bytes[..at]), UnixMs(0)), Err(BadTicket), "cut at {at}");
        }
        assert_eq!(TicketKey::new([2; 32]).read(&key.sign(&ticket()), UnixMs(0)), Err(BadTicket));
        assert_eq!(key.read(&"A".repeat(100_000), UnixMs(0)), Err(BadTicket));
    }
}
