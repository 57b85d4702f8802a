//! Incidents as the agents handle them: read, moved in steps of a bounded size, and forgotten when they are long over.

use runvoy_model::change::Change;
use runvoy_model::command::{Answer, Command};
use runvoy_model::incident::{Incident, IncidentKind, Move, name, shortened};
use runvoy_model::record::{Body, Kind};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::StoreError;

use crate::Engine;
use crate::error::EngineError;

/// So many incidents are moved in one step: what a store with conditional writes can take.
const MOVES_AT_ONCE: usize = 25;
/// What is over is kept this long, and what cannot be over by itself.
const KEPT_MS: i64 = 7 * 24 * 3600 * 1000;
/// So much of a reason is kept.
const MOST_WHY: usize = 500;

impl Engine {
    /// Every incident there is, by the name of its record. Never remembered: incidents change without a new number of changes.
    pub(crate) async fn incidents(&self) -> Result<Vec<(String, Incident)>, EngineError> {
        let records = self.ports.records.records(Kind::Incident).await?;
        Ok(records
            .into_iter()
            .filter_map(|record| match record.body {
                Some(Body::Incident(incident)) => Some((record.name, incident)),
                _ => None,
            })
            .collect())
    }

    /// Moves incidents, and lets those know who tell people.
    pub(crate) async fn move_incidents(&self, part: &'static str, moves: Vec<Move>) -> Result<(), EngineError> {
        for some in moves.chunks(MOVES_AT_ONCE) {
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
            Some(why) => Move::Begin(Box::new(Incident::begun(IncidentKind::Delivery, part, shortened(&why, MOST_WHY), self.now()))),
            None => Move::End { name: name(IncidentKind::Delivery, part), why: "it works again".to_owned() },
        };
        self.move_incidents("incidents", vec![one]).await
    }

    /// Forgets incidents that are long over. While somebody is to be told of one, it is kept.
    pub(crate) async fn prune_incidents(&self) -> Result<(), EngineError> {
        let (before, tells) = (self.now().plus_ms(-KEPT_MS), self.alerts.is_configured());
        let old = self.incidents().await?.into_iter().filter(|(_, incident)| is_old(incident, before, tells));
        let moves: Vec<Move> = old.map(|(name, incident)| Move::Forget { name, began_at: incident.began_at }).collect();
        if !moves.is_empty() {
            tracing::debug!(incidents = moves.len(), "incidents that are long over are forgotten");
        }
        self.move_incidents("incidents", moves).await
    }
}

fn is_old(incident: &Incident, before: UnixMs, tells: bool) -> bool {
    let waits = tells && incident.is_to_be_told();
    let since = match &incident.over {
        Some(over) => over.at,
        // A dead letter that nobody redrives is never over: that it is there is told by `queues dead`.
        None if incident.kind == IncidentKind::Dead => incident.began_at,
        None => return false,
    };
    since < before && !waits
}

#[cfg(test)]
mod tests {
    use runvoy_model::incident::Over;

    use super::*;

    #[test]
    fn only_what_is_over_and_told_is_forgotten() {
        let begun = |kind| Incident::begun(kind, "x", "y", UnixMs(10));
        let told = |kind| Incident { told_at: Some(UnixMs(11)), ..begun(kind) };
        let over = |incident: Incident, told_at| Incident { over: Some(Over { at: UnixMs(20), why: String::new(), told_at }), ..incident };
        let now = UnixMs(100);
        assert!(!is_old(&told(IncidentKind::Critical), now, true), "it goes on");
        assert!(is_old(&told(IncidentKind::Dead), now, true));
        assert!(!is_old(&begun(IncidentKind::Dead), now, true), "nobody was told");
        assert!(is_old(&begun(IncidentKind::Dead), now, false), "nobody is told");
        assert!(!is_old(&over(told(IncidentKind::Critical), None), now, true));
        assert!(is_old(&over(told(IncidentKind::Critical), Some(UnixMs(21))), now, true));
        assert!(!is_old(&over(told(IncidentKind::Critical), Some(UnixMs(21))), UnixMs(20), true), "not long enough");
    }
}
