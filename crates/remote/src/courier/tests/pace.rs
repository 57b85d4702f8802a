//! When a courier asks the server to take something: at once after silence; else when enough has come, or the time is over that a server
//! has between two requests. The clock stands still unless everybody waits for it, so every time here is exact.

use super::*;

/// A record with so many bytes of output is this long in a block: a time, flags and a length stand before them.
const LARGE: usize = (64 << 10) - 5;

/// A server that takes so long for every request, and a courier to it. Time begins here.
struct Run {
    stage: Stage,
    began: Instant,
    written: u64,
}

impl Run {
    fn new(takes_ms: u64) -> Self {
        Self::with(Shelf { takes: Duration::from_millis(takes_ms), ..Shelf::default() })
    }

    fn with(shelf: Shelf) -> Self {
        let stage = Stage::new(shelf);
        stage.send();
        Self { stage, began: Instant::now(), written: 0 }
    }

    /// Lets everybody do what there is to do until this time.
    async fn until(&self, ms: u64) {
        sleep_until(self.began + Duration::from_millis(ms)).await;
    }

    /// So many pieces of output, one after the other.
    async fn write(&mut self, pieces: u64) {
        self.stage.write(self.written + 1, self.written + pieces).await;
        self.written += pieces;
    }

    /// One piece of output of this size.
    async fn write_large(&mut self, bytes: usize) {
        self.written += 1;
        let piece = line(Stream::Stdout, &"x".repeat(bytes));
        assert_eq!(self.stage.outbox.append(self.written, piece).await.expect("taken"), self.written + 1);
    }

    /// When each request came, in milliseconds, and how many pieces it carried.
    fn requests(&self) -> Vec<(u128, u32)> {
        let requests = self.stage.shelf.requests.lock();
        requests.iter().map(|request| ((request.at - self.began).as_millis(), request.count)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn output_after_silence_goes_at_once() {
    let mut run = Run::new(1_000);
    for at in [0, 3_001, 10_000, 600_000] {
        run.until(at).await;
        run.write(1).await;
    }
    run.until(700_000).await;
    assert_eq!(run.requests(), [(0, 1), (3_001, 1), (10_000, 1), (600_000, 1)]);
}

#[tokio::test(start_paused = true)]
async fn fifty_pieces_do_not_wait_for_more() {
    // Its answer comes after one second, and then there would be two of rest.
    let mut run = Run::new(1_000);
    run.write(1).await;
    run.until(1_500).await;
    run.write(49).await;
    run.until(1_600).await;
    assert_eq!(run.requests(), [(0, 1)], "49 wait");
    run.write(1).await;
    run.until(1_601).await;
    assert_eq!(run.requests(), [(0, 1), (1_600, 50)]);
}

#[tokio::test(start_paused = true)]
async fn fifty_pieces_that_came_while_a_request_was_under_way_go_with_its_answer() {
    for (pieces, then) in [(49, 3_000), (50, 1_000), (51, 1_000)] {
        let mut run = Run::new(1_000);
        run.write(1).await;
        run.until(500).await;
        run.write(pieces).await;
        run.until(3_500).await;
        assert_eq!(run.requests(), [(0, 1), (then, u32::try_from(pieces).expect("small"))], "{pieces} pieces");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quarter_of_a_mebibyte_does_not_wait_for_more() {
    let mut run = Run::new(1_000);
    run.write(1).await;
    run.until(1_500).await;
    for _ in 0..3 {
        run.write_large(LARGE).await;
    }
    // Still 4 KiB less, with everything that stands around it.
    run.write_large(LARGE - (4 << 10)).await;
    run.until(1_600).await;
    assert_eq!(run.requests(), [(0, 1)], "252 KiB wait");
    run.write_large(4 << 10).await;
    run.until(1_601).await;
    let requests = run.requests();
    assert_eq!((requests.len(), requests[1].0), (2, 1_600), "256 KiB are enough: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn no_request_is_larger_than_a_quarter_of_a_mebibyte() {
    let mut run = Run::new(1_000);
    run.write(1).await;
    run.until(500).await;
    for _ in 0..10 {
        run.write_large(LARGE).await;
    }
    // Two are full, and go one after the other; what is left has time.
    run.until(10_000).await;
    assert_eq!(run.requests(), [(0, 1), (1_000, 4), (2_000, 4), (5_000, 2)]);
    let most = run.stage.shelf.requests.lock().iter().map(|request| request.bytes).max();
    assert_eq!(most, Some(4 * (LARGE + 5)), "256 KiB, and not a byte more");
}

#[tokio::test(start_paused = true)]
async fn a_trickle_goes_two_seconds_after_a_slow_answer() {
    // Ten times the server's second would be ten.
    let mut run = Run::new(1_000);
    for at in (0..12_050).step_by(100) {
        run.until(at).await;
        run.write(1).await;
    }
    // What is written while a request is on its way or the courier rests goes with the next one: thirty pieces each, which is not enough to go sooner.
    run.until(12_050).await;
    let requests = run.requests();
    let times: Vec<u128> = requests.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 3_000, 6_000, 9_000, 12_000]);
    assert!(requests[1..].iter().all(|(_, count)| (29..=31).contains(count)), "{requests:?}");
    let sent: u32 = requests.iter().map(|(_, count)| count).sum();
    assert!(u64::from(sent) + 1 >= run.written, "nothing waits longer than until the next request: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_rests_ten_times_as_long_as_it_took_but_neither_too_short_nor_too_long() {
    for (takes, rests) in [(0, 20), (1, 20), (5, 50), (100, 1_000), (200, 2_000), (201, 2_000), (60_000, 2_000)] {
        let mut run = Run::new(takes);
        run.write(1).await;
        run.until(takes + 1).await;
        run.write(1).await;
        run.until(2 * takes + 5_000).await;
        assert_eq!(run.requests(), [(0, 1), (u128::from(takes + rests), 1)], "it took {takes} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_lets_nothing_wait() {
    let mut run = Run::new(1_000);
    run.write(1).await;
    run.until(1_500).await;
    run.write(3).await;
    run.until(1_600).await;
    assert_eq!(run.stage.outbox.finish(b"end".to_vec()).await, Verdict::Told(Bytes::from_static(b"{}")));
    assert_eq!(run.requests(), [(0, 1), (1_600, 3)]);
}

#[tokio::test(start_paused = true)]
async fn fifty_pieces_are_fifty_also_after_the_server_lost_some() {
    // The third request finds that all but the first line is gone, and what is gone is sent again.
    let mut run = Run::with(Shelf { takes: Duration::from_secs(1), forgets: Some((2, 1)), ..Shelf::default() });
    run.write(1).await;
    run.until(1).await;
    run.write(39).await;
    run.until(6_500).await;
    run.write(1).await;
    run.until(8_600).await;
    let before = run.requests();
    assert_eq!(before, [(0, 1), (3_000, 39), (6_500, 1), (7_500, 40)]);
    run.write(49).await;
    run.until(8_700).await;
    assert_eq!(run.requests(), before, "49 wait");
    run.write(1).await;
    run.until(8_701).await;
    assert_eq!(run.requests().last(), Some(&(8_700, 50)));
}
