//! When a server that the command line started may leave: ten seconds after its last client and its last open execution; at once if another
//! server wants the directory.

use std::time::Duration;

use runvoy_engine::Engine;
use runvoy_server::App;
use tokio::time::{Instant, sleep};

const LEAVE_AFTER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Comes back when nobody has been there for a while, with the number of visits until then.
pub async fn left_alone(engine: &Engine, app: &App, is_wanted: impl Fn() -> bool) -> usize {
    let mut quiet = Quiet { since: Instant::now(), visits: app.visits() };
    loop {
        sleep(LOOK_EVERY).await;
        // Counted first: whoever comes after it is noticed by `is_deserted`.
        let visits = app.visits();
        let busy = app.clients() > 0 || has_work(engine).await;
        if quiet.look(Instant::now(), visits, busy) || !busy && is_wanted() {
            return visits;
        }
    }
}

/// Whether nobody came since those visits were counted, and nothing is left to do.
pub async fn is_deserted(engine: &Engine, app: &App, visits: usize) -> bool {
    app.visits() == visits && !has_work(engine).await
}

/// A store that cannot say counts as work: to leave would be to guess.
async fn has_work(engine: &Engine) -> bool {
    engine.ports().store.counts().await.map_or(true, |counts| counts.pending + counts.active > 0)
}

/// How long it has been quiet.
struct Quiet {
    since: Instant,
    visits: usize,
}

impl Quiet {
    /// Takes in what was seen; says whether it has been quiet for long enough. A client that came and went between two looks counts too.
    fn look(&mut self, now: Instant, visits: usize, busy: bool) -> bool {
        if busy || visits != self.visits {
            (self.since, self.visits) = (now, visits);
        }
        now.duration_since(self.since) >= LEAVE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_every_visit_begin_the_wait_anew() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut quiet = Quiet { since: began, visits: 3 };
        assert!(!quiet.look(at(9), 3, false));
        assert!(!quiet.look(at(10), 3, true), "there is work");
        assert!(!quiet.look(at(19), 3, false));
        assert!(!quiet.look(at(20), 4, false), "somebody came and went");
        assert!(!quiet.look(at(29), 4, false));
        assert!(quiet.look(at(30), 4, false));
    }
}
