//! The id of a request: the client's own where it is a sane one, else a new one. It is returned, logged and stored with whatever changed.

use http::{HeaderMap, HeaderName, HeaderValue};
use runvoy_ports::clock::IdSource;

/// The header it travels in.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MOST_CHARS: usize = 128;

/// The client's id, or a new one.
pub(crate) fn of(headers: &HeaderMap, ids: &dyn IdSource) -> String {
    let given = headers.get(HEADER).and_then(|value| value.to_str().ok()).filter(|text| is_sane(text));
    given.map_or_else(|| ids.next_id().to_string(), str::to_owned)
}

/// The header that gives it back.
pub(crate) fn value(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).expect("a request id is printable ASCII")
}

fn is_sane(text: &str) -> bool {
    !text.is_empty() && text.len() <= MOST_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_printable_ids_are_taken() {
        assert!(is_sane("a-1_B.2:c"));
        for bad in ["", "a b", "a\tb", "ü", &"a".repeat(129)] {
            assert!(!is_sane(bad), "{bad:?}");
        }
    }
}
