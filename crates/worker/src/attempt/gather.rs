//! What is left when a command has ended: the output of a task, or what the command says about its failure. Whatever cannot be used is
//! told in the log, and is never a reason to wait.

use std::time::Duration;

use runvoy_model::command::{ErrorMark, Outcome};
use runvoy_model::job::{MOST_INLINE_BYTES, Payload};
use runvoy_ports::lease::LeaseError;
use runvoy_ports::runner::Unread;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Attempt;
use crate::exchange::{self, ERROR, ERROR_LIMIT, OUTPUT, OUTPUT_LIMIT};

/// The largest word about what was used.
const USAGE_LIMIT: usize = runvoy_model::bound::MOST_MESSAGE_BYTES;
const PAUSE: Duration = Duration::from_millis(250);
/// An output that cannot be kept for this long fails the attempt.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// What an attempt leaves beside its outcome.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) output: Option<Payload>,
    pub(super) said: Option<ErrorMark>,
    /// What the command says it used, where the output itself is not carried.
    pub(super) usage: Option<Value>,
    /// What the log should say of it.
    pub(super) remarks: Vec<String>,
}

impl Attempt<'_> {
    /// Reads what the command left, as far as its end gives it a meaning. An output that the server cannot keep makes another outcome.
    pub(super) async fn gather(&self, outcome: &mut Outcome) -> Gathered {
        let mut gathered = Gathered::default();
        match outcome {
            Outcome::Exited { code: 0, after_kill: false } if self.execution.spec.task.is_some() => {
                match self.left(OUTPUT, OUTPUT_LIMIT).await {
                    Ok(Some(output)) => match self.keep(output, &mut gathered).await {
                        Ok(output) => gathered.output = Some(output),
                        Err(why) => {
                            *outcome = Outcome::OutputFailed { message: format!("the output of the task could not be kept: {why}") }
                        }
                    },
                    Ok(None) => gathered.remarks.push("the task has no output: it wrote no file RUNVOY_OUTPUT".to_owned()),
                    Err(why) => gathered.remarks.push(format!("the task has no output: RUNVOY_OUTPUT: {why}")),
                }
            }
            Outcome::Exited { code: 0, .. } => {}
            Outcome::Exited { after_kill: false, .. } | Outcome::Signalled { after_kill: false, .. } => {
                let said = self.left(ERROR, ERROR_LIMIT).await.and_then(|said| said.as_ref().map(exchange::error_mark).transpose());
                match said {
                    Ok(said) => gathered.said = said,
                    Err(why) => gathered.remarks.push(format!("what the command says about its failure is not used: RUNVOY_ERROR: {why}")),
                }
            }
            _ => {}
        }
        gathered
    }

    /// The JSON of a file that the command left, masked; `None` where it left none.
    async fn left(&self, name: &str, limit: usize) -> Result<Option<Value>, String> {
        let read = self.worker.runner.read(self.execution.id, self.fence.attempt, name, limit).await;
        match read {
            Ok(bytes) => exchange::json(&bytes, self.recorder.mask().as_ref()).map(Some),
            Err(Unread::Missing) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Makes an output something that can be carried. What it says of usage is carried in any case, or the log says why not.
    async fn keep(&self, mut output: Value, gathered: &mut Gathered) -> Result<Payload, String> {
        let text = serde_json::to_vec(&output).map_err(|error| error.to_string())?;
        if text.len() <= MOST_INLINE_BYTES {
            return Ok(Payload::Inline(output));
        }
        match output.get_mut("usage").map(Value::take) {
            Some(usage) if usage.to_string().len() <= USAGE_LIMIT => gathered.usage = Some(usage),
            Some(_) => gathered.remarks.push(format!("the usage is not recorded: it has more than {USAGE_LIMIT} bytes")),
            None => {}
        }
        drop(output);
        let began = Instant::now();
        loop {
            match self.worker.leases.put_blob(self.fence, text.clone()).await {
                Ok(payload) => return Ok(payload),
                Err(LeaseError::Unavailable(error)) if began.elapsed() < GIVE_UP_AFTER => {
                    tracing::warn!(execution = %self.execution.id, %error, "the output of a task waits to be stored");
                }
                Err(LeaseError::Unavailable(error)) => return Err(error.to_string()),
                Err(error) => return Err(error.to_string()),
            }
            sleep(PAUSE).await;
        }
    }
}
