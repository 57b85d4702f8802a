//! What the server says on standard error: one structured line per event, text on a terminal, else JSON.

use std::io::IsTerminal;

use anyhow::{Result, bail};
use tracing::level_filters::LevelFilter;

/// Starts logging for the rest of the process.
pub fn start(level: &str, format: &str) -> Result<()> {
    let Ok(level) = level.parse::<LevelFilter>() else {
        bail!("log_level: expected error, warn, info, debug or trace, not `{level}`");
    };
    let json = match format {
        "auto" => !std::io::stderr().is_terminal(),
        "json" => true,
        "text" => false,
        other => bail!("log_format: expected text, json or auto, not `{other}`"),
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    if json {
        builder.json().flatten_event(true).with_current_span(false).with_span_list(false).init();
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).init();
    }
    Ok(())
}
