//! Executions of which nobody knows any more what they were to run: they are given up one by one, and never run again.

mod stage;
mod torn;

use std::sync::Arc;

use runvoy_conformance::tap::Tapped;
use runvoy_engine::{Caller, Config, Engine, EngineError, JobRequest, Reaper, RunRequest, TaskRequest, Wanted};
use runvoy_model::command::Submit;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::redrive::Fate;
use runvoy_model::role::Role;
use runvoy_model::spec::{DEFAULT_PRIORITY, LOCAL_IMAGE, Spec};
use runvoy_model::status::{EndCode, Status};
use runvoy_ports::clock::IdSource as _;
use runvoy_ports::store::{ExecutionStore as _, ListQuery};

use self::stage::{Stage, command, worker};
use self::torn::Torn;

const ADA: &str = "ada@example.com";

struct Play {
    stage: Stage,
    store: Arc<Tapped<Torn>>,
    engine: Arc<Engine>,
    reaper: Reaper,
}

impl Play {
    fn new() -> Self {
        let stage = Stage::new(Config { allow_shared_uid: true, ..Config::default() });
        let store = Torn::over(Arc::clone(&stage.store));
        let engine = stage.started(2, |ports| ports.store = Arc::clone(&store) as _);
        let reaper = Reaper::new(Arc::clone(&engine));
        Self { stage, store, engine, reaper }
    }

    async fn submit(&self, spec: Spec) -> ExecutionId {
        let id = ExecutionId(self.stage.ids.next_id());
        let submit = Submit { id, spec, created_by: ADA.into(), key: None, lease_to: None };
        self.stage.store.submit(self.stage.step(&worker(1, true)), submit).await.expect("submitted");
        id
    }

    /// One that leases have met, as often and as long as it takes.
    async fn lost(&self) -> ExecutionId {
        let id = self.submit(outline()).await;
        self.store.met.lock().push(id);
        id
    }

    async fn status(&self, id: ExecutionId) -> Status {
        self.store.get(id).await.expect("an answer").expect("it is there").status
    }

    async fn redrive(&self, caller: &Caller, id: ExecutionId) -> Fate {
        let ids = [id.to_string()];
        let report = self.engine.redrive(caller, "default", Wanted::Named(&ids), None).await.expect("a report");
        report.letters[0].fate.clone()
    }

    /// How many lines its log has.
    async fn lines(&self, id: ExecutionId) -> u64 {
        self.stage.logs().extent(id).await.expect("a log").next_line.saturating_sub(1)
    }
}

fn outline() -> Spec {
    Spec::lost(Name::new("default").expect("a name"), DEFAULT_PRIORITY)
}

fn healthy() -> Spec {
    Spec { command: "true".into(), image: LOCAL_IMAGE.into(), ..outline() }
}

#[tokio::test]
async fn one_that_cannot_be_given_up_keeps_no_other_from_it() {
    let mut play = Play::new();
    let (stuck, lost) = (play.lost().await, play.lost().await);
    play.store.stuck.lock().insert(stuck);
    assert!(play.reaper.look().await.is_err(), "it is told");
    assert_eq!((play.status(stuck).await, play.status(lost).await), (Status::Pending, Status::Failed));
    let given_up = play.store.get(lost).await.expect("an answer").expect("it is there");
    assert_eq!((given_up.end_reason.map(|reason| reason.code), given_up.dead), (Some(EndCode::StartFailed), true));
    assert!(play.lines(lost).await > 0, "its log says why");
}

#[tokio::test]
async fn what_can_be_read_again_is_not_said_to_be_given_up() {
    let mut play = Play::new();
    let id = play.submit(healthy()).await;
    play.store.met.lock().push(id);
    play.reaper.look().await.expect("a look");
    assert_eq!((play.status(id).await, play.lines(id).await), (Status::Pending, 0));
}

#[tokio::test]
async fn a_look_gives_up_a_few_and_leaves_the_rest_to_the_next() {
    let mut play = Play::new();
    let mut lost = Vec::new();
    for _ in 0..25 {
        lost.push(play.lost().await);
    }
    for expected in [10, 20, 25] {
        play.reaper.look().await.expect("a look");
        let mut ended = 0;
        for id in &lost {
            ended += usize::from(play.status(*id).await == Status::Failed);
        }
        assert_eq!(ended, expected);
    }
}

#[tokio::test]
async fn what_is_lost_is_not_run_again() {
    let play = Play::new();
    let ada = play.stage.admitted(ADA, Role::Admin).await;
    let id = play.submit(outline()).await;
    let refused = play.engine.rerun(&ada, &id.to_string(), None).await;
    assert!(matches!(&refused, Err(EngineError::Conflict { message: why, .. }) if why.contains("submit it again")), "{refused:?}");
    assert_eq!(play.store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn a_task_is_judged_by_what_its_job_would_run_again() {
    let play = Play::new();
    let (ada, bob) = (play.stage.admitted(ADA, Role::Admin).await, play.stage.admitted("bob@example.com", Role::Operator).await);
    let rule = serde_json::json!({"name": "guarded", "effect": "deny", "commands": ["rm *"]});
    play.engine.put_rule(&ada, serde_json::from_value(rule).expect("a rule"), None).await.expect("it is put");
    let env = [("LD_PRELOAD".to_owned(), "/lib/x.so".to_owned())].into();
    let run = RunRequest { env, retries: Some(1), ..command("false") };
    let tasks = vec![TaskRequest { task_id: "a".into(), run, ..TaskRequest::default() }];
    let job = play.engine.submit_job(&ada, JobRequest { tasks, ..JobRequest::default() }).await.expect("it is taken").job;
    let mut ended = None;
    for _ in 0..2 {
        let execution = play.stage.lease(&worker(9, false), 30_000).await.expect("it waits");
        ended = Some(play.stage.finish(&worker(9, false), &execution, 69).await.expect("it ends"));
        play.stage.clock.pass(600_000);
    }
    let dead = ended.filter(|ended| ended.dead).expect("a dead letter").id;
    play.store.outlined.lock().insert(dead);
    let refused = play.redrive(&bob, dead).await;
    assert!(matches!(&refused, Fate::Refused(why) if why.contains("LD_PRELOAD")), "{refused:?}");
    assert_eq!(play.redrive(&ada, dead).await, Fate::Job(job.id));
}

#[tokio::test]
async fn what_nobody_knows_is_dropped_whatever_the_rules_say() {
    let mut play = Play::new();
    let (ada, bob) = (play.stage.admitted(ADA, Role::Admin).await, play.stage.admitted("bob@example.com", Role::Operator).await);
    let rule = serde_json::json!({"name": "closed", "effect": "deny", "queues": ["default"]});
    play.engine.put_rule(&ada, serde_json::from_value(rule).expect("a rule"), None).await.expect("it is put");
    let lost = play.lost().await;
    play.reaper.look().await.expect("a look");
    let fate = play.redrive(&bob, lost).await;
    assert!(matches!(&fate, Fate::Dropped(why) if why.contains("submit it again")), "{fate:?}");
}
