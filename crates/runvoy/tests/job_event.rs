//! Events of jobs through the real binary: a foreign worker publishes, readers come and go, servers are killed.

mod harness;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::harness::chance::Chance;
use self::harness::connect::{Stream, call, upload};
use self::harness::{Server, Setup, count, process, promise};

const PUBLISH: &str = "JobEventsService/PublishJobEvents";
const EVENTS: &str = "JobEventsService/StreamJobEvents";
/// An event that did not come for so long will never come.
const SILENCE: Duration = Duration::from_secs(120);

/// A job that a foreign worker has leased.
struct Leased {
    id: String,
    token: String,
}

fn lease(server: &Server) -> Leased {
    let (url, key) = (&server.url, &server.key());
    let made = call(url, key, "JobService/EnqueueJob", &json!({"jobParams": {"command": "true"}})).expect("it is taken");
    let request = json!({"maxJobs": 1, "visibilityTimeoutSeconds": 43_200});
    let first = Stream::open(url, key, "JobService/DequeueJob", &request).expect("a stream").next().expect("a lease").expect("one");
    let first: Value = serde_json::from_slice(&first).expect("JSON");
    Leased { id: text(&made["jobId"]), token: text(&first["taskToken"]) }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

impl Leased {
    fn complete(&self, server: &Server) {
        let request = json!({"taskToken": self.token, "jobResult": {"success": true}});
        call(&server.url, &server.key(), "JobService/CompleteJob", &request).expect("it is held");
    }

    /// What publishes these events.
    fn message(&self, numbers: Range<usize>, said: Said) -> [Value; 1] {
        [json!({"taskToken": self.token, "events": numbers.map(|number| said.event(number)).collect::<Vec<_>>()})]
    }

    /// Reads its events from a number on.
    fn follow(&self, url: &str, key: &str, number: usize) -> std::io::Result<Stream> {
        let request = json!({"jobId": self.id, "fromSequence": (number + 1).to_string()});
        Stream::open(url, key, EVENTS, &request).map(|stream| stream.patience(SILENCE))
    }
}

/// What events say: the event of a number, from 0, is the same every time. Its sequence is one more, for JSON leaves a zero out.
#[derive(Clone, Copy)]
enum Said {
    /// Outputs of many sizes.
    Little,
    /// About a kilobyte each.
    Much,
}

impl Said {
    fn output(self, number: usize) -> String {
        let filling = match self {
            Self::Little => 1 + number % 50,
            Self::Much => 220,
        };
        // Twelve digits are well-formed base64 too.
        format!("{number:012}") + &"QUJD".repeat(filling) + "Cg=="
    }

    fn timestamp(number: usize) -> String {
        format!("2030-01-01T00:{:02}:{:02}.500Z", number / 60 % 60, number % 60)
    }

    fn event(self, number: usize) -> Value {
        let (sequence, output) = ((number + 1).to_string(), self.output(number));
        json!({"sequence": sequence, "timestamp": Self::timestamp(number), "eventType": "EVENT_TYPE_OUTPUT", "output": {"output": output}})
    }

    /// The bytes that whoever follows gets for it.
    fn bytes(self, number: usize) -> Vec<u8> {
        let (sequence, timestamp, output) = (number + 1, Self::timestamp(number), self.output(number));
        let event = format!(
            r#"{{"event":{{"sequence":"{sequence}","timestamp":"{timestamp}","eventType":"EVENT_TYPE_OUTPUT","output":{{"output":"{output}"}}}}}}"#
        );
        event.into_bytes()
    }

    /// Reads these from a stream: each comes, once, in its place, byte for byte. The number that a stream which ended would have had next; what broke it
    /// otherwise.
    fn check(self, stream: &mut Stream, numbers: Range<usize>) -> Result<Option<usize>, String> {
        for number in numbers {
            let Some(seen) = stream.next()? else { return Ok(Some(number)) };
            assert!(seen == self.bytes(number), "event {number} came as {}", String::from_utf8_lossy(&seen));
        }
        Ok(None)
    }
}

/// What publisher, readers and whoever kills the server know of each other.
#[derive(Default)]
struct Stage {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    /// Where the server is, and the how many-eth; none while it is dead.
    server: Option<(usize, String)>,
    /// So many events were acknowledged.
    acknowledged: usize,
    /// So many were sent, of which some may have been lost.
    sent: usize,
    reconnects: usize,
    /// Nothing more will be published.
    is_all: bool,
    /// Somebody failed, and the others need not go on.
    is_over: bool,
}

impl Stage {
    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().expect("no panic"));
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&Now) -> bool) -> MutexGuard<'_, Now> {
        let now = self.changed.wait_while(self.now.lock().expect("no panic"), |now| !now.is_over && !until(now)).expect("no panic");
        assert!(!now.is_over, "somebody else failed");
        now
    }

    fn server(&self) -> (usize, String) {
        self.wait(|now| now.server.is_some()).server.clone().expect("just seen")
    }

    /// A call may fail when its server was killed meanwhile, and only then.
    fn excuse(&self, which: usize, error: &str) {
        let now = self.now.lock().expect("no panic");
        assert!(
            now.is_over || now.server.as_ref().is_none_or(|(server, _)| *server != which),
            "it failed, and nobody killed the server: {error}"
        );
    }

    /// Publishes until it need not. It says again what it is not sure of, as a worker does with its write-ahead log.
    fn publish(&self, key: &str, leased: &Leased, mut chance: Chance, is_enough: impl Fn(&Now) -> bool) {
        loop {
            let (which, url) = self.server();
            let (again, to) = {
                let mut now = self.now.lock().expect("no panic");
                now.is_all = is_enough(&now) && now.acknowledged == now.sent;
                if now.is_all {
                    return;
                }
                let to = now.sent.max(now.acknowledged + 1 + number(&mut chance, 20));
                now.sent = to;
                (now.acknowledged - number(&mut chance, now.acknowledged.min(5) + 1), to)
            };
            match upload(&url, key, PUBLISH, &leased.message(again..to, Said::Little)) {
                Ok(()) => self.change(|now| now.acknowledged = to),
                Err(error) => self.excuse(which, &error),
            }
        }
    }

    /// Reads some events from anywhere, again and again, until everything was published and read.
    fn read(&self, key: &str, leased: &Leased, mut chance: Chance) {
        loop {
            let (which, url) = self.server();
            let (sent, is_all) = {
                let now = self.now.lock().expect("no panic");
                (now.sent, now.is_all)
            };
            let begin = number(&mut chance, sent + 1);
            // The last time it reads to the end.
            let end = if is_all { usize::MAX } else { begin + 1 + number(&mut chance, 200) };
            let read = leased.follow(&url, key, begin).map_err(|error| error.to_string());
            match read.and_then(|mut stream| Said::Little.check(&mut stream, begin..end)) {
                Ok(None) => {}
                Ok(Some(next)) => {
                    let now = self.now.lock().expect("no panic");
                    assert!(now.is_all, "a stream ended at event {next} while more was published");
                    assert_eq!(next, now.acknowledged.max(begin), "it ends behind the last event");
                    return;
                }
                Err(error) => self.excuse(which, &error),
            }
            self.change(|now| now.reconnects += 1);
        }
    }
}

/// Lets the others end, where one panics.
struct Ends<'a>(&'a Stage);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_over = true;
            self.0.changed.notify_all();
        }
    }
}

fn number(chance: &mut Chance, below: usize) -> usize {
    usize::try_from(chance.below(below as u64)).expect("it came from one")
}

#[test]
fn promise_14_events_are_the_same_from_any_cursor_while_the_server_is_killed() {
    let (kills, reconnects, readers) = (count(4, 50), count(400, 10_000), 4);
    let directory = tempfile::tempdir().expect("a directory");
    let start = || Setup::default().arg("--no-worker").start_in(&directory.path().join("data"));
    let (mut server, stage, mut chance) = (start(), Stage::default(), Chance::new());
    let (leased, key) = (lease(&server), server.key());
    stage.change(|now| now.server = Some((0, server.url.clone())));
    std::thread::scope(|scope| {
        let (stage, key, leased) = (&stage, &key, &leased);
        let is_enough = move |now: &Now| now.reconnects >= reconnects && now.server.as_ref().is_some_and(|(killed, _)| *killed == kills);
        let (publisher, chances) = (chance.split(), (0..readers).map(|_| chance.split()).collect::<Vec<_>>());
        let publisher = scope.spawn(move || {
            let _ends = Ends(stage);
            stage.publish(key, leased, publisher, is_enough);
        });
        for chance in chances {
            scope.spawn(move || {
                let _ends = Ends(stage);
                stage.read(key, leased, chance);
            });
        }
        let _ends = Ends(stage);
        for killed in 1..=kills {
            drop(stage.wait(|now| now.reconnects >= reconnects * killed / (kills + 1)));
            // Anywhere in what the others do.
            std::thread::sleep(Duration::from_micros(chance.below(4_000)));
            stage.change(|now| now.server = None);
            server.kill_9();
            server = start();
            let acknowledged = stage.now.lock().expect("no panic").acknowledged;
            stage.change(|now| now.server = Some((killed, server.url.clone())));
            let from = acknowledged.saturating_sub(1_000);
            let mut stream = leased.follow(&server.url, key, from).expect("a stream");
            assert_eq!(Said::Little.check(&mut stream, from..acknowledged), Ok(None), "what was acknowledged is there");
        }
        publisher.join().expect("no panic");
        leased.complete(&server);
    });
    let now = stage.now.lock().expect("no panic");
    let events = now.acknowledged;
    for sweep in 0..reconnects / 4 {
        // Once everything, then parts of it.
        let (begin, most) = if sweep == 0 { (0, events + 1) } else { (number(&mut chance, events), 1 + number(&mut chance, 200)) };
        let mut stream = leased.follow(&server.url, &key, begin).expect("a stream");
        let ended = Said::Little.check(&mut stream, begin..begin + most).expect("the stream holds");
        assert_eq!(ended, (begin + most > events).then_some(events), "from {begin}");
    }
    let what = format!("{events} events, {kills} kills, {} reconnects meanwhile and {} afterwards", now.reconnects, reconnects / 4);
    promise(14, "job events are the same from any cursor", what, "byte-identical");
}

#[test]
fn promise_15_many_followers_of_one_jobs_events_cost_little() {
    let (followers, events) = (count(100, 1_000), count(300, 2_000));
    let server = Setup::default().arg("--no-worker").start();
    let leased = lease(&server);
    let (url, key) = (&server.url, &server.key());
    let before = process::memory(server.pid(), "VmRSS");
    let (waiting, mut most) = (AtomicUsize::new(0), before);
    let mut delays = std::thread::scope(|scope| {
        let follow = || {
            let mut stream = leased.follow(url, key, 0).expect("a stream");
            waiting.fetch_add(1, Ordering::Relaxed);
            assert_eq!(Said::Little.check(&mut stream, 0..events), Ok(None));
            let last = Instant::now();
            assert_eq!(stream.next(), Ok(None));
            last
        };
        let builder = || std::thread::Builder::new().stack_size(256 << 10);
        let readers: Vec<_> = (0..followers).map(|_| builder().spawn_scoped(scope, follow).expect("a thread")).collect();
        while waiting.load(Ordering::Relaxed) < followers {
            std::thread::sleep(Duration::from_millis(5));
        }
        let with_all = process::memory(server.pid(), "VmRSS");
        for begin in (0..events).step_by(10) {
            upload(url, key, PUBLISH, &leased.message(begin..(begin + 10).min(events), Said::Little)).expect("kept");
            most = most.max(process::memory(server.pid(), "VmRSS"));
        }
        let published = Instant::now();
        leased.complete(&server);
        let each_kb = with_all.saturating_sub(before) / 1024 / followers as u64;
        assert!(each_kb < 256, "a follower costs {each_kb} KiB");
        let delay =
            |reader: std::thread::ScopedJoinHandle<'_, Instant>| reader.join().expect("no panic").saturating_duration_since(published);
        readers.into_iter().map(delay).collect::<Vec<_>>()
    });
    delays.sort_unstable();
    let grown = most.saturating_sub(before) >> 20;
    let last = delays.last().copied().unwrap_or_default().as_secs_f64() * 1e3;
    let what = format!("{followers} followers, {events} events, {grown} MiB more RSS, the last has all {last:.0} ms after");
    promise(15, "many followers of job events cost little", what, "ok");
    assert!(grown < 16 + followers as u64 / 8, "RSS grew by {grown} MiB");
}

/// What a load did to the server and to the follower that keeps up.
struct Load {
    peak: u64,
    took: Duration,
}

/// Events of a kilobyte are published while one follower keeps up and so many read one a second. All get the same bytes; the slow ones, who read on when
/// the job has ended, have missed nothing.
fn load(server: &Server, events: usize, slow: usize) -> Load {
    let (leased, url, key) = (lease(server), &server.url, &server.key());
    let open = || leased.follow(url, key, 0).expect("a stream");
    let (mut fast, slow): (Stream, Vec<Stream>) = (open(), (0..slow).map(|_| open()).collect());
    process::reset_peak(server.pid());
    std::thread::scope(|scope| {
        let mut until_dropped = Vec::new();
        for mut stream in slow {
            let (stop, stopped) = channel::<()>();
            until_dropped.push(stop);
            scope.spawn(move || {
                let mut next = 0;
                while next < events && stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    assert_eq!(Said::Much.check(&mut stream, next..next + 1), Ok(None));
                    next += 1;
                }
                assert_eq!(Said::Much.check(&mut stream, next..events + 1), Ok(Some(events)), "a slow one misses nothing");
            });
        }
        let began = Instant::now();
        let fast = scope.spawn(move || {
            assert_eq!(Said::Much.check(&mut fast, 0..events), Ok(None));
            (began.elapsed(), fast)
        });
        for begin in (0..events).step_by(200) {
            upload(url, key, PUBLISH, &leased.message(begin..(begin + 200).min(events), Said::Much)).expect("kept");
        }
        let (took, mut fast) = fast.join().expect("no panic");
        let peak = process::memory(server.pid(), "VmHWM");
        leased.complete(server);
        assert_eq!(fast.next(), Ok(None));
        Load { peak, took }
    })
}

#[test]
fn promise_15_a_slow_follower_of_job_events_costs_little_and_delays_nobody() {
    let (megabytes, slow) = (count(40, 400), count(8, 16));
    let server = Setup::default().arg("--no-worker").start();
    let events = megabytes * 1_000_000 / Said::Much.bytes(0).len();
    let alone = load(&server, events, 0);
    let beside = load(&server, events, slow);
    let share = beside.peak.saturating_sub(alone.peak) / slow as u64;
    let what = format!(
        "{megabytes} MB published: peak RSS {} MB with one fast follower, {} MB with {slow} at 1 KB/s beside it; it had everything after {:.1} s and {:.1} s",
        alone.peak / 1_000_000,
        beside.peak / 1_000_000,
        alone.took.as_secs_f64(),
        beside.took.as_secs_f64(),
    );
    promise(15, "a slow follower of job events costs little", what, format!("{:.1} MB each", share as f64 / 1e6));
    assert!(share < 16_000_000, "a slow follower costs {share} bytes");
}

/// A public client's monitor: it counts what it receives, from 1, and reports what is missing. How many there were, and what the first and the last were.
fn monitored(server: &Server, id: &str) -> (i64, Vec<Value>) {
    let request = json!({"jobId": id});
    let mut stream = Stream::open(&server.url, &server.key(), EVENTS, &request).expect("a stream").patience(SILENCE);
    let (mut count, mut kinds) = (0, Vec::new());
    while let Some(message) = stream.next().expect("it goes on") {
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        let sequence: i64 = text(&message["event"]["sequence"]).parse().expect("a number");
        count += 1;
        assert_eq!(sequence, count, "events are missing before {message}");
        kinds.push(message["event"]["eventType"].clone());
    }
    (count, kinds)
}

#[test]
fn a_monitor_that_counts_misses_nothing_of_what_our_own_worker_runs() {
    let server = Server::start();
    let id = server.run("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done; echo oh >&2");
    let (live, kinds) = monitored(&server, &id);
    assert_eq!(live, 1 + 6 + 1, "{kinds:?}");
    assert_eq!((&kinds[0], &kinds[7]), (&json!("EVENT_TYPE_PROCESS_START"), &json!("EVENT_TYPE_PROCESS_END")));
    assert_eq!(monitored(&server, &id), (live, kinds), "and whoever reads again");
}
