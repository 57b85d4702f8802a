//! `job submit`: a job file becomes a job.

use std::path::PathBuf;

use clap::Args;

use super::follow;
use crate::document::Document;
use crate::failure::Failure;
use crate::global::Format;
use crate::job_file;
use crate::session::Session;
use crate::terminal::Tone;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy job submit nightly.yaml
  runvoy job submit nightly.yaml --follow           # 0 only if it completed
  runvoy job submit - --request-id 2026-01-03 < nightly.json
  id=$(runvoy job submit nightly.yaml --detach)";

/// Arguments of `job submit`.
#[derive(Debug, Clone, Args)]
pub(super) struct SubmitArgs {
    /// Job file, YAML or JSON; - is stdin
    file: PathBuf,
    /// Show how it gets on; return 0 only if it completed
    #[arg(short, long)]
    follow: bool,
    /// Print only the id
    #[arg(short, long, conflicts_with = "follow")]
    detach: bool,
    /// Two submits with the same id are one job; stronger than `requestId` of the file
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
            session
                .note(Tone::Dim, &format!("### runvoy: job {id} with {total} tasks, {} of them without dependencies", answer.root_tasks));
            return follow::to_the_end(session, &client, id).await;
        }
        match session.format() {
            Format::Table | Format::Name => session.print(&format!("{id}\n"))?,
            Format::Json | Format::Yaml => session.show(&answer, Vec::new, String::new)?,
        }
        if !self.detach {
            session.note(Tone::Dim, &format!("{total} tasks; see how it gets on: runvoy job graph --follow {id}"));
        }
        Ok(0)
    }
}
