//! `playbook push`: a file becomes the next version of a playbook on the server.

use std::path::PathBuf;

use clap::Args;

use crate::document::Document;
use crate::failure::Failure;
use crate::playbook::PlaybookFile;
use crate::session::Session;

/// Arguments of `playbook push`.
#[derive(Debug, Clone, Args)]
pub struct PushArgs {
    /// File to push; - is stdin
    file: PathBuf,
    /// What to call it [default: the name of the file without its ending]
    #[arg(long)]
    name: Option<String>,
}

impl PushArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let name = self.name()?;
        let terms = PlaybookFile::parse(&Document::open(&self.file)?)?.terms();
        let answer = session.connect().await?.push_playbook(&name, &terms).await?;
        let message = if answer.message.is_empty() { "pushed" } else { &answer.message };
        session.report(&answer, &answer.name, &format!("{}@{}: {message}", answer.name, answer.version))
    }

    fn name(&self) -> Result<String, Failure> {
        let stem = || self.file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-").map(str::to_owned);
        self.name.clone().or_else(stem).ok_or_else(|| Failure::usage("the playbook has no name").next("give it one with --name NAME"))
    }
}
