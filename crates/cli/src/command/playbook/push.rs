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

A file with parameters, which the server checks before it runs anything:
  command: ./deploy
  args: ['{{service}}', '--replicas={{replicas}}']    # exactly {{NAME}}; \\{{NAME}} is that text
  parameters:
    service:                  # names are a-z, 0-9 and _; also in RUNVOY_PARAM_SERVICE
      type: string            # string (the default), integer, boolean or choice
      description: what to deploy
      pattern: 'web-*'        # strings: * and ?
      max_length: 40          # strings
    replicas: {type: integer, min: 1, max: 9, default: 2}
    region: {type: choice, choices: [eu, us], default: eu}
    force: {type: boolean, default: false}
What has no default must be given. A value is passed as data: the command finds each parameter in
its environment as RUNVOY_PARAM_NAME, and {{NAME}} in an argument becomes its value; other braces
stay as they are. It is never put into the text of a command: there, write \"$RUNVOY_PARAM_REGION\",
with the double quotes.";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_help_can_be_pushed() {
        let (_, file) = EXAMPLES.split_once("anything:\n").expect("it begins there");
        let (file, _) = file.split_once("What has").expect("it ends there");
        let document = Document { name: "deploy.yaml".into(), text: file.to_owned() };
        let terms = PlaybookFile::parse(&document).map_err(|failure| failure.text(false)).expect("a playbook").terms();
        assert_eq!(terms.parameters.keys().collect::<Vec<_>>(), ["force", "region", "replicas", "service"]);
    }
}
