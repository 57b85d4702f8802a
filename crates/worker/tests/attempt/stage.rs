//! A worker with one execution to run, and whoever hands it out and keeps what comes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::chain::ChainHead;
use runvoy_model::command::{EndAttempt, Extend, Extended, Fence, Outcome};
use runvoy_model::execution::{Execution, KillRequest, Lease, LockClaim};
use runvoy_model::git::{GitSource, Reach};
use runvoy_model::id::{ExecutionId, JobId, LeaseId, WorkerId};
use runvoy_model::job::{Payload, TaskRef};
use runvoy_model::log::{Block, Stream};
use runvoy_model::name::Name;
use runvoy_model::spec::{DEFAULT_PRIORITY, LOCAL_IMAGE, Spec};
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::clock::Clock;
use runvoy_ports::lease::{LeaseError, Leases, Material, Materials};
use runvoy_ports::memory::{DEFAULT_BUDGET_BYTES, MemoryBudget};
use runvoy_ports::runner::{DiskSpace, Limits};
use runvoy_worker::{Config, DiskLimits, Git, OwnKey, Worker};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Mutex, oneshot, watch};

use crate::runner::GroupRunner;

/// What came of an attempt.
pub struct Played {
    pub outcome: Outcome,
    /// What else was told of its end.
    pub ended: EndAttempt,
    /// What the command said it does, as the extends told it, each once.
    pub activities: Vec<Value>,
    /// What was too large to be carried.
    pub blobs: Vec<Vec<u8>>,
    /// How much memory was reserved while the last of it was stored.
    pub reserved_bytes: usize,
    /// Every record with its stream, a line each.
    pub log: String,
    /// How many commands were started.
    pub starts: usize,
    /// How many of them were to have a terminal.
    pub terminals: usize,
    /// No work directory was left when its end was told.
    pub was_clean_at_end: bool,
}

impl Played {
    pub fn git_failure(&self) -> &str {
        match &self.outcome {
            Outcome::GitFailed { message, .. } => message,
            other => panic!("not a failure of git: {other:?}\n{}", self.log),
        }
    }

    pub fn was_ended_before_its_start(&self) -> bool {
        matches!(&self.outcome, Outcome::StartFailed { message, .. } if message == "ana@example.com killed it before its command started")
    }

    pub fn assert_exit(&self, code: i32) -> &Self {
        assert_eq!(self.outcome, Outcome::Exited { code, after_kill: false }, "{}", self.log);
        self
    }
}

/// An execution to play, and the world it is played in.
pub struct Stage {
    pub spec: Spec,
    pub git: Git,
    pub materials: Result<Materials, String>,
    /// Asked for as soon as the log holds this.
    pub kill_at: Option<&'static str>,
    /// Materials are handed out after so many extends.
    pub extends_before_materials: usize,
    /// Nobody answers whoever asks for materials.
    pub unanswered_materials: bool,
    /// The first so many puts of a blob are not answered.
    pub unanswered_puts: usize,
    /// A blob is taken after so many extends more.
    pub extends_before_put: usize,
    /// Something in every command goes over its memory limit.
    pub oom_kills: bool,
    /// As soon as the log holds this, no extend is answered any more.
    pub cut_off_at: Option<&'static str>,
    /// The machine sleeps for so long when that is so.
    pub sleeps_s: u64,
    /// Others could be given it.
    pub yields: bool,
    /// What nobody else is given may go on for so long without the server.
    pub lost_after: Option<Duration>,
    /// The server says that it does not take the worker's key.
    pub is_denied: bool,
    /// The key that the worker shows its server.
    pub own_key: Option<&'static str>,
    /// Records with this text are taken after so many extends more; then this file is made.
    pub holds: Option<(&'static str, usize, PathBuf)>,
    /// The first so many ends hang until the server was told so often that the lease lives on.
    pub extends_before_end: usize,
    /// As soon as the command has ended, the worker is told to end everything.
    pub is_stopped: bool,
    /// How much of a disk that is full its command may take.
    pub disk: DiskLimits,
    /// What its command is said to have written, whatever it wrote.
    pub said_to_have_written: Option<u64>,
    /// How long its command has after `SIGTERM`.
    pub grace: Duration,
    /// A kill is asked for once its output is about to be stored.
    pub kill_in_put: bool,
    /// Its end is not answered before its work directory is gone.
    pub end_waits_for_space: bool,
}

/// A disk with nothing left.
const FULL: DiskSpace = DiskSpace { free_bytes: 0, total_bytes: 1 << 30, set_aside_bytes: 0 };

impl Stage {
    pub fn new(command: &str) -> Self {
        let spec = Spec {
            command: command.to_owned(),
            args: None,
            image: LOCAL_IMAGE.to_owned(),
            env: BTreeMap::new(),
            timeout_ms: None,
            lock: None,
            lock_wait_ms: None,
            queue: name("default"),
            priority: DEFAULT_PRIORITY,
            labels: BTreeMap::new(),
            worker_labels: Default::default(),
            terminal: false,
            retries: 0,
            redeliveries: 0,
            secrets: Vec::new(),
            git: None,
            task: None,
            playbook: None,
            rpc: None,
            container: None,
        };
        let git = Git { reach: Reach::Private, ca_file: None };
        let (unanswered_puts, extends_before_put, extends_before_materials) = (0, 0, 0);
        let materials = Ok(Materials::default());
        Self {
            spec,
            git,
            materials,
            kill_at: None,
            extends_before_materials,
            unanswered_materials: false,
            unanswered_puts,
            extends_before_put,
            oom_kills: false,
            cut_off_at: None,
            sleeps_s: 0,
            yields: false,
            lost_after: None,
            is_denied: false,
            own_key: None,
            holds: None,
            extends_before_end: 0,
            is_stopped: false,
            disk: DiskLimits::default(),
            said_to_have_written: None,
            grace: Duration::from_secs(1),
            kill_in_put: false,
            end_waits_for_space: false,
        }
    }

    pub fn repo(mut self, repo: &str) -> Self {
        self.spec.git = Some(GitSource { repo: repo.to_owned(), reference: None, path: None, token: None });
        self
    }

    pub fn reference(mut self, reference: &str) -> Self {
        self.spec.git.as_mut().expect("a repository").reference = Some(reference.to_owned());
        self
    }

    pub fn path(mut self, path: &str) -> Self {
        self.spec.git.as_mut().expect("a repository").path = Some(path.to_owned());
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.spec.env.insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn secret(mut self, secret: &str, key_name: &str, value: &str) -> Self {
        self.spec.secrets.push(name(secret));
        self.materials.as_mut().expect("materials").secrets.push(material(secret, key_name, value));
        self
    }

    pub fn token(mut self, value: &str) -> Self {
        self.spec.git.as_mut().expect("a repository").token = Some(name("tok"));
        self.materials.as_mut().expect("materials").git_token = Some(material("tok", "TOK", value));
        self
    }

    /// A task of a job that is given this.
    pub fn task(mut self, input: &str) -> Self {
        self.spec.task = Some(TaskRef { job: JobId::from_bytes([4; 16]), task: name("build"), generation: 1, name: None });
        self.materials.as_mut().expect("materials").input = Some(input.as_bytes().to_vec());
        self
    }

    pub async fn play(self) -> Played {
        self.play_out().await.expect("it is told")
    }

    /// Plays it to its end, which may be one that nobody is told of.
    pub async fn play_out(self) -> Option<Played> {
        let root = TempDir::new().expect("a directory");
        let runner = Arc::new(GroupRunner {
            root: root.path().to_owned(),
            oom_kills: self.oom_kills,
            disk: Some(FULL),
            usage: self.said_to_have_written,
            ..GroupRunner::default()
        });
        let (done, ended) = oneshot::channel();
        let mut execution = execution(self.spec);
        let lost_after = self.lost_after.filter(|_| execution.spec.lock.is_none() && execution.spec.retries == 0);
        let lease = execution.lease.as_mut().expect("it is leased");
        lease.lost_after_ms = lost_after.map(|time| u64::try_from(time.as_millis()).expect("a short time"));
        let (clock, memory) = (Still::default(), MemoryBudget::default());
        let leases = Arc::new(Desk {
            execution: execution.clone(),
            sleeps_s: self.sleeps_s,
            asleep_s: Arc::clone(&clock.asleep_s),
            materials: self.materials,
            kill_at: self.kill_at,
            cut_off_at: self.cut_off_at,
            extends_before_materials: self.extends_before_materials,
            unanswered_materials: self.unanswered_materials,
            unanswered_puts: self.unanswered_puts.into(),
            extends_before_put: self.extends_before_put,
            holds: self.holds,
            extends_before_end: self.extends_before_end,
            kill_in_put: self.kill_in_put,
            end_waits_for_space: self.end_waits_for_space,
            lost_end: self.lost_after.is_some(),
            is_denied: self.is_denied,
            left: AtomicUsize::new(0),
            put_after: OnceLock::new(),
            extends: watch::Sender::new(0),
            log: Mutex::default(),
            activities: Mutex::default(),
            blobs: Mutex::default(),
            memory: memory.clone(),
            reserved_bytes: AtomicUsize::new(0),
            done: Mutex::new(Some(done)),
            root: root.path().to_owned(),
            was_clean_at_end: AtomicBool::new(false),
        });
        let config = Config {
            concurrency: 1,
            lease_ttl: Duration::from_millis(300),
            yields_before: self.yields.then_some(Duration::from_millis(100)),
            lost_after: self.lost_after,
            output_patience: Duration::from_secs(10),
            grace: self.grace,
            home: root.path().display().to_string(),
            host: "test".to_owned(),
            limits: Limits::default(),
            git: self.git,
            own_key: self.own_key.map(OwnKey::new),
            memory,
            disk: self.disk,
        };
        let worker = Worker::new(Arc::clone(&leases) as Arc<dyn Leases>, Arc::clone(&runner) as _, Arc::new(clock), config);
        worker.slots().reserve().expect("a free slot").start(execution);
        tokio::spawn(Arc::clone(&worker).run());
        let gone = async {
            while self.is_stopped && runner.exits.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            if self.is_stopped {
                worker.stop(Duration::ZERO).await;
            }
            while worker.running() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it ends");
        worker.stop(Duration::from_secs(10)).await;
        leases.done.lock().await.take();
        assert_eq!(leases.left.load(Ordering::SeqCst), 1, "an attempt is left once, however it ended");
        let ended = ended.await.ok();
        let left = std::fs::read_dir(root.path()).expect("the root").filter_map(Result::ok).filter(|entry| entry.path().is_dir()).count();
        assert_eq!(left, 0, "the work directory is gone");
        let log = leases.log.lock().await.clone();
        let (activities, blobs) = (leases.activities.lock().await.clone(), leases.blobs.lock().await.clone());
        let (starts, terminals) = (runner.starts.load(Ordering::SeqCst), runner.terminals.load(Ordering::SeqCst));
        assert_eq!(leases.memory.free_bytes(), DEFAULT_BUDGET_BYTES, "all memory was given back");
        let reserved_bytes = leases.reserved_bytes.load(Ordering::SeqCst);
        let was_clean_at_end = leases.was_clean_at_end.load(Ordering::SeqCst);
        ended.map(|ended| Played {
            outcome: ended.outcome.clone(),
            ended,
            activities,
            blobs,
            reserved_bytes,
            log,
            starts,
            terminals,
            was_clean_at_end,
        })
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn material(secret: &str, key_name: &str, value: &str) -> Material {
    Material { name: name(secret), key_name: key_name.to_owned(), value: value.to_owned() }
}

/// A clock that stands still: nothing here depends on the time of day.
#[derive(Default)]
pub struct Still {
    asleep_s: Arc<AtomicU64>,
}

impl Clock for Still {
    fn now(&self) -> UnixMs {
        UnixMs(1_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn asleep(&self) -> Duration {
        Duration::from_secs(self.asleep_s.load(Ordering::SeqCst))
    }
}

struct Desk {
    execution: Execution,
    sleeps_s: u64,
    asleep_s: Arc<AtomicU64>,
    materials: Result<Materials, String>,
    kill_at: Option<&'static str>,
    cut_off_at: Option<&'static str>,
    extends_before_materials: usize,
    unanswered_materials: bool,
    unanswered_puts: AtomicUsize,
    extends_before_put: usize,
    holds: Option<(&'static str, usize, PathBuf)>,
    extends_before_end: usize,
    kill_in_put: bool,
    end_waits_for_space: bool,
    lost_end: bool,
    is_denied: bool,
    /// How often an attempt was left to itself.
    left: AtomicUsize,
    /// So many extends there were, and are to be, when the first blob came.
    put_after: OnceLock<usize>,
    extends: watch::Sender<usize>,
    log: Mutex<String>,
    activities: Mutex<Vec<Value>>,
    blobs: Mutex<Vec<Vec<u8>>>,
    memory: MemoryBudget,
    reserved_bytes: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<EndAttempt>>>,
    root: PathBuf,
    /// No work directory was left when the end was told.
    was_clean_at_end: AtomicBool,
}

impl Desk {
    /// No work directory is left.
    fn is_clean(&self) -> bool {
        std::fs::read_dir(&self.root).expect("the root").flatten().all(|entry| !entry.path().is_dir())
    }
}

#[async_trait]
impl Leases for Desk {
    async fn wait_for_work(&self) {
        std::future::pending().await
    }

    async fn lease(&self, _: usize) -> Result<Vec<Execution>, LeaseError> {
        Ok(Vec::new())
    }

    async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError> {
        assert_eq!(fence.execution, self.execution.id);
        if self.unanswered_materials {
            return Err(LeaseError::Unavailable("no answer in time".into()));
        }
        let enough = |extends: &usize| *extends >= self.extends_before_materials;
        self.extends.subscribe().wait_for(enough).await.expect("it is not dropped");
        self.materials.clone().map_err(LeaseError::Refused)
    }

    async fn put_blob(&self, fence: Fence, bytes: Vec<u8>) -> Result<Payload, LeaseError> {
        assert_eq!(fence.execution, self.execution.id);
        if self.unanswered_puts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(LeaseError::Unavailable("no answer in time".into()));
        }
        let until = *self.put_after.get_or_init(|| *self.extends.borrow() + self.extends_before_put);
        self.extends.subscribe().wait_for(|extends| *extends >= until).await.expect("it is not dropped");
        let length = bytes.len() as u64;
        self.reserved_bytes.store(DEFAULT_BUDGET_BYTES - self.memory.free_bytes(), Ordering::SeqCst);
        self.blobs.lock().await.push(bytes);
        Ok(Payload::Blob { key: "k".to_owned(), bytes: length })
    }

    async fn extend(&self, extend: Extend) -> Result<Extended, LeaseError> {
        let mut activities = self.activities.lock().await;
        if let Some(said) = extend.activity.filter(|said| activities.last() != Some(said)) {
            activities.push(said);
        }
        drop(activities);
        self.extends.send_modify(|extends| *extends += 1);
        if let Some(text) = self.cut_off_at
            && self.log.lock().await.contains(text)
        {
            self.asleep_s.store(self.sleeps_s, Ordering::SeqCst);
            return Err(LeaseError::Unavailable("cut off".into()));
        }
        let is_time = match self.kill_at {
            Some(text) => self.log.lock().await.contains(text),
            None => self.kill_in_put && self.put_after.get().is_some(),
        };
        let kill = is_time.then(|| KillRequest { by: "ana@example.com".to_owned(), at: UnixMs(0), force: false });
        Ok(Extended { ttl_ms: extend.ttl_ms, kill })
    }

    async fn append(&self, _: Fence, first_seq: u64, block: Block) -> Result<u64, LeaseError> {
        let held = |text: &str| block.records().any(|record| String::from_utf8_lossy(record.expect("a good record").bytes).contains(text));
        if let Some((_, extends_more, file)) = self.holds.as_ref().filter(|(text, ..)| held(text)) {
            let until = *self.extends.borrow() + extends_more;
            self.extends.subscribe().wait_for(|extends| *extends >= until).await.expect("it is not dropped");
            std::fs::write(file, "").expect("a file");
        }
        let mut log = self.log.lock().await;
        let mut next = first_seq;
        for record in block.records() {
            let record = record.expect("a good record");
            let stream = match record.stream {
                Stream::Stdout => "out",
                Stream::Stderr => "err",
                Stream::Platform => "platform",
            };
            log.push_str(&format!("{stream}: {}\n", String::from_utf8_lossy(record.bytes)));
            next += 1;
        }
        Ok(next)
    }

    async fn finish(&self, ended: EndAttempt) -> Result<Execution, LeaseError> {
        let until = *self.extends.borrow() + self.extends_before_end;
        self.extends.subscribe().wait_for(|extends| *extends >= until).await.expect("it is not dropped");
        while self.end_waits_for_space && !self.is_clean() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if let Some(text) = self.cut_off_at
            && self.lost_end
            && self.log.lock().await.contains(text)
        {
            return Err(LeaseError::Unavailable("cut off".into()));
        }
        if let Some(done) = self.done.lock().await.take() {
            self.was_clean_at_end.store(self.is_clean(), Ordering::SeqCst);
            drop(done.send(ended));
        }
        Ok(self.execution.clone())
    }

    fn is_denied(&self) -> bool {
        self.is_denied
    }

    fn leave(&self, fence: Fence) {
        assert_eq!(fence.execution, self.execution.id);
        self.left.fetch_add(1, Ordering::SeqCst);
    }
}

fn execution(spec: Spec) -> Execution {
    let at = UnixMs(1_000);
    let lease = Lease {
        id: LeaseId::from_bytes([2; 16]),
        attempt: 1,
        worker: WorkerId::from_bytes([3; 16]),
        in_process: true,
        ttl_ms: 1_000,
        deadline: at,
        begun: true,
        at_once: false,
        extensions: 0,
        heartbeat_at: None,
        heartbeats: 0,
        permit: false,
        account: None,
        lost_after_ms: None,
        preparing: None,
    };
    Execution {
        id: ExecutionId::from_bytes([1; 16]),
        spec,
        created_by: "ana@example.com".to_owned(),
        owned_by: Vec::new(),
        created_by_request_id: String::new(),
        modified_by_request_id: String::new(),
        submitted_at: at,
        status: Status::Running,
        attempt: 1,
        ready_at: at,
        started_at: Some(at),
        attempt_started_at: Some(at),
        completed_at: None,
        exit_code: None,
        end_reason: None,
        lease: Some(lease),
        ran_on: None,
        kill: None,
        lock: LockClaim::None,
        log_end: None,
        cost_micro_usd: None,
        dead: false,
        error_category: None,
        server_deaths: 0,
        redriven: None,
        chain: ChainHead::default(),
        version: 1,
    }
}
