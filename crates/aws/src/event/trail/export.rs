//! The checkpoints that were told outside, merged with the log's own by number.

use std::collections::VecDeque;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use runvoy_model::time::UnixMs;
use runvoy_model::verify::{BadEvent, Problem, Verdict, compare_export, missing_checkpoint, missing_export};
use runvoy_model::witness::Witness;

use crate::event::witness::{BucketWitnesses, Told};
use crate::fault::Fault;

/// So many are read at once.
const PAGE: i32 = 200;
/// So many at the same time.
const AT_ONCE: usize = 8;

pub(super) struct Export<'w> {
    witnesses: &'w BucketWitnesses,
    /// The last that was told before the look began.
    told: u64,
    read: VecDeque<Told>,
    after: u64,
    is_at_end: bool,
    /// Some checkpoint of the log was told.
    has_matched: bool,
    /// The newest checkpoint of the log, and the first after the last one that was told.
    newest: u64,
    unmatched: Option<Witness>,
}

impl<'w> Export<'w> {
    pub fn new(witnesses: &'w BucketWitnesses, told: u64) -> Self {
        Self { witnesses, told, read: VecDeque::new(), after: 0, is_at_end: false, has_matched: false, newest: 0, unmatched: None }
    }

    /// The first that was not compared yet is there to be looked at.
    async fn fill(&mut self) -> Result<(), Fault> {
        if !self.read.is_empty() || self.is_at_end {
            return Ok(());
        }
        let numbers = self.witnesses.numbers(self.after, PAGE).await?;
        self.is_at_end = numbers.is_empty();
        self.after = numbers.last().copied().unwrap_or(self.after);
        let witnesses = self.witnesses;
        let told = stream::iter(numbers).map(|number| async move { witnesses.told(number).await });
        self.read = told.buffered(AT_ONCE).try_collect::<Vec<_>>().await?.into();
        Ok(())
    }

    /// The log's next checkpoint.
    pub async fn compare(&mut self, stored: &Witness, verdict: &mut Verdict) -> Result<(), Fault> {
        self.newest = stored.number;
        loop {
            self.fill().await?;
            let Some(told) = self.read.pop_front_if(|told| told.number <= stored.number) else { break };
            match &told.witness {
                None => verdict.note(BadEvent { place: stored.up_to, ..not_signed(told.number) }),
                Some(exported) if told.number < stored.number => verdict.note(missing_checkpoint(exported)),
                Some(exported) => compare_export(exported, stored).unwrap_or_else(|bad| verdict.note(*bad)),
            }
            if told.number == stored.number {
                (self.has_matched, self.unmatched) = (true, None);
                return Ok(());
            }
        }
        // Exports that were begun later than the log prove nothing about what was before; a hole in them is one.
        self.unmatched.get_or_insert_with(|| stored.clone());
        if !self.read.is_empty() && self.has_matched {
            verdict.note(missing_export(stored));
        }
        Ok(())
    }

    /// All checkpoints of the log were seen. The newest one may be about to be told.
    pub async fn finish(mut self, verdict: &mut Verdict) -> Result<(), Fault> {
        loop {
            self.fill().await?;
            // What was told after the look began says nothing.
            let Some(told) = self.read.pop_front_if(|told| told.number <= self.told) else { break };
            verdict.note(told.witness.as_ref().map_or_else(|| not_signed(told.number), missing_checkpoint));
        }
        match self.unmatched.filter(|unmatched| unmatched.number < self.newest) {
            // Exporting has failed since, or the newest objects were removed: the next export that succeeds leaves no such end.
            Some(unmatched) if self.has_matched => verdict.unexported_from = Some(unmatched.number),
            Some(unmatched) => verdict.note(missing_export(&unmatched)),
            None => {}
        }
        Ok(())
    }
}

fn not_signed(number: u64) -> BadEvent {
    let nothing = Witness { number, time: UnixMs(0), up_to: u64::MAX, leaves: 0, root: [0; 32] };
    let message = format!("the exported checkpoint {number} does not match its signature");
    BadEvent { problem: Problem::Altered, message, ..missing_export(&nothing) }
}
