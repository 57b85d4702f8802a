//! `playbook push`: a file becomes the next version of a playbook on the server.

use std::path::PathBuf;

use clap::Args;

use crate::document::Document;
use crate::failure::Failure;
use crate::playbook::PlaybookFile;
use crate::session::Session;

pub(super) const EXAMPLES: &str = "\
Examples:
  runvoy playbook push .runvoy/deploy.yaml
  runvoy playbook push deploy.yaml --name deploy-eu

The format of a playbook file: runvoy help playbook-file";

/// Arguments of `playbook push`.
#[derive(Debug, Clone, Args)]
pub struct PushArgs {
    /// Playbook file; - reads stdin
    file: PathBuf,
    /// Name of the playbook [default: the file name without extension]
    #[arg(long, value_name = "NAME")]
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
        self.name.clone().or_else(stem).ok_or_else(|| Failure::usage("the playbook has no name").next("set it with --name NAME"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_help_can_be_pushed() {
        let (_, file) = super::super::PLAYBOOK_FILE.split_once("or JSON:\n").expect("it begins there");
        let (file, _) = file.split_once("  Also:").expect("it ends there");
        let document = Document { name: "deploy.yaml".into(), text: file.to_owned() };
        let terms = PlaybookFile::parse(&document).map_err(|failure| failure.text(false)).expect("a playbook").terms();
        assert_eq!(terms.parameters.keys().collect::<Vec<_>>(), ["force", "region", "replicas", "service"]);
    }
}
