//! The guard: a small process beside a worker that removes the worker's containers when the worker is gone, however it died, or is frozen for
//! longer than its leases last. The daemon would let them run on.
//!
//! The worker tells it on its standard input which container may live for how long; the end of that input is the end of the worker.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_setfl};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{Instant, sleep, sleep_until};

use crate::blueprint::{INSTANCE, WORKER};
use crate::daemon::Daemon;

/// A start that was on its way when the worker died may still become a container.
const LOOK_AGAIN_AFTER: [Duration; 4] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// A daemon that is away is asked again this often, for as long as `GIVE_UP_AFTER`.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A daemon that does not answer by then is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// The last word of a worker that leaves no container.
const BYE: &str = "bye";

/// How the guard is started, and the one that runs.
pub(crate) struct Guard {
    program: PathBuf,
    args: Vec<String>,
    child: Mutex<Child>,
}

impl Guard {
    /// Starts a guard.
    pub(crate) fn start(program: PathBuf, args: Vec<String>) -> io::Result<Self> {
        let child = Mutex::new(spawn(&program, &args)?);
        Ok(Self { program, args, child })
    }

    /// Starts another one where this one has ended.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let mut child = self.child.lock();
        if child.try_wait()?.is_some() {
            tracing::warn!("the guard of the containers died; starting another");
            *child = spawn(&self.program, &self.args)?;
        }
        Ok(())
    }

    /// The container is there, or will be.
    pub(crate) fn here(&self, name: &str) {
        self.tell(&format!("here {name}\n"));
    }

    /// The container may live for this long from now, unless something else is said before.
    pub(crate) fn live(&self, name: &str, time: Duration) {
        self.tell(&format!("live {name} {}\n", time.as_millis()));
    }

    /// The container has ended.
    pub(crate) fn over(&self, name: &str) {
        self.tell(&format!("over {name}\n"));
    }

    /// A line is shorter than what a pipe takes at once. A guard that has died is replaced with the next start.
    fn tell(&self, line: &str) {
        if let Some(stdin) = self.child.lock().stdin.as_mut() {
            stdin.write_all(line.as_bytes()).ok();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.tell(&format!("{BYE}\n"));
    }
}

fn spawn(program: &Path, args: &[String]) -> io::Result<Child> {
    // A group of its own: what ends the worker from its terminal must not end the guard. And it must not keep open what the worker writes to.
    let child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    if let Some(stdin) = &child.stdin {
        // A guard that does not read must not keep the worker waiting.
        fcntl_setfl(stdin, OFlags::NONBLOCK)?;
    }
    Ok(child)
}

/// The guard's whole life: `args` are the socket of the daemon, and the data directory and the start of the worker, as labels have them.
pub fn run(args: &[String]) -> ExitCode {
    let [socket, instance, worker] = args else { return ExitCode::FAILURE };
    let labels = vec![format!("{INSTANCE}={instance}"), format!("{WORKER}={worker}")];
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return ExitCode::FAILURE };
    runtime.block_on(async {
        let socket = Path::new(socket);
        if watch(socket).await == End::Orderly {
            return;
        }
        for pause in LOOK_AGAIN_AFTER {
            sleep(pause).await;
            clear(socket, &labels).await;
        }
    });
    // Its own reader of standard input does not end by itself.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// How a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It said so, and leaves no container.
    Orderly,
    Died,
}

/// Comes back when the worker is gone; until then ends what lives too long.
async fn watch(socket: &Path) -> End {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut known = Known::new();
    loop {
        let next = known.iter().filter_map(|(name, until)| Some((name.clone(), (*until)?))).min_by_key(|(_, at)| *at);
        let due = async {
            match &next {
                Some((_, at)) => sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            line = lines.next_line() => match line {
                Ok(Some(line)) if line == BYE && known.is_empty() => return End::Orderly,
                Ok(Some(line)) => note(&line, &mut known),
                Ok(None) | Err(_) => return End::Died,
            },
            () = due => {
                let Some((name, _)) = next else { continue };
                known.insert(name.clone(), None);
                if let Ok(daemon) = Daemon::find(socket, ANSWERS_WITHIN).await {
                    daemon.remove(&name).await.ok();
                }
            }
        }
    }
}

/// The containers that are there, and until when each may live.
type Known = HashMap<String, Option<Instant>>;

fn note(line: &str, known: &mut Known) {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["here", name] => drop(known.entry(name.to_owned()).or_default()),
        ["live", name, ms] => {
            if let Ok(ms) = ms.parse() {
                known.insert(name.to_owned(), Some(Instant::now() + Duration::from_millis(ms)));
            }
        }
        ["over", name] => drop(known.remove(name)),
        _ => {}
    }
}

/// Removes every container of the worker, as soon as the daemon can be asked.
async fn clear(socket: &Path, labels: &[String]) {
    let began = Instant::now();
    // Without a socket there is no daemon that could come back before the worker does.
    while began.elapsed() < GIVE_UP_AFTER && socket.exists() {
        if let Ok(daemon) = Daemon::find(socket, ANSWERS_WITHIN).await
            && sweep(&daemon, labels).await.is_ok()
        {
            return;
        }
        sleep(ASK_AGAIN_AFTER).await;
    }
}

/// Removes every container with these labels; how many there were. One that has ended and cannot be removed harms nobody.
pub(crate) async fn sweep(daemon: &Daemon, labels: &[String]) -> Result<usize, bollard::errors::Error> {
    let found = daemon.labelled(labels).await?;
    for id in found.iter().filter_map(|container| container.id.as_deref()) {
        if let Err(error) = daemon.remove(id).await {
            let state = daemon.inspect(id).await?.state;
            if state.is_none_or(|state| state.running != Some(false)) {
                return Err(error);
            }
            tracing::warn!(%error, container = id, "a container that has ended cannot be removed");
        }
    }
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_word_about_a_container_counts() {
        let mut known = Known::new();
        for line in ["here a", "live a 1000", "live b 1000", "here c", "live a 5000", "here a", "over b", "what"] {
            note(line, &mut known);
        }
        let in_5_s = Instant::now() + Duration::from_secs(5);
        assert_eq!(known, Known::from([("a".to_owned(), Some(in_5_s)), ("c".to_owned(), None)]));
    }
}
