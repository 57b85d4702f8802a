//! Incidents as the agents handle them: moved in steps of a bounded size, and forgotten when they are long over or too many.

use runvoy_model::change::Change;
use runvoy_model::command::{Answer, Command};
use runvoy_model::incident::{Incident, IncidentKind, Move, Phase, name, one_line};
use runvoy_model::record::Kind;
use runvoy_ports::record::{IncidentMark, IncidentQuery};
use runvoy_ports::store::StoreError;

use crate::Engine;
use crate::error::EngineError;

/// What is over is kept this long.
const KEPT_MS: i64 = 7 * DAY_MS;
/// A dead letter that nobody redrives is never over: that it is there is told by `queues dead`.
const DEAD_KEPT_MS: i64 = DAY_MS;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// So much of a reason is kept.
const MOST_WHY: usize = 250;
/// So many dead letters, and so many incidents that are over, wait to be told.
pub(crate) const MOST_UNHEARD: usize = 10_000;

impl Engine {
    /// Incidents that stand like this, the worst first. Never remembered: incidents change without a new number of changes.
    pub(crate) async fn incidents(&self, phase: Phase, kind: Option<IncidentKind>, limit: usize) -> Result<Vec<IncidentMark>, EngineError> {
        Ok(self.ports.records.incidents(IncidentQuery { phase, kind, limit }).await?)
    }

    /// One incident whole, if it still stands as it did.
    pub(crate) async fn incident(&self, mark: &IncidentMark, phase: Phase) -> Result<Option<Incident>, EngineError> {
        let record = self.ports.records.record(Kind::Incident, &mark.name).await?;
        let incident = record.and_then(|record| record.incident().cloned());
        Ok(incident.filter(|incident| incident.began_at == mark.began_at && incident.phase().0 == phase))
    }

    /// So many incidents are moved in one step.
    pub(crate) fn moves_at_once(&self) -> usize {
        self.ports.store.step_limits().moves
    }

    /// Moves incidents, and lets those know who tell people.
    pub(crate) async fn move_incidents(&self, part: &'static str, moves: &[Move]) -> Result<(), EngineError> {
        for some in moves.chunks(self.moves_at_once()) {
            let command = Command::Change(Change::MoveIncidents(some.to_vec()), None);
            match self.ports.store.apply(self.system_step(part), command).await? {
                Answer::Unchanged => {}
                Answer::Refused(refusal) => return Err(StoreError::Refused(refusal).into()),
                other => return Err(EngineError::Internal(format!("a step was answered as another: {other:?}"))),
            }
        }
        if moves.iter().any(|one| matches!(one, Move::Begin(_) | Move::End { .. })) {
            self.alerts.wake();
        }
        Ok(())
    }

    /// A part of the platform could not hand on what happened, and why; or it can.
    pub(crate) async fn note_delivery(&self, part: &str, failed: Option<String>) -> Result<(), EngineError> {
        let one = match failed {
            Some(why) => Move::Begin(Box::new(Incident::begun(IncidentKind::Delivery, part, one_line(&why, MOST_WHY), self.now()))),
            None => Move::End { name: name(IncidentKind::Delivery, part), why: "it works again".to_owned() },
        };
        self.move_incidents("incidents", &[one]).await
    }

    /// Forgets incidents that are long over, and dead letters that people know of. While somebody is to be told of one, it is kept.
    pub(crate) async fn prune_incidents(&self) -> Result<(), EngineError> {
        let mut old: Vec<(Phase, IncidentKind, i64)> = IncidentKind::ALL.map(|kind| (Phase::Closed, kind, KEPT_MS)).into();
        old.push((Phase::Told, IncidentKind::Dead, DEAD_KEPT_MS));
        if !self.alerts.is_configured() {
            old.extend(IncidentKind::ALL.map(|kind| (Phase::Over, kind, KEPT_MS)));
            old.push((Phase::Begun, IncidentKind::Dead, DEAD_KEPT_MS));
        }
        for (phase, kind, kept_ms) in old {
            let before = self.now().plus_ms(-kept_ms);
            self.forget_oldest(phase, kind, usize::MAX, |mark| mark.since < before).await?;
        }
        Ok(())
    }

    /// Forgets the oldest of what nobody was told of and that is too much to keep; how many those were. What goes on by itself is never too much:
    /// there is no more of it than runs.
    pub(crate) async fn forget_unheard(&self, most: usize) -> Result<usize, EngineError> {
        let mut forgotten = 0;
        for (phase, kind, count) in self.ports.records.incident_counts().await? {
            let may_go = phase == Phase::Over || (phase == Phase::Begun && kind == IncidentKind::Dead);
            let too_many = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(most);
            if may_go && too_many > 0 {
                forgotten += self.forget_oldest(phase, kind, too_many, |_| true).await?;
            }
        }
        Ok(forgotten)
    }

    /// Forgets so many of the oldest, as long as they are `old`.
    async fn forget_oldest(
        &self,
        phase: Phase,
        kind: IncidentKind,
        most: usize,
        old: impl Fn(&IncidentMark) -> bool,
    ) -> Result<usize, EngineError> {
        let mut forgotten = 0;
        while forgotten < most {
            let limit = self.moves_at_once().min(most - forgotten);
            let oldest = self.incidents(phase, Some(kind), limit).await?;
            let moves: Vec<Move> = oldest
                .into_iter()
                .take_while(|mark| old(mark))
                .map(|mark| Move::Forget { name: mark.name, began_at: mark.began_at })
                .collect();
            self.move_incidents("incidents", &moves).await?;
            forgotten += moves.len();
            if moves.len() < limit {
                break;
            }
        }
        if forgotten > 0 {
            tracing::debug!(incidents = forgotten, kind = kind.as_str(), "incidents are forgotten");
        }
        Ok(forgotten)
    }
}
