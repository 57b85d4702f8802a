//! Work whose commands keep books themselves: every step of every attempt is a line in a file, written by the command as it happens. Afterwards the
//! server's word is compared with the books: what it calls done was done, once, and its log has every line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Server;
use super::http::Http;

/// How an execution is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It must never run twice.
    Once,
    /// It may be tried again.
    Retried,
    /// It holds one of some locks, and must never run twice.
    Locked(u64),
    /// It holds one of some locks, and may be tried again.
    LockedRetried(u64),
}

/// How many further attempts those have that have any. More than anybody could take from them.
const RETRIES: u32 = 12;

impl Kind {
    fn retries(self) -> u32 {
        if matches!(self, Self::Retried | Self::LockedRetried(_)) { RETRIES } else { 0 }
    }

    fn lock(self) -> Option<String> {
        match self {
            Self::Locked(number) | Self::LockedRetried(number) => Some(format!("lock-{number}")),
            Self::Once | Self::Retried => None,
        }
    }
}

/// One execution, as it was asked for and acknowledged.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: String,
    pub name: String,
    pub kind: Kind,
    pub steps: usize,
    pub at: SystemTime,
}

/// A step that a command took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub attempt: u32,
    pub number: usize,
    /// The network of the machine that it was taken on.
    pub network: String,
}

/// The books of some executions.
pub struct Ledger {
    dir: PathBuf,
}

impl Ledger {
    pub fn new(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        Self { dir: dir.to_owned() }
    }

    /// Submits work until it is acknowledged: the server may be gone meanwhile. `None` where it should be given up.
    pub fn submit(&self, http: &mut Http, name: &str, kind: Kind, steps: usize, give_up: impl Fn() -> bool) -> Option<Entry> {
        let mut request = json!({"command": self.command(name, kind, steps), "retries": kind.retries()});
        if let Some(lock) = kind.lock() {
            (request["lock"], request["lock_wait"]) = (json!(lock), json!(3600));
        }
        let at = SystemTime::now();
        loop {
            match http.try_post("/api/v1/run", &request, &[("idempotency-key", name)]) {
                Ok(answer) if answer.status == 202 => {
                    let id = answer.json()["execution_id"].as_str().expect("an id").to_owned();
                    return Some(Entry { id, name: name.to_owned(), kind, steps, at });
                }
                Ok(answer) => assert!(matches!(answer.status, 429 | 503), "{}: {}", answer.status, answer.text()),
                Err(_) => {}
            }
            if give_up() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes down each step, then says it, then rests.
    fn command(&self, name: &str, kind: Kind, steps: usize) -> String {
        let held = kind.lock().map(|lock| format!("echo \"$RUNVOY_LOCK_FENCE $RUNVOY_EXECUTION_ID\" >> {lock}; ")).unwrap_or_default();
        format!(
            "cd {} || exit 70; n=$(readlink /proc/self/ns/net); i=0; while [ $i -lt {steps} ]; do i=$((i+1)); \
             echo \"$RUNVOY_ATTEMPT $i $n\" >> {name}; {held}echo \"$RUNVOY_ATTEMPT $i\"; sleep 0.1; done",
            self.dir.display()
        )
    }

    /// The steps of an execution, in the order in which they were taken.
    pub fn steps(&self, entry: &Entry) -> Vec<Step> {
        let text = std::fs::read_to_string(self.dir.join(&entry.name)).unwrap_or_default();
        let step = |line: &str| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap_or_else(|| panic!("{}: {line:?}", entry.name));
            let (attempt, number) = (word().parse().expect("an attempt"), word().parse().expect("a number"));
            Step { attempt, number, network: word().to_owned() }
        };
        text.lines().map(step).collect()
    }

    /// When an execution took its last step.
    pub fn last_step_at(&self, entry: &Entry) -> Option<SystemTime> {
        std::fs::metadata(self.dir.join(&entry.name)).and_then(|file| file.modified()).ok()
    }

    /// A lock was never with two: who had it later has a higher fence, and nobody acts under a fence that somebody else had, or after a higher one.
    pub fn check_locks(&self) -> usize {
        let Locks { held, late } = self.locks();
        assert!(late.is_empty(), "acted after a higher fence was given: {late:?}");
        held
    }

    /// Who held locks, and who acted longer than that. No fence is given twice, and none after a higher one.
    pub fn locks(&self) -> Locks {
        let mut locks = Locks::default();
        let files = std::fs::read_dir(&self.dir).expect("the books").filter_map(Result::ok);
        for file in files.filter(|file| file.file_name().to_string_lossy().starts_with("lock-")) {
            let text = std::fs::read_to_string(file.path()).expect("the books");
            let mut holders: BTreeMap<u64, &str> = BTreeMap::new();
            for line in text.lines() {
                let (fence, id) = line.split_once(' ').expect("a fence and an id");
                let fence: u64 = fence.parse().expect("a fence");
                let highest = holders.keys().next_back().copied().unwrap_or(0);
                let is_new = !holders.contains_key(&fence);
                assert!(!is_new || fence > highest, "{:?}: {id} was given fence {fence} after {highest}", file.path());
                assert_eq!(*holders.entry(fence).or_insert(id), id, "{:?}: fence {fence} was given twice", file.path());
                if fence < highest {
                    locks.late.push(id.to_owned());
                }
            }
            locks.held += holders.len();
        }
        locks
    }
}

/// What the books say of locks.
#[derive(Debug, Default)]
pub struct Locks {
    /// How often one was held.
    pub held: usize,
    /// Who took a step under a fence after a higher one was given: an execution for each such step.
    pub late: Vec<String>,
}

/// What became of an execution, by the books and by the server.
pub struct Account {
    pub status: Value,
    pub steps: Vec<Step>,
    /// How often its command was started.
    pub starts: usize,
    /// The steps of each attempt that its log has.
    pub logged: BTreeMap<u32, usize>,
}

impl Account {
    /// Reads both, and checks what always holds: one end, attempts one after the other, every line of the log once and in order.
    pub fn read(ledger: &Ledger, server: &Server, entry: &Entry) -> Self {
        let (status, steps) = (server.status(&entry.id), ledger.steps(entry));
        let name = &entry.name;
        assert!(steps.is_sorted_by_key(|step| step.attempt), "{name}: two attempts ran at once: {steps:?}");
        let (mut done, mut starts) = (BTreeMap::new(), 0);
        for step in &steps {
            starts += usize::from(step.number == 1);
            let count: &mut usize = done.entry(step.attempt).or_default();
            *count += 1;
            assert_eq!(*count, step.number, "{name}: one attempt ran twice: {steps:?}");
        }
        let raw = server.raw(&entry.id);
        let logged = logged(name, &String::from_utf8_lossy(&raw));
        for (attempt, lines) in &logged {
            let steps = done.get(attempt).copied().unwrap_or(0);
            assert!(*lines <= steps, "{name}: attempt {attempt} said {lines} things and did {steps}");
        }
        assert_eq!(ends(server, &entry.id), 1, "{name}: {} is told once", entry.id);
        let this = Self { status, steps, starts, logged };
        this.check_end(entry, &done);
        this
    }

    fn check_end(&self, entry: &Entry, done: &BTreeMap<u32, usize>) {
        let Entry { name, kind, steps, .. } = entry;
        let status = &self.status;
        match status["status"].as_str() {
            Some("SUCCEEDED") => {
                let (attempt, last) = done.last_key_value().unwrap_or_else(|| panic!("{name} did nothing: {status}"));
                assert_eq!(last, steps, "{name} did not do all: {status}");
                assert_eq!(self.logged.get(attempt), Some(steps), "{name}: the log of attempt {attempt} is not complete");
            }
            Some("FAILED") => assert_eq!(status["end_reason"]["code"], "worker_lost", "{name}: {status}"),
            _ => panic!("{name}: {status}"),
        }
        assert!(self.starts <= 1 + kind.retries() as usize, "{name} was started {} times: {status}", self.starts);
    }

    pub fn succeeded(&self) -> bool {
        self.status["status"] == "SUCCEEDED"
    }

    /// The machine of an attempt.
    pub fn network(&self, attempt: u32) -> Option<&str> {
        self.steps.iter().find(|step| step.attempt == attempt).map(|step| step.network.as_str())
    }

    /// The attempts that did something, each with the number of its steps.
    pub fn attempts(&self) -> BTreeMap<u32, usize> {
        self.steps.iter().map(|step| (step.attempt, step.number)).collect()
    }
}

/// How many steps of each attempt a log has. Each is there once, and none is missing before the last.
fn logged(name: &str, log: &str) -> BTreeMap<u32, usize> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for line in log.lines() {
        let (attempt, number) = line.split_once(' ').unwrap_or_else(|| panic!("{name}: {line:?} in its log"));
        let count = counts.entry(attempt.parse().expect("an attempt")).or_default();
        *count += 1;
        assert_eq!(number.parse(), Ok(*count), "{name}: line {line:?} of its log: {log}");
    }
    counts
}

/// How often the end of an execution was told.
fn ends(server: &Server, id: &str) -> usize {
    let events = server.get(&format!("/api/v1/events?entity=TASK:{id}&order=asc&limit=1000")).json();
    let ends = BTreeSet::from(["Task Completed", "Task Failed", "Task Timeout", "Task Stopped"]);
    let is_end = |event: &&Value| event["properties"]["late"] != true && ends.contains(event["eventType"].as_str().expect("a type"));
    events.as_array().expect("events").iter().filter(is_end).count()
}
