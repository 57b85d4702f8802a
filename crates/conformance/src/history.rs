//! Random histories, played on the reference and on another store at once: two workers, several submitters with keys and locks, people who
//! manage other people and things, lapses, repeats of earlier steps, crashes with a reopen, and a clock that jumps both ways. Every answer and, after every step, everything
//! that can be read must be equal. Ids and times come from the history, so nothing is left out of the comparison.

use runvoy_model::command::{Answer, Command, EndAttempt, Extend, Fence, Kill, LeaseRequest, LeaseTo, Outcome, Reap, Submit, SubmitKey};
use runvoy_model::id::{ExecutionId, JobId, LeaseId, StepId};
use runvoy_model::job::Payload;
use runvoy_model::redrive::{Fate, Letter, Redrive};
use runvoy_model::spec::{Labels, Needs, Spec};
use runvoy_model::step::{Actor, Audit, Step};
use runvoy_model::time::UnixMs;

use crate::chance::Chance;
use crate::dump::{Dump, QUEUES, assert_same_jobs, assert_same_records, jobs, records, standings};
use crate::foreman;
use crate::harness::{Records, TransactionalStore};
use crate::registrar;
use crate::stage::{BEGINNING, answered, fence_of, id_bytes, in_image, name, spec, worker_of};
use crate::state::assert_follows;

/// Plays one history on two fresh stores and panics, naming seed and step, where the one under test differs from the reference. Both make
/// their chains with [`AUDIT_KEY`](crate::harness::AUDIT_KEY).
pub async fn agree_with_reference(seed: u64, steps: usize, reference: &dyn TransactionalStore, harness: Records<'_>) {
    agree(seed, steps, reference, harness, Way::Sound).await;
}

/// The same for a store that is met through lost answers.
pub async fn agree_through_losses(seed: u64, steps: usize, reference: &dyn TransactionalStore, harness: Records<'_>) {
    agree(seed, steps, reference, harness, Way::Lossy).await;
}

/// What is between a store and who calls it.
#[derive(Clone, Copy)]
enum Way {
    Sound,
    /// Answers are lost: what was done is done again where nobody can know.
    Lossy,
}

impl Way {
    /// An answer as far as it can be compared: a step that its caller had to make twice says that it was repeated, which is true.
    fn compared(self, mut answer: Answer) -> Answer {
        if let (
            Answer::Submitted { repeated, .. }
            | Answer::Job { repeated, .. }
            | Answer::Redriven { repeated, .. }
            | Answer::Record { repeated, .. },
            Self::Lossy,
        ) = (&mut answer, self)
        {
            *repeated = false;
        }
        answer
    }

    /// An extension leaves no receipt: two of them do no harm, and are counted as two.
    fn leaves_out(self, command: &Command) -> bool {
        matches!((self, command), (Self::Lossy, Command::Extend(_)))
    }
}

async fn agree(seed: u64, steps: usize, reference: &dyn TransactionalStore, harness: Records<'_>, way: Way) {
    let mut history = History::new(seed);
    let mut compared = None;
    for number in 0..steps {
        let when = format!("history {seed}, after step {number}");
        match history.next() {
            Next::Reopen => harness.reopen().await,
            Next::Clock(ms) => history.now = history.now.plus_ms(ms),
            Next::Play(_, command) if way.leaves_out(&command) => {}
            Next::Play(step, command) => {
                let step = *step;
                let expected = answered(reference.apply(step.clone(), (*command).clone()).await);
                let got = answered(harness.store().apply(step.clone(), (*command).clone()).await);
                let (got, wanted) = (way.compared(got), way.compared(expected.clone()));
                assert_eq!(got, wanted, "history {seed}, step {number}: {command:?} was answered otherwise");
                if let Command::Change(..) = *command {
                    assert_same_records(&records(&*harness.store()).await, &records(reference).await, &when);
                    assert_eq!(standings(&*harness.store()).await, standings(reference).await, "{when}: incidents stand otherwise");
                }
                history.learn(step, *command, &expected);
            }
        }
        let got = Dump::with_events_after(&*harness.store(), compared).await;
        let expected = Dump::with_events_after(reference, compared).await;
        got.assert_same(&expected, &when);
        assert_same_jobs(&jobs(&*harness.store()).await, &jobs(reference).await, &when);
        compared = expected.events.last().map(|stored| stored.place).or(compared);
    }
    let when = format!("history {seed}, at its end");
    Dump::of(&*harness.store()).await.assert_same(&Dump::of(reference).await, &when);
    assert_same_records(&records(&*harness.store()).await, &records(reference).await, &when);
    assert_follows(&*harness.store(), &when).await;
}

enum Next {
    Play(Box<Step>, Box<Command>),
    Reopen,
    Clock(i64),
}

/// What a history knows of itself; chance decides how it goes on.
struct History {
    chance: Chance,
    /// How many of what people manage change for a hundred other steps.
    changes: usize,
    /// How many steps are about jobs for a hundred others.
    jobs_of_hundred: usize,
    now: UnixMs,
    made: u64,
    executions: Vec<ExecutionId>,
    /// Some that were given up, and may run again since.
    dead: Vec<ExecutionId>,
    jobs: Vec<JobId>,
    fences: Vec<Fence>,
    played: Vec<(Step, Command)>,
}

impl History {
    const fn new(seed: u64) -> Self {
        // Every fourth is mostly about people.
        let changes = if seed % 4 == 3 { 200 } else { 10 };
        // Every fourth has many jobs.
        let jobs_of_hundred = if seed % 4 == 1 { 40 } else { 8 };
        let chance = Chance::new(seed);
        Self {
            chance,
            changes,
            jobs_of_hundred,
            now: BEGINNING,
            made: 0,
            executions: Vec::new(),
            dead: Vec::new(),
            jobs: Vec::new(),
            fences: Vec::new(),
            played: Vec::new(),
        }
    }

    fn next(&mut self) -> Next {
        let command = match self.chance.below(100 + self.jobs_of_hundred + self.changes) {
            0..22 => self.submit(),
            22..42 => self.lease(),
            42..49 => self.fence().map(Command::Begin),
            49 => self.fence().map(Command::Send),
            50..55 => self.extend(),
            55 => self.fence().map(Command::GiveBack),
            56 => self.fence().map(Command::Unsend),
            57..71 => self.end(),
            71..77 => self.execution().map(|execution| Command::Kill(Kill { execution, force: execution.as_bytes()[15] % 2 == 0 })),
            77..82 => self.reap(),
            82..84 => self.execution().map(|id| Command::ConfirmKill(id, 2)),
            84..86 => self.execution().map(Command::ExpireWait),
            86..88 => Some(Command::ReleaseLock(name(&format!("lock-{}", self.chance.below(3))))),
            88..92 => return self.repeat(),
            92..94 => return Next::Reopen,
            other @ 100.. if other < 100 + self.jobs_of_hundred => Some(self.job()),
            100.. => Some(registrar::change(&mut self.chance, self.now)),
            94..96 => self.redrive(),
            _ => return Next::Clock(self.jump()),
        };
        match command {
            Some(command) => Next::Play(Box::new(self.step()), Box::new(command)),
            None => Next::Clock(1_000),
        }
    }

    fn learn(&mut self, step: Step, command: Command, answer: &Answer) {
        match answer {
            Answer::Submitted { execution, repeated: false } => {
                self.executions.push(execution.id);
                self.fences.extend(execution.lease.is_some().then(|| fence_of(execution)));
            }
            Answer::Leased(executions) => {
                let tasks = executions.iter().filter(|execution| execution.spec.task.is_some());
                self.executions.extend(tasks.map(|execution| execution.id));
                self.fences.extend(executions.iter().map(fence_of));
            }
            Answer::Ended(execution) if execution.dead => self.dead.push(execution.id),
            Answer::Redriven { letters, repeated: false } => {
                let new = letters.iter().filter_map(|letter| match letter.fate {
                    Fate::Execution(id) if !self.executions.contains(&id) => Some(id),
                    _ => None,
                });
                self.executions.extend(new.collect::<Vec<_>>());
            }
            Answer::Job { job, .. } if !self.jobs.contains(&job.id) => self.jobs.push(job.id),
            _ => {}
        }
        self.played.push((step, command));
    }

    fn fresh(&mut self) -> [u8; 16] {
        self.made += 1;
        // Some ids are older than the ones before them, as those of a second server or after a clock step are.
        let back = if self.chance.percent(5) { 5_000 } else { 0 };
        id_bytes(self.now.plus_ms(-back), self.made)
    }

    fn step(&mut self) -> Step {
        let id = StepId::from_bytes(self.fresh());
        let user = ["ann@x", "bob@x", "carl@x"][self.chance.below(3)];
        let (actor, audit) = match self.chance.below(3) {
            0 => (Actor::System("reaper"), None),
            1 => (Actor::Worker(worker_of(1).id), None),
            _ => (
                Actor::User { email: user.into() },
                Some(Audit { action: "executions.run".into(), from: "127.0.0.1".into(), ..Audit::default() }),
            ),
        };
        Step { id, at: self.now, actor, request_id: id.to_string(), audit, authority: None }
    }

    /// Something recent more often than something old.
    fn execution(&mut self) -> Option<ExecutionId> {
        let recent = self.executions.len().saturating_sub(6);
        let from = if self.chance.percent(70) { &self.executions[recent..] } else { &self.executions };
        self.chance.pick(from).copied()
    }

    fn fence(&mut self) -> Option<Fence> {
        let recent = self.fences.len().saturating_sub(5);
        let from = if self.chance.percent(80) { &self.fences[recent..] } else { &self.fences };
        self.chance.pick(from).copied()
    }

    fn jump(&mut self) -> i64 {
        *self.chance.pick(&[1, 700, 30_000, 61_000, 400_000, 3_600_000, 86_400_000, -1, -700, -3_600_000, -86_400_000]).expect("jumps")
    }

    fn spec(&mut self) -> Spec {
        let chance = &mut self.chance;
        let lock = chance.percent(50).then(|| name(&format!("lock-{}", chance.below(3))));
        let mut spec = Spec {
            command: format!("echo {}", chance.below(1_000)),
            args: chance.percent(30).then(|| vec!["a b".into(), "é\n".into()]),
            env: if chance.percent(30) { [("A".into(), "1".into())].into() } else { Default::default() },
            labels: if chance.percent(30) { [("team".into(), "x".into())].into() } else { Default::default() },
            timeout_ms: chance.percent(30).then_some(60_000),
            lock_wait_ms: chance.percent(80).then(|| [0, 5_000, 600_000][chance.below(3)]),
            queue: name(QUEUES[usize::from(chance.percent(20))]),
            worker_labels: if chance.percent(15) { label(chance) } else { Default::default() },
            priority: 1 + u8::try_from(chance.below(5)).expect("small"),
            retries: u32::try_from(chance.below(3)).expect("small"),
            lock,
            ..spec()
        };
        if chance.percent(25) {
            in_image(&mut spec);
        }
        spec
    }

    fn job(&mut self) -> Command {
        let id = JobId::from_bytes(self.fresh());
        let spec = if self.chance.percent(60) { spec() } else { self.spec() };
        let id = if self.chance.percent(30) { id } else { self.chance.pick(&self.jobs).copied().unwrap_or(id) };
        foreman::command(&mut self.chance, id, self.jobs.contains(&id), &spec, self.now)
    }

    fn submit(&mut self) -> Option<Command> {
        let (id, lease) = (ExecutionId::from_bytes(self.fresh()), LeaseId::from_bytes(self.fresh()));
        let id = if self.chance.percent(2) { self.execution().unwrap_or(id) } else { id };
        let spec = self.spec();
        let user = ["ann@x", "bob@x", "carl@x"][self.chance.below(3)];
        let key = self.chance.percent(25).then(|| SubmitKey {
            user: user.into(),
            key: format!("key-{}", self.chance.below(3)),
            fingerprint: [u8::from(self.chance.percent(20)); 32],
        });
        let lease_to = self.chance.percent(25).then(|| LeaseTo { lease, worker: worker_of(1), ttl_ms: 30_000 });
        Some(Command::Submit(Submit { id, spec, created_by: user.into(), key, lease_to }))
    }

    fn redrive(&mut self) -> Option<Command> {
        let mut letters = Vec::new();
        for _ in 0..=self.chance.below(3) {
            let dead = self.chance.pick(&self.dead).copied();
            let execution = if self.chance.percent(80) { dead } else { self.execution() };
            letters.extend(execution.map(|execution| Letter { execution, again: ExecutionId::from_bytes(self.fresh()) }));
        }
        let key = self.chance.percent(25).then(|| SubmitKey {
            user: "ann@x".into(),
            key: format!("key-{}", self.chance.below(3)),
            fingerprint: [u8::from(self.chance.percent(20)); 32],
        });
        Some(Command::Redrive(Redrive { letters, settled: Vec::new(), key }))
    }

    fn lease(&mut self) -> Option<Command> {
        let worker = 1 + u8::try_from(self.chance.below(2)).expect("small");
        let mut queues: Vec<_> = QUEUES.map(name).into();
        if self.chance.percent(60) {
            queues.truncate(1);
        }
        let leases = (0..=self.chance.below(4)).map(|_| LeaseId::from_bytes(self.fresh())).collect();
        let mut worker = worker_of(worker);
        worker.serves = [&[Needs::Process][..], &[Needs::Image], &Needs::ALL][self.chance.below(3)].to_vec();
        if self.chance.percent(50) {
            worker.labels = label(&mut self.chance);
        }
        let lost_after_ms = self.chance.percent(20).then_some(3_600_000);
        Some(Command::Lease(LeaseRequest { worker, queues, leases, ttl_ms: 30_000, begin: self.chance.percent(40), lost_after_ms }))
    }

    fn extend(&mut self) -> Option<Command> {
        let fence = self.fence()?;
        let (process_id, rss_bytes) = (self.chance.percent(50).then_some(42), self.chance.percent(50).then_some(1 << 20));
        let last_output_at = self.chance.percent(50).then_some(self.now);
        Some(Command::Extend(Extend { fence, ttl_ms: 30_000, process_id, rss_bytes, last_output_at, activity: None, preparing: None }))
    }

    fn end(&mut self) -> Option<Command> {
        let fence = self.fence()?;
        let after_kill = self.chance.percent(40);
        let outcome = match self.chance.below(10) {
            0..4 => Outcome::Exited { code: 0, after_kill },
            4..6 => Outcome::Exited { code: [1, 69, 127][self.chance.below(3)], after_kill },
            6 => Outcome::Signalled { signal: [9, 11, 15][self.chance.below(3)], after_kill },
            7 => Outcome::TimedOut { timeout_ms: 1_500, forced: after_kill },
            8 => Outcome::StartFailed { message: "no shell: é".into(), exit_code: None },
            _ => [Outcome::OutOfMemory, Outcome::WorkerStopped, Outcome::OutputFailed { message: "disk full".into() }]
                [self.chance.below(3)]
            .clone(),
        };
        let (log_end, process_id) = (self.chance.below(100) as u64, self.chance.percent(50).then_some(42));
        let output =
            self.chance.percent(30).then(|| Payload::Inline(serde_json::json!({"n": self.chance.below(9), "usage": {"tokens": 1}})));
        let (duration_ms, cost_micro_usd) = (1_234, 7);
        Some(Command::EndAttempt(EndAttempt {
            fence,
            outcome,
            log_end,
            duration_ms,
            process_id,
            cost_micro_usd,
            output,
            said: None,
            usage: None,
            remark: None,
        }))
    }

    fn reap(&mut self) -> Option<Command> {
        let fence = self.fence()?;
        let extensions = [0, 1, 1, 2][self.chance.below(4)];
        let message = "its worker was lost".into();
        Some(Command::Reap(Reap {
            execution: fence.execution,
            lease: fence.lease,
            extensions,
            message,
            log_end: 3,
            with_server: false,
            cost_micro_usd: 4,
        }))
    }

    fn repeat(&mut self) -> Next {
        let recent = self.played.len().saturating_sub(4);
        let from = if self.chance.percent(50) { &self.played[recent..] } else { &self.played };
        match self.chance.pick(from).cloned() {
            Some((step, command)) => Next::Play(Box::new(step), Box::new(command)),
            None => Next::Clock(1_000),
        }
    }
}

/// One of two labels of a worker.
fn label(chance: &mut Chance) -> Labels {
    [("zone".into(), ["a", "b"][chance.below(2)].into())].into()
}
