//! Workers that die, freeze or crash all the time, on the server's own machine: what they held is somebody else's within the time of a lease, nothing runs
//! more often than workers died, and a lock is never with two.

mod harness;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use self::harness::chance::Chance;
use self::harness::ledger::{Account, Entry, Kind, Ledger};
use self::harness::worker::{Worker, WorkerSetup};
use self::harness::{Server, Setup, count, eventually, eventually_within, process, promise};

/// A lease, the margin after it, a look of the reaper and a backoff, on a busy machine.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(40);
/// More steps than any test waits for.
const FOR_EVER: usize = 6_000;

/// A server that runs nothing itself.
fn server() -> Server {
    Setup::default().arg("--no-worker").start()
}

fn setup(server: &Server, concurrency: &str) -> WorkerSetup {
    WorkerSetup::of(server, "fleet").args(&["--lease", "2s", "--lost-after", "4s", "--grace", "200ms", "--concurrency", concurrency])
}

fn submit(ledger: &Ledger, server: &Server, name: &str, kind: Kind, steps: usize) -> Entry {
    ledger.submit(&mut server.http(), name, kind, steps, || false).expect("it is not given up")
}

#[test]
fn promise_02_what_a_killed_worker_held_is_taken_over_and_ends_once() {
    let (rounds, at_once) = (count(1, 50), 10);
    let (server, dir) = (server(), tempfile::tempdir().expect("a temporary directory"));
    let (ledger, setup) = (Ledger::new(&dir.path().join("books")), setup(&server, "1"));
    for round in 0..rounds {
        let mut workers: Vec<Worker> = (0..at_once).map(|number| setup.start_in(&dir.path().join(format!("{round}-{number}")))).collect();
        let entry = |number: usize| {
            let kind = if number.is_multiple_of(2) { Kind::Once } else { Kind::Retried };
            submit(&ledger, &server, &format!("r{round}-{number}"), kind, 60)
        };
        let entries: Vec<Entry> = (0..at_once).map(entry).collect();
        eventually("all run", || entries.iter().all(|entry| !ledger.steps(entry).is_empty()));
        workers.iter_mut().for_each(Worker::kill_9);
        // None of them comes back, and one that never saw them goes on.
        let next = setup.clone().args(&["--name", "next"]).start();
        let is_taken_over = |entry: &Entry| ledger.steps(entry).last().is_some_and(|step| step.attempt == 2);
        let is_settled = |entry: &Entry| match entry.kind {
            Kind::Once => server.status(&entry.id)["status"] == "FAILED",
            _ => is_taken_over(entry) || server.status(&entry.id)["status"] == "SUCCEEDED",
        };
        // One at a time is run by the one that is left: the first of them is what counts for the time.
        let some = |entries: &[Entry]| entries.iter().filter(|entry| entry.kind == Kind::Retried).any(is_taken_over);
        eventually_within(TAKEN_OVER_WITHIN, "somebody else has them", || some(&entries));
        let mut more: Vec<Worker> = (1..at_once / 2).map(|_| setup.start()).collect();
        eventually_within(TAKEN_OVER_WITHIN, "all are settled", || entries.iter().all(is_settled));
        for entry in &entries {
            server.wait(&entry.id);
            let account = Account::read(&ledger, &server, entry);
            let expected = if entry.kind == Kind::Once { (false, 1) } else { (true, 2) };
            assert_eq!((account.succeeded(), account.starts), expected, "{entry:?}: {}", account.status);
            assert!(process::with_env(&format!("RUNVOY_EXECUTION_ID={}", entry.id)).is_empty(), "{entry:?} left something");
        }
        more.push(next);
        more.iter_mut().for_each(Worker::kill_9);
    }
    promise(2, "what a killed worker held is taken over and ends once", format!("{} workers killed", rounds * at_once), "1 end each");
}

/// The file that an execution adds a line to, each time it runs.
fn mark(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("ran-{number}"))
}

#[test]
fn promise_12_nothing_runs_more_often_than_workers_crash() {
    let executions = count(300, 100_000);
    // A crash for each hundred; others go on while the next one is chosen.
    let crash_every = 80.min(executions / 6);
    let (server, dir) = (server(), tempfile::tempdir().expect("a temporary directory"));
    let (marks, setup, mut chance) = (dir.path().join("marks"), setup(&server, "1"), Chance::new());
    std::fs::create_dir(&marks).expect("a directory");
    let mut http = server.http();
    let submitted = (0..executions).map(|number| {
        let command = format!("echo ran >> {}", mark(&marks, number).display());
        let answer = http.post("/api/v1/run", &json!({"command": command, "retries": 5}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["execution_id"].as_str().expect("an id").to_owned()
    });
    let ids: Vec<String> = submitted.collect();
    let place = |number: usize| dir.path().join(format!("worker-{number}"));
    // One at a time each: a crash meets one execution at most.
    let mut workers: Vec<Worker> = (0..4).map(|number| setup.start_in(&place(number))).collect();
    let done = || std::fs::read_dir(&marks).expect("marks").count();
    let mut crashes = 0;
    while done() < executions {
        let goal = (done() + crash_every).min(executions);
        eventually("work goes on", || done() >= goal);
        if goal < executions {
            let number = usize::try_from(chance.below(4)).expect("small");
            std::thread::sleep(chance.time(0, 30));
            workers[number].kill_9();
            crashes += 1;
            workers[number] = setup.start_in(&place(number));
        }
    }
    let mut repeats = 0;
    for (number, id) in ids.iter().enumerate() {
        let status = server.wait(id);
        assert_eq!(status["status"], "SUCCEEDED", "{status}");
        repeats += std::fs::read_to_string(mark(&marks, number)).expect("it ran").lines().count() - 1;
    }
    assert!(repeats <= crashes, "{repeats} repeats by {crashes} crashes");
    promise(
        12,
        "nothing runs more often than workers crash",
        format!("{executions} executions, {crashes} crashes"),
        format!("0 lost, {repeats} repeats"),
    );
}

/// What of a worker is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frozen {
    /// The worker; what it started runs on.
    Alone,
    /// All of it, as by a machine that sleeps.
    Whole,
}

/// The worker and everything below it.
fn tree(worker: u32) -> Vec<u32> {
    let mut tree = vec![worker];
    let mut at = 0;
    while at < tree.len() {
        tree.extend(process::children(tree[at]).into_iter().map(|(pid, _)| pid));
        at += 1;
    }
    tree
}

/// Processes that are frozen until this is dropped: nobody could end them else, also where a test fails.
struct Ice(Vec<u32>);

impl Ice {
    fn over(pids: Vec<u32>) -> Self {
        pids.iter().for_each(|pid| process::signal(*pid, libc::SIGSTOP));
        Self(pids)
    }
}

impl Drop for Ice {
    fn drop(&mut self) {
        self.0.iter().for_each(|pid| process::signal(*pid, libc::SIGCONT));
    }
}

/// So many steps, which take a tenth of a second each, may be taken after a whole machine woke: its worker has to see how late it is, and what it ends has 0.2 s
/// to go by itself.
const MOST_WHILE_WAKING: usize = 10;

/// Freezes the holder of a lock past its lease, lets the next one have it, and thaws the first. How many steps were taken under a lock that somebody else had.
///
/// A worker that is frozen alone takes none: what it runs is ended before its lease is, by who is still awake. On a machine that sleeps as a whole nobody can
/// end anything, and what runs there wakes with the worker that ends it. So this much can be promised, and not more: it does nothing while it sleeps, whatever
/// it does after that is under its old fence, by which others can refuse it, it is ended within a few steps, and then nothing more comes.
fn freeze(server: &Server, setup: &WorkerSetup, ledger: &Ledger, round: usize, frozen: Frozen) -> usize {
    let holder = setup.start();
    let first = submit(ledger, server, &format!("first-{round}"), Kind::Locked(round as u64), FOR_EVER);
    eventually("it holds the lock", || ledger.steps(&first).len() > 3);
    let other = setup.start();
    let second = submit(ledger, server, &format!("second-{round}"), Kind::Locked(round as u64), 5);
    let ice = Ice::over(if frozen == Frozen::Whole { tree(holder.id()) } else { vec![holder.id()] });
    eventually_within(TAKEN_OVER_WITHIN, "the next one holds the lock", || ledger.steps(&second).len() >= 2);
    assert_eq!(ledger.check_locks(), 2, "the next one holds it, and nobody else acts");
    let steps = ledger.steps(&first).len();
    drop(ice);
    assert_eq!(server.wait(&second.id)["status"], "SUCCEEDED");
    let mark = format!("RUNVOY_EXECUTION_ID={}", first.id);
    eventually("what lost its lock is gone", || process::with_env(&mark).is_empty());
    let (woke, late) = (ledger.steps(&first).len() - steps, ledger.locks().late);
    assert!(woke <= if frozen == Frozen::Whole { MOST_WHILE_WAKING } else { 0 }, "{woke} steps after the lock was somebody else's");
    assert!(late.len() <= woke && late.iter().all(|id| *id == first.id), "{late:?} acted without the lock, {} may have", first.id);
    eventually("what it said has arrived", || holder.left() == 0);
    let account = Account::read(ledger, server, &first);
    assert_eq!((account.succeeded(), account.starts), (false, 1), "{}", account.status);
    // Whoever slept works again, and what it ran before does not.
    drop(other);
    let third = submit(ledger, server, &format!("third-{round}"), Kind::Locked(round as u64), 1);
    assert_eq!(server.wait(&third.id)["status"], "SUCCEEDED");
    let locks = ledger.locks();
    assert_eq!((locks.held, locks.late), (3, late), "three held it, one after the other");
    woke
}

#[test]
fn promise_04_a_frozen_worker_does_not_keep_its_lock() {
    let rounds = count(1, 20);
    let (server, dir) = (server(), tempfile::tempdir().expect("a temporary directory"));
    let setup = setup(&server, "2");
    let mut woke = 0;
    for round in 0..2 * rounds {
        let frozen = if round < rounds { Frozen::Alone } else { Frozen::Whole };
        let ledger = Ledger::new(&dir.path().join(format!("books-{round}")));
        woke += freeze(&server, &setup, &ledger, round, frozen);
    }
    promise(
        4,
        "a frozen worker does not keep its lock",
        format!("{} workers frozen past their leases", 2 * rounds),
        format!("{} holds, none by two; {woke} steps by what woke with its machine, until it was ended", 6 * rounds),
    );
}
