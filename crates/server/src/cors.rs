//! Which web pages elsewhere may call: the configured origins and no other. There are no cookies, so that credentials are never allowed.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

/// The origins that may call.
#[derive(Debug)]
pub(crate) struct Cors {
    any: bool,
    origins: Vec<String>,
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static("Content-Type, X-API-Key, Authorization, Idempotency-Key, X-Request-ID");
const EXPOSED: HeaderValue = HeaderValue::from_static("X-Request-ID, X-Next-Cursor, Retry-After, Content-Range, ETag");

impl Cors {
    /// These origins; `*` is all.
    pub(crate) fn new(origins: &[String]) -> Self {
        let origins: Vec<String> = origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { any: origins.iter().any(|origin| origin == "*"), origins }
    }

    /// Whether pages of this origin may call.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.any || self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Lets the page of an allowed origin read the answer.
    pub(crate) fn admit(&self, origin: &HeaderValue, headers: &mut HeaderMap) {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        if origin.to_str().is_ok_and(|origin| self.allows(origin)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }

    /// Answers a preflight of an allowed origin.
    pub(crate) fn preflight(&self, parts: &Parts, headers: &mut HeaderMap) {
        let origin = parts.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
        if parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) && origin.is_some_and(|origin| self.allows(origin)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_origins_may_call() {
        let cors = Cors::new(&["https://Runvoy.example.com/".into()]);
        assert!(cors.allows("https://runvoy.example.com"));
        for other in ["https://evil.example.com", "http://runvoy.example.com", "https://runvoy.example.com.evil.com", "null", ""] {
            assert!(!cors.allows(other), "{other}");
        }
        assert!(Cors::new(&["*".into()]).allows("https://anywhere.example"));
    }
}
