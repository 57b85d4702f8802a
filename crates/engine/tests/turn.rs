//! Which of several servers tells people: the one that has the turn. Nobody waits for long for one that cannot.

mod stage;
mod torn;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_conformance::tap::Tapped;
use runvoy_engine::{Alerts, Config};
use runvoy_model::change::Change;
use runvoy_model::command::Command;
use runvoy_model::id::StepId;
use runvoy_model::incident::{Incident, IncidentKind, Move, TURN_MS, Teller};
use runvoy_model::limit::StepLimits;
use runvoy_model::record::{Kind, Record};
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{AlertError, Alerter, Notice};
use runvoy_ports::clock::{Clock as _, IdSource as _};
use runvoy_ports::record::RecordStore as _;
use runvoy_ports::store::ExecutionStore as _;

use self::stage::Stage;
use self::torn::{Others, Torn};

const MINUTE: u64 = 60_000;

/// Somebody who can be made to hear nothing.
#[derive(Default)]
struct Heard {
    titles: Mutex<Vec<String>>,
    away: AtomicBool,
}

#[async_trait]
impl Alerter for Heard {
    async fn tell(&self, notice: &Notice) -> Result<(), AlertError> {
        // Others may look meanwhile.
        tokio::task::yield_now().await;
        if self.away.load(Ordering::Relaxed) {
            return Err(AlertError::new("nobody is there"));
        }
        self.titles.lock().push(notice.title.clone());
        Ok(())
    }

    fn place(&self) -> &str {
        "hooks.example.com"
    }
}

struct Play {
    stage: Stage,
    store: Arc<Tapped<Torn>>,
    heard: Arc<Heard>,
}

impl Play {
    fn new() -> Self {
        let stage = Stage::new(Config::default());
        let store = Torn::over(Arc::clone(&stage.store));
        Self { stage, store, heard: Arc::default() }
    }

    /// Servers that share a store, all of which could tell people.
    fn tellers<const N: usize>(&self) -> [Alerts; N] {
        std::array::from_fn(|place| {
            let number = u8::try_from(place).expect("few") + 2;
            let engine = self.stage.beside(number, &[], |ports| ports.store = Arc::clone(&self.store) as _);
            engine.attach_alerter(Arc::clone(&self.heard) as _);
            Alerts::new(engine).expect("an alerter is attached")
        })
    }

    async fn begin(&self, incidents: usize) {
        let now = self.stage.clock.now();
        let begun = |number| Move::Begin(Box::new(Incident::begun(IncidentKind::Dead, format!("id{number}"), "gave up", now)));
        self.move_all((0..incidents).map(begun).collect()).await;
    }

    async fn move_all(&self, moves: Vec<Move>) {
        let step = Step::system(StepId(self.stage.ids.next_id()), self.stage.clock.now(), "test");
        self.stage.store.apply(step, Command::Change(Change::MoveIncidents(moves), None)).await.expect("moved");
    }

    async fn incident(&self, about: &str) -> Incident {
        let found = self.stage.store.record(Kind::Incident, &format!("dead:{about}")).await.expect("an answer");
        found.as_ref().and_then(Record::incident).expect("it is there").clone()
    }

    fn watch(&self, others: impl Fn(&Command) -> Vec<Command> + Send + Sync + 'static) {
        let others: Others = Box::new(others);
        assert!(self.store.others.set(others).is_ok(), "once");
    }

    fn titles(&self) -> Vec<String> {
        self.heard.titles.lock().clone()
    }
}

/// Another server asks for the turn of an incident, or gives it back.
fn asked(incident: &Incident, until: UnixMs) -> Move {
    Move::Tell { name: incident.name(), began_at: incident.began_at, teller: Teller { name: "another".into(), until } }
}

fn moves(command: &Command) -> &[Move] {
    match command {
        Command::Change(Change::MoveIncidents(moves), _) => moves,
        _ => &[],
    }
}

#[tokio::test]
async fn of_several_servers_one_tells() {
    let play = Play::new();
    let [mut one, mut other] = play.tellers();
    play.begin(100).await;
    let (first, second) = tokio::join!(one.look(), other.look());
    first.and(second).expect("looked");
    assert_eq!(play.titles(), ["100 dead letters"]);
    play.stage.clock.pass(2 * MINUTE);
    play.move_all(vec![Move::End { name: "dead:id7".into(), why: "it runs again".into() }]).await;
    let (first, second) = tokio::join!(other.look(), one.look());
    first.and(second).expect("looked");
    assert_eq!(play.titles()[1..], ["Resolved: dead letter"]);
}

#[tokio::test]
async fn another_server_tells_when_the_one_that_had_the_turn_is_gone() {
    let play = Play::new();
    let [mut other] = play.tellers();
    play.begin(1).await;
    let until = play.stage.clock.now().plus_ms(TURN_MS);
    play.move_all(vec![asked(&play.incident("id0").await, until)]).await;
    other.look().await.expect("looked");
    assert_eq!(play.titles(), [""; 0], "it is another's turn");
    play.stage.clock.pass(MINUTE);
    other.look().await.expect("looked");
    assert_eq!(play.titles().len(), 1);
}

#[tokio::test]
async fn a_turn_that_a_wrong_clock_made_endless_is_none() {
    let play = Play::new();
    let [mut server] = play.tellers();
    play.begin(1).await;
    let until = play.stage.clock.now().plus_ms(3 * TURN_MS);
    play.move_all(vec![asked(&play.incident("id0").await, until)]).await;
    server.look().await.expect("looked");
    assert_eq!(play.titles().len(), 1);
}

#[tokio::test]
async fn a_server_that_cannot_tell_gives_the_turn_to_another() {
    let play = Play::new();
    let [mut cut_off, mut other] = play.tellers();
    play.begin(1).await;
    play.heard.away.store(true, Ordering::Relaxed);
    cut_off.look().await.expect("looked");
    play.heard.away.store(false, Ordering::Relaxed);
    other.look().await.expect("looked");
    assert_eq!(play.titles().len(), 1, "at once");
}

#[tokio::test]
async fn servers_that_yield_to_each_other_give_their_turns_back() {
    let play = Play::new();
    let [mut server] = play.tellers();
    play.begin(2).await;
    let both = [play.incident("id0").await, play.incident("id1").await];
    let until = play.stage.clock.now().plus_ms(TURN_MS);
    // As this one asks for the turn of one incident, another server gets that of the other.
    let (known, is_first) = (both.clone(), AtomicBool::new(true));
    play.watch(move |command| match moves(command) {
        [Move::Tell { name, .. }] if is_first.swap(false, Ordering::Relaxed) => {
            let other = known.iter().find(|incident| incident.name() != *name).expect("there are two");
            vec![Command::Change(Change::MoveIncidents(vec![asked(other, until)]), None)]
        }
        _ => Vec::new(),
    });
    server.look().await.expect("looked");
    assert_eq!(play.titles(), [""; 0]);
    let (now, mut tellers) = (play.stage.clock.now(), Vec::new());
    for incident in &both {
        let about = incident.about.clone();
        tellers.extend(play.incident(&about).await.told_by(now).map(str::to_owned));
    }
    assert_eq!(tellers, ["another"]);
    play.move_all(both.iter().map(|incident| asked(incident, UnixMs(0))).collect()).await;
    server.look().await.expect("looked");
    assert_eq!(play.titles(), ["2 dead letters"]);
}

#[tokio::test]
async fn the_turn_lasts_as_long_as_it_takes_to_write_down_what_was_told() {
    let play = Play::new();
    // A clone shares the state.
    drop(play.stage.store.as_ref().clone().with_limits(StepLimits { moves: 20, ..StepLimits::ONE_WRITER }));
    let [mut server] = play.tellers();
    play.begin(100).await;
    let (clock, until, steps) = (Arc::clone(&play.stage.clock), Mutex::new(UnixMs(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&steps);
    play.watch(move |command| {
        match moves(command) {
            [Move::Tell { teller, .. }] => *until.lock() = teller.until,
            [Move::Told { .. }, ..] => {
                assert!(*until.lock() > clock.now(), "another server could tell the rest again");
                clock.pass(25_000);
                counted.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        Vec::new()
    });
    server.look().await.expect("looked");
    assert_eq!((play.titles().len(), steps.load(Ordering::Relaxed)), (1, 5));
}
