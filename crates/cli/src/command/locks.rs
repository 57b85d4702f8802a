//! `locks`: the locks that are held, and releasing one by force.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::complete;
use crate::failure::Failure;
use crate::session::Session;
use crate::short_id::ShortIds;
use crate::table::{Cell, render};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy locks list
  runvoy locks release prod   # its holder keeps running; admins only";

/// Arguments of `locks`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct LocksArgs {
    #[command(subcommand)]
    command: LocksCommand,
}

/// What to do with locks.
#[derive(Debug, Clone, Subcommand)]
enum LocksCommand {
    /// List the locks that are held
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy locks list --json")]
    List,
    /// Release a lock by force; its holder keeps running
    #[command(before_help = "Examples:\n  runvoy locks release prod --yes")]
    Release {
        /// Name of the lock
        #[arg(add = ArgValueCompleter::new(complete::locks))]
        name: String,
    },
}

impl LocksArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            LocksCommand::List => false,
            LocksCommand::Release { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            LocksCommand::List => list(session).await,
            LocksCommand::Release { name } => {
                session.confirm(&format!("Release lock {name}, whose holder may still run"))?;
                session.connect().await?.release_lock(&name).await?;
                session.note(Tone::Plain, &format!("Released lock {name}."));
                Ok(0)
            }
        }
    }
}

async fn list(session: &Session) -> Result<u8, Failure> {
    let locks = session.connect().await?.locks().await?;
    let table = || {
        let ids = ShortIds::of(session.is_compact(), locks.iter().map(|lock| lock.execution_id.as_str()));
        let rows: Vec<_> = locks
            .iter()
            .map(|lock| {
                let (since, waiters) = (session.times().show(lock.since), lock.waiters.to_string());
                let id = Cell::whole(ids.show(&lock.execution_id));
                vec![(&lock.lock_name).into(), (&lock.held_by).into(), since.into(), waiters.into(), id]
            })
            .collect();
        if rows.is_empty() {
            String::new()
        } else {
            render(&["LOCK", "HELD BY", "SINCE", "WAITING", "EXECUTION"], &rows, session.terminal.width, session.terminal.stdout_colour)
        }
    };
    session.show(&locks, || locks.iter().map(|lock| lock.lock_name.clone()).collect(), table)?;
    if locks.is_empty() {
        session.note(Tone::Dim, "No locks are held.");
    }
    Ok(0)
}
