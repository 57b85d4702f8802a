//! `workers`: the workers, and the accounts that they sign in as.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_wire::{Code, CreateWorkerRequest, CreateWorkerResponse, Rfc3339, Worker, WorkerAccount};

use crate::complete;
use crate::duration::Human;
use crate::failure::Failure;
use crate::private_file::PrivateFile;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;
use crate::times::Times;

const EXAMPLES: &str = "\
Examples:
  runvoy workers list
  runvoy workers create gpu-1 --queue gpu,default --key-file gpu-1.key
  runvoy workers rotate gpu-1   # replace its key
  runvoy workers revoke gpu-1
  runvoy workers drain gpu-host   # finish what it runs, take nothing new

Start the worker with its key: see runvoy worker --help";

/// The largest file with a public key that is read.
const MOST_KEY_BYTES: u64 = 16 << 10;

/// Arguments of `workers`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct WorkersArgs {
    #[command(subcommand)]
    command: WorkersCommand,
}

/// What to do with workers.
#[derive(Debug, Clone, Subcommand)]
enum WorkersCommand {
    /// List the workers
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy workers list\n  runvoy workers list --json")]
    List,
    /// Create a worker account, and print its key once
    #[command(
        before_help = "Examples:\n  runvoy workers create gpu-1 --key-file gpu-1.key\n  runvoy workers create gpu-1 --queue gpu,default"
    )]
    Create {
        /// Name of the account
        name: String,
        #[command(flatten)]
        queues: QueuesOf,
        /// Write the key to this new file instead of printing it
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// List the worker accounts
    #[command(before_help = "Examples:\n  runvoy workers accounts\n  runvoy workers accounts --json")]
    Accounts,
    /// Revoke the key of a worker account
    #[command(before_help = "Examples:\n  runvoy workers revoke gpu-1 --yes")]
    Revoke {
        #[command(flatten)]
        account: AccountName,
    },
    /// Replace the key of a worker account
    #[command(before_help = "Examples:\n  runvoy workers rotate gpu-1\n  runvoy workers rotate gpu-1 --key-file gpu-1.key")]
    Rotate {
        #[command(flatten)]
        account: AccountName,
        /// Write the key to this file instead of printing it
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Drain a worker: finish what it runs, take nothing new
    #[command(before_help = "Examples:\n  runvoy workers drain gpu-host\n  runvoy workers resume gpu-host")]
    Drain {
        #[command(flatten)]
        worker: WorkerName,
    },
    /// Let a drained worker take work again
    #[command(before_help = "Examples:\n  runvoy workers resume gpu-host")]
    Resume {
        #[command(flatten)]
        worker: WorkerName,
    },
    /// Create a new key to sign task tokens with
    #[command(before_help = "Examples:\n  runvoy workers rotate-signing-key")]
    RotateSigningKey,
    /// Create a worker account from a public key
    #[command(
        before_help = "Examples:\n  runvoy workers import worker.pub\n  runvoy workers import worker.pub --name ci --queue gpu\n  runvoy workers import ci.pub --name ci --role developer\n  runvoy workers import ci.pub --name ci --may submit"
    )]
    Import {
        /// P-256 public key file, PEM or base58; - reads stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Name of the account [default: from the key file]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Role: worker, viewer, developer or operator
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// Further permission: submit
        #[arg(long, value_name = "ACTION", hide_possible_values = true, value_parser = ["submit"], conflicts_with = "role")]
        may: Vec<String>,
        #[command(flatten)]
        queues: QueuesOf,
        /// What the key is for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
}

/// The worker that is meant.
#[derive(Debug, Clone, Args)]
struct WorkerName {
    /// Name of the worker, or its id
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::workers))]
    name: String,
}

/// The account that is meant.
#[derive(Debug, Clone, Args)]
struct AccountName {
    /// Name of the account
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::worker_accounts))]
    name: String,
}

/// The queues that an account may serve.
#[derive(Debug, Clone, Args)]
struct QueuesOf {
    /// Queues it may serve, comma-separated [default: all]
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',', add = ArgValueCompleter::new(complete::queues))]
    queues: Vec<String>,
}

impl WorkersArgs {
    /// The command that lists what this one is about.
    pub(crate) fn listed_by(&self) -> &'static str {
        match &self.command {
            WorkersCommand::Drain { .. } | WorkersCommand::Resume { .. } => "runvoy workers list",
            _ => "runvoy workers accounts",
        }
    }

    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            WorkersCommand::List | WorkersCommand::Accounts => false,
            WorkersCommand::Create { .. }
            | WorkersCommand::Revoke { .. }
            | WorkersCommand::Rotate { .. }
            | WorkersCommand::Drain { .. }
            | WorkersCommand::Resume { .. }
            | WorkersCommand::RotateSigningKey
            | WorkersCommand::Import { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            WorkersCommand::List => workers(session).await,
            WorkersCommand::Accounts => accounts(session).await,
            WorkersCommand::Create { name, queues, key_file } => {
                let key_file = key_file.as_deref().map(KeyFile::new_at).transpose()?;
                create(session, CreateWorkerRequest { name, queues: queues.queues, ..CreateWorkerRequest::default() }, key_file).await
            }
            WorkersCommand::Import { file, name, role, may, queues, description } => {
                let public_key = Some(read_key(&file)?);
                let name = name.unwrap_or_default();
                let (queues, confirm) = (queues.queues, session.global.yes);
                create(session, CreateWorkerRequest { name, role, may, queues, public_key, description, confirm }, None).await
            }
            WorkersCommand::Rotate { account, key_file } => {
                session.confirm(&format!("Replace the key of worker {}", account.name))?;
                let key_file = key_file.as_deref().map(KeyFile::at).transpose()?;
                let made = session.connect().await?.rotate_worker(&account.name).await?;
                hand_over(session, made, key_file)
            }
            WorkersCommand::Drain { worker } => {
                let answer = session.connect().await?.drain_worker(&worker.name).await?;
                session.report(
                    &answer,
                    &answer.name,
                    &format!("{}; to let it take work again: runvoy workers resume {}", answer.message, answer.name),
                )
            }
            WorkersCommand::Resume { worker } => {
                let answer = session.connect().await?.resume_worker(&worker.name).await?;
                session.report(&answer, &answer.name, &answer.message)
            }
            WorkersCommand::RotateSigningKey => {
                let answer = session.connect().await?.rotate_signing_key().await?;
                session.report(&answer, &answer.key_id, &answer.message)
            }
            WorkersCommand::Revoke { account } => {
                session.confirm(&format!("Revoke the key of worker {}", account.name))?;
                let answer = session.connect().await?.revoke_worker(&account.name).await?;
                session.report(&answer, &answer.name, &answer.message)
            }
        }
    }
}

async fn workers(session: &Session) -> Result<u8, Failure> {
    let workers = session.connect().await?.workers().await?;
    let now = session.now();
    let table = || {
        let rows: Vec<Vec<Cell>> = workers.iter().map(|worker| row(worker, now)).collect();
        list(&["WORKER", "STATUS", "RUNNING", "QUEUES", "LABELS", "HOST", "RUNNERS", "VERSION", "SEEN", "ACCOUNT"], &rows, session.terminal)
    };
    session.show(&workers, || workers.iter().map(|worker| worker.worker_id.clone()).collect(), table)?;
    if workers.is_empty() {
        session.note(Tone::Dim, "No workers. Start one: runvoy worker --help");
    }
    Ok(0)
}

fn row(worker: &Worker, now: Rfc3339) -> Vec<Cell> {
    let state = match (worker.live, worker.draining) {
        (false, _) => Cell::new("offline", Tone::Bad),
        (true, true) => Cell::new("draining", Tone::Warning),
        (true, false) => Cell::new("online", Tone::Good),
    };
    let labels: Vec<String> = worker.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let account = worker.account.as_deref().unwrap_or(if worker.in_process { "(server)" } else { "-" });
    vec![
        (&worker.name).into(),
        state,
        format!("{}/{}", worker.running, worker.concurrency).into(),
        or_dash(worker.queues.join(" ")).into(),
        or_dash(labels.join(" ")).into(),
        (&worker.host).into(),
        or_dash(worker.runner.clone()).into(),
        (&worker.version).into(),
        format!("{} ago", Human::from_ms(now.ms_since(worker.seen_at))).into(),
        account.into(),
    ]
}

async fn accounts(session: &Session) -> Result<u8, Failure> {
    let accounts = session.connect().await?.worker_accounts().await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = accounts.iter().map(|account| account_row(account, session.times())).collect();
        list(&["ACCOUNT", "STATUS", "ROLE", "QUEUES", "KEY", "CREATED", "LAST USED", "CREATED BY"], &rows, session.terminal)
    };
    session.show(&accounts, || accounts.iter().map(|account| account.name.clone()).collect(), table)?;
    if accounts.is_empty() {
        session.note(Tone::Dim, "No worker accounts. Create one: runvoy workers create NAME");
    }
    Ok(0)
}

fn account_row(account: &WorkerAccount, times: Times) -> Vec<Cell> {
    let state = if account.revoked { Cell::new("revoked", Tone::Bad) } else { Cell::new("active", Tone::Good) };
    let serves_all = account.queues.is_empty() && matches!(account.role.as_str(), "" | "worker");
    let queues = if serves_all { "all".to_owned() } else { or_dash(account.queues.join(" ")) };
    let key = account.key_prefix.as_ref().map(|prefix| format!("{prefix}…")).or_else(|| account.fingerprint.clone());
    vec![
        (&account.name).into(),
        state,
        or_dash(std::iter::once(&account.role).chain(&account.may).map(String::as_str).collect::<Vec<_>>().join(" ")).into(),
        queues.into(),
        key.unwrap_or_else(|| "-".to_owned()).into(),
        times.show(account.keyed_at).into(),
        // The server keeps the minute of the last use.
        account.last_used.map_or_else(|| "-".to_owned(), |at| times.show(at.max(account.keyed_at))).into(),
        (&account.created_by).into(),
    ]
}

/// The file that a key is written to, made ready before there is a key: it is given once.
struct KeyFile {
    /// As it was named.
    name: String,
    file: PrivateFile,
    /// There must not be one.
    is_new: bool,
}

impl KeyFile {
    /// In place of what is there.
    fn at(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        match PrivateFile::prepare(path) {
            Ok(file) => Ok(Self { name, file, is_new: false }),
            Err(error) => Err(Failure::other(format!("cannot write {name}")).why(error.to_string())),
        }
    }

    /// Where nothing is: another account's key may be the only copy.
    fn new_at(path: &Path) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!("{} already exists", path.display()))
                .next("choose another file with --key-file, or remove it first"));
        }
        Ok(Self { is_new: true, ..Self::at(path)? })
    }

    /// Keeps the key, and returns the name of the file.
    fn keep(self, key: &str, account: &str) -> Result<String, Failure> {
        let Self { name, file, is_new } = self;
        let text = format!("{key}\n");
        match if is_new { file.write_new(&text) } else { file.write(&text) } {
            Ok(()) => Ok(name),
            Err(error) => Err(Failure::other(format!("the key of account {account} could not be written to {name}"))
                .why(error.to_string())
                .next(format!("replace it: runvoy workers rotate {account}"))),
        }
    }
}

async fn create(session: &Session, mut request: CreateWorkerRequest, key_file: Option<KeyFile>) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let made = match client.create_worker(&request).await {
        Err(error) if error.asks_to_confirm() => {
            session.confirm_refused(&error, "Create the account anyway: this server then refuses to run commands")?;
            request.confirm = true;
            client.create_worker(&request).await
        }
        made => made,
    };
    hand_over(session, made.map_err(|error| exists(error.into(), &request))?, key_file)
}

/// What can be done where there is such an account already.
fn exists(failure: Failure, request: &CreateWorkerRequest) -> Failure {
    if !failure.has_code(Code::Conflict) || request.name.is_empty() {
        return failure;
    }
    failure.next(format!("replace its key: runvoy workers rotate {}", request.name)).next("list the accounts: runvoy workers accounts")
}

/// Prints a key that is given once, or keeps it in its file, and says how it is used.
fn hand_over(session: &Session, mut made: CreateWorkerResponse, key_file: Option<KeyFile>) -> Result<u8, Failure> {
    let Some(key) = made.api_key.clone() else {
        let account = &made.account;
        let fingerprint = account.fingerprint.as_deref().unwrap_or_default();
        session.show(&made, || vec![account.name.clone()], || format!("{}\n", account.name))?;
        let (role, name) = (if account.role.is_empty() { "worker" } else { &account.role }, &account.name);
        session.note(Tone::Plain, &one_line(&format!("Created {role} {name}. It signs its tokens with key {fingerprint}.")));
        return Ok(0);
    };
    let (name, kept) = (made.account.name.clone(), key_file.map(|file| file.keep(key.expose(), &made.account.name)).transpose()?);
    let (shown, text) = match &kept {
        Some(file) => {
            made.api_key = None;
            (file.as_str(), format!("Wrote the key of worker {name} to {file}. It cannot be shown again."))
        }
        None => (
            key.expose(),
            format!("This is the key of worker {name}. It cannot be shown again: save it in a file that only the worker can read."),
        ),
    };
    session.show(&made, || vec![shown.to_owned()], || format!("{shown}\n"))?;
    // The key stands in a file and never in a command line, which the shell and the system's list of processes show to others.
    let endpoint = session.configured_endpoint()?.map_or_else(|| "URL".to_owned(), |endpoint| endpoint.to_string());
    let (file, queue) = (kept.as_deref().unwrap_or("FILE"), made.account.queues.first().map_or("default", String::as_str));
    let usage = format!(
        "runvoy worker --endpoint {endpoint} --api-key-file {file} --queue {queue} --worker-dir /var/lib/runvoy-worker --run-as-uids 70000-70999"
    );
    session.note(Tone::Plain, &format!("{}\n  start the worker: {}", one_line(&text), one_line(&usage)));
    Ok(0)
}

fn read_key(file: &Path) -> Result<String, Failure> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(MOST_KEY_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(MOST_KEY_BYTES).read_to_string(&mut text))
    };
    match read {
        Ok(_) if text.contains("PRIVATE KEY") => Err(Failure::usage(format!("{} contains a private key", file.display()))
            .why("only a public key can be imported")
            .next("extract the public key: openssl pkey -in FILE -pubout")),
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::other(format!("cannot read {}", file.display())).why(error.to_string())),
    }
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_s_state_is_told() {
        let text = r#"[
            {"worker_id":"01","name":"gpu-1","host":"a.example","account":"gpu","queues":["gpu","default"],"labels":{"zone":"a"},"runner":"process",
             "running":1,"concurrency":4,"live":true,"version":"0.1.0","since":"2026-01-03T14:00:00Z","seen_at":"2026-01-03T14:34:58Z"},
            {"worker_id":"02","name":"here","host":"here","queues":["default"],"running":0,"concurrency":8,"live":true,"draining":true,
             "in_process":true,"version":"0.1.0","since":"2026-01-03T14:00:00Z","seen_at":"2026-01-03T14:34:59Z"},
            {"worker_id":"03","name":"old","host":"b","queues":[],"version":"0.1.0","since":"2026-01-03T14:00:00Z","seen_at":"2026-01-03T14:00:00Z"}]"#;
        let workers: Vec<Worker> = serde_json::from_str(text).expect("the fields of the API");
        let now = "2026-01-03T14:35:00Z".parse().expect("a time");
        let rows: Vec<Vec<Cell>> = workers.iter().map(|worker| row(worker, now)).collect();
        let head = ["WORKER", "STATE", "RUNNING", "QUEUES", "LABELS", "HOST", "RUNNERS", "VERSION", "SEEN", "ACCOUNT"];
        insta::assert_snapshot!(crate::table::render(&head, &rows, None, false), @r"
        WORKER  STATE     RUNNING  QUEUES       LABELS  HOST       RUNNERS  VERSION  SEEN         ACCOUNT
        gpu-1   online    1/4      gpu default  zone=a  a.example  process  0.1.0    2.0s ago     gpu
        here    draining  0/8      default      -       here       -        0.1.0    1.0s ago     (server)
        old     offline   0/0      -            -       b          -        0.1.0    35m 00s ago  -
        ");
    }
}
