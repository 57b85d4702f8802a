//! Brings what one attempt has to tell to the server: records in order, one request at a time, then the end. It asks nobody's leave: what
//! was left by a worker that died is brought by the same steps.
//!
//! Where the server stands, the server says: whatever was lost on the way is read again from the log, whatever arrived is not stored twice.
//! The log goes only when the server has heard the end, or says itself that the attempt is over. A server that is away is waited for without end. One that
//! is there, keeps the lease and still does not take what somebody waits for is not: the end is told without it, and the file is put aside.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runvoy_model::command::{EndAttempt, Outcome};
use runvoy_model::id::ExecutionId;
use runvoy_model::phrase::counted;
use runvoy_ports::clock::Clock;
use tokio::time::{Instant, sleep, sleep_until};

use crate::backoff::Backoff;
use crate::desk::{Appended, Desk};
use crate::fault::Fault;
use crate::outbox::{Outbox, Verdict};
use crate::wal::{Batch, Most, Place};

/// The most that one request carries.
const MOST: Most = Most { bytes: 256 << 10, frames: 10_000 };
/// So many pieces of output go without waiting for more.
const ENOUGH_FRAMES: u64 = 50;
/// Between two requests there is ten times as long as the server took for the last one, but not less and not more than this. A command that was
/// silent for longer has its output sent at once.
const PACE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Brings the records and the end of one attempt.
pub(crate) struct Courier<D> {
    desk: Arc<D>,
    outbox: Arc<Outbox>,
    clock: Arc<dyn Clock>,
    token: String,
    at: Place,
    /// How many frames of the log were read.
    frames: u64,
    send_not_before: Instant,
    backoff: Backoff,
    patience: Patience,
    /// Since when somebody waits for a server that is there.
    unheeded_since: Option<Instant>,
    /// People were told that the server refuses it.
    is_refused: bool,
}

/// How long a server may not take what somebody waits for although it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Whoever said within this time that the attempt holds its lease is there.
    pub(crate) lease_ttl: Duration,
    /// What was not taken for so long stays here.
    pub(crate) lost_after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { lease_ttl: Duration::from_secs(30), lost_after: Duration::from_secs(600) }
    }
}

/// Why nothing more is brought.
enum Stuck {
    /// The attempt is over for the server.
    Lost(String),
    /// It cannot be had from the log, or the server will not take it.
    Broken(String),
}

impl<D: Desk> Courier<D> {
    pub(crate) fn new(desk: Arc<D>, outbox: Arc<Outbox>, clock: Arc<dyn Clock>) -> Self {
        let (token, at) = {
            let wal = outbox.wal.lock();
            (wal.opening().token.clone(), wal.first())
        };
        let (send_not_before, backoff, patience) = (Instant::now(), Backoff::default(), Patience::default());
        Self { desk, outbox, clock, token, at, frames: 0, send_not_before, backoff, patience, unheeded_since: None, is_refused: false }
    }

    /// The same with another patience.
    pub(crate) fn patient(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Goes on until the server has heard everything, or does not want to.
    pub(crate) async fn run(mut self) {
        let (told, lacks_some) = match self.bring_records().await {
            Ok(()) => (self.bring_end(None).await, false),
            Err(Stuck::Lost(why)) => (Err(Stuck::Lost(why)), false),
            Err(Stuck::Broken(why)) => {
                tracing::error!(why, "the output of an attempt cannot be delivered to the server");
                self.outbox.progress.send_modify(|progress| progress.broken = Some(why.clone()));
                self.unheeded_since = None;
                while !self.is_over() {
                    self.outbox.news.notified().await;
                }
                let unsent = self.unsent();
                let remark =
                    (unsent > 0).then(|| format!("its log lacks the last {}, which the worker keeps: {why}", counted(unsent, "record")));
                (self.bring_end(remark).await, unsent > 0)
            }
        };
        let is_kept = lacks_some || matches!(told, Err(Stuck::Broken(_)));
        let verdict = match told {
            Ok(execution) => Verdict::Told(execution),
            Err(Stuck::Lost(why) | Stuck::Broken(why)) => {
                self.tell_lost(&why);
                Verdict::Lost(why)
            }
        };
        if is_kept {
            self.outbox.set_aside().await;
        } else {
            self.outbox.remove().await;
        }
        self.outbox.progress.send_modify(|progress| progress.verdict = Some(verdict));
    }

    fn unsent(&self) -> u64 {
        self.outbox.wal.lock().next().seq.saturating_sub(self.at.seq)
    }

    fn execution(&self) -> ExecutionId {
        self.outbox.wal.lock().opening().fence.execution
    }

    fn tell_lost(&self, why: &str) {
        let (execution, unsent) = (self.execution(), self.unsent());
        tracing::warn!(%execution, unsent_records = unsent, why, "the server refused output or result of an attempt");
    }

    /// Tells people once that what waits here waits for them.
    fn tell_refused(&mut self, fault: &Fault) {
        if matches!(fault, Fault::Refused(_) | Fault::Key(_)) && !std::mem::replace(&mut self.is_refused, true) {
            let execution = self.execution();
            tracing::warn!(%execution, %fault, "output or result of an attempt was refused: it is kept on this worker and sent again");
        }
    }

    /// Brings records until there will be no more.
    async fn bring_records(&mut self) -> Result<(), Stuck> {
        loop {
            // Before the log is read, and whether it has ended with the read: what is written last would be missed else.
            let (at, is_left) = (self.at, self.is_left());
            let (read, has_ended) = self.outbox.with_wal(move |wal| (wal.read(at, MOST), wal.end().is_some())).await;
            match read {
                Err(error) => return Err(Stuck::Broken(format!("the write-ahead log cannot be read: {error}"))),
                Ok(None) if has_ended || is_left => return Ok(()),
                Ok(None) if self.is_worth_forgetting() => self.forget().await?,
                Ok(None) => self.outbox.news.notified().await,
                Ok(Some(batch)) if self.takes_nothing() => {
                    self.at = batch.next;
                    self.note_progress(false);
                }
                Ok(Some(_)) if self.may_wait() => self.wait_for_more().await,
                Ok(Some(batch)) => self.send(batch).await?,
            }
        }
    }

    /// Nothing more will be written.
    fn is_over(&self) -> bool {
        self.outbox.wal.lock().end().is_some() || self.is_left()
    }

    /// Nobody will say how the attempt ended.
    fn is_left(&self) -> bool {
        let progress = self.outbox.progress.borrow();
        progress.left.is_some() && !progress.is_ending
    }

    /// The log on the server has no room for anything: what waits here is passed over.
    fn takes_nothing(&self) -> bool {
        self.outbox.progress.borrow().takes_nothing
    }

    /// More may come that can go in the same request.
    fn may_wait(&self) -> bool {
        let wal = self.outbox.wal.lock();
        let is_enough = wal.frames() - self.frames.min(wal.frames()) >= ENOUGH_FRAMES || wal.len() - self.at.offset >= MOST.bytes as u64;
        !is_enough && wal.end().is_none() && Instant::now() < self.send_not_before
    }

    async fn wait_for_more(&self) {
        while self.may_wait() {
            tokio::select! {
                () = sleep_until(self.send_not_before) => return,
                () = self.outbox.news.notified() => {}
            }
        }
    }

    async fn send(&mut self, batch: Batch) -> Result<(), Stuck> {
        let sent_at = Instant::now();
        let is_output = batch.block.raw_len > 0;
        let appended = self.desk.append(&self.token, batch.first_seq, batch.block.clone()).await;
        match appended {
            Ok(Appended::Stored { through }) => {
                self.send_not_before = Instant::now() + (sent_at.elapsed() * 10).clamp(PACE.0, PACE.1);
                self.stored(batch, through).await
            }
            Ok(Appended::Gap { expected }) if expected != batch.first_seq => self.go_to(expected).await,
            Ok(Appended::Full { limit_bytes }) if is_output => self.drop_output(limit_bytes).await,
            Ok(Appended::Full { limit_bytes }) => {
                let execution = self.execution();
                tracing::warn!(%execution, limit_bytes, "the log is full: not even the worker's own lines are kept");
                self.outbox.progress.send_modify(|progress| (progress.full_at, progress.takes_nothing) = (Some(limit_bytes), true));
                Ok(())
            }
            Ok(Appended::Gap { .. }) => self.pause("the server contradicts itself").await,
            Err(fault) => self.heed(fault).await,
        }
    }

    /// What a failed call means: another try after a while, or none.
    async fn heed(&mut self, fault: Fault) -> Result<(), Stuck> {
        match fault {
            Fault::Lost(why) => Err(Stuck::Lost(why)),
            Fault::Damaged(why) => Err(Stuck::Broken(why)),
            fault @ (Fault::Away(_) | Fault::Key(_) | Fault::Refused(_)) => {
                self.tell_refused(&fault);
                self.pause(&fault.to_string()).await
            }
        }
    }

    async fn stored(&mut self, batch: Batch, through: u64) -> Result<(), Stuck> {
        self.backoff.reset();
        (self.is_refused, self.unheeded_since) = (false, None);
        self.frames += batch.frames as u64;
        if through + 1 == batch.next.seq {
            self.at = batch.next;
        } else {
            self.go_to(through + 1).await?;
        }
        {
            let wal = self.outbox.wal.lock();
            if self.at == wal.next() {
                // What was sent again was counted twice, and what was dropped never: where everything is sent, the number is known.
                self.frames = wal.frames();
            }
        }
        self.note_progress(false);
        Ok(())
    }

    /// Whether the log is large and all of it was sent.
    fn is_worth_forgetting(&self) -> bool {
        let wal = self.outbox.wal.lock();
        self.at == wal.next() && Outbox::is_large(&wal) && wal.end().is_none()
    }

    /// Makes the log small again, once the server has all of it for good: what it could still lose with its power is not forgotten here. Tried until it is
    /// done, for a command may wait for the room.
    async fn forget(&mut self) -> Result<(), Stuck> {
        if !self.takes_nothing() {
            match self.desk.settle(&self.token).await {
                Ok(through) if through + 1 < self.at.seq => return self.go_to(through + 1).await,
                Ok(_) => {
                    self.backoff.reset();
                    self.unheeded_since = None;
                }
                Err(fault) => return self.heed(fault).await,
            }
        }
        let at = self.at;
        let forgot = self.outbox.with_wal(move |wal| if at == wal.next() { wal.forget().map(|()| wal.next()) } else { Ok(at) });
        self.at = forgot.await.map_err(|error| Stuck::Broken(format!("the write-ahead log cannot be written: {error}")))?;
        self.note_progress(false);
        Ok(())
    }

    /// Goes on from the record that the server waits for. It may have more than the log: then the log lost its tail, and all is well.
    async fn go_to(&mut self, seq: u64) -> Result<(), Stuck> {
        let found = self.outbox.with_wal(move |wal| wal.seek(seq).map(|place| (place, wal.next()))).await;
        let (place, next) = found.map_err(|error| Stuck::Broken(format!("the write-ahead log cannot be read: {error}")))?;
        self.at = match place {
            Some(place) => place,
            None if seq > next.seq => next,
            None => return Err(Stuck::Broken(format!("the server waits for record {seq}, which it had stored before"))),
        };
        Ok(())
    }

    /// The log on the server is full: what waits here is not stored any more, but for the platform's own lines.
    async fn drop_output(&mut self, limit_bytes: u64) -> Result<(), Stuck> {
        // What it has of this is not dropped, its answer was only lost. Nor may it lose that: this log begins behind it from now on.
        match self.desk.settle(&self.token).await {
            Ok(through) => self.go_to(through + 1).await?,
            Err(fault) => return self.heed(fault).await,
        }
        let (at, now) = (self.at, self.clock.now());
        let remark = |bytes| format!("### runvoy: the log is full: {bytes} bytes of output in transit were not kept");
        let dropped = self.outbox.with_wal(move |wal| wal.drop_output(at, now, remark).map(|()| wal.first())).await;
        self.at = dropped.map_err(|error| Stuck::Broken(format!("the write-ahead log cannot be written: {error}")))?;
        self.outbox.progress.send_modify(|progress| progress.full_at = Some(limit_bytes));
        self.note_progress(false);
        Ok(())
    }

    async fn pause(&mut self, why: &str) -> Result<(), Stuck> {
        if self.is_hopeless() {
            let seconds = self.patience.lost_after.as_secs();
            return Err(Stuck::Broken(format!("the server has refused it for {seconds} s: {why}")));
        }
        let wait = self.backoff.next();
        tracing::debug!(why, again_in_ms = wait.as_millis(), "output or result of an attempt waits on this worker");
        self.note_progress(true);
        sleep(wait).await;
        Ok(())
    }

    /// Whether somebody has waited for too long for a server that is there. One that keeps a lease for which it takes nothing would keep the execution
    /// open for ever.
    fn is_hopeless(&mut self) -> bool {
        let is_there = self.outbox.heard().is_some_and(|at| at.elapsed() <= self.patience.lease_ttl);
        let is_waited_for = {
            let wal = self.outbox.wal.lock();
            wal.end().is_some() || Outbox::is_at_its_most(&wal)
        };
        if !is_there || !is_waited_for {
            self.unheeded_since = None;
            return false;
        }
        self.unheeded_since.get_or_insert_with(Instant::now).elapsed() >= self.patience.lost_after
    }

    fn note_progress(&self, is_away: bool) {
        self.outbox.progress.send_modify(|progress| (progress.sent_to, progress.is_away) = (self.at.offset, is_away));
    }

    /// Tells the end: as the attempt did, or what became of it where it did not, with what else there is to say. A lease that nothing was done with is
    /// handed back. The record of the execution as JSON.
    async fn bring_end(&mut self, remark: Option<String>) -> Result<Bytes, Stuck> {
        let (end, wrote, fence) = {
            let wal = self.outbox.wal.lock();
            (wal.end().map(Bytes::copy_from_slice), wal.next().seq > 1, wal.opening().fence)
        };
        let left = self.outbox.progress.borrow().left.clone().unwrap_or_default();
        let lost = EndAttempt::of(fence, Outcome::Lost { message: left });
        let end = end.or_else(|| wrote.then(|| serde_json::to_vec(&lost).expect("plain data").into()));
        let end = end.map(|end| remark.map_or_else(|| end.clone(), |remark| remarked(&end, remark)));
        loop {
            let told = match &end {
                Some(end) => self.desk.complete(&self.token, end.clone()).await,
                None => self.desk.release(&self.token).await.map(|()| Bytes::new()),
            };
            match told {
                Ok(execution) => return Ok(execution),
                Err(fault) => self.heed(fault).await?,
            }
        }
    }
}

/// The same end, and this said of it.
fn remarked(end: &Bytes, remark: String) -> Bytes {
    let Ok(ended) = serde_json::from_slice::<EndAttempt>(end) else { return end.clone() };
    let remark = ended.remark.iter().cloned().chain([remark]).collect::<Vec<_>>().join("; ");
    serde_json::to_vec(&EndAttempt { remark: Some(remark), ..ended }).expect("plain data").into()
}
