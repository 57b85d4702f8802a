//! What a request shows to say who calls: a key in a header, the peer of the Unix socket, or a stream's ticket. Who that is, the engine
//! and the store say.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use runvoy_engine::{Caller, Credential, EngineError, Origin};
use runvoy_model::id::ExecutionId;
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;

use crate::app::State;
use crate::call::Params;
use crate::fault::Fault;
use crate::peer::Peer;
use crate::query::Query;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Clocks may differ by so much: as where a signed token is read.
const LEEWAY_MS: i64 = 60_000;

/// The credential in the headers, else that of the connection.
pub(crate) fn shown(headers: &HeaderMap, peer: Peer) -> Credential {
    shown_key(headers).map_or_else(|| none_or_owner(peer), Credential::Key)
}

/// The key in the headers. An empty header says nothing.
pub(crate) fn shown_key(headers: &HeaderMap) -> Option<String> {
    // A header that is not text is a wrong key, not a missing one.
    let key = |value: &HeaderValue| {
        value.to_str().map_or_else(|_| Some(String::new()), |text| Some(bearer(text).to_owned()).filter(|key| !key.is_empty()))
    };
    let keys = [API_KEY, header::AUTHORIZATION].into_iter().filter_map(|name| headers.get(name));
    keys.filter_map(key).next()
}

fn bearer(text: &str) -> &str {
    let text = text.trim();
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => text,
    }
}

const fn none_or_owner(peer: Peer) -> Credential {
    if peer.is_owner() { Credential::LocalOwner } else { Credential::None }
}

/// The token in the address, else the one that stands where a key could; and the credential that is left beside it.
pub(crate) fn beside(parts: &Parts, shown: Credential, is_token: fn(&str) -> bool) -> Result<(Option<String>, Credential), Fault> {
    let in_address = Query::of(&parts.uri)?.without_empty(&["token"]).text("token")?.map(str::to_owned);
    Ok(match shown {
        Credential::Key(text) if is_token(&text) => (in_address.or(Some(text)), Credential::None),
        key => (in_address, key),
    })
}

/// The caller that a ticket for this very execution stands for.
pub(crate) async fn admit_ticket(state: &State, text: &str, params: &Params, from: String, request_id: &str) -> Result<Caller, Fault> {
    let ticket = state.tickets.read(text, state.engine.now()).map_err(|_| Fault::bad_ticket())?;
    if params.get("id").parse::<ExecutionId>() != Ok(ticket.execution) {
        return Err(Fault::bad_ticket());
    }
    let issued_at = Some(ticket.issued_at());
    let standing =
        Standing { email: ticket.email, key_hash: ticket.key_hash, issued_at, until: None, from, request_id: request_id.to_owned() };
    standing.caller(state).await
}

/// Whoever made a link to this very execution, as they are now.
pub(crate) async fn admit_link(state: &State, text: &str, params: &Params, from: String, request_id: &str) -> Result<Caller, Fault> {
    let link = state.links.read(text, state.engine.machine_now()).map_err(|_| Fault::bad_link())?;
    if params.get("id").parse::<ExecutionId>() != Ok(link.execution) {
        return Err(Fault::bad_link());
    }
    let issued_at = Some(link.issued_at);
    let standing = Standing { email: link.email, key_hash: link.key_hash, issued_at, until: None, from, request_id: request_id.to_owned() };
    standing.caller(state).await
}

/// A caller who was admitted once and may have been revoked since.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    email: String,
    key_hash: Option<[u8; 32]>,
    /// When they were given what they show; absent where it is looked at again all the time.
    issued_at: Option<UnixMs>,
    /// When what they showed ends by its own word, where no record says so: a token that a worker signed.
    until: Option<UnixMs>,
    from: String,
    request_id: String,
}

impl Standing {
    /// The standing of an admitted caller.
    pub(crate) fn of(caller: &Caller) -> Self {
        Self {
            email: caller.email.clone(),
            key_hash: caller.key_hash,
            issued_at: None,
            until: caller.key_expires_at.filter(|_| caller.worker_account().is_some()),
            from: caller.from.clone(),
            request_id: caller.request_id.clone(),
        }
    }

    /// The same, whenever what was shown ends: for whoever was let in while it was good and proves with every message what they may, as the holder of a
    /// lease does. A revocation ends it all the same.
    pub(crate) fn past_expiry(self) -> Self {
        Self { until: None, ..self }
    }

    /// The caller as the store knows them now, past every cache; an error once key or user were revoked, or what was shown has expired.
    pub(crate) async fn caller(&self, state: &State) -> Result<Caller, Fault> {
        if self.has_expired(state.engine.machine_now()) {
            return Err(EngineError::RevokedKey.into());
        }
        let origin = Origin { from: self.from.clone(), request_id: self.request_id.clone() };
        Ok(state.engine.admit_again(&self.email, self.key_hash, self.issued_at, origin).await?)
    }

    fn has_expired(&self, now: UnixMs) -> bool {
        self.until.is_some_and(|until| now > until.plus_ms(LEEWAY_MS))
    }

    /// An error once the right to this ended. A store that does not answer has revoked nothing.
    pub(crate) async fn still_stands(&self, state: &State, action: Action) -> Result<(), Fault> {
        match self.caller(state).await {
            Ok(caller) => Ok(caller.may(action).map(drop)?),
            Err(Fault::Engine(ended @ (EngineError::InvalidKey | EngineError::RevokedKey))) => Err(ended.into()),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_by(pairs: &[(&str, &[u8])], peer: Peer) -> Credential {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.insert(name, HeaderValue::from_bytes(value).expect("a value"));
        }
        shown(&headers, peer)
    }

    #[test]
    fn a_key_goes_before_the_connection_and_either_header_carries_it() {
        let (owner, other) = (Peer::Unix { uid: 1, owner: true }, Peer::Unix { uid: 2, owner: false });
        assert_eq!(shown_by(&[("x-api-key", b"k")], owner), Credential::Key("k".into()));
        assert_eq!(shown_by(&[("authorization", b"bearer  k")], owner), Credential::Key("k".into()));
        assert_eq!(shown_by(&[("x-api-key", b"\xff")], owner), Credential::Key(String::new()));
        assert_eq!(shown_by(&[], owner), Credential::LocalOwner);
        assert_eq!(shown_by(&[("x-api-key", b"")], owner), Credential::LocalOwner);
        assert_eq!(
            shown_by(&[("x-api-key", b""), ("authorization", b"Bearer k")], other),
            Credential::Key("k".into()),
            "an empty header hides nothing"
        );
        assert_eq!(shown_by(&[("x-api-key", b" "), ("authorization", b"")], other), Credential::None);
        assert_eq!(shown_by(&[], other), Credential::None);
        assert_eq!(shown_by(&[], Peer::Unknown), Credential::None);
    }

    #[test]
    fn a_token_that_expires_ends_what_it_opened() {
        let until = |until| Standing {
            email: "worker:one".into(),
            key_hash: None,
            issued_at: None,
            until,
            from: String::new(),
            request_id: String::new(),
        };
        assert!(!until(Some(UnixMs(1_000))).has_expired(UnixMs(61_000)), "clocks may differ");
        assert!(until(Some(UnixMs(1_000))).has_expired(UnixMs(61_001)));
        assert!(!until(Some(UnixMs(1_000))).past_expiry().has_expired(UnixMs(61_001)), "who holds a lease goes on");
        assert!(!until(Some(UnixMs(i64::MAX))).has_expired(UnixMs(i64::MAX)) && !until(None).has_expired(UnixMs(i64::MAX)));
    }
}
