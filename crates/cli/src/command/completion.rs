//! `completion`: the script that makes a shell ask this program for completions.

use clap::Args;
use clap_complete::env::Shells;

use crate::complete::VARIABLE;
use crate::failure::Failure;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  source <(runvoy completion bash)      # in ~/.bashrc
  source <(runvoy completion zsh)       # in ~/.zshrc
  runvoy completion fish | source       # in ~/.config/fish/config.fish
  runvoy completion powershell | Out-String | Invoke-Expression";

/// Arguments of `completion`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct CompletionArgs {
    /// Shell to print the script for
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell", "elvish"])]
    shell: String,
}

impl CompletionArgs {
    pub(crate) fn execute(self, session: &Session) -> Result<u8, Failure> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).expect("the parser knows only these shells");
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "runvoy", "runvoy", "runvoy", &mut script)?;
        session.print(&String::from_utf8_lossy(&script)).map(|()| 0)
    }
}
