//! Health checks and alerts over memory adapters with a clock in the hand: each incident is told once when it begins and once when it is over,
//! whatever fails or starts anew in between.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_engine::{Alerts, Config, EngineError, HealthWatch};
use runvoy_model::change::Change;
use runvoy_model::command::{Command, Extend};
use runvoy_model::event::EventType;
use runvoy_model::execution::Execution;
use runvoy_model::health::Health;
use runvoy_model::id::StepId;
use runvoy_model::incident::{Incident, IncidentKind, Move, Told};
use runvoy_model::record::Kind;
use runvoy_model::role::Role;
use runvoy_model::step::Step;
use runvoy_ports::alert::{AlertError, Alerter, Notice};
use runvoy_ports::clock::{Clock as _, IdSource as _};
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use runvoy_ports::trail::AuditTrail as _;

use self::stage::{Stage, caller, command, fence, worker};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Somebody who can be made to hear nothing.
#[derive(Default)]
struct Heard {
    notices: Mutex<Vec<Notice>>,
    away: AtomicBool,
    retry_after: Mutex<Option<Duration>>,
    tries: Mutex<u32>,
}

impl Heard {
    fn titles(&self) -> Vec<String> {
        self.notices.lock().iter().map(|notice| notice.title.clone()).collect()
    }
}

#[async_trait]
impl Alerter for Heard {
    async fn tell(&self, notice: &Notice) -> Result<(), AlertError> {
        *self.tries.lock() += 1;
        // Others may look meanwhile.
        tokio::task::yield_now().await;
        if self.away.load(Ordering::Relaxed) {
            return Err(AlertError { retry_after: *self.retry_after.lock(), ..AlertError::new("nobody is there") });
        }
        self.notices.lock().push(notice.clone());
        Ok(())
    }

    fn place(&self) -> &str {
        "hooks.example.com"
    }
}

/// An engine with both agents.
struct Play {
    stage: Stage,
    heard: Arc<Heard>,
    health: HealthWatch,
    alerts: Alerts,
}

impl Play {
    fn new() -> Self {
        Self::of(Stage::new(Config::default()))
    }

    fn of(stage: Stage) -> Self {
        let heard = Arc::new(Heard::default());
        let (health, alerts) = agents(&stage, &heard);
        Self { stage, heard, health, alerts }
    }

    /// Everything but the stores is gone and starts anew.
    fn restart(&mut self, number: u8) {
        self.stage.restart(number);
        (self.health, self.alerts) = agents(&self.stage, &self.heard);
    }

    async fn look(&mut self) {
        self.health.check().await.expect("a check");
        self.alerts.look().await.expect("a look");
    }

    /// An execution that a worker elsewhere runs.
    async fn running(&self) -> Execution {
        self.stage.run(command("make deploy")).await;
        self.stage.lease(&worker(9, false), 30_000).await.expect("a lease")
    }

    async fn heartbeat(&self, execution: &Execution) {
        let extend = Extend {
            fence: fence(execution),
            ttl_ms: 30_000,
            process_id: None,
            rss_bytes: None,
            last_output_at: None,
            activity: None,
            preparing: None,
        };
        self.stage.store.extend(self.stage.step(&worker(9, false)), extend).await.expect("extended");
    }

    async fn begin(&self, incidents: impl Iterator<Item = Incident>) {
        self.move_all(incidents.map(|incident| Move::Begin(Box::new(incident))).collect()).await;
    }

    async fn move_all(&self, moves: Vec<Move>) {
        for some in moves.chunks(200) {
            let step = Step::system(StepId(self.stage.ids.next_id()), self.stage.clock.now(), "test");
            let change = Change::MoveIncidents(some.to_vec());
            self.stage.store.apply(step, Command::Change(change, None)).await.expect("moved");
        }
    }

    async fn checks(&self) -> usize {
        let query = EventQuery { kind: Some(EventType::TaskHealthCheck), limit: 1_000, ..EventQuery::default() };
        self.stage.store.events(query).await.expect("events").len()
    }

    async fn incidents(&self) -> usize {
        self.stage.store.records(Kind::Incident).await.expect("records").len()
    }
}

fn agents(stage: &Stage, heard: &Arc<Heard>) -> (HealthWatch, Alerts) {
    stage.engine.attach_alerter(Arc::clone(heard) as _);
    (HealthWatch::new(Arc::clone(&stage.engine)), Alerts::new(Arc::clone(&stage.engine)).expect("an alerter is attached"))
}

#[tokio::test]
async fn one_incident_is_told_once_and_its_end_once_over_restarts() {
    let mut play = Play::new();
    let execution = play.running().await;
    play.look().await;
    assert_eq!(play.heard.titles(), [""; 0], "it is healthy");
    play.stage.clock.pass(11 * MINUTE);
    for number in 2..5 {
        play.look().await;
        play.stage.clock.pass(MINUTE);
        play.restart(number);
    }
    assert_eq!(play.heard.titles(), ["Critical: a running execution stopped reporting"]);
    play.heartbeat(&execution).await;
    for number in 5..8 {
        play.look().await;
        play.stage.clock.pass(MINUTE);
        play.restart(number);
    }
    assert_eq!(play.heard.titles()[1..], ["Resolved: critical execution"]);
    let told = play.heard.notices.lock()[1].over[0].text.clone();
    assert!(told.ends_with(": over after 3 min"), "{told}");
    assert_eq!(play.heard.notices.lock()[1].over[0].why.as_deref(), Some("it is healthy again"));
    assert!(play.stage.store.verify().await.expect("a verdict").is_whole());
}

#[tokio::test]
async fn an_execution_in_overtime_is_told_and_its_end_is_told_without_a_check() {
    let mut play = Play::new();
    let execution = play.running().await;
    play.stage.clock.pass(HOUR);
    play.heartbeat(&execution).await;
    play.stage.clock.pass(1);
    play.look().await;
    assert_eq!(play.heard.titles(), ["Overtime: an execution runs unusually long"]);
    play.stage.finish(&worker(9, false), &execution, 3).await.expect("ended");
    play.health.follow_up().await.expect("looked");
    play.alerts.look().await.expect("looked");
    assert_eq!(play.heard.titles().len(), 1, "at most one message a minute");
    play.stage.clock.pass(MINUTE);
    play.alerts.look().await.expect("looked");
    let over = play.heard.notices.lock()[1].over[0].why.clone().expect("a reason");
    assert!(over.contains("it finished as FAILED: exit code 3"), "{over}");
}

#[tokio::test]
async fn nothing_is_lost_while_nobody_hears_and_all_of_it_is_one_message() {
    let mut play = Play::new();
    play.heard.away.store(true, Ordering::Relaxed);
    play.begin((0..1_000).map(|number| Incident::begun(IncidentKind::Dead, format!("id{number}"), "gave up", play.stage.clock.now())))
        .await;
    for _ in 0..100 {
        play.alerts.look().await.expect("looked");
        play.stage.clock.pass(1_000);
    }
    let tries = *play.heard.tries.lock();
    assert!((3..=6).contains(&tries), "it is tried again after 5, 10, 20, 40 s and a little: {tries}");
    let standing = play.stage.engine.alert_standing();
    assert_eq!((standing.waiting, standing.failed.map(|(_, why)| why)), (1_000, Some("nobody is there".into())));
    play.restart(3);
    play.heard.away.store(false, Ordering::Relaxed);
    for _ in 0..200 {
        play.alerts.look().await.expect("looked");
        play.stage.clock.pass(1_000);
    }
    assert_eq!(play.heard.titles(), ["1000 dead letters"]);
    assert_eq!(play.stage.engine.alert_standing().waiting, 0);
}

#[tokio::test]
async fn who_asks_for_patience_gets_it() {
    let mut play = Play::new();
    play.heard.away.store(true, Ordering::Relaxed);
    *play.heard.retry_after.lock() = Some(Duration::from_secs(90));
    play.begin(std::iter::once(Incident::begun(IncidentKind::Dead, "x", "gave up", play.stage.clock.now()))).await;
    play.alerts.look().await.expect("looked");
    play.stage.clock.pass(89_000);
    play.alerts.look().await.expect("looked");
    assert_eq!(*play.heard.tries.lock(), 1);
    play.stage.clock.pass(2_000);
    play.alerts.look().await.expect("looked");
    assert_eq!(*play.heard.tries.lock(), 2);
}

#[tokio::test]
async fn what_was_over_before_anybody_heard_is_one_line() {
    let mut play = Play::new();
    play.heard.away.store(true, Ordering::Relaxed);
    let execution = play.running().await;
    play.stage.clock.pass(11 * MINUTE);
    play.look().await;
    play.heartbeat(&execution).await;
    play.stage.clock.pass(MINUTE);
    play.look().await;
    play.heard.away.store(false, Ordering::Relaxed);
    for _ in 0..3 {
        play.stage.clock.pass(5 * MINUTE);
        play.heartbeat(&execution).await;
        play.look().await;
    }
    assert_eq!(play.heard.titles(), ["Resolved: critical execution"]);
    assert!(play.heard.notices.lock()[0].begun.is_empty());
}

#[tokio::test]
async fn a_dead_letter_is_told_once() {
    let mut play = Play::new();
    let mut request = command("make deploy --token hunter2");
    request.retries = Some(1);
    play.stage.run(request).await;
    for _ in 0..2 {
        let execution = play.stage.lease(&worker(9, false), 30_000).await.expect("a lease");
        play.stage.finish(&worker(9, false), &execution, 69).await.expect("ended");
        play.stage.clock.pass(10 * MINUTE);
    }
    for _ in 0..3 {
        play.look().await;
        play.stage.clock.pass(2 * MINUTE);
    }
    let notices = play.heard.notices.lock();
    let [notice] = &notices[..] else { panic!("{:?}", play.heard.titles()) };
    let entry = &notice.begun[0];
    assert_eq!(
        (entry.headline.as_str(), entry.command.as_deref()),
        ("Dead letter: an execution used up its retries", Some("make deploy --token …"))
    );
    assert!(entry.next[1].starts_with("runvoy queues redrive default --task "), "{entry:?}");
}

#[tokio::test]
async fn a_system_at_rest_leaves_no_event_and_a_look_changes_nothing() {
    let mut play = Play::new();
    for _ in 0..3 {
        play.look().await;
    }
    assert_eq!((play.checks().await, play.incidents().await), (0, 0));
    let execution = play.running().await;
    let ada = play.stage.admitted("ada@example.com", Role::Admin).await;
    play.stage.clock.pass(7 * MINUTE);
    let check = play.stage.engine.task_health(&ada).await.expect("a look");
    assert_eq!((check.summary.total_processing, check.summary.warning, play.checks().await), (1, 1, 0));
    play.look().await;
    assert_eq!(play.checks().await, 1);
    let one = play.stage.engine.health_of(&ada, &execution.id.to_string()).await.expect("a look");
    assert_eq!((one.health, one.silent_ms), (Health::Warning, 7 * 60_000));
    let bob = caller("bob@example.com", Role::Developer);
    assert!(play.stage.engine.task_health(&bob).await.expect("a look").tasks.is_empty(), "not theirs");
    let hidden = play.stage.engine.health_of(&bob, &execution.id.to_string()).await;
    assert!(matches!(hidden, Err(EngineError::NotFound { .. })));
    play.stage.finish(&worker(9, false), &execution, 0).await.expect("ended");
    let ended = play.stage.engine.health_of(&ada, &execution.id.to_string()).await;
    assert!(matches!(ended, Err(EngineError::Conflict { .. })), "{ended:?}");
}

#[tokio::test]
async fn old_incidents_are_forgotten_unless_somebody_is_still_to_be_told() {
    let mut play = Play::new();
    let dead = |play: &Play, about: &str| Incident::begun(IncidentKind::Dead, about, "gave up", play.stage.clock.now());
    play.begin(std::iter::once(dead(&play, "told"))).await;
    play.look().await;
    play.heard.away.store(true, Ordering::Relaxed);
    play.begin(std::iter::once(dead(&play, "untold"))).await;
    play.stage.clock.pass(23 * HOUR);
    play.look().await;
    assert_eq!(play.incidents().await, 2);
    play.stage.clock.pass(8 * DAY);
    play.look().await;
    assert_eq!(play.incidents().await, 1, "one was told, long ago");
    // A server that tells nobody keeps nothing for anybody.
    play.stage.restart(4);
    HealthWatch::new(Arc::clone(&play.stage.engine)).check().await.expect("a check");
    assert_eq!(play.incidents().await, 0);
    assert!(Alerts::new(Arc::clone(&play.stage.engine)).is_none());
}

/// What comes back while the message of its end is on its way is told again.
#[tokio::test]
async fn what_is_wrong_again_before_its_end_is_marked_is_told_again() {
    let mut play = Play::new();
    let dead = Incident::begun(IncidentKind::Dead, "x", "gave up", play.stage.clock.now());
    play.begin(std::iter::once(dead.clone())).await;
    play.alerts.look().await.expect("looked");
    play.stage.clock.pass(2 * MINUTE);
    let end = Move::End { name: dead.name(), why: "redriven".into() };
    play.move_all(vec![end]).await;
    // It begins again after the message was composed and before that is written down.
    play.move_all(vec![Move::Begin(Box::new(dead.clone())), Move::Told { name: dead.name(), began_at: dead.began_at, what: Told::Over }])
        .await;
    play.stage.clock.pass(2 * MINUTE);
    play.alerts.look().await.expect("looked");
    assert_eq!(play.heard.titles(), ["Dead letter: an execution used up its retries"; 2]);
}

#[tokio::test]
async fn what_nobody_can_be_told_of_for_long_is_bounded_and_the_rest_is_a_number() {
    let mut play = Play::new();
    play.heard.away.store(true, Ordering::Relaxed);
    let now = play.stage.clock.now();
    let number = |number: u64| Incident::begun(IncidentKind::Dead, format!("id{number:05}"), "gave up", now.plus_ms(number as i64));
    play.begin((0..10_150).map(number)).await;
    play.alerts.look().await.expect("looked");
    assert_eq!((play.incidents().await, play.stage.engine.alert_standing().waiting), (10_000, 10_000));
    let oldest = play.stage.store.records(Kind::Incident).await.expect("records").swap_remove(0).name;
    assert_eq!(oldest, "dead:id00150", "the oldest are gone");
    play.heard.away.store(false, Ordering::Relaxed);
    for _ in 0..3 {
        play.stage.clock.pass(2 * MINUTE);
        play.alerts.look().await.expect("looked");
    }
    assert_eq!(play.heard.titles(), ["10000 dead letters"], "nothing twice");
    let more = play.heard.notices.lock()[0].more.clone();
    assert!(more[0].starts_with("and 9990 more") && more[1].starts_with("150 older incidents"), "{more:?}");
    assert_eq!(play.stage.engine.alert_standing().waiting, 0);
}

#[tokio::test]
async fn a_follow_up_ends_what_has_ended_and_nothing_else() {
    let mut play = Play::new();
    let ends = play.running().await;
    let goes_on = play.running().await;
    play.stage.clock.pass(11 * MINUTE);
    play.look().await;
    play.stage.finish(&worker(9, false), &ends, 0).await.expect("ended");
    play.health.follow_up().await.expect("looked");
    play.stage.clock.pass(2 * MINUTE);
    play.alerts.look().await.expect("looked");
    let notices = play.heard.notices.lock();
    let over: Vec<_> = notices[1].over.iter().map(|line| (line.text.contains(&ends.id.to_string()), line.why.as_deref())).collect();
    assert_eq!(over, [(true, Some("it finished as SUCCEEDED: exit code 0"))], "{} goes on", goes_on.id);
}

#[tokio::test]
async fn a_message_leads_to_the_page_of_the_server_where_no_other_is_set() {
    for (web_url, public_url, page) in [
        ("", "", "http://127.0.0.1:9/logs?"),
        ("", "https://run.example.com", "https://run.example.com/logs?"),
        ("https://web.example.com", "https://run.example.com", "https://web.example.com/logs?"),
    ] {
        let (web_url, public_url) = (web_url.into(), public_url.into());
        let config = Config { own_url: "http://127.0.0.1:9".into(), web_url, public_url, ..Config::default() };
        let mut play = Play::of(Stage::new(config));
        play.running().await;
        play.stage.clock.pass(11 * MINUTE);
        play.look().await;
        let link = play.heard.notices.lock()[0].begun[0].link.clone().expect("a link");
        assert!(link.starts_with(page), "{link}");
    }
}

#[tokio::test]
async fn an_admin_can_see_whether_messages_arrive() {
    let play = Play::new();
    let ada = play.stage.admitted("ada@example.com", Role::Admin).await;
    assert_eq!(play.stage.engine.test_alert(&ada).await.expect("taken"), "hooks.example.com");
    assert_eq!(play.heard.titles(), ["Test: runvoy alerts arrive here"]);
    play.heard.away.store(true, Ordering::Relaxed);
    let failed = play.stage.engine.test_alert(&ada).await.expect_err("not taken").to_string();
    assert!(failed.contains("nobody is there"), "{failed}");
    let eve = play.stage.admitted("eve@example.com", Role::Operator).await;
    assert!(matches!(play.stage.engine.test_alert(&eve).await, Err(EngineError::Forbidden { .. })));
}
