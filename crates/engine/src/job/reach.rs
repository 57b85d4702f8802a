//! Whose jobs are whose, and how one is found by a part of its id.

use runvoy_model::id::JobId;
use runvoy_model::job::{Job, JobStatus};
use runvoy_model::role::{Action, Reach};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::execution::MIN_ID_DIGITS;

/// So many jobs that fit a part of an id are looked at.
const MOST_FITTING: usize = 1_000;
const MOST_SHOWN: usize = 10;

impl Engine {
    /// A job that an action of the caller reaches, by its id or a part of it. What is not theirs looks as if it were not there.
    pub(super) async fn reachable_job(&self, caller: &Caller, action: Action, text: &str) -> Result<Job, EngineError> {
        let reach = caller.may(action)?;
        if let Ok(id) = text.parse::<JobId>() {
            return self.opened_job(caller, reach, id).await?.ok_or_else(|| no_job(text));
        }
        if text.len() < MIN_ID_DIGITS || text.len() > 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(no_job(text));
        }
        let mut visible = Vec::new();
        for id in self.ports.jobs.find_jobs(&text.to_ascii_lowercase(), MOST_FITTING).await? {
            visible.extend(self.opened_job(caller, reach, id).await?);
            if visible.len() >= MOST_SHOWN {
                break;
            }
        }
        match visible.len() {
            0 => Err(no_job(text)),
            1 => Ok(visible.remove(0)),
            _ => {
                let candidates = visible.iter().map(|job| job.id.to_string()).collect();
                Err(EngineError::Ambiguous { digits: text.to_owned(), what: "jobs", candidates })
            }
        }
    }

    async fn opened_job(&self, caller: &Caller, reach: Reach, id: JobId) -> Result<Option<Job>, EngineError> {
        let reaches = |job: &Job| match reach {
            Reach::All => true,
            Reach::Own => job.created_by == caller.email,
            Reach::None => false,
        };
        Ok(self.ports.jobs.job(id).await?.filter(|job| job.status != JobStatus::Staged && reaches(job)))
    }
}

/// No such job, or not the caller's: both look the same.
fn no_job(text: &str) -> EngineError {
    EngineError::NotFound { what: format!("job {}", text.escape_default()) }
}
