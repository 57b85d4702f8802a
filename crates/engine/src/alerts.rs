//! Tells people of incidents: one message for all that wait, no more often than configured, again and again until it was taken.
//!
//! An incident is marked as told only after its message was taken, and stays in the store until then: a webhook that is away loses nothing and holds
//! up nobody but this agent. If this process ends between the two, the message comes a second time: at least once, never not at all. Where several
//! servers share the store, whoever has the turn of the worst incident tells all, and marks that one last; who cannot tell gives the turn back.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use runvoy_model::change::Change;
use runvoy_model::incident::{Incident, Move, Phase, TURN_MS, Teller};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{AlertError, Alerter, Notice};
use runvoy_ports::record::IncidentMark;
use tokio::sync::Notify;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::incident::MOST_UNHEARD;
use crate::notice::{Composed, MOST_NAMED, Waiting, compose};

/// How often is looked at least.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Whatever brings messages has this long, whatever its own limits are.
const TELL_WITHIN: Duration = Duration::from_secs(30);
/// The first wait after a failure; each one is twice the one before.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// Who asks for a longer wait than this does not get it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// What the engine knows of telling people.
#[derive(Default)]
pub(crate) struct AlertDesk {
    alerter: OnceLock<Arc<dyn Alerter>>,
    wake: Notify,
    standing: Mutex<AlertStanding>,
}

/// How telling people went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertStanding {
    /// Where messages go, if they go anywhere.
    pub place: Option<String>,
    /// When the last one was taken.
    pub told_at: Option<UnixMs>,
    /// When one was last not taken, and why; absent after one that was.
    pub failed: Option<(UnixMs, String)>,
    /// How many incidents wait to be reported.
    pub waiting: usize,
}

impl AlertDesk {
    /// Something is to be told.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn is_configured(&self) -> bool {
        self.alerter.get().is_some()
    }

    fn note(&self, now: UnixMs, told: &Result<(), AlertError>) {
        let mut standing = self.standing.lock();
        match told {
            Ok(()) => (standing.told_at, standing.failed) = (Some(now), None),
            Err(error) => standing.failed = Some((now, error.to_string())),
        }
    }
}

impl Engine {
    /// Tells the engine what brings people messages.
    pub fn attach_alerter(&self, alerter: Arc<dyn Alerter>) {
        self.alerts.standing.lock().place = Some(alerter.place().to_owned());
        let attached = self.alerts.alerter.set(alerter);
        debug_assert!(attached.is_ok(), "one alerter is told");
    }

    /// How telling people went so far.
    pub fn alert_standing(&self) -> AlertStanding {
        self.alerts.standing.lock().clone()
    }

    /// Sends people a message that says nothing is wrong; where it went.
    pub async fn test_alert(&self, caller: &Caller) -> Result<String, EngineError> {
        caller.may(Action::Diagnose)?;
        let Some(alerter) = self.alerts.alerter.get() else {
            return Err(EngineError::conflict("no alerts are configured: set alerts.slack_webhook_url", "no message was sent"));
        };
        self.ports.store.change(self.user_step(caller, "alerts.test"), Change::NoteCall(caller.email.clone()), None).await?;
        let notice = Notice {
            title: "Test: runvoy alerts arrive here".into(),
            begun: Vec::new(),
            more: vec![format!("{} asked for this message; nothing is wrong", caller.email)],
            over: Vec::new(),
        };
        let told = tell(&**alerter, &notice).await;
        self.alerts.note(self.now(), &told);
        told.map_err(|error| {
            EngineError::conflict(format!("the alert was not delivered: {error}"), "check alerts.slack_webhook_url, then try again")
        })?;
        Ok(alerter.place().to_owned())
    }
}

async fn tell(alerter: &dyn Alerter, notice: &Notice) -> Result<(), AlertError> {
    let late = |_| Err(AlertError::new(format!("no answer within {} s", TELL_WITHIN.as_secs())));
    tokio::time::timeout(TELL_WITHIN, alerter.tell(notice)).await.unwrap_or_else(late)
}

/// The turn to tell, where several servers could: that of one incident.
struct Turn {
    name: String,
    began_at: UnixMs,
    until: UnixMs,
}

/// The agent.
pub struct Alerts {
    engine: Arc<Engine>,
    alerter: Arc<dyn Alerter>,
    /// What this server has asked for and not given back.
    turn: Option<Turn>,
    /// What was told and is not yet written down.
    unmarked: Vec<Move>,
    /// No message before this, by monotonic time.
    not_before: Duration,
    failures: u32,
    /// How many incidents were forgotten because they were too many, and nobody was told that yet.
    forgotten: usize,
}

impl Alerts {
    /// The agent of an engine that knows what brings people messages; `None` where it does not.
    pub fn new(engine: Arc<Engine>) -> Option<Self> {
        let alerter = Arc::clone(engine.alerts.alerter.get()?);
        Some(Self { engine, alerter, turn: None, unmarked: Vec::new(), not_before: Duration::ZERO, failures: 0, forgotten: 0 })
    }

    /// Looks when something is to be told, and every few seconds, until dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "incidents could not be read");
            }
            tokio::select! {
                () = self.engine.alerts.wake.notified() => {}
                () = tokio::time::sleep(self.pause()) => {}
            }
        }
    }

    /// Not beyond the time when something waiting may be told.
    fn pause(&self) -> Duration {
        match self.not_before.checked_sub(self.engine.ports.clock.monotonic()) {
            Some(left) if !left.is_zero() => LOOK_EVERY.min(left + Duration::from_millis(1)),
            // Servers that yielded to each other must not meet again.
            _ if self.engine.config.shares_store() => LOOK_EVERY + Duration::from_millis(2 * u64::from(self.engine.ports.ids.random()[0])),
            _ => LOOK_EVERY,
        }
    }

    /// Tells people of what waits, if it is time.
    pub async fn look(&mut self) -> Result<(), EngineError> {
        self.mark().await?;
        if self.engine.ports.clock.monotonic() < self.not_before {
            return Ok(());
        }
        let forgotten = self.engine.forget_unheard(MOST_UNHEARD).await?;
        if forgotten > 0 {
            self.forgotten = self.forgotten.saturating_add(forgotten);
            tracing::warn!(forgotten, kept = MOST_UNHEARD, "too many alerts could not be delivered: the oldest are dropped");
        }
        let Some(waiting) = self.take_turn().await? else { return Ok(()) };
        let composed = compose(&waiting, self.engine.now(), self.engine.config.pages());
        self.engine.alerts.standing.lock().waiting = composed.as_ref().map_or(0, |composed| composed.told.len());
        let Some(Composed { notice, mut told }) = composed else { return self.give_back().await };
        // The turn ends with the mark on the incident that it was asked for: that comes last.
        let turn = self.turn.as_ref().map(|turn| turn.name.clone());
        told.sort_by_key(|told| matches!(told, Move::Told { name, .. } if Some(name) == turn.as_ref()));
        let outcome = tell(&*self.alerter, &notice).await;
        self.engine.alerts.note(self.engine.now(), &outcome);
        // The clock is read again: a message may take its time.
        let now = self.engine.ports.clock.monotonic();
        match outcome {
            Ok(()) => {
                metrics::counter!("runvoy_alerts_sent_total").increment(1);
                (self.failures, self.not_before, self.unmarked) = (0, now + self.engine.config.alert_every, told);
                self.forgotten = 0;
                self.mark().await
            }
            Err(error) => {
                metrics::counter!("runvoy_alerts_failed_total").increment(1);
                let wait = self.backoff(error.retry_after);
                tracing::warn!(%error, place = self.alerter.place(), waiting = told.len(), again_in_s = wait.as_secs(), "incidents were not reported");
                (self.failures, self.not_before) = (self.failures.saturating_add(1), now + wait);
                // Another server may reach people where this one cannot.
                self.give_back().await
            }
        }
    }

    /// What waits, where this server is the one that tells it: it asks for the turn of the worst, and looks again at what waits when it has got it.
    async fn take_turn(&mut self) -> Result<Option<Waiting>, EngineError> {
        let (engine, waiting) = (Arc::clone(&self.engine), self.waiting().await?);
        let first = waiting.begun.first().or(waiting.over.first());
        let Some(first) = first.filter(|_| engine.config.shares_store()) else { return Ok(Some(waiting)) };
        let name = engine.worker.id.to_string();
        let is_anothers = |waiting: &Waiting| {
            let now = engine.now();
            waiting.begun.iter().chain(&waiting.over).filter_map(|incident| incident.told_by(now)).any(|teller| teller != name)
        };
        if is_anothers(&waiting) {
            return Ok(None);
        }
        let until = engine.now().plus_ms(TURN_MS);
        self.turn = Some(Turn { name: first.name(), began_at: first.began_at, until });
        self.hold(until).await?;
        let record = engine.ports.records.record(Kind::Incident, &first.name()).await?;
        let asked = record.as_ref().and_then(Record::incident).filter(|incident| incident.began_at == first.began_at);
        if asked.and_then(|incident| incident.told_by(engine.now())) != Some(name.as_str()) {
            self.turn = None;
            return Ok(None);
        }
        let waiting = self.waiting().await?;
        if is_anothers(&waiting) {
            // That one may have yielded to us just so.
            self.give_back().await?;
            return Ok(None);
        }
        Ok(Some(waiting))
    }

    /// Has the turn last until then, unless it is another's by now.
    async fn hold(&mut self, until: UnixMs) -> Result<(), EngineError> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let teller = Teller { name: self.engine.worker.id.to_string(), until };
        let tell = Move::Tell { name: turn.name.clone(), began_at: turn.began_at, teller };
        self.engine.move_incidents("alerts", &[tell]).await?;
        if let Some(turn) = &mut self.turn {
            turn.until = until;
        }
        Ok(())
    }

    /// Another server may have the turn at once. Where that cannot be written, it ends by itself.
    async fn give_back(&mut self) -> Result<(), EngineError> {
        let given = self.hold(UnixMs(0)).await;
        self.turn = None;
        given
    }

    /// Writes down what was told. Until that is done nothing else is told: it would be told again.
    async fn mark(&mut self) -> Result<(), EngineError> {
        while !self.unmarked.is_empty() {
            let some = self.unmarked.len().min(self.engine.moves_at_once());
            self.engine.move_incidents("alerts", &self.unmarked[..some]).await?;
            self.unmarked.drain(..some);
            self.engine.alerts.standing.lock().waiting = self.unmarked.len();
            // Many take longer than a turn.
            let now = self.engine.now();
            if !self.unmarked.is_empty() && self.turn.as_ref().is_some_and(|turn| turn.until.ms_since(now) < TURN_MS / 2) {
                self.hold(now.plus_ms(TURN_MS)).await?;
            }
        }
        self.turn = None;
        Ok(())
    }

    /// What the next message is about: as much as one may mark, and no more of it whole than one names.
    async fn waiting(&self) -> Result<Waiting, EngineError> {
        let (begun, more_begun) = self.standing(Phase::Begun).await?;
        let (over, more_over) = self.standing(Phase::Over).await?;
        Ok(Waiting { begun, more_begun, over, more_over, forgotten: self.forgotten })
    }

    async fn standing(&self, phase: Phase) -> Result<(Vec<Incident>, Vec<IncidentMark>), EngineError> {
        let mut marks = self.engine.incidents(phase, None, MOST_UNHEARD).await?;
        let more = marks.split_off(marks.len().min(MOST_NAMED));
        let mut named = Vec::with_capacity(marks.len());
        for mark in &marks {
            // What has moved on since is for the next message.
            named.extend(self.engine.incident(mark, phase).await?);
        }
        Ok((named, more))
    }

    /// Twice as long as the last time, with up to a quarter more; at least what was asked for.
    fn backoff(&self, retry_after: Option<Duration>) -> Duration {
        let doubled = FIRST_BACKOFF.saturating_mul(1 << self.failures.min(16)).min(LONGEST_BACKOFF);
        let jitter = doubled.mul_f64(f64::from(self.engine.ports.ids.random()[0]) / 1024.0);
        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        (doubled + jitter).max(asked)
    }
}
