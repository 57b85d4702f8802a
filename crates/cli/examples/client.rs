//! The client commands alone, without a server of their own: what the tests of this crate run as a process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};
use runvoy_cli::{ClientCommand, GlobalArgs, LocalServer};

#[derive(Parser)]
#[command(name = "runvoy", version)]
struct Root {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: ClientCommand,
}

struct Running;

#[async_trait::async_trait]
impl LocalServer for Running {
    async fn ensure(&self, data_dir: &Path) -> Result<PathBuf, String> {
        let socket = data_dir.join("sock");
        if socket.exists() { Ok(socket) } else { Err(format!("nobody listens on {}", socket.display())) }
    }

    async fn running(&self, data_dir: &Path) -> Option<PathBuf> {
        self.ensure(data_dir).await.ok()
    }
}

fn main() -> ExitCode {
    runvoy_cli::complete::answer_shell(Root::command);
    let root: Root = runvoy_cli::parse(std::env::args_os().collect()).unwrap_or_else(|error| error.exit());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let code = runtime.block_on(runvoy_cli::execute(root.global, root.command, &Running));
    ExitCode::from(code)
}
