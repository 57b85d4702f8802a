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
    /// Start a server: the API, the web page and a worker in one process
    #[command(before_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Start a worker that runs commands for a server elsewhere
    #[command(before_help = WORKER_EXAMPLES)]
    Worker(Box<WorkerArgs>),
    /// Create a data directory from a backup
    #[command(before_help = "Examples:\n  runvoy restore /var/backups/runvoy-2026-01-31 --data-dir /var/lib/runvoy")]
    Restore(RestoreArgs),
    /// Recover access, on the server's own machine
    #[command(subcommand, before_help = ADMIN_EXAMPLES)]
    Admin(AdminCommand),
    #[command(flatten)]
    Client(Box<ClientCommand>),
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Make a user an admin with a new key, written to admin.key in the data directory
    #[command(before_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
}

const ADMIN_EXAMPLES: &str = "Examples:
  runvoy admin recover
  runvoy admin recover --email ana@example.com --data-dir /var/lib/runvoy";

const RECOVER_EXAMPLES: &str = "Examples:
  runvoy admin recover
  runvoy admin recover --email ana@example.com --data-dir /var/lib/runvoy
  runvoy admin recover --json

Runs on the server's own machine as the server's user, whether the server runs or not. The audit trail keeps it.";

const SERVE_EXAMPLES: &str = "Examples:
  runvoy serve
  runvoy serve --listen 127.0.0.1:0 --data-dir /var/lib/runvoy
  runvoy serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --data-dir /var/lib/runvoy --run-as-uids 70000-70999

Every setting can also stand in server.yaml of the data directory or in RUNVOY_* (docs/configuration.md).";

const WORKER_EXAMPLES: &str = "Examples:
  RUNVOY_API_KEY_FILE=worker.key runvoy worker --endpoint https://runvoy.example.com --queue default --worker-dir /var/lib/runvoy-worker --run-as-uids 70000-70999
  runvoy worker --queue build,deploy --concurrency 8 --labels region=eu,gpu=true --api-key-file worker.key --run-as builder
  runvoy worker --allow-shared-uid --drain-timeout 10m

An admin makes the key: `runvoy workers create NAME --queue Q --key-file FILE`. Commands must not be able to read it: give --run-as-uids or --run-as, which need root. The first SIGTERM lets running commands end and takes no new ones, the second ends them.
Limits and git settings are those of docs/configuration.md, in --config or RUNVOY_*.";

/// Flags of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Queues to serve, separated by commas [default: default]
    #[arg(long, visible_alias = "queues", value_name = "NAMES")]
    pub queue: Option<String>,
    /// Executions at once [default: four per core]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// What this worker is, separated by commas; executions may ask for it
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub labels: Option<String>,
    /// How commands run
    #[arg(long, value_name = "NAME", default_value = "process", value_parser = ["process"])]
    pub runner: String,
    /// The worker's name, for people [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The worker's own directory: where commands run, and what the server does not have yet [env: RUNVOY_WORKER_DIR] [default:
    /// ~/.runvoy/worker]
    #[arg(long, alias = "work-dir", value_name = "DIR")]
    pub worker_dir: Option<PathBuf>,
    /// Time that running commands have after the first SIGTERM [default: as long as they take]
    #[arg(long, value_name = "TIME")]
    pub drain_timeout: Option<String>,
    /// How long a lease lasts without being extended
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub lease: String,
    /// How long a command that nobody else will run goes on without the server
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub lost_after: String,
    /// One user that all commands run as
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Uids that nobody has: each execution runs as one of its own
    #[arg(long, value_name = "FIRST-LAST")]
    pub run_as_uids: Option<String>,
    /// Run commands as the worker's own user, who can read its key
    #[arg(long)]
    pub allow_shared_uid: bool,
    /// Time between SIGTERM and SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Settings file, for limits and git
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// text, json or auto [default: auto]
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
    /// Settings file [default: server.yaml in the data directory]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where everything is kept: embedded or aws [default: embedded]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:56212]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// E-mail of the admin that the first start makes; `admin@localhost` if none is named
    #[arg(long, value_name = "EMAIL")]
    pub admin_email: Option<String>,
    /// Base of page addresses
    #[arg(long, value_name = "URL")]
    pub web_url: Option<String>,
    /// Address under which clients know the server, where a proxy stands in front of it
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Only the API: commands run on workers elsewhere
    #[arg(long)]
    pub no_worker: bool,
    /// Executions at once [default: four per core]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,
    /// Queues to serve, separated by commas [default: default]
    #[arg(long, value_name = "NAMES")]
    pub queues: Option<String>,
    /// One user that all commands run as
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Uids that nobody has: each execution runs as one of its own
    #[arg(long, value_name = "FIRST-LAST")]
    pub run_as_uids: Option<String>,
    /// Run commands as the server's own user although there are several users
    #[arg(long)]
    pub allow_shared_uid: bool,
    /// Time between SIGTERM and SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// Time that running commands have when the server stops [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub stop_patience: Option<String>,
    /// Certificate chain to speak TLS with
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key of the certificate
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Listen beyond loopback without TLS
    #[arg(long)]
    pub insecure: bool,
    /// Listen beyond loopback without TLS, because a proxy in front ends it
    #[arg(long)]
    pub behind_proxy: bool,
    /// Let anybody read /metrics
    #[arg(long)]
    pub metrics_public: bool,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// text, json or auto [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Forget which backend, worker and users of commands earlier starts of this data directory had
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
    /// Who is to be an admin [default: the first of the admins]
    #[arg(long, value_name = "EMAIL")]
    pub email: Option<String>,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A directory that `runvoy backup` wrote
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
