//! All chained events by place, against the checkpoints among them; and those against the checkpoints that were told outside.

use std::collections::VecDeque;
use std::path::Path;

use runvoy_model::chain::AuditKey;
use runvoy_model::event::{Entity, EntityType, EventType};
use runvoy_model::id::Id;
use runvoy_model::record::ONLY;
use runvoy_model::verify::{BadEvent, Problem, TreeCheck, Verdict, compare_export, label, missing_checkpoint, missing_export};
use runvoy_model::witness::Witness;
use rusqlite::{Connection, OptionalExtension, params};

use crate::event::{decode_about, kind_code};
use crate::fault::Fault;
use crate::witness::{Line, Lines};

/// How many events are read in one snapshot.
const ROWS_AT_ONCE: i64 = 20_000;
/// So many checkpoints back a line that is there twice is known.
const REMEMBERED: usize = 1_000;
const LEAVES: &str = "SELECT seq, kind, id, mac FROM events NOT INDEXED WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
const NEXT_CHECKPOINT: &str = "SELECT seq, entity_kind, entity, number, kind, at, id, mac, context, properties FROM events \
     INDEXED BY events_kind WHERE kind = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT 1";

/// Where checkpoints were told, and how much had been before the store was looked at.
pub(super) struct Exported<'a> {
    pub(super) path: &'a Path,
    pub(super) told: u64,
}

/// Checks everything up to place `last`; returns how many chained events the table has up to there.
pub(super) fn check(
    conn: &Connection,
    key: &AuditKey,
    last: i64,
    exported: Option<Exported<'_>>,
    verdict: &mut Verdict,
) -> Result<u64, Fault> {
    let mut marks = Marks { conn, last, after: 0, next: None, fits: true };
    let mut export = exported.map(|exported| Export::open(exported, key)).transpose()?;
    let (mut tree, mut leaves, mut after) = (TreeCheck::default(), 0, 0);
    marks.step(verdict)?;
    loop {
        let mut statement = conn.prepare_cached(LEAVES)?;
        let mut rows = statement.query(params![after, last, ROWS_AT_ONCE])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            let (seq, kind): (i64, i64) = (row.get(0)?, row.get(1)?);
            (read, after) = (read + 1, seq);
            marks.compare_before(seq, &mut tree, export.as_mut(), verdict)?;
            if kind != kind_code(EventType::TaskHeartbeat) {
                leaves += 1;
                // An event whose id or link cannot be read was named by its chain already.
                tree.append(
                    Id::from_bytes(row.get(2).unwrap_or_default()),
                    &row.get::<_, Option<[u8; 32]>>(3).ok().flatten().unwrap_or_default(),
                );
            }
        }
        if read < ROWS_AT_ONCE {
            break;
        }
    }
    marks.compare_before(i64::MAX, &mut tree, export.as_mut(), verdict)?;
    if let Some(export) = export {
        export.finish(verdict)?;
    }
    verdict.checkpoint_at = tree.last().map(|witness| witness.time);
    Ok(leaves)
}

/// The checkpoints in the store, one ahead of the events.
struct Marks<'c> {
    conn: &'c Connection,
    last: i64,
    after: i64,
    next: Option<(Id, Witness)>,
    /// The tree has met every checkpoint so far; what comes after one that it does not meet says nothing more.
    fits: bool,
}

impl Marks<'_> {
    /// Compares every checkpoint that covers nothing at this place or later.
    fn compare_before(
        &mut self,
        place: i64,
        tree: &mut TreeCheck,
        mut export: Option<&mut Export<'_>>,
        verdict: &mut Verdict,
    ) -> Result<(), Fault> {
        while let Some((id, witness)) = self.next.take_if(|(_, witness)| i64::try_from(witness.up_to).is_ok_and(|up_to| up_to < place)) {
            if self.fits
                && let Err(bad) = tree.compare(id, &witness)
            {
                self.fits = false;
                verdict.note(*bad);
            }
            if let Some(export) = export.as_deref_mut() {
                export.compare(&witness, verdict)?;
            }
            self.step(verdict)?;
        }
        Ok(())
    }

    fn step(&mut self, verdict: &mut Verdict) -> Result<(), Fault> {
        let ledger = Entity { kind: EntityType::Ledger, id: ONLY.to_owned() };
        let mut statement = self.conn.prepare_cached(NEXT_CHECKPOINT)?;
        let values = params![kind_code(EventType::AuditCheckpoint), self.after, self.last];
        let found = statement.query_row(values, |row| Ok((row.get::<_, i64>(0)?, decode_about(row, ledger.clone())))).optional()?;
        let Some((seq, decoded)) = found else { return Ok(()) };
        self.after = seq;
        let stored = decoded?;
        match Witness::of(&stored.event) {
            Some((witness, _)) => self.next = Some((stored.event.id, witness)),
            None => verdict.note(BadEvent {
                place: stored.place,
                entity: label(&ledger),
                number: stored.event.number,
                event_id: Some(stored.event.id),
                problem: Problem::Unreadable,
                message: "the checkpoint cannot be read".to_owned(),
            }),
        }
        Ok(())
    }
}

/// The exported checkpoints, merged with the store's own by number.
struct Export<'a> {
    lines: Option<Lines<'a>>,
    told: u64,
    line: Option<Line>,
    /// The last checkpoints of the store that have a line, at most [`REMEMBERED`].
    matched: VecDeque<Witness>,
    /// The newest checkpoint of the store, and the first after the last line.
    newest: u64,
    unmatched: Option<Witness>,
}

impl<'a> Export<'a> {
    fn open(exported: Exported<'_>, key: &'a AuditKey) -> Result<Self, Fault> {
        let lines = Lines::open(exported.path, key).map_err(|error| io(&error))?;
        let mut export = Self { lines, told: exported.told, line: None, matched: VecDeque::new(), newest: 0, unmatched: None };
        export.step()?;
        Ok(export)
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.line = match &mut self.lines {
            Some(lines) => lines.next().map_err(|error| io(&error))?,
            None => None,
        };
        Ok(())
    }

    /// The store's next checkpoint.
    fn compare(&mut self, stored: &Witness, verdict: &mut Verdict) -> Result<(), Fault> {
        self.newest = stored.number;
        while let Some(line) = &self.line {
            let Some(exported) = &line.witness else {
                verdict.note(BadEvent { place: stored.up_to, number: stored.number, ..not_signed(line) });
                self.matched(stored);
                return self.step();
            };
            if exported.number < stored.number {
                if !self.is_repeat(exported) {
                    verdict.note(out_of_order(exported));
                }
                self.step()?;
                continue;
            }
            if exported.number > stored.number {
                break;
            }
            if let Err(bad) = compare_export(exported, stored) {
                verdict.note(*bad);
            }
            self.matched(stored);
            return self.step();
        }
        // A file that was begun later than the store proves nothing about what was before; a hole in it is one.
        if self.unmatched.is_none() {
            self.unmatched = Some(stored.clone());
        }
        if self.line.is_some() && !self.matched.is_empty() {
            verdict.note(missing_export(stored));
        }
        Ok(())
    }

    /// All checkpoints of the store were seen. The newest one may be about to be told.
    fn finish(mut self, verdict: &mut Verdict) -> Result<(), Fault> {
        while let Some(line) = &self.line {
            match &line.witness {
                None => verdict.note(not_signed(line)),
                Some(exported) if self.is_repeat(exported) => {}
                Some(exported) if exported.number <= self.newest => verdict.note(out_of_order(exported)),
                Some(exported) if line.offset < self.told => {
                    verdict.note(missing_checkpoint(exported));
                    return Ok(());
                }
                // Told after the look at the store began.
                Some(_) => return Ok(()),
            }
            self.step()?;
        }
        match self.unmatched.filter(|unmatched| unmatched.number < self.newest) {
            // Exporting has failed since, or the end of the file was cut off: the next export that succeeds leaves no such end.
            Some(unmatched) if !self.matched.is_empty() => verdict.unexported_from = Some(unmatched.number),
            Some(unmatched) => verdict.note(missing_export(&unmatched)),
            None => {}
        }
        Ok(())
    }

    fn matched(&mut self, stored: &Witness) {
        if self.matched.len() == REMEMBERED {
            self.matched.pop_front();
        }
        self.matched.push_back(stored.clone());
        self.unmatched = None;
    }

    /// The same was told before, word for word: whoever told it did not know that it had been heard.
    fn is_repeat(&self, exported: &Witness) -> bool {
        self.matched.contains(exported)
    }
}

fn not_signed(line: &Line) -> BadEvent {
    let nothing = Witness { number: 0, time: runvoy_model::time::UnixMs(0), up_to: u64::MAX, leaves: 0, root: [0; 32] };
    let message = format!("line {} of the exported checkpoints does not match its signature", line.number);
    BadEvent { problem: Problem::Altered, message, ..missing_export(&nothing) }
}

fn out_of_order(exported: &Witness) -> BadEvent {
    let message =
        format!("checkpoint {} was exported again after a later one: the store was put back to an earlier state", exported.number);
    BadEvent { problem: Problem::Reordered, message, ..missing_export(exported) }
}

fn io(error: &std::io::Error) -> Fault {
    Fault::Damaged(format!("the exported checkpoints cannot be read: {error}"))
}
