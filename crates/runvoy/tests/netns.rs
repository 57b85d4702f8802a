//! Machines that are apart: a server and two workers in network namespaces of their own. Links are cut and healed, processes are killed, on all
//! machines at once, while work flows. Whatever happened, nothing that was acknowledged is lost, nothing runs twice unasked, every end is true and every
//! log complete.

mod harness;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use self::harness::chance::Chance;
use self::harness::http::Http;
use self::harness::ledger::{Account, Entry, Kind, Ledger};
use self::harness::network::{Cut, Network};
use self::harness::worker::WorkerSetup;
use self::harness::{Server, Setup, binary, count, eventually, eventually_within, process, promise};

/// The server's machine; the workers' are the next ones.
const SERVER: usize = 0;
const WORKERS: [usize; 2] = [1, 2];
/// How much each worker runs at once.
const CONCURRENCY: &str = "4";
/// Longer than a lease and the margin after which it is acted on.
const BEYOND_LEASE_MS: (u64, u64) = (13_000, 15_000);

/// What was done to a machine, and when.
#[derive(Debug, Clone)]
struct Harm {
    network: String,
    is_kill: bool,
    from: SystemTime,
    to: SystemTime,
}

/// All machines, and what is done to them.
struct Fleet {
    network: Network,
    dir: PathBuf,
    server: Mutex<Server>,
    setups: Vec<WorkerSetup>,
    workers: Vec<Mutex<Child>>,
    harms: Mutex<Vec<Harm>>,
    /// How much is left to do.
    left: AtomicUsize,
}

impl Fleet {
    /// A server and its workers. This thread is on the server's machine from now on.
    fn start(dir: &Path) -> Self {
        let network = Network::new(1 + WORKERS.len());
        network.enter(SERVER);
        let server = start_server(&network, dir);
        let setups: Vec<WorkerSetup> = WORKERS
            .map(|machine| {
                let args = ["--lease", "2s", "--lost-after", "60s", "--concurrency", CONCURRENCY, "--grace", "200ms"];
                WorkerSetup::of(&server, &format!("worker-{machine}")).args(&args).wrapper(network.wrapper(machine))
            })
            .into();
        let workers = WORKERS.map(|machine| Mutex::new(start_worker(&setups[machine - 1], dir, machine))).into();
        let (harms, left) = (Mutex::default(), AtomicUsize::new(0));
        Self { network, dir: dir.to_owned(), server: Mutex::new(server), setups, workers, harms, left }
    }

    /// Whether there is another thing to do.
    fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Does things to a worker and its link until enough was done.
    fn harm_worker(&self, machine: usize, mut chance: Chance) {
        while self.take() {
            std::thread::sleep(chance.time(100, 1500));
            let from = SystemTime::now();
            let how = if chance.percent(50) { Cut::Silent } else { Cut::Carrier };
            let is_kill = chance.percent(50);
            match chance.below(100) {
                0..20 if is_kill => {
                    self.network.cut(machine, how);
                    std::thread::sleep(chance.time(0, 3000));
                    self.kill_worker(machine, &mut chance);
                    self.network.heal(machine);
                }
                _ if is_kill => self.kill_worker(machine, &mut chance),
                number => {
                    self.network.cut(machine, how);
                    std::thread::sleep(match number {
                        0..55 => chance.time(50, 1500),
                        55..85 => chance.time(1500, 4000),
                        _ => chance.time(BEYOND_LEASE_MS.0, BEYOND_LEASE_MS.1),
                    });
                    self.network.heal(machine);
                }
            }
            self.note(machine, is_kill, from);
        }
    }

    fn note(&self, machine: usize, is_kill: bool, from: SystemTime) {
        let network = self.network.identity(machine);
        self.harms.lock().expect("no panic").push(Harm { network, is_kill, from, to: SystemTime::now() });
    }

    /// Kills a worker and starts it again, at once or after a while.
    fn kill_worker(&self, machine: usize, chance: &mut Chance) {
        let mut worker = self.workers[machine - 1].lock().expect("no panic");
        process::signal(worker.id(), libc::SIGKILL);
        worker.wait().expect("it ends");
        if chance.percent(60) {
            // Nobody helps: the next start would.
            let there = || self.network.processes(machine);
            eventually_within(Duration::from_secs(5), "no descendant outlives its worker", || there().is_empty());
            let is_long = chance.percent(12);
            std::thread::sleep(if is_long { chance.time(BEYOND_LEASE_MS.0, BEYOND_LEASE_MS.1) } else { chance.time(0, 900) });
        }
        *worker = start_worker(&self.setups[machine - 1], &self.dir, machine);
    }

    /// Kills the server now and then until enough was done.
    fn harm_server(&self, mut chance: Chance) {
        while self.take() {
            std::thread::sleep(chance.time(300, 8000));
            let (mut server, from) = (self.server.lock().expect("no panic"), SystemTime::now());
            server.kill_9();
            std::thread::sleep(chance.time(0, 2000));
            *server = start_server(&self.network, &self.dir);
            self.note(SERVER, true, from);
        }
    }

    /// Submits work until nothing more is done to anybody.
    fn submit(&self, ledger: &Ledger, history: usize, over: &AtomicBool, mut chance: Chance) -> Vec<Entry> {
        let (url, key) = {
            let server = self.server.lock().expect("no panic");
            (server.url.clone(), server.key())
        };
        let mut http = Http::new(&url, Some(&key));
        let mut entries = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let kind = match chance.below(10) {
                0..4 => Kind::Once,
                4..8 => Kind::Retried,
                8 => Kind::Locked(chance.below(2)),
                _ => Kind::LockedRetried(chance.below(2)),
            };
            let most = if chance.percent(80) { 15 } else { 60 };
            let steps = 1 + chance.below(most) as usize;
            let name = format!("h{history}-{}", entries.len());
            entries.extend(ledger.submit(&mut http, &name, kind, steps, || over.load(Ordering::Relaxed)));
            std::thread::sleep(chance.time(100, 500));
        }
        entries
    }

    /// Waits until everything that was acknowledged has ended, and everything that was written has arrived.
    fn settle(&self, entries: &[Entry]) {
        let server = self.server.lock().expect("no panic");
        for entry in entries {
            let answer = server.get(&format!("/api/v1/executions/{}/status", entry.id));
            assert_eq!(answer.status, 200, "an acknowledged execution is gone: {entry:?}");
        }
        for entry in entries {
            server.wait(&entry.id);
        }
        for machine in WORKERS {
            let logs = work_dir(&self.dir, machine).join("wal");
            eventually("everything has arrived", || std::fs::read_dir(&logs).expect("the directory of logs").count() == 0);
        }
    }

    /// Compares the server's word with the books.
    fn check(&self, ledger: &Ledger, entries: &[Entry]) -> Tally {
        let server = self.server.lock().expect("no panic");
        let harms = self.harms.lock().expect("no panic").clone();
        let mut tally = Tally::default();
        for entry in entries {
            let account = Account::read(ledger, &server, entry);
            let last = ledger.last_step_at(entry).unwrap_or(entry.at);
            // A harm is felt a little later than it is done, and its end later still.
            let felt = |harm: &&Harm| harm.to + Duration::from_secs(3) >= entry.at && harm.from <= last + Duration::from_secs(3);
            let met: Vec<&Harm> = harms.iter().filter(felt).collect();
            check_excuse(entry, &account, &met);
            check_logs(entry, &account, &met);
            let repeats = account.starts.saturating_sub(1);
            let causes = met.iter().filter(|harm| harm.network != self.network.identity(SERVER)).count();
            assert!(repeats <= causes, "{}: {repeats} repeats, and only {met:?}", entry.name);
            tally.add(&account, repeats);
        }
        tally.locks = ledger.check_locks();
        tally
    }

    /// Ends all, and asks the files whether they agree with each other.
    fn end(self) {
        for machine in WORKERS {
            let mut worker = self.workers[machine - 1].lock().expect("no panic");
            process::signal(worker.id(), libc::SIGTERM);
            assert!(worker.wait().expect("it ends").success(), "a worker without work stops well");
            eventually("a machine is empty", || self.network.processes(machine).is_empty());
        }
        let mut server = self.server.lock().expect("no panic");
        server.stop();
        let mut command = std::process::Command::new(binary());
        command.args(["audit", "verify", "--state", "--json", "--data-dir"]).arg(&server.data).env_clear().env("HOME", &server.data);
        let output = command.output().expect("it runs");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(found["ok"], true, "{found}");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for worker in &self.workers {
            if let Ok(mut worker) = worker.lock() {
                worker.kill().ok();
                worker.wait().ok();
            }
        }
    }
}

/// Nothing fails without a reason: what runs on goes on through every cut, what may be tried again is tried again.
fn check_excuse(entry: &Entry, account: &Account, met: &[&Harm]) {
    if account.succeeded() {
        return;
    }
    let attempts = account.attempts();
    let network = attempts.keys().next_back().and_then(|attempt| account.network(*attempt));
    let on_it = |harm: &&&Harm| network.is_none_or(|network| harm.network == network);
    let excused = match entry.kind {
        Kind::Once => met.iter().filter(on_it).any(|harm| harm.is_kill || network.is_none()),
        Kind::Locked(_) => met.iter().any(|harm| on_it(&harm)),
        Kind::Retried | Kind::LockedRetried(_) => false,
    };
    assert!(excused, "{entry:?} failed without a reason: {}, {attempts:?} on {network:?}, {met:?}", account.status);
}

/// What a command said has arrived, unless its worker was killed with it.
fn check_logs(entry: &Entry, account: &Account, met: &[&Harm]) {
    for (attempt, done) in account.attempts() {
        let network = account.network(attempt).expect("it ran somewhere");
        if !met.iter().any(|harm| harm.is_kill && harm.network == network) {
            let said = account.logged.get(&attempt).copied().unwrap_or(0);
            // It may have been killed between writing down and saying.
            assert!(said + 1 >= done, "{}: attempt {attempt} did {done} things and {said} are in the log", entry.name);
        }
    }
}

/// What a history came to.
#[derive(Debug, Default)]
struct Tally {
    executions: usize,
    lost: usize,
    repeats: usize,
    locks: usize,
}

impl Tally {
    fn add(&mut self, account: &Account, repeats: usize) {
        self.executions += 1;
        self.lost += usize::from(!account.succeeded());
        self.repeats += repeats;
    }
}

fn start_server(network: &Network, dir: &Path) -> Server {
    let listen = format!("{}:7070", network.address(SERVER));
    Setup::default().arg("--no-worker").arg("--insecure").arg("--listen").arg(&listen).start_in(&dir.join("server"))
}

/// Starts a worker without waiting for it: its server may be gone.
fn start_worker(setup: &WorkerSetup, dir: &Path, machine: usize) -> Child {
    let mut child = setup.spawn_in(&work_dir(dir, machine));
    let (mut stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let log = std::env::var_os("RUNVOY_TEST_LOG").is_some();
    std::thread::spawn(move || {
        for line in std::io::BufRead::lines(std::io::BufReader::new(stderr)).map_while(Result::ok) {
            if log {
                eprintln!("worker {machine}: {line}");
            }
        }
    });
    child
}

fn work_dir(dir: &Path, machine: usize) -> PathBuf {
    dir.join(format!("worker-{machine}"))
}

/// Does so many things to all machines while work flows, then waits and checks.
fn play(fleet: &Fleet, ledger: &Ledger, history: usize, harms: usize, chance: &mut Chance) -> Tally {
    fleet.left.store(harms, Ordering::Relaxed);
    let over = AtomicBool::new(false);
    let entries = std::thread::scope(|scope| {
        let [first, second, third, fourth] = [chance.split(), chance.split(), chance.split(), chance.split()];
        let submitting = scope.spawn(|| fleet.submit(ledger, history, &over, first));
        let harming = [
            scope.spawn(|| fleet.harm_worker(WORKERS[0], second)),
            scope.spawn(|| fleet.harm_worker(WORKERS[1], third)),
            scope.spawn(|| fleet.harm_server(fourth)),
        ];
        let outcomes = harming.map(std::thread::ScopedJoinHandle::join);
        over.store(true, Ordering::Relaxed);
        let entries = submitting.join().expect("the client goes on");
        outcomes.into_iter().for_each(|outcome| outcome.expect("everybody goes on"));
        entries
    });
    assert!(!entries.is_empty(), "nothing was submitted");
    fleet.settle(&entries);
    fleet.check(ledger, &entries)
}

#[test]
fn promise_02_machines_apart_lose_nothing_and_run_nothing_twice_through_cuts_and_kills() {
    let (rounds, in_a_history) = (count(20, 200), 20);
    // A thread of its own: it moves to another machine for good.
    let told = std::thread::spawn(move || {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = Ledger::new(&dir.path().join("books"));
        let fleet = Fleet::start(dir.path());
        let mut chance = Chance::new();
        let mut sum = Tally::default();
        for history in 0..rounds / in_a_history {
            let tally = play(&fleet, &ledger, history, in_a_history, &mut chance);
            println!("history {history}: {tally:?}");
            sum.executions += tally.executions;
            sum.lost += tally.lost;
            sum.repeats += tally.repeats;
            sum.locks = tally.locks;
        }
        let (kills, servers, cuts) = {
            let (harms, server) = (fleet.harms.lock().expect("no panic"), fleet.network.identity(SERVER));
            let count = |is_counted: fn(&Harm, &str) -> bool| harms.iter().filter(|harm| is_counted(harm, &server)).count();
            let kills = count(|harm, server| harm.is_kill && harm.network != server);
            (kills, count(|harm, server| harm.network == server), count(|harm, _| !harm.is_kill))
        };
        fleet.end();
        (format!("{kills} workers and {servers} servers killed, {cuts} links cut, {} executions", sum.executions), sum)
    });
    let (count, sum) = told.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let result = format!(
        "0 lost unseen, {} lost with their worker, {} tried again, {} holds of locks, none by two",
        sum.lost, sum.repeats, sum.locks
    );
    promise(2, "machines apart: acknowledged work ends once and truly, its log complete", count, result);
}
