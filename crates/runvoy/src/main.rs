//! The binary: settings, wiring and roles. It picks the adapters; everything else is decided in the crates below it.

mod admin;
mod args;
mod audit;
mod backend;
mod backup;
mod bind;
mod clock;
mod containers;
mod data_check;
mod data_dir;
mod detach;
mod idle;
mod keys;
mod listen;
mod local;
mod logging;
mod machine;
mod manifest;
mod metrics;
mod open_files;
mod predecessor;
mod recover;
mod restore;
mod runner;
mod seal_keys;
mod serve;
mod settings;
mod signal;
mod signing_keys;
mod stack;
mod start_record;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::CommandFactory;
use runvoy_cli::{ClientCommand, GlobalArgs};

use crate::args::{AdminCommand, Cli, Command};
use crate::data_dir::DataDir;

/// A request makes and drops hundreds of small values, on whichever thread is free: what this one does best.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The hidden role that starts commands for a worker: `runvoy __spawner LIMIT`, with the limit of open files that commands get.
const SPAWNER: &str = "__spawner";
/// The hidden role that removes the containers of a worker that died.
const CONTAINER_GUARD: &str = "__container-guard";
/// What a server leaves running has this long.
const LEFT_OVER_END_WITHIN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    // The spawner must stay small and single-threaded: it is told apart before anything else exists.
    if std::env::args_os().nth(1).is_some_and(|word| word == SPAWNER) {
        open_files::put_back(std::env::args().nth(2).as_deref());
        return runvoy_runners::spawner::run();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == CONTAINER_GUARD) {
        return runvoy_containers::run_guard(&std::env::args().skip(2).collect::<Vec<_>>());
    }
    runvoy_cli::complete::answer_shell(Cli::command);
    let cli: Cli = runvoy_cli::parse(std::env::args_os().collect()).unwrap_or_else(|error| error.exit());
    if keeps_data(&cli.command) {
        // What it keeps is its user's only, whatever umask it was started with. Commands get their umask from the spawner.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    match cli.command {
        Command::Serve(args) => {
            let data = data_dir(cli.global.data_dir).map_err(worker::Failure::from);
            end(data.and_then(|data| {
                let runtime = runtime(true)?;
                let served = runtime.block_on(serve::run(&args, data));
                // Nothing that a disk or a command keeps waiting may keep the server from ending.
                runtime.shutdown_timeout(LEFT_OVER_END_WITHIN);
                served
            }))
        }
        Command::Worker(args) => {
            let ended = match runtime(true) {
                Ok(runtime) => {
                    let ended = runtime.block_on(worker::run(&args, &cli.global));
                    runtime.shutdown_timeout(LEFT_OVER_END_WITHIN);
                    ended
                }
                Err(error) => Err(error.into()),
            };
            end(ended)
        }
        Command::Restore(args) => {
            let quiet = cli.global.quiet > 0;
            finish(data_dir(cli.global.data_dir).and_then(|data| {
                restore::restore(&args.source, &data)?;
                if !quiet {
                    let (from, to) = (args.source.display(), data.path().display());
                    eprintln!("Restored {from} to {to}.\n  start its server: runvoy serve --data-dir {to}");
                }
                Ok(())
            }))
        }
        Command::Admin(AdminCommand::Recover(args)) => {
            let format = cli.global.format();
            finish(data_dir(cli.global.data_dir).and_then(|data| {
                let runtime = runtime(false)?;
                runtime.block_on(recover::recover(&data, args.email.as_deref(), format))
            }))
        }
        Command::Client(command) => client(cli.global, *command),
    }
}

/// Whether a role writes to a directory of a server or a worker.
fn keeps_data(command: &Command) -> bool {
    match command {
        Command::Serve(_) | Command::Worker(_) | Command::Restore(_) | Command::Admin(_) => true,
        Command::Client(command) => matches!(&**command, ClientCommand::Audit(args) if args.is_verify()),
    }
}

/// What asks a server, or, of a store whose server is away, its files.
fn client(global: GlobalArgs, command: ClientCommand) -> ExitCode {
    match command {
        ClientCommand::Audit(args) if args.is_verify() && audit::is_about_files(&global) => {
            match data_dir(global.data_dir.clone()).and_then(|data| audit::verify(&data, args.with_state())) {
                Ok(found) => ExitCode::from(runvoy_cli::command::audit::tell(&global, &found)),
                Err(error) => finish(Err(error)),
            }
        }
        command => match runtime(false) {
            Ok(runtime) => ExitCode::from(runtime.block_on(runvoy_cli::execute(global, command, &local::OwnBinary))),
            Err(error) => finish(Err(error)),
        },
    }
}

fn finish(result: Result<()>) -> ExitCode {
    end(result.map_err(worker::Failure::from))
}

fn end(result: Result<(), worker::Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {:#}", failure.error);
            ExitCode::from(failure.code)
        }
    }
}

fn runtime(threads: bool) -> Result<tokio::runtime::Runtime> {
    let mut builder = if threads { tokio::runtime::Builder::new_multi_thread() } else { tokio::runtime::Builder::new_current_thread() };
    builder.enable_all().build().context("cannot start the runtime")
}

fn data_dir(flag: Option<PathBuf>) -> Result<DataDir> {
    let named = flag.or_else(|| std::env::var_os("RUNVOY_DATA_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from));
    let path = match named {
        Some(path) => path,
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set: choose the data directory with --data-dir")?)
            .join(".runvoy/data"),
    };
    Ok(DataDir::new(std::path::absolute(path)?))
}
