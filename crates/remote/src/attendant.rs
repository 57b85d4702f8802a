//! Tells the server that a worker is there, and the worker what it should look at now. The stream is a hint that makes a kill quick; the report every few
//! seconds is the poll behind it. Neither says what to do: an extend does.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::Slots;
use runvoy_rpc::job::v1::{AttendWorkerRequest, ReportWorkerRequest, ReportWorkerResponse, WorkerInfo};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::backoff::Backoff;
use crate::fault::Fault;
use crate::link::Link;

const REPORT_EVERY: Duration = Duration::from_secs(5);
/// A stream that was silent for longer is taken for dead.
const SILENCE: Duration = Duration::from_secs(45);
/// The last word of a worker has this long.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The worker, as its attendant sees it.
pub struct Attended {
    /// Whom to tell that an execution should be looked at.
    pub slots: Arc<dyn Slots>,
    /// What it runs.
    pub held: Box<dyn Fn() -> Vec<ExecutionId> + Send + Sync>,
}

/// Speaks for one worker.
pub struct Attendant {
    pub(crate) link: Arc<Link>,
    pub(crate) info: WorkerInfo,
    pub(crate) queues: Vec<Name>,
    pub(crate) since: UnixMs,
    /// The server answers again.
    pub(crate) is_back: Notify,
}

impl Attendant {
    /// Says once that the worker is there: whether the server can be reached, and takes it. The name that the worker is known by.
    pub async fn introduce(&self) -> Result<String, Fault> {
        let answer = self.report(Vec::new(), false, false).await?;
        Ok(if answer.name.is_empty() { self.info.name.clone() } else { answer.name })
    }

    /// Speaks for the worker until dropped.
    pub async fn run(&self, attended: &Attended) {
        tokio::join!(self.keep_reporting(attended), self.keep_attending(attended));
    }

    /// Says that the worker is gone; if nobody hears it, time will tell.
    pub async fn leave(&self) {
        timeout(LEAVE_WITHIN, self.report(Vec::new(), true, true)).await.ok();
    }

    async fn keep_reporting(&self, attended: &Attended) {
        let (mut trouble, mut is_drained) = (Trouble::default(), false);
        loop {
            match self.report((attended.held)(), attended.slots.is_draining(), false).await {
                Ok(answer) => {
                    answer.job_ids.iter().filter_map(|id| id.parse().ok()).for_each(|id| attended.slots.nudge(id));
                    match (std::mem::replace(&mut is_drained, answer.drained), answer.drained) {
                        (false, true) => tracing::info!("an admin drained this worker: the server gives it no new work"),
                        (true, false) => tracing::info!("this worker takes work again"),
                        _ => {}
                    }
                    if trouble.is_over() {
                        tracing::info!("the server accepts the reports of this worker again");
                        self.is_back.notify_one();
                    }
                }
                Err(fault) => {
                    if let Some(what) = trouble.news(&fault) {
                        tracing::warn!(%fault, "{what}");
                    }
                }
            }
            sleep(REPORT_EVERY).await;
        }
    }

    async fn report(&self, held: Vec<ExecutionId>, draining: bool, leaving: bool) -> Result<ReportWorkerResponse, Fault> {
        let request = ReportWorkerRequest {
            worker: self.info.clone().into(),
            queues: self.queues.iter().map(ToString::to_string).collect(),
            job_ids: held.iter().map(ToString::to_string).collect(),
            draining,
            since_ms: self.since.0,
            leaving,
            ..Default::default()
        };
        let answer = self.link.call(self.link.within(), |server| async move { server.report_worker(request).await }).await?;
        Ok(answer.into_owned())
    }

    async fn keep_attending(&self, attended: &Attended) {
        let mut backoff = Backoff::default();
        loop {
            tokio::select! {
                ended = self.attend(attended, &mut backoff) => {
                    if let Err(fault) = ended {
                        tracing::debug!(%fault, "the stream of executions to check has ended");
                    }
                    tokio::select! {
                        () = sleep(backoff.next()) => {}
                        () = self.is_back.notified() => {}
                    }
                }
                // Whatever was open before is of no use.
                () = self.is_back.notified() => {}
            }
        }
    }

    async fn attend(&self, attended: &Attended, backoff: &mut Backoff) -> Result<(), Fault> {
        let request = AttendWorkerRequest { worker_id: self.info.id.clone(), ..Default::default() };
        let mut stream = self.link.call(self.link.within(), |server| async move { server.attend_worker(request).await }).await?;
        loop {
            let message =
                timeout(SILENCE, stream.message()).await.map_err(|_| Fault::Away("the server was silent for too long".to_owned()))?;
            let Some(message) = message.map_err(|error| Fault::of(&error))? else { return Ok(()) };
            backoff.reset();
            let ids = message.to_owned_message().job_ids;
            ids.iter().filter_map(|id| id.parse().ok()).for_each(|id| attended.slots.nudge(id));
        }
    }
}

/// What people were last told of reports that failed.
#[derive(Debug, Default)]
struct Trouble(Option<&'static str>);

impl Trouble {
    /// What to tell of a failure, where that was not told last: a refusal is an answer, and who looks for it looks elsewhere.
    fn news(&mut self, fault: &Fault) -> Option<&'static str> {
        let what = match fault {
            Fault::Away(_) => "the server does not answer, or is not available now",
            Fault::Key(_) | Fault::Refused(_) | Fault::Lost(_) | Fault::Damaged(_) => {
                "the server answers, but refuses the reports of this worker"
            }
        };
        (self.0.replace(what) != Some(what)).then_some(what)
    }

    /// Whether there was any.
    fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_as_an_answer_and_each_trouble_once() {
        let (away, refused) = (Fault::Away("connection refused".to_owned()), Fault::Refused("not your queue".to_owned()));
        let mut trouble = Trouble::default();
        assert!(!trouble.is_over());
        assert!(trouble.news(&away).is_some_and(|what| what.contains("does not answer")));
        assert_eq!(trouble.news(&away), None);
        for fault in [refused.clone(), Fault::Key("revoked".to_owned())] {
            let mut trouble = Trouble::default();
            assert!(trouble.news(&fault).is_some_and(|what| what.contains("answers") && !what.contains("does not answer")));
        }
        assert!(trouble.news(&refused).is_some(), "it is another one");
        assert_eq!(trouble.news(&refused), None);
        assert!(trouble.is_over());
        assert!(trouble.news(&refused).is_some());
    }
}
