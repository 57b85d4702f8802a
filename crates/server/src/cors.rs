//! Which web pages elsewhere may call: the configured origins and no other. There are no cookies, so that credentials are never allowed, and a
//! page that is none of ours can change nothing: what it sends is refused before it is looked at.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::fault::Fault;

/// The origins that may call.
#[derive(Debug)]
pub(crate) struct Cors {
    any: bool,
    origins: Vec<String>,
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, X-API-Key, Authorization, Idempotency-Key, X-Request-ID, \
     Connect-Protocol-Version, Connect-Timeout-Ms, Grpc-Timeout, X-Grpc-Web, X-User-Agent",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-Request-ID, X-Next-Cursor, X-Looked-At, Retry-After, Content-Range, ETag, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin",
);

impl Cors {
    /// These origins, where `*` is all, and that of the server's own public address: a proxy may call the server by another name.
    pub(crate) fn new(origins: &[String], public_url: Option<&str>) -> Self {
        let own = public_url.and_then(origin_of);
        let origins = origins.iter().map(String::as_str).chain(own);
        let origins: Vec<String> = origins.map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { any: origins.iter().any(|origin| origin == "*"), origins }
    }

    /// Whether pages of this origin may call.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.any || self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }

    /// Refuses what a page of a stranger sends. A browser names the page; others name none, and are no page. `host` is what was called as a trusted proxy tells
    /// it. Some leave out the port there, so that `Host` counts too: no page can choose either.
    pub(crate) fn guard(&self, headers: &HeaderMap, host: Option<&str>) -> Result<(), Fault> {
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_none() {
            // A browser that hides the page's origin still says that the page is another's.
            let foreign = |site: &HeaderValue| site != "same-origin" && site != "none";
            return if headers.get_all(FETCH_SITE).iter().any(foreign) { Err(Fault::foreign_origin()) } else { Ok(()) };
        }
        let called = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_own = |origin: &str| is_of(origin, host) || is_of(origin, called);
        // An origin that is not text is nobody's.
        let known = |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| is_own(origin) || self.allows(origin));
        if origins.all(known) { Ok(()) } else { Err(Fault::foreign_origin()) }
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

/// The origin of an address: what stands before its path.
fn origin_of(url: &str) -> Option<&str> {
    let host = url.find("://")? + "://".len();
    Some(url[host..].find('/').map_or(url, |path| &url[..host + path]))
}

/// Whether an origin is the host that was called.
fn is_of(origin: &str, host: Option<&str>) -> bool {
    let named = origin.split_once("://").map(|(_, host)| host);
    named.zip(host).is_some_and(|(a, b)| !a.is_empty() && a.eq_ignore_ascii_case(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_origins_may_call() {
        let cors = Cors::new(&["https://Runvoy.example.com/".into()], None);
        assert!(cors.allows("https://runvoy.example.com"));
        for other in ["https://evil.example.com", "http://runvoy.example.com", "https://runvoy.example.com.evil.com", "null", ""] {
            assert!(!cors.allows(other), "{other}");
        }
        assert!(Cors::new(&["*".into()], None).allows("https://anywhere.example"));
        for public in ["https://run.example.com:8443", "https://run.example.com:8443/tools/runvoy"] {
            let cors = Cors::new(&[], Some(public));
            assert!(cors.allows("https://run.example.com:8443") && !cors.allows("https://run.example.com"), "{public}");
        }
    }

    #[test]
    fn security_21_what_a_page_of_a_stranger_sends_is_refused() {
        let cors = Cors::new(&["https://web.example.com".into()], None);
        let sent = |pairs: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
                headers.append(name, HeaderValue::from_str(value).expect("a value"));
            }
            cors.guard(&headers, Some("runvoy.example.com:443")).is_ok()
        };
        assert!(sent(&[]), "no page");
        assert!(sent(&[("origin", "https://web.example.com")]));
        assert!(sent(&[("origin", "https://web.example.com"), ("sec-fetch-site", "cross-site")]), "a page elsewhere that may");
        assert!(sent(&[("origin", "https://runvoy.example.com:443"), ("sec-fetch-site", "same-origin")]), "its own page");
        assert!(sent(&[("sec-fetch-site", "none")]), "the address bar");
        for foreign in [
            &[("origin", "https://evil.example.com")][..],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "https://")],
            &[("origin", "https://web.example.com"), ("origin", "https://evil.example.com")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert!(!sent(foreign), "{foreign:?}");
        }
    }
}
