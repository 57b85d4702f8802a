//! HTTP ranges over the raw output of a log. A log only grows, so that a part of a shorter one is the same part of a longer one: a download
//! that broke off while the command ran can go on.

use http::{HeaderMap, HeaderValue, header};
use runvoy_model::id::ExecutionId;

/// A range of bytes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first byte.
    pub(crate) first: u64,
    /// The last byte.
    pub(crate) last: u64,
}

/// No byte of the range exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsatisfiable;

impl Range {
    /// The range that a request asks for; `None` where it asks for none, for several, or in words that are not a range, all of which mean the whole.
    pub(crate) fn of(headers: &HeaderMap, length: u64) -> Result<Option<Self>, Unsatisfiable> {
        let Some(spec) = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).and_then(|text| text.strip_prefix("bytes="))
        else {
            return Ok(None);
        };
        let Some((first, last)) = spec.trim().split_once('-') else { return Ok(None) };
        match (number(first), number(last)) {
            (Some(first), Some(last)) if last >= first => Self::within(first, last, length),
            (Some(first), None) if last.trim().is_empty() => Self::within(first, u64::MAX, length),
            (None, Some(0)) if first.is_empty() => Err(Unsatisfiable),
            (None, Some(tail)) if first.is_empty() => Self::within(length.saturating_sub(tail), u64::MAX, length),
            _ => Ok(None),
        }
    }

    fn within(first: u64, last: u64, length: u64) -> Result<Option<Self>, Unsatisfiable> {
        if first < length { Ok(Some(Self { first, last: last.min(length - 1) })) } else { Err(Unsatisfiable) }
    }

    /// How many bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The `Content-Range` header.
    pub(crate) fn header(&self, length: u64) -> HeaderValue {
        HeaderValue::from_str(&format!("bytes {}-{}/{length}", self.first, self.last)).expect("digits are ASCII")
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The strong validator of a log's raw output at this length.
pub(crate) fn etag(id: ExecutionId, length: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{id}-{length}\"")).expect("hex digits are ASCII")
}

/// Whether a range may be answered: there is no `If-Range`, or it names this log at this length or a shorter one.
pub(crate) fn is_same_log(headers: &HeaderMap, id: ExecutionId, length: u64) -> bool {
    let Some(condition) = headers.get(header::IF_RANGE) else { return true };
    let tag = condition.to_str().ok().and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    tag.and_then(|tag| tag.split_once('-')).is_some_and(|(of, at)| of == id.to_string() && number(at).is_some_and(|at| at <= length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<Option<(u64, u64)>, Unsatisfiable> {
        let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_str(text).expect("a header"))]);
        Range::of(&headers, 100).map(|range| range.map(|range| (range.first, range.last)))
    }

    #[test]
    fn ranges_are_read_as_the_protocol_says() {
        for (text, expected) in [
            ("bytes=0-9", Ok(Some((0, 9)))),
            ("bytes=90-", Ok(Some((90, 99)))),
            ("bytes=90-1000", Ok(Some((90, 99)))),
            ("bytes=-10", Ok(Some((90, 99)))),
            ("bytes=-1000", Ok(Some((0, 99)))),
            ("bytes=100-", Err(Unsatisfiable)),
            ("bytes=-0", Err(Unsatisfiable)),
            ("bytes=9-0", Ok(None)),
            ("bytes=0-1,5-6", Ok(None)),
            ("bytes=-", Ok(None)),
            ("bytes=x-y", Ok(None)),
            ("bytes=+1-2", Ok(None)),
            ("lines=0-9", Ok(None)),
            ("bytes=99999999999999999999-", Ok(None)),
        ] {
            assert_eq!(range(text), expected, "{text}");
        }
    }

    #[test]
    fn an_empty_log_has_no_range() {
        let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static("bytes=0-"))]);
        assert_eq!(Range::of(&headers, 0), Err(Unsatisfiable));
    }

    #[test]
    fn a_download_goes_on_only_in_the_same_log() {
        let id = ExecutionId::from_bytes([1; 16]);
        let with = |tag: HeaderValue| HeaderMap::from_iter([(header::IF_RANGE, tag)]);
        assert!(is_same_log(&HeaderMap::new(), id, 5));
        assert!(is_same_log(&with(etag(id, 5)), id, 5));
        assert!(is_same_log(&with(etag(id, 4)), id, 5), "the log has grown");
        assert!(!is_same_log(&with(etag(id, 6)), id, 5), "the log was cut");
        assert!(!is_same_log(&with(etag(ExecutionId::from_bytes([2; 16]), 5)), id, 5));
        assert!(!is_same_log(&with(HeaderValue::from_static("Sat, 03 Jan 2026 14:22:19 GMT")), id, 5));
    }
}
