//! The files of the web page as they are served: which there are was decided when the program was built. It knows nothing of routes.

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::answer;

/// One file of the page.
#[derive(Debug)]
pub(crate) struct File {
    path: &'static str,
    content_type: &'static str,
    /// Of the content, so that a browser can ask whether what it has is still good.
    hash: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/bundle.rs"));

/// Scripts, styles and calls are the server's own and nothing else; no text becomes a script, also not by mistake.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
);
/// The names below `assets/` have a hash of the content in them: whoever has one need never ask again.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_EACH_TIME: HeaderValue = HeaderValue::from_static("no-cache");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The file at this path, if the program was built with it.
pub(crate) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// The answer to a request with these headers.
    pub(crate) fn answer(&self, asked: &HeaderMap) -> Response<Body> {
        let packed = self.gzip.filter(|_| takes_gzip(asked));
        let etag = format!("\"{}{}\"", self.hash, if packed.is_some() { "-gzip" } else { "" });
        let mut response = if is_held(asked, &etag) {
            let mut response = answer::nothing();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            answer::whole(StatusCode::OK, HeaderValue::from_static(self.content_type), packed.unwrap_or(self.plain))
        };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, HeaderValue::from_str(&etag).expect("hex digits are ASCII"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(header::CACHE_CONTROL, if self.path.starts_with("assets/") { FOR_EVER } else { ASK_EACH_TIME });
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(OPENER, HeaderValue::from_static("same-origin"));
        if packed.is_some() && response.status() == StatusCode::OK {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Whether the client unpacks gzip.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let words = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    words.map(str::trim).any(|word| {
        let (name, quality) = word.split_once(';').unwrap_or((word, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

/// Whether the client has it already.
fn is_held(asked: &HeaderMap, etag: &str) -> bool {
    let held = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    held.flat_map(|value| value.split(',')).map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: File =
        File { path: "assets/a.js", content_type: "text/javascript; charset=utf-8", hash: "abc", plain: b"plain", gzip: Some(b"packed") };

    fn asked(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_file_is_packed_for_those_who_unpack_it() {
        for (words, packed) in [("gzip, br", true), ("br;q=1, GZIP;q=0.5", true), ("gzip;q=0", false), ("br", false), ("", false)] {
            let response = SCRIPT.answer(&asked(&[(header::ACCEPT_ENCODING, words)]));
            assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), packed, "{words}");
            assert_eq!(response.headers()[header::ETAG], if packed { "\"abc-gzip\"" } else { "\"abc\"" });
        }
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        for (held, status) in [("\"abc\"", 304), ("W/\"x\", W/\"abc\"", 304), ("*", 304), ("\"abc-gzip\"", 200), ("\"x\"", 200)] {
            let response = SCRIPT.answer(&asked(&[(header::IF_NONE_MATCH, held)]));
            assert_eq!(response.status(), status, "{held}");
            assert_eq!(response.headers()[header::CACHE_CONTROL], FOR_EVER);
        }
    }
}
