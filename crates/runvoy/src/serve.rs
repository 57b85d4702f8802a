//! The server's role: run until told to stop, with everything opened in the right order before and closed in the reverse order after.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runvoy_sqlite::DiskReserve;
use tokio::time::{sleep, timeout};

use crate::args::ServeArgs;
use crate::data_dir::{DataDir, DirLock};
use crate::listen::{Listeners, Serving};
use crate::settings::{self, BackendName, Settings};
use crate::signal::Stops;
use crate::stack::Stack;
use crate::start_record::StartRecord;
use crate::worker::Failure;
use crate::{bind, data_check, idle, logging, runner};

/// Requests that are under way when a stop begins have this long.
const REQUESTS_END_WITHIN: Duration = Duration::from_secs(5);
/// How much longer than they may take a stop waits for commands to be gone and recorded.
const COMMANDS_END_WITHIN: Duration = Duration::from_secs(10);
/// The same after a second signal.
const COMMANDS_END_SOON: Duration = Duration::from_secs(5);
/// Requests have this long when nothing can be stored any more.
const FAILED_REQUESTS_END_WITHIN: Duration = Duration::from_secs(1);
/// Whoever waits for the data directory looks this often.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Why a server ends.
enum End {
    /// A signal said so.
    Told,
    /// Nobody needs it.
    Alone,
    /// It can store nothing any more.
    Failed(anyhow::Error),
}

/// Runs a server until it is told to stop.
pub async fn run(args: &ServeArgs, data: DataDir) -> Result<(), Failure> {
    data.check_length()?;
    // Before anything in it is read, or made.
    data_check::check_owner(&data)?;
    let settings = load_settings(args, &data).map_err(Failure::usage)?;
    runner::refuse_impossible(&data, &settings).map_err(Failure::usage)?;
    address(args, &settings).map_err(Failure::usage)?;
    data.create()?;
    serve(args, data, settings).await.map_err(Failure::from)
}

/// Where it listens besides its socket.
fn address(args: &ServeArgs, settings: &Settings) -> Result<Option<SocketAddr>> {
    if args.ephemeral { Ok(None) } else { bind::address(settings).map(Some) }
}

async fn serve(args: &ServeArgs, data: DataDir, settings: Settings) -> Result<()> {
    if args.ephemeral && settings.backend != BackendName::Embedded {
        bail!(
            "a server that the command line starts keeps everything in files, and {} is set up for another backend: start it with \
             `runvoy serve`, or choose another directory with --data-dir",
            data.path().display()
        );
    }
    logging::start(&settings.log_level, &settings.log_format)?;
    let mut stops = Stops::catch()?;
    let taken = tokio::select! {
        taken = take(&data, args.ephemeral) => taken?,
        () = stops.next() => None,
    };
    let Some(_lock) = taken else { return Ok(()) };
    // Until now another server may have had the directory, and have been told other things.
    let settings = load_settings(args, &data)?;
    let address = address(args, &settings)?;
    DiskReserve::make_room(&data.reserve());
    if let Some(concern) = bind::concern(&settings) {
        tracing::warn!("{concern}");
    }
    let listeners = Listeners::bind(&data, &settings, address).await?;
    let record = StartRecord::of(&settings);
    let mut stack = Stack::open(&data, settings, listeners.url(), args.ephemeral).await?;
    if !args.ephemeral {
        // It binds later starts once it is known to work, and before anything runs by it.
        record.write(&data)?;
    }
    stack.start();
    let mut serving = listeners.serve(&stack.app, REQUESTS_END_WITHIN)?;
    if let Some(email) = stack.first_admin.as_ref().filter(|_| !args.ephemeral) {
        eprintln!("created the first admin, {email}; their API key is in {}", data.admin_key().display());
    }
    announce(&data, serving.url())?;
    let end = until_the_end(&stack, &data, &mut serving, &mut stops, args.ephemeral).await?;
    stack.app.refuse_work();
    std::fs::remove_file(data.endpoint()).ok();
    if let End::Failed(error) = end {
        // Nothing that happens from here on could be recorded: commands end with this process, and the next start records the truth.
        timeout(FAILED_REQUESTS_END_WITHIN, serving.stop()).await.ok();
        return Err(error);
    }
    // Everything but new work goes on while commands end: followers see the end, and a command can be killed.
    let all_ended = end_commands(&stack, &mut stops).await;
    serving.stop().await;
    stack.close().await?;
    if !all_ended {
        bail!("some commands could not be killed in time; the next start kills and records them");
    }
    Ok(())
}

/// Takes the data directory and clears away what a server that crashed there said of itself. A server that the command line started
/// leaves the directory to whoever has it already; whoever else comes waits for such a one to leave.
async fn take(data: &DataDir, ephemeral: bool) -> Result<Option<DirLock>> {
    let lock = match data.lock() {
        Err(_) if !ephemeral && data.is_locked() && !data.endpoint().exists() => succeed(data).await?,
        Err(error) if ephemeral && data.is_locked() => {
            tracing::info!(%error, "not needed");
            return Ok(None);
        }
        lock => lock?,
    };
    for left_over in [data.endpoint(), data.wanted()] {
        std::fs::remove_file(left_over).ok();
    }
    if data.restoring().exists() {
        bail!("a restore into {} was cut off: repeat it (runvoy restore BACKUP --data-dir {0})", data.path().display());
    }
    if ephemeral && data.start_record().exists() {
        bail!("{}", not_by_itself(data));
    }
    data_check::check_all(data)?;
    data.close_to_others()?;
    Ok(Some(lock))
}

/// Why no command starts the server of this directory by the way.
pub fn not_by_itself(data: &DataDir) -> String {
    let path = data.path().display();
    format!(
        "the server of {path} is not running, and commands do not start it, because it was started with `runvoy serve`: runvoy serve --data-dir {path}"
    )
}

/// Says that somebody waits for the directory, until it is dropped.
struct Wanted<'d>(&'d DataDir);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        std::fs::remove_file(self.0.wanted()).ok();
    }
}

/// Waits for a server that has told nobody an address: the command line started it, and it leaves as soon as it has no client and nothing to
/// run; or it is just coming or going. One that has an address then stays.
async fn succeed(data: &DataDir) -> Result<DirLock> {
    eprintln!("waiting for the server that an earlier command started: it exits when what it runs has finished");
    std::fs::write(data.wanted(), "").with_context(|| format!("cannot write {}", data.wanted().display()))?;
    let _wanted = Wanted(data);
    loop {
        match data.lock() {
            Ok(lock) => return Ok(lock),
            Err(error) if data.endpoint().exists() => return Err(error),
            Err(_) => sleep(TRY_AGAIN_AFTER).await,
        }
    }
}

async fn until_the_end(stack: &Stack, data: &DataDir, serving: &mut Serving, stops: &mut Stops, ephemeral: bool) -> Result<End> {
    loop {
        let visits = tokio::select! {
            () = stops.next() => {
                tracing::info!("stopping");
                return Ok(End::Told);
            }
            error = stack.failed() => {
                tracing::error!(error = format!("{error:#}"), "the store has failed: exiting, so that the next start can recover");
                return Ok(End::Failed(error));
            }
            visits = idle::left_alone(&stack.engine, &stack.app, || data.wanted().exists()), if ephemeral => visits,
        };
        // Somebody may have come since the last look and have been told that their execution is taken. So the door is closed first, and
        // opened again if the room is not empty.
        serving.stop().await;
        if idle::is_deserted(&stack.engine, &stack.app, visits).await {
            tracing::info!("no client is left: exiting");
            return Ok(End::Alone);
        }
        serving.reopen().context("cannot open the socket again")?;
    }
}

/// Ends the commands that run; whether all of them are gone and recorded. It ends itself in any case: one that cannot be killed must not
/// keep the server from leaving. A second signal takes away their time.
async fn end_commands(stack: &Stack, stops: &mut Stops) -> bool {
    let (patience, grace) = (stack.settings.stop_patience, stack.settings.grace);
    let all_ended = tokio::select! {
        () = stack.stop_worker(patience) => true,
        () = sleep(patience + grace + COMMANDS_END_WITHIN) => false,
        error = stack.failed() => {
            tracing::error!(error = format!("{error:#}"), "the store has failed");
            false
        }
        () = stops.next() => timeout(grace + COMMANDS_END_SOON, stack.stop_worker(Duration::ZERO)).await.is_ok(),
    };
    if !all_ended {
        tracing::warn!("exiting although some commands still run");
    }
    all_ended
}

fn load_settings(args: &ServeArgs, data: &DataDir) -> Result<Settings> {
    let usual = data.settings();
    // What is there and cannot be read is told when it is read.
    let usual = Some(usual.as_path()).filter(|path| path.try_exists().unwrap_or(true));
    let stored = if args.reset_start { None } else { StartRecord::read(data)? };
    let stored = stored.map(|record| record.values()).unwrap_or_default();
    settings::gather(stored, args.config.as_deref().or(usual), args.flags())
}

/// Says where the server is: to whoever started it, and in a file for everybody on this machine.
fn announce(data: &DataDir, url: Option<&str>) -> Result<()> {
    let Some(url) = url else { return Ok(()) };
    crate::data_dir::write_private(&data.endpoint(), format!("{url}\n").as_bytes())?;
    let mut out = std::io::stdout().lock();
    // Whoever started it may not be reading.
    writeln!(out, "listening on {url}").and_then(|()| out.flush()).ok();
    Ok(())
}
