//! The real clock and the real ids: the one place that reads either.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use runvoy_model::id::Id;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::{Clock, IdSource};

/// One part in so many of the time that passes is what [`Steady`] is faster or slower than it, to come back to the machine's clock.
const CATCH_UP: i128 = 100;
/// A clock that shows a time before 2025 has not been set yet: what it is set to is taken over at once.
const SET_AFTER: i128 = 1_735_689_600 * 1_000_000_000;

/// The machine's clocks.
pub struct SystemClock {
    began: Instant,
    wall: Mutex<Steady>,
}

impl SystemClock {
    /// Monotonic time counts from here.
    pub fn new() -> Self {
        let began = Instant::now();
        Self { began, wall: Mutex::new(Steady { passed: passed(began), given: machine_wall() }) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixMs {
        let mut wall = self.wall.lock();
        ms(wall.at(passed(self.began), machine_wall()))
    }

    fn machine_now(&self) -> UnixMs {
        ms(machine_wall())
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

/// A wall clock that never jumps: it goes with the time that passes, and comes back to the machine's clock at one part in [`CATCH_UP`]. So a step of the
/// machine's clock ends no wait early and makes no duration negative or huge. All in nanoseconds.
struct Steady {
    /// How much time had passed when it was last read.
    passed: i128,
    /// What it showed then.
    given: i128,
}

impl Steady {
    fn at(&mut self, passed: i128, machine: i128) -> i128 {
        let elapsed = (passed - self.passed).max(0);
        let steady = self.given + elapsed;
        let most = if steady < SET_AFTER { i128::MAX } else { elapsed / CATCH_UP };
        self.given = steady + (machine - steady).clamp(-most, most);
        self.passed += elapsed;
        self.given
    }
}

fn ms(nanos: i128) -> UnixMs {
    UnixMs(i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX))
}

/// What the machine's wall clock shows.
fn machine_wall() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// How much time has passed, with that in which the machine slept.
#[cfg(target_os = "linux")]
fn passed(_began: Instant) -> i128 {
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    nanos(Duration::try_from(since_boot).unwrap_or_default())
}

/// How much time has passed.
#[cfg(not(target_os = "linux"))]
fn passed(began: Instant) -> i128 {
    nanos(began.elapsed())
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;
    const HOUR: i128 = 3_600 * SECOND;
    const START: i128 = SET_AFTER + 1_000 * HOUR;

    /// What the clock shows after these seconds, read once a second, with the machine's clock wrong by this much from the first second on.
    fn shown(seconds: i128, step: i128) -> Vec<i128> {
        let mut clock = Steady { passed: 5 * SECOND, given: START };
        (1..=seconds).map(|s| clock.at((5 + s) * SECOND, START + s * SECOND + step) - START).collect()
    }

    #[test]
    fn a_step_of_the_machine_clock_changes_a_minute_by_less_than_a_second() {
        assert_eq!(shown(60, 0)[59], 60 * SECOND);
        for step in [HOUR, -HOUR] {
            let shown = shown(60, step);
            assert!((shown[59] - 60 * SECOND).abs() < SECOND, "{}", shown[59]);
            assert!(shown.is_sorted(), "it never goes back");
        }
    }

    #[test]
    fn it_comes_back_to_the_machine_clock() {
        for step in [10 * SECOND, -10 * SECOND] {
            assert_eq!(shown(1_100, step)[1_099], 1_100 * SECOND + step);
        }
    }

    #[test]
    fn the_machine_clock_is_read_as_it_is() {
        let clock = SystemClock::new();
        let an_hour_off = clock.wall.lock().given - HOUR;
        clock.wall.lock().given = an_hour_off;
        assert!(clock.machine_now().ms_since(clock.now()) > 3_500_000);
    }

    #[test]
    fn reading_it_often_changes_nothing() {
        let (mut often, mut once) = (Steady { passed: 0, given: START }, Steady { passed: 0, given: START });
        for n in 1..=60_000 {
            often.at(n * SECOND / 1_000, START + n * SECOND / 1_000 + HOUR);
        }
        assert_eq!(often.given, once.at(60 * SECOND, START + 60 * SECOND + HOUR));
    }

    #[test]
    fn a_clock_that_was_never_set_is_taken_over_when_it_is() {
        let mut clock = Steady { passed: 0, given: 0 };
        assert_eq!(clock.at(SECOND, SECOND), SECOND);
        assert_eq!(clock.at(2 * SECOND, START), START);
    }
}
