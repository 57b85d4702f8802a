//! One step at the writer's desk: looks at the state inside the open transaction, asks the model, and writes what it decided.
//! It neither begins nor commits; whoever calls does both.

use runvoy_model::chain::AuditKey;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::decide::{decide, replay};
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::execution::Execution;
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::job::{Job, Node, Phase};
use runvoy_model::lock::Lock;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_model::view::{PassOver, Standing, View, Writes};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::passed::Passed;
use crate::ready::Ask;
use crate::receipt;
use crate::record::{self, Columns};
use crate::span::Hour;
use crate::table::Table;
use crate::{event, lock, ready, registry};

/// What the writer remembers from step to step, because nobody else writes. Forgotten after a rollback.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) hour: Hour,
    key_days: Option<Vec<i64>>,
    passed: Passed,
}

impl Memory {
    pub(crate) fn forget(&mut self) {
        self.hour.forget();
        self.key_days = None;
        self.passed.forget();
    }

    /// After a prune took days away.
    pub(crate) fn forget_days(&mut self) {
        self.key_days = None;
    }

    fn key_days(&mut self, conn: &Connection) -> Result<&mut Vec<i64>, Fault> {
        if self.key_days.is_none() {
            self.key_days = Some(receipt::days(conn)?);
        }
        Ok(self.key_days.as_mut().expect("just filled"))
    }
}

/// A step being decided.
pub(crate) struct Desk<'w> {
    pub(crate) conn: &'w Connection,
    pub(crate) memory: &'w mut Memory,
    /// The disk is at its reserve: nothing new is taken.
    pub(crate) at_reserve: bool,
    seen: Vec<Seen>,
    /// The jobs that the decision looked at.
    jobs: Table,
    /// Records that were written, with their places.
    written: Vec<(Entity, i64)>,
}

/// An execution that the decision looked at, as it was.
struct Seen {
    id: ExecutionId,
    seq: i64,
    columns: Columns,
}

impl<'w> Desk<'w> {
    pub(crate) fn new(conn: &'w Connection, memory: &'w mut Memory, at_reserve: bool) -> Self {
        Self { conn, memory, at_reserve, seen: Vec::new(), jobs: Table::default(), written: Vec::new() }
    }

    /// Decides and writes one step, or answers it as before.
    pub(crate) fn apply(&mut self, key: &AuditKey, step: &Step, command: &Command) -> Result<Answer, Fault> {
        if let Some(receipt) = receipt::find(self.conn, step.id)? {
            return replay(self, &receipt);
        }
        let (mut writes, mut answer) = decide(self, step, command)?;
        if writes.is_empty() {
            return Ok(answer);
        }
        if self.at_reserve && command.adds() {
            return Err(Fault::AtReserve);
        }
        writes.seal(key, &mut answer);
        self.memory.hour.enter(self.conn, step.at)?;
        self.write(step, &writes)?;
        if let Some(receipt) = writes.receipt {
            receipt::keep(self.conn, step, &receipt)?;
        }
        Ok(answer)
    }

    fn write(&mut self, step: &Step, writes: &Writes) -> Result<(), Fault> {
        for job in &writes.jobs {
            self.jobs.put_job(self.conn, job)?;
        }
        for execution in &writes.executions {
            self.write_execution(execution)?;
        }
        for lock in &writes.locks {
            lock::put(self.conn, lock)?;
        }
        for record in &writes.records {
            let seq = registry::put(self.conn, record)?;
            self.written.extend(record.entity().map(|entity| (entity, seq)));
        }
        self.jobs.write(self.conn, writes)?;
        for event in &writes.events {
            let seq = self.entity_seq(&event.entity)?;
            event::insert(self.conn, seq, event)?;
        }
        if let Some((key, made)) = &writes.key {
            receipt::keep_key(self.conn, step.at, key, made)?;
            let day = receipt::day_of(step.at);
            let days = self.memory.key_days(self.conn)?;
            if let Err(place) = days.binary_search(&day) {
                days.insert(place, day);
            }
        }
        Ok(())
    }

    fn write_execution(&mut self, execution: &Execution) -> Result<(), Fault> {
        let columns = Columns::of(execution);
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.id == execution.id) {
            record::update(self.conn, seen.seq, seen.columns, execution)?;
            if !columns.stands_like(seen.columns) {
                self.memory.passed.comes(execution);
            }
            seen.columns = columns;
            return Ok(());
        }
        if execution.version != 1 {
            return Err(Fault::Damaged(format!("execution {} was changed without being read first", execution.id)));
        }
        let job = execution.spec.task.as_ref().map(|task| self.jobs.seq(self.conn, task.job)).transpose()?;
        let seq = record::insert(self.conn, execution, job)?;
        self.memory.passed.comes(execution);
        self.seen.push(Seen { id: execution.id, seq, columns });
        Ok(())
    }

    fn entity_seq(&mut self, entity: &Entity) -> Result<i64, Fault> {
        let seq = if entity.kind == EntityType::Task {
            let id: Option<ExecutionId> = entity.id.parse().ok();
            self.seen.iter().find(|seen| Some(seen.id) == id).map(|seen| seen.seq)
        } else if entity.kind == EntityType::Job {
            entity.id.parse().ok().map(|id| self.jobs.seq(self.conn, id)).transpose()?
        } else {
            self.written.iter().find(|(written, _)| written == entity).map(|(_, seq)| *seq)
        };
        seq.ok_or_else(|| Fault::Damaged(format!("an event is about {entity:?}, which was not written with it")))
    }
}

impl View for Desk<'_> {
    type Error = Fault;

    fn execution(&mut self, id: ExecutionId) -> Result<Option<Execution>, Fault> {
        let Some(record) = record::by_id(self.conn, id)? else { return Ok(None) };
        if !self.seen.iter().any(|seen| seen.id == id) {
            self.seen.push(Seen { id, seq: record.seq, columns: Columns::of(&record.execution) });
        }
        Ok(Some(record.execution))
    }

    fn lock(&mut self, name: &Name) -> Result<Option<Lock>, Fault> {
        lock::by_name(self.conn, name)
    }

    fn first_waiter(&mut self, name: &Name) -> Result<Option<ExecutionId>, Fault> {
        lock::first_waiter(self.conn, name)
    }

    fn submitted(&mut self, user: &str, key: &str) -> Result<Option<(Made, [u8; 32])>, Fault> {
        let days = self.memory.key_days(self.conn)?;
        receipt::find_key(self.conn, days, user, key)
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        self.jobs.job(self.conn, id)
    }

    fn node(&mut self, job: JobId, task: &str) -> Result<Option<Node>, Fault> {
        self.jobs.node(self.conn, job, task)
    }

    fn phase(&mut self, job: JobId, task: &str) -> Result<Option<Phase>, Fault> {
        self.jobs.phase(self.conn, job, task)
    }

    fn staged(&mut self, job: JobId, batch: u64) -> Result<u32, Fault> {
        self.jobs.staged(self.conn, job, batch)
    }

    fn open_parents(&mut self, job: JobId, task: &str) -> Result<Option<u32>, Fault> {
        self.jobs.open_parents(self.conn, job, task)
    }

    fn nodes(&mut self, job: JobId, standing: Standing, max: usize) -> Result<Vec<Node>, Fault> {
        self.jobs.nodes(self.conn, job, standing, max)
    }

    fn children(&mut self, job: JobId, parent: &str, max: usize) -> Result<Vec<Name>, Fault> {
        self.jobs.children(self.conn, job, parent, max)
    }

    fn phases(&mut self, job: JobId) -> Result<Vec<(Name, Phase)>, Fault> {
        self.jobs.phases(self.conn, job)
    }

    fn record(&mut self, kind: Kind, name: &str) -> Result<Option<Record>, Fault> {
        Ok(registry::find(self.conn, kind, name)?.map(|(_, record)| record))
    }

    fn ready(&mut self, queues: &[Name], serves: &[Needs], now: UnixMs, max: usize, pass: &PassOver) -> Result<Vec<ExecutionId>, Fault> {
        ready::first(self.conn, &mut self.memory.passed, &Ask { queues, serves, now, max, pass })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use runvoy_model::command::{Fence, LeaseRequest, Submit, Worker};
    use runvoy_model::id::{LeaseId, StepId, WorkerId};
    use runvoy_model::spec::{LOCAL_IMAGE, Labels, Spec};
    use runvoy_model::step::Actor;

    use super::*;

    fn apply_at(at: i64, conn: &Connection, memory: &mut Memory, number: u8, command: &Command) -> Answer {
        let actor = Actor::User { email: "ana@x".into() };
        let id = StepId::from_bytes([number; 16]);
        let step = Step { id, at: UnixMs(at), actor, request_id: String::new(), audit: None, authority: None };
        Desk::new(conn, memory, false).apply(&AuditKey::new([7; 32]), &step, command).expect("an answer")
    }

    fn apply(conn: &Connection, memory: &mut Memory, number: u8, command: &Command) -> Answer {
        apply_at(1_000, conn, memory, number, command)
    }

    fn queue() -> Name {
        Name::new("default").expect("a name")
    }

    fn gpu(kind: &str) -> Labels {
        [("gpu".into(), kind.into())].into()
    }

    fn submit_of(user: &str, number: u8, worker_labels: Labels) -> Command {
        let spec = Spec { command: "true".into(), image: LOCAL_IMAGE.into(), worker_labels, ..Spec::lost(queue(), 3) };
        Command::Submit(Submit { id: ExecutionId::from_bytes([number; 16]), spec, created_by: user.into(), key: None, lease_to: None })
    }

    fn submit(number: u8, kind: &str) -> Command {
        submit_of("ana@x", number, gpu(kind))
    }

    fn lease(number: u8) -> Command {
        let id = WorkerId::from_bytes([9; 16]);
        let (host, runner, serves) = ("a".into(), "process".into(), Needs::ALL.to_vec());
        let worker = Worker { id, host, runner, in_process: true, serves, labels: gpu("t4") };
        let leases = vec![LeaseId::from_bytes([number; 16])];
        Command::Lease(LeaseRequest { worker, queues: vec![queue()], leases, ttl_ms: 30_000, begin: true, lost_after_ms: None })
    }

    #[test]
    fn whoever_is_back_in_line_after_a_rollback_is_found() {
        let mut conn = Connection::open_in_memory().expect("a database in memory");
        crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
        let mut memory = Memory::default();
        apply(&conn, &mut memory, 1, &submit(1, "t4"));
        apply(&conn, &mut memory, 2, &submit(2, "h100"));
        conn.execute_batch("BEGIN").expect("a transaction");
        for (number, expected) in [(3, 1), (4, 0)] {
            let answer = apply(&conn, &mut memory, number, &lease(number));
            assert!(matches!(&answer, Answer::Leased(leased) if leased.len() == expected), "{answer:?}");
        }
        conn.execute_batch("ROLLBACK").expect("a rollback");
        memory.forget();
        let answer = apply(&conn, &mut memory, 5, &lease(5));
        assert!(matches!(&answer, Answer::Leased(leased) if leased.len() == 1), "{answer:?}");
    }

    const USERS: [&str; 5] = ["ana@x", "bob@x", "carl@x", "dora@x", "eve@x"];

    #[derive(Debug, Clone)]
    enum Move {
        Submit {
            user: usize,
            at: i64,
            kind: Option<bool>,
        },
        /// Whoever is first leaves the line.
        Lease,
        /// And comes back to where they stood.
        GiveBack(usize),
        Look {
            have_share: [bool; USERS.len()],
            now: i64,
            max: usize,
        },
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        // Most are of one user, so that there are stretches of theirs.
        let user = prop_oneof![3 => Just(0), 1 => 0..USERS.len()];
        let each = prop_oneof![
            6 => (user, 0..40i64, proptest::option::of(any::<bool>())).prop_map(|(user, at, kind)| Move::Submit { user, at, kind }),
            1 => Just(Move::Lease),
            1 => any::<usize>().prop_map(Move::GiveBack),
            4 => (any::<[bool; USERS.len()]>(), 0..50i64, 1..6usize).prop_map(|(have_share, now, max)| Move::Look { have_share, now, max }),
        ];
        proptest::collection::vec(each, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_remembered_of_lines_changes_no_answer(moves in moves()) {
            let mut conn = Connection::open_in_memory().expect("a database in memory");
            crate::schema::migrate(&mut conn).expect("an empty store can be migrated");
            let (mut memory, mut held) = (Memory::default(), Vec::new());
            for (number, each) in (1..).zip(moves) {
                match each {
                    Move::Submit { user, at, kind } => {
                        let labels = kind.map(|t4| gpu(if t4 { "t4" } else { "h100" })).unwrap_or_default();
                        apply_at(at, &conn, &mut memory, number, &submit_of(USERS[user], number, labels));
                    }
                    Move::Lease => {
                        let Command::Lease(request) = lease(number) else { unreachable!("just made") };
                        let lease = Command::Lease(LeaseRequest { begin: false, ..request });
                        let Answer::Leased(leased) = apply_at(50, &conn, &mut memory, number, &lease) else { panic!("not leased") };
                        held.extend(leased.iter().filter_map(|one| {
                            one.lease.as_ref().map(|lease| Fence { execution: one.id, attempt: lease.attempt, lease: lease.id })
                        }));
                    }
                    Move::GiveBack(which) => {
                        if !held.is_empty() {
                            let fence = held.swap_remove(which % held.len());
                            apply_at(50, &conn, &mut memory, number, &Command::GiveBack(fence));
                        }
                    }
                    Move::Look { have_share, now, max } => {
                        let users = USERS.iter().zip(have_share).filter(|(_, has)| *has).map(|(user, _)| (queue(), (*user).to_owned()));
                        let pass = PassOver { labels: gpu("t4"), users: users.collect() };
                        let ask = Ask { queues: &[queue()], serves: &Needs::ALL, now: UnixMs(now), max, pass: &pass };
                        let anew = ready::first(&conn, &mut Passed::default(), &ask).expect("a look");
                        let found = ready::first(&conn, &mut memory.passed, &ask).expect("a look");
                        prop_assert_eq!(found, anew);
                    }
                }
            }
        }
    }
}
