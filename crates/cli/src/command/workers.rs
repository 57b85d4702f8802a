//! `workers`: which are there, and the accounts whose keys they show.

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

const EXAMPLES: &str = "\
Examples:
  runvoy workers list
  runvoy workers create gpu-1 --queue gpu,default --key-file gpu-1.key
  RUNVOY_API_KEY_FILE=gpu-1.key runvoy worker --endpoint URL --queue gpu --run-as-uids 70000-70999
  runvoy workers rotate gpu-1                          # another key; the old one ends
  runvoy workers revoke gpu-1
  runvoy workers drain gpu-host                        # finish what it runs, take nothing new
  runvoy workers rotate-signing-key                    # what proves leases; held ones go on";

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
    /// List the workers that are there
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy workers list\n  runvoy workers list --json")]
    List,
    /// Make an account of workers: prints its key
    #[command(
        before_help = "Examples:\n  runvoy workers create gpu-1 --key-file gpu-1.key\n  runvoy workers create gpu-1 --queue gpu,default"
    )]
    Create {
        /// Name of the account
        name: String,
        #[command(flatten)]
        queues: QueuesOf,
        /// Write the key to this new file, which only its owner can read, and print the file's name
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// List the accounts of workers
    #[command(before_help = "Examples:\n  runvoy workers accounts\n  runvoy workers accounts --json")]
    Accounts,
    /// End the key of an account
    #[command(before_help = "Examples:\n  runvoy workers revoke gpu-1 --yes")]
    Revoke {
        #[command(flatten)]
        account: AccountName,
    },
    /// Give an account another key: prints it; the one before ends
    #[command(before_help = "Examples:\n  runvoy workers rotate gpu-1\n  runvoy workers rotate gpu-1 --key-file gpu-1.key")]
    Rotate {
        #[command(flatten)]
        account: AccountName,
        /// Write the key to this file, in place of what is there, and print the file's name
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Have a worker finish what it runs and take nothing new, also after a restart
    #[command(before_help = "Examples:\n  runvoy workers drain gpu-host\n  runvoy workers resume gpu-host")]
    Drain {
        #[command(flatten)]
        worker: WorkerName,
    },
    /// Have a drained worker take work again
    #[command(before_help = "Examples:\n  runvoy workers resume gpu-host")]
    Resume {
        #[command(flatten)]
        worker: WorkerName,
    },
    /// Sign the task tokens of new leases with a new key; leases that are held go on
    #[command(before_help = "Examples:\n  runvoy workers rotate-signing-key")]
    RotateSigningKey,
    /// Make an account for whoever has the private key to a public one
    #[command(
        before_help = "Examples:\n  runvoy workers import worker.pub\n  runvoy workers import worker.pub --name ci --queue gpu\n  runvoy workers import ci.pub --name ci --role developer\n  runvoy workers import ci.pub --name ci --may submit"
    )]
    Import {
        /// File with a P-256 public key: PEM, or base58; - for stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Name of the account; else what comes with the key, or its fingerprint
        #[arg(long)]
        name: Option<String>,
        /// What it may do: worker, viewer, developer or operator [default: worker]
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// Let the worker submit as well, and read and end what it submitted
        #[arg(long, value_name = "ACTION", value_parser = ["submit"], conflicts_with = "role")]
        may: Vec<String>,
        #[command(flatten)]
        queues: QueuesOf,
        /// What the key is for, on one line
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
    /// Queues it may serve; may be given several times; without it every queue
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',', add = ArgValueCompleter::new(complete::queues))]
    queues: Vec<String>,
}

impl WorkersArgs {
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
                session.confirm(&format!("end the key of worker {} and make another", account.name))?;
                let key_file = key_file.as_deref().map(KeyFile::at).transpose()?;
                let made = session.connect().await?.rotate_worker(&account.name).await?;
                hand_over(session, made, key_file)
            }
            WorkersCommand::Drain { worker } => {
                let answer = session.connect().await?.drain_worker(&worker.name).await?;
                session.report(&answer, &answer.name, &format!("{}; go on: runvoy workers resume {}", answer.message, answer.name))
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
                session.confirm(&format!("end the key of worker {}", account.name))?;
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
        list(&["WORKER", "STATE", "RUNNING", "QUEUES", "LABELS", "HOST", "VERSION", "SEEN", "ACCOUNT"], &rows, session.terminal)
    };
    session.show(&workers, || workers.iter().map(|worker| worker.worker_id.clone()).collect(), table)?;
    if workers.is_empty() {
        session.note(Tone::Dim, "no worker is there");
    }
    Ok(0)
}

fn row(worker: &Worker, now: Rfc3339) -> Vec<Cell> {
    let state = match (worker.live, worker.draining) {
        (false, _) => Cell::new("gone", Tone::Bad),
        (true, true) => Cell::new("draining", Tone::Warning),
        (true, false) => Cell::new("live", Tone::Good),
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
        (&worker.version).into(),
        format!("{} ago", Human::from_ms(now.ms_since(worker.seen_at))).into(),
        account.into(),
    ]
}

async fn accounts(session: &Session) -> Result<u8, Failure> {
    let accounts = session.connect().await?.worker_accounts().await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = accounts.iter().map(account_row).collect();
        list(&["ACCOUNT", "STATE", "ROLE", "QUEUES", "KEY", "SINCE", "LAST USED", "MADE BY"], &rows, session.terminal)
    };
    session.show(&accounts, || accounts.iter().map(|account| account.name.clone()).collect(), table)?;
    if accounts.is_empty() {
        session.note(Tone::Dim, "there is no account of workers; make one: runvoy workers create NAME");
    }
    Ok(0)
}

fn account_row(account: &WorkerAccount) -> Vec<Cell> {
    let state = if account.revoked { Cell::new("revoked", Tone::Bad) } else { Cell::new("active", Tone::Good) };
    let serves_all = account.queues.is_empty() && matches!(account.role.as_str(), "" | "worker");
    let queues = if serves_all { "every queue".to_owned() } else { or_dash(account.queues.join(" ")) };
    let key = account.key_prefix.as_ref().map(|prefix| format!("{prefix}…")).or_else(|| account.fingerprint.clone());
    vec![
        (&account.name).into(),
        state,
        or_dash(std::iter::once(&account.role).chain(&account.may).map(String::as_str).collect::<Vec<_>>().join(" ")).into(),
        queues.into(),
        key.unwrap_or_else(|| "-".to_owned()).into(),
        account.keyed_at.to_string().into(),
        // The server keeps the minute of the last use.
        account.last_used.map_or_else(|| "-".to_owned(), |at| at.max(account.keyed_at).to_string()).into(),
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
            return Err(Failure::usage(format!("{} exists", path.display())).next("name another file with --key-file, or remove it first"));
        }
        Ok(Self { is_new: true, ..Self::at(path)? })
    }

    /// Keeps the key, and returns the name of the file.
    fn keep(self, key: &str, account: &str) -> Result<String, Failure> {
        let Self { name, file, is_new } = self;
        let text = format!("{key}\n");
        match if is_new { file.write_new(&text) } else { file.write(&text) } {
            Ok(()) => Ok(name),
            Err(error) => Err(Failure::other(format!("the account {account} has a key that could not be written to {name}"))
                .why(error.to_string())
                .next(format!("give it another: runvoy workers rotate {account}"))),
        }
    }
}

async fn create(session: &Session, mut request: CreateWorkerRequest, key_file: Option<KeyFile>) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let made = match client.create_worker(&request).await {
        Err(error) if error.asks_to_confirm() => {
            session.confirm_refused(&error, "make a key that may run although this server then runs no more commands")?;
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
    failure.next(format!("give it another key: runvoy workers rotate {}", request.name)).next("see what there is: runvoy workers accounts")
}

/// Prints a key that is given once, or keeps it in its file, and says how it is used.
fn hand_over(session: &Session, mut made: CreateWorkerResponse, key_file: Option<KeyFile>) -> Result<u8, Failure> {
    let Some(key) = made.api_key.clone() else {
        let account = &made.account;
        let fingerprint = account.fingerprint.as_deref().unwrap_or_default();
        session.show(&made, || vec![account.name.clone()], || format!("{}\n", account.name))?;
        let (role, name) = (if account.role.is_empty() { "worker" } else { &account.role }, &account.name);
        session.note(Tone::Plain, &one_line(&format!("{role} {name} signs its tokens with the key {fingerprint}")));
        return Ok(0);
    };
    let (name, kept) = (made.account.name.clone(), key_file.map(|file| file.keep(key.expose(), &made.account.name)).transpose()?);
    let (shown, text) = match &kept {
        Some(file) => {
            made.api_key = None;
            (file.as_str(), format!("{file} has the key of worker {name}; it is shown nowhere else"))
        }
        None => (key.expose(), format!("this key of worker {name} is shown once; keep it in a file that only the worker's user can read")),
    };
    session.show(&made, || vec![shown.to_owned()], || format!("{shown}\n"))?;
    // The key stands in a file and never in a command line, which the shell and the system's list of processes show to others.
    let endpoint = session.configured_endpoint()?.map_or_else(|| "URL".to_owned(), |endpoint| endpoint.to_string());
    let (file, queue) = (kept.as_deref().unwrap_or("FILE"), made.account.queues.first().map_or("default", String::as_str));
    let usage = format!(
        "runvoy worker --endpoint {endpoint} --api-key-file {file} --queue {queue} --worker-dir /var/lib/runvoy-worker --run-as-uids 70000-70999"
    );
    session.note(Tone::Plain, &format!("{}\n  use it: {}", one_line(&text), one_line(&usage)));
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
        Ok(_) if text.contains("PRIVATE KEY") => Err(Failure::usage(format!("{} holds a private key", file.display()))
            .why("only the public key is for others")
            .next("make its public key: openssl pkey -in FILE -pubout")),
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
        let head = ["WORKER", "STATE", "RUNNING", "QUEUES", "LABELS", "HOST", "VERSION", "SEEN", "ACCOUNT"];
        insta::assert_snapshot!(crate::table::render(&head, &rows, None, false), @r"
        WORKER  STATE     RUNNING  QUEUES       LABELS  HOST       VERSION  SEEN         ACCOUNT
        gpu-1   live      1/4      gpu default  zone=a  a.example  0.1.0    2.0s ago     gpu
        here    draining  0/8      default      -       here       0.1.0    1.0s ago     (server)
        old     gone      0/0      -            -       b          0.1.0    35m 00s ago  -
        ");
    }
}
