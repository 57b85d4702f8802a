//! Reads from the logs how an attempt's events stand, and makes the lines that a crash left out: what is stored decides, never what a worker sends again.

use std::ops::RangeInclusive;

use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Kept, Place};
use runvoy_model::log::{Block, BlockBuilder};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogError};

use super::find::{Key, Walk};
use super::ledger::Ledger;
use super::standing::Standing;
use crate::Engine;

/// So many records back from the end are looked at first.
const FIRST_REACH: u64 = 64;
/// Each time that was not enough, so many times more.
const FURTHER: u64 = 8;

/// The end of a log of events, as one attempt needs it.
#[derive(Default)]
struct Tail {
    high: Option<Key>,
    /// The furthest of the attempt.
    last: Option<Place>,
    /// The attempt's last events, from the last one on whose lines all that is before has.
    events: Vec<Kept>,
}

impl Engine {
    /// The ledger of an attempt as the logs have it, with all lines made.
    pub(super) async fn load_ledger(&self, standing: &Standing) -> Result<Ledger, LogError> {
        let (id, attempt) = (standing.execution.id, standing.attempt);
        let mut ledger = Ledger::new(attempt);
        let stand = self.stand(id.event_log(), attempt).await?;
        let lines = self.stand(id, attempt).await?;
        (ledger.next_record, ledger.next_line, ledger.next_line_seq) = (stand.next_seq, stand.next_line, lines.next_seq);
        if stand.next_line == 1 {
            return Ok(ledger);
        }
        let tail = self.tail(id.event_log(), attempt, stand, lines.next_seq).await?;
        if let Some(last) = tail.events.last() {
            ledger.straggled = last.mark.straggled;
            ledger.note(last.event.place);
            (ledger.lines, ledger.full, ledger.mask_stands) = (last.mark.lines, last.mark.full, last.mark.masks);
            if ledger.straggled {
                // The last one that came is not the furthest.
                ledger.last = self.furthest(id.event_log(), attempt).await?;
            }
        }
        ledger.high = ledger.high.max(tail.high);
        ledger.last = ledger.last.max(tail.last);
        for kept in &tail.events {
            self.repeat_lines(standing, &mut ledger, kept).await?;
        }
        Ok(ledger)
    }

    /// Makes the lines of an event that is stored, where they are not there yet.
    async fn repeat_lines(&self, standing: &Standing, ledger: &mut Ledger, kept: &Kept) -> Result<(), LogError> {
        if kept.mark.full {
            return Ok(());
        }
        let mut builder = BlockBuilder::default();
        ledger.lines = kept.mark.lines;
        ledger.lines.write(&kept.event.output, &self.line_times(standing), &mut builder);
        let (first_seq, block) = (kept.mark.first_line_seq, builder.take());
        let end = first_seq + u64::from(block.count);
        if end > ledger.next_line_seq {
            tracing::info!(execution = %standing.execution.id, "lines of published output were missing and are written again");
            self.append_lines(standing, ledger, first_seq, block).await?;
        }
        Ok(())
    }

    /// Appends lines of an attempt. A log that is full takes no more of them, and says so.
    pub(super) async fn append_lines(
        &self,
        standing: &Standing,
        ledger: &mut Ledger,
        first_seq: u64,
        block: Block,
    ) -> Result<(), LogError> {
        let (id, lines, bytes) = (standing.execution.id, u64::from(block.count), block.data.len() as u64);
        let append = Append { attempt: standing.attempt, first_seq: Some(first_seq), late: standing.late, block };
        match self.ports.logs.append(id, append).await {
            Ok(appended) => {
                ledger.next_line_seq = appended.next_seq;
                metrics::counter!("runvoy_log_lines_total").increment(lines);
                metrics::counter!("runvoy_log_bytes_total").increment(bytes);
                Ok(())
            }
            Err(LogError::Full { limit_bytes }) => {
                ledger.full = true;
                self.note(id, &format!("the log is full ({limit_bytes} bytes): later output is only in the job's events")).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The times that lines may have: a worker's clock may be far from the server's, and retention goes by them.
    pub(super) fn line_times(&self, standing: &Standing) -> RangeInclusive<UnixMs> {
        let submitted_at = standing.execution.submitted_at;
        submitted_at..=self.now().max(submitted_at)
    }

    /// The end of a log of events, as far back as an attempt of which `lines_kept` lines are there needs it.
    async fn tail(&self, log: ExecutionId, attempt: u32, stand: Appended, next_line_seq: u64) -> Result<Tail, LogError> {
        let first_line = self.ports.logs.extent(log).await?.first_line.max(1);
        let mut reach = FIRST_REACH;
        loop {
            let from = stand.next_line.saturating_sub(reach).max(first_line);
            let (mut tail, mut walk) = (Tail::default(), Walk::from(from));
            while let Some(events) = self.walk(log, &mut walk).await? {
                events.into_iter().for_each(|kept| tail.take(kept, attempt, next_line_seq));
            }
            let is_enough = tail.events.first().is_some_and(|kept| kept.mark.first_line_seq <= next_line_seq);
            if from == first_line || (tail.high.is_some() && (is_enough || stand.next_seq == 1)) {
                return Ok(tail);
            }
            reach *= FURTHER;
        }
    }

    /// The furthest event of an attempt some of whose events came behind later ones.
    async fn furthest(&self, log: ExecutionId, attempt: u32) -> Result<Option<Place>, LogError> {
        let mut walk = Walk::from(self.seek(log, (attempt, Place::FIRST), super::find::of_events).await?);
        let mut furthest = None;
        while let Some(events) = self.walk(log, &mut walk).await? {
            let places = events.iter().filter(|kept| kept.attempt == attempt).map(|kept| kept.event.place);
            furthest = furthest.max(places.max());
        }
        Ok(furthest)
    }
}

impl Tail {
    fn take(&mut self, kept: Kept, attempt: u32, next_line_seq: u64) {
        if kept.mark.in_order {
            self.high = self.high.max(Some((kept.attempt, kept.event.place)));
        }
        if kept.attempt == attempt {
            self.last = self.last.max(Some(kept.event.place));
            if kept.mark.first_line_seq <= next_line_seq {
                self.events.clear();
            }
            self.events.push(kept);
        }
    }
}
