//! `job submit`: a job file becomes a job.

use std::path::PathBuf;

use clap::Args;

use super::follow;
use crate::document::Document;
use crate::failure::Failure;
use crate::global::Format;
use crate::job_file;
use crate::progress;
use crate::session::Session;
use crate::terminal::Tone;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job submit nightly.yaml
  runvoy job submit nightly.yaml --follow   # exit code 0 only if it completes
  runvoy job submit - --request-id 2026-01-03 < nightly.json
  id=$(runvoy job submit nightly.yaml --detach)

The format of a job file: runvoy help job-file";

/// Arguments of `job submit`.
#[derive(Debug, Clone, Args)]
pub(super) struct SubmitArgs {
    /// Job file, YAML or JSON; - reads stdin
    file: PathBuf,
    /// Follow its progress; exit code 0 only if it completes
    #[arg(short, long)]
    follow: bool,
    /// Print the id and return
    #[arg(short, long, conflicts_with = "follow")]
    detach: bool,
    /// Submit once, however often this is repeated; overrides the file
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl SubmitArgs {
    pub(super) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let mut request = job_file::job(&Document::open(&self.file)?)?;
        if self.request_id.is_some() {
            request.request_id = self.request_id;
        }
        let client = session.connect().await?;
        let answer = client.submit_job(&request).await?;
        let (id, total) = (&answer.job_id, answer.total_tasks);
        if self.follow {
            session.note(Tone::Dim, &format!("### runvoy: submitted job {} with {}", session.short(id), progress::tasks(total)));
            return follow::to_the_end(session, &client, id).await;
        }
        match session.format() {
            Format::Table | Format::Name => session.print(&format!("{id}\n"))?,
            Format::Json | Format::Yaml => session.show(&answer, Vec::new, String::new)?,
        }
        if !self.detach {
            session.note(
                Tone::Dim,
                &format!("Submitted a job with {}.\n  follow it: runvoy job graph --follow {}", progress::tasks(total), session.short(id)),
            );
        }
        Ok(0)
    }
}
