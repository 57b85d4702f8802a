//! Counts and times the requests of one route. Handles are kept, because looking one up costs more than counting with it.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram};
use parking_lot::RwLock;

/// The measurements of one route.
pub(crate) struct Meter {
    route: &'static str,
    counters: RwLock<Vec<(&'static str, u16, Counter)>>,
    seconds: OnceLock<Histogram>,
}

impl Meter {
    /// For a route with this path.
    pub(crate) const fn new(route: &'static str) -> Self {
        Self { route, counters: RwLock::new(Vec::new()), seconds: OnceLock::new() }
    }

    /// The path.
    pub(crate) const fn route(&self) -> &'static str {
        self.route
    }

    /// Notes one request.
    pub(crate) fn measure(&self, method: &'static str, status: u16, took: Duration) {
        self.seconds.get_or_init(|| metrics::histogram!("runvoy_http_request_seconds", "route" => self.route)).record(took.as_secs_f64());
        let known = self.counters.read();
        if let Some((_, _, counter)) = known.iter().find(|(m, s, _)| (*m, *s) == (method, status)) {
            return counter.increment(1);
        }
        drop(known);
        let counter = metrics::counter!(
            "runvoy_http_requests_total",
            "method" => method, "route" => self.route, "status" => status.to_string()
        );
        counter.increment(1);
        // Two requests may both get here; the second handle counts into the same number.
        self.counters.write().push((method, status, counter));
    }
}
