//! The server's role: run until told to stop, with everything opened in the right order before and closed in the reverse order after.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::ServeArgs;
use crate::data_dir::DataDir;
use crate::listen::Listeners;
use crate::settings::{Settings, Sources};
use crate::signal::Stops;
use crate::stack::Stack;
use crate::{bind, idle, logging};

/// Requests that are under way when a stop begins have this long.
const REQUESTS_END_WITHIN: Duration = Duration::from_secs(5);

/// Runs a server until it is told to stop.
pub async fn run(args: &ServeArgs, data: DataDir) -> Result<()> {
    data.create()?;
    let settings = load_settings(args, &data)?;
    logging::start(&settings.log_level, &settings.log_format)?;
    let mut stops = Stops::catch()?;
    let _lock = data.lock()?;
    let address = if args.ephemeral { None } else { Some(bind::address(&settings)?) };
    let listeners = Listeners::bind(&data, &settings, address).await?;
    let stack = Stack::open(&data, settings, listeners.url()).await?;
    let serving = listeners.serve(&stack.app, REQUESTS_END_WITHIN);
    announce(&data, serving.url())?;
    tokio::select! {
        () = stops.next() => tracing::info!("stopping"),
        () = idle::left_alone(&stack.engine, || serving.clients()), if args.ephemeral => tracing::info!("nobody is left: leaving"),
    }
    std::fs::remove_file(data.endpoint()).ok();
    // The API goes on while commands end, so that whoever follows sees the end. A second signal takes away their time.
    tokio::select! {
        () = stack.stop_worker(stack.settings.stop_patience) => {}
        () = stops.next() => stack.stop_worker(Duration::ZERO).await,
    }
    serving.stop().await;
    stack.close().await
}

fn load_settings(args: &ServeArgs, data: &DataDir) -> Result<Settings> {
    let path = args.config.clone().unwrap_or_else(|| data.settings());
    let file = match std::fs::read_to_string(&path) {
        Ok(text) => Some((path.display().to_string(), text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && args.config.is_none() => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let env = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    Settings::load(&Sources { file, env, flags: args.flags() })
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
