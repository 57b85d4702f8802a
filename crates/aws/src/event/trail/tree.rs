//! All chained events by place, against the checkpoints among them; and those against the checkpoints that were told outside.

use std::collections::VecDeque;

use runvoy_model::event::{Entity, EntityType};
use runvoy_model::id::Id;
use runvoy_model::record::ONLY;
use runvoy_model::verify::{BadEvent, Problem, TreeCheck, Verdict, label};
use runvoy_model::witness::Witness;

use super::Trail;
use super::export::Export;
use crate::event::row;
use crate::event::segment::Segment;
use crate::fault::Fault;

/// So many checkpoints are read at once.
const ROWS: usize = 200;

/// Checks everything up to place `last`; returns how many chained events the log has up to there. `told` is the last checkpoint that was told
/// outside before the look began.
pub(super) async fn check(trail: &Trail, last: u64, told: u64, verdict: &mut Verdict) -> Result<u64, Fault> {
    let mut marks = Marks { trail, last, first: 1, read: VecDeque::new(), is_at_end: false, fits: true };
    let mut export = trail.witnesses.as_ref().map(|witnesses| Export::new(witnesses, told));
    let (mut tree, mut leaves, mut first) = (TreeCheck::default(), 0, 1);
    while first <= last {
        let segments = trail.log.segments((first, last)).await?;
        if segments.is_empty() {
            verdict.note(missing(first, last));
            break;
        }
        for segment in &segments {
            if segment.first != first {
                verdict.note(missing(first, segment.first.saturating_sub(1)));
            }
            first = segment.last + 1;
        }
        for known in segments.iter().flat_map(Segment::events).filter(|known| known.leaf.place <= last) {
            marks.compare_before(known.leaf.place, &mut tree, export.as_mut(), verdict).await?;
            if known.leaf.kind.is_chained() {
                leaves += 1;
                tree.append(known.leaf.id, &known.leaf.mac);
            }
        }
    }
    marks.compare_before(u64::MAX, &mut tree, export.as_mut(), verdict).await?;
    if let Some(export) = export {
        export.finish(verdict).await?;
    }
    verdict.checkpoint_at = tree.last().map(|witness| witness.time);
    Ok(leaves)
}

/// Places that no segment has.
fn missing(first: u64, last: u64) -> BadEvent {
    let message = format!("the log has nothing at places {first} to {last}");
    BadEvent { place: first, ..super::store(Problem::Removed, message) }
}

/// The checkpoints in the log, ahead of the events.
struct Marks<'t> {
    trail: &'t Trail,
    last: u64,
    first: u64,
    read: VecDeque<(Id, Witness)>,
    is_at_end: bool,
    /// The tree has met every checkpoint so far; what comes after one that it does not meet says nothing more.
    fits: bool,
}

impl Marks<'_> {
    /// Compares every checkpoint that covers nothing at this place or later.
    async fn compare_before(
        &mut self,
        place: u64,
        tree: &mut TreeCheck,
        mut export: Option<&mut Export<'_>>,
        verdict: &mut Verdict,
    ) -> Result<(), Fault> {
        loop {
            if self.read.is_empty() && !self.is_at_end {
                self.read_on(verdict).await?;
            }
            let Some((id, witness)) = self.read.pop_front_if(|(_, witness)| witness.up_to < place) else { return Ok(()) };
            if self.fits
                && let Err(bad) = tree.compare(id, &witness)
            {
                self.fits = false;
                verdict.note(*bad);
            }
            if let Some(export) = export.as_deref_mut() {
                export.compare(&witness, verdict).await?;
            }
        }
    }

    async fn read_on(&mut self, verdict: &mut Verdict) -> Result<(), Fault> {
        let ledger = Entity { kind: EntityType::Ledger, id: ONLY.to_owned() };
        let rows = self.trail.log.rows_of(&ledger, (self.first, self.last), false, ROWS).await?;
        self.is_at_end = rows.len() < ROWS;
        for item in &rows {
            // One that cannot be read was named by its chain already.
            let Ok(stored) = row::decode(item) else { continue };
            self.first = stored.place + 1;
            match Witness::of(&stored.event) {
                Some((witness, _)) => self.read.push_back((stored.event.id, witness)),
                None if stored.event.kind.is_trail() => verdict.note(BadEvent {
                    place: stored.place,
                    entity: label(&ledger),
                    number: stored.event.number,
                    event_id: Some(stored.event.id),
                    problem: Problem::Unreadable,
                    message: "the checkpoint cannot be read".to_owned(),
                }),
                None => {}
            }
        }
        Ok(())
    }
}
