//! The real clock and the real ids: the one place that reads either.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};

/// The machine's clocks.
pub struct SystemClock {
    began: Instant,
}

impl SystemClock {
    /// Monotonic time counts from here.
    pub fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixMs {
        let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        UnixMs(ms)
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn asleep(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
        // In this order: time that passes between the two is never taken for none.
        let awake = read(ClockId::Monotonic);
        read(ClockId::Boottime).saturating_sub(awake)
    }
}

/// `UUIDv7` ids: by time, and counted up within a millisecond.
pub struct UuidSource;

impl IdSource for UuidSource {
    fn next_id(&self) -> Id {
        Id::from_bytes(uuid::Uuid::now_v7().into_bytes())
    }

    fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system gave randomness when the server started");
        bytes
    }
}
