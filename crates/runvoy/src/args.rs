//! The command line as a whole: the client's commands, and those that need more than a client.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use runvoy_cli::{ClientCommand, GlobalArgs};

/// Run commands on central infrastructure, without sharing its credentials.
#[derive(Debug, Parser)]
#[command(name = "runvoy", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a server: API, web page and a worker in one process
    #[command(before_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Start a worker for a server elsewhere
    #[command(before_help = WORKER_EXAMPLES)]
    Worker(Box<WorkerArgs>),
    /// Create a data directory from a backup
    #[command(before_help = "Examples:\n  runvoy restore /var/backups/runvoy-2026-01-31 --data-dir /var/lib/runvoy")]
    Restore(RestoreArgs),
    /// Recover admin access on the server's machine
    #[command(subcommand, before_help = ADMIN_EXAMPLES)]
    Admin(AdminCommand),
    #[command(flatten)]
    Client(Box<ClientCommand>),
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Make a user an admin, and write a new key to admin.key
    #[command(before_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
}

const ADMIN_EXAMPLES: &str = "Examples:
  runvoy admin recover
  runvoy admin recover --email ana@example.com --data-dir /var/lib/runvoy";

const RECOVER_EXAMPLES: &str = "Examples:
  runvoy admin recover
  runvoy admin recover --email ana@example.com --data-dir /var/lib/runvoy

Run it on the server's machine, as the server's user, whether the server runs
or not. The audit trail records it.";

const SERVE_EXAMPLES: &str = "Examples:
  runvoy serve
  runvoy serve --listen 127.0.0.1:8080 --data-dir /var/lib/runvoy
  runvoy serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem \\
    --run-as-uids 70000-70999

Settings can also be set in server.yaml or RUNVOY_* variables. All settings:
docs/configuration.md";

const WORKER_EXAMPLES: &str = "Examples:
  runvoy worker --endpoint https://runvoy.example.com \\
    --api-key-file worker.key --queue gpu,default --run-as-uids 70000-70999

An admin creates the key: runvoy workers create NAME --key-file FILE
Commands must not be able to read it: use --run-as-uids or --run-as as root.
The first SIGTERM drains the worker, the second kills its commands.";

/// Flags of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Queues to serve, as a,b [default: default]
    #[arg(long, alias = "queues", value_name = "NAMES")]
    pub queue: Option<String>,
    /// Executions at once [default: 4 per core]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// Labels that executions can select
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub labels: Option<String>,
    /// Name of the worker [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Its directory [default: ~/.runvoy/worker]
    #[arg(long, alias = "work-dir", value_name = "DIR")]
    pub worker_dir: Option<PathBuf>,
    /// Drain at most this long [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub drain_timeout: Option<String>,
    /// Lifetime of a lease
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub lease: String,
    /// Time to go on without a server
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub lost_after: String,
    /// User to run all commands as
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Unused uids: each execution gets its own
    #[arg(long, value_name = "FIRST-LAST")]
    pub run_as_uids: Option<String>,
    /// process, container or both [default: detected]
    #[arg(long, value_name = "NAMES")]
    pub runner: Option<String>,
    /// Run commands as the worker's own user
    #[arg(long)]
    pub allow_shared_uid: bool,
    /// Time between SIGTERM and SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Settings file: limits and git
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log level, error to trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Log format: text, json or auto [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

impl WorkerArgs {
    /// The flags that were given, by the name of their setting.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("queues", self.queue.clone()),
            ("concurrency", self.concurrency.map(|n| n.to_string())),
            ("run_as", self.run_as.clone()),
            ("run_as_uids", self.run_as_uids.clone()),
            ("runners", self.runner.clone()),
            ("allow_shared_uid", self.allow_shared_uid.then(|| "true".to_owned())),
            ("grace", self.grace.clone()),
            ("log_level", self.log_level.clone()),
            ("log_format", self.log_format.clone()),
            // Whatever a server on the same machine is told: this is a worker.
            ("worker", Some("true".to_owned())),
            ("backend", Some("embedded".to_owned())),
        ];
        given.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
    }
}

/// Flags of `serve`. A flag that is given overrides file and environment.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Settings file [default: DATA_DIR/server.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Storage: embedded or aws [default: embedded]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Address and port [default: 127.0.0.1:56212]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Who gets the first key; the help text is apart because rustdoc takes its `@` for a link
    #[arg(long, value_name = "EMAIL", help = "First admin [default: admin@localhost]")]
    pub admin_email: Option<String>,
    /// URL of the web page, for links
    #[arg(long, value_name = "URL")]
    pub web_url: Option<String>,
    /// URL that clients use, behind a proxy
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Run no commands: workers elsewhere do
    #[arg(long)]
    pub no_worker: bool,
    /// Executions at once [default: 4 per core]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// Queues to serve, as a,b [default: default]
    #[arg(long, value_name = "NAMES")]
    pub queues: Option<String>,
    /// User to run all commands as
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Unused uids: each execution gets its own
    #[arg(long, value_name = "FIRST-LAST")]
    pub run_as_uids: Option<String>,
    /// process, container or both [default: detected]
    #[arg(long, value_name = "NAMES")]
    pub runner: Option<String>,
    /// Run all users' commands as the server's user
    #[arg(long)]
    pub allow_shared_uid: bool,
    /// Time between SIGTERM and SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Time to finish on shutdown [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub stop_patience: Option<String>,
    /// TLS certificate chain, as PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// TLS private key, as PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Listen beyond loopback without TLS
    #[arg(long)]
    pub insecure: bool,
    /// The same, behind a proxy that ends TLS
    #[arg(long)]
    pub behind_proxy: bool,
    /// Serve /metrics without authentication
    #[arg(long)]
    pub metrics_public: bool,
    /// Log level, error to trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Log format: text, json or auto [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Forget backend and users of earlier starts
    #[arg(long)]
    pub reset_start: bool,
    /// Serve the socket only, and leave after the last client and the last execution
    #[arg(long, hide = true)]
    pub ephemeral: bool,
}

impl ServeArgs {
    /// The flags that were given, by the name of their setting.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        let mut add = |name, value: Option<String>| flags.extend(value.map(|value| (name, value)));
        let on = |given: bool| given.then(|| "true".to_owned());
        add("backend", self.backend.clone());
        add("listen", self.listen.clone());
        add("admin_email", self.admin_email.clone());
        add("web_url", self.web_url.clone());
        add("public_url", self.public_url.clone());
        add("worker", self.no_worker.then(|| "false".to_owned()));
        add("concurrency", self.concurrency.map(|n| n.to_string()));
        add("queues", self.queues.clone());
        add("run_as", self.run_as.clone());
        add("run_as_uids", self.run_as_uids.clone());
        add("runners", self.runner.clone());
        add("allow_shared_uid", on(self.allow_shared_uid));
        add("grace", self.grace.clone());
        add("stop_patience", self.stop_patience.clone());
        add("tls_cert", self.tls_cert.clone());
        add("tls_key", self.tls_key.clone());
        add("insecure", on(self.insecure));
        add("behind_proxy", on(self.behind_proxy));
        add("metrics_public", on(self.metrics_public));
        add("log_level", self.log_level.clone());
        add("log_format", self.log_format.clone());
        flags
    }
}

#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// User to make an admin [default: the first admin]
    #[arg(long, value_name = "EMAIL")]
    pub email: Option<String>,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Directory that `runvoy backup` wrote
    pub source: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
