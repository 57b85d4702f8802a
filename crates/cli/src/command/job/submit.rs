//! `job submit`: a job file becomes a job.

use std::path::PathBuf;

use clap::Args;
use runvoy_wire::counted;

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
        let document = Document::open(&self.file)?;
        let mut request = job_file::job(&document)?;
        if self.request_id.is_some() {
            request.request_id = self.request_id;
        }
        let client = session.connect().await?;
        let answer = client.submit_job(&request).await.map_err(|error| Failure::from(error).in_file(&document.name))?;
        let (id, total) = (&answer.job_id, counted(answer.total_tasks, "task"));
        if self.follow {
            session.note(Tone::Dim, &format!("### runvoy: submitted job {} with {total}", session.short(id)));
            return follow::to_the_end(session, &client, id).await;
        }
        let written = match session.format() {
            Format::Table | Format::Name => session.print(&format!("{id}\n")),
            Format::Json | Format::Yaml => session.show(&answer, Vec::new, String::new),
        };
        // It was submitted, and nothing else told its id.
        written.map_err(|failure| failure.next(format!("The job keeps running. Follow it: runvoy job graph --follow {id}")))?;
        if !self.detach {
            let id = session.short(id);
            session.note(Tone::Dim, &format!("Submitted a job with {total}.\n  follow it: runvoy job graph --follow {id}"));
        }
        Ok(0)
    }
}
