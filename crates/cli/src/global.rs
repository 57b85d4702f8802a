//! Flags that every command takes.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::complete;
use crate::failure::Failure;

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Server to talk to: http://HOST:PORT, https://HOST or unix:/PATH [env: RUNVOY_API_ENDPOINT]
    #[arg(long, global = true, value_name = "URL")]
    pub endpoint: Option<String>,
    /// File that holds the API key; a key is never an argument [env: RUNVOY_API_KEY, RUNVOY_API_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Certificates to trust beside the system's, in PEM form [env: RUNVOY_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Talk to the local server of this data directory [env: RUNVOY_DATA_DIR] [default: ~/.runvoy/data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Profile of ~/.runvoy/config.yaml to use [env: RUNVOY_PROFILE]
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColourChoice,
    /// Say less: -q leaves out progress, -qq everything but errors
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub quiet: u8,
    /// Say more: -v shows requests, -vv their bodies, both without secrets
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Write JSON (streams: one object a line); the same as -o json
    #[arg(long, global = true)]
    pub json: bool,
    /// Filter what is written as JSON, in the language of jq; texts come out without quotes
    #[arg(long, global = true, value_name = "FILTER")]
    pub jq: Option<String>,
    /// How to write data
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub output: Option<Format>,
    /// Answer every question with yes
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Name of the profile, where it asks for that before anything that changes; `configure --confirm` makes it ask
    #[arg(long, global = true, value_name = "NAME", num_args = 0..=1)]
    pub confirm: Option<Option<String>>,
    /// Never ask; fail instead [env: RUNVOY_PROMPT_DISABLED]
    #[arg(long, global = true)]
    pub no_input: bool,
}

impl GlobalArgs {
    /// How data is written.
    pub fn format(&self) -> Format {
        if self.json || self.jq.is_some() { Format::Json } else { self.output.unwrap_or_default() }
    }

    /// What the parser cannot tell to be wrong.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.output {
            Some(output) if self.jq.is_some() && output != Format::Json => {
                Err(Failure::usage("--jq filters JSON, and -o asks for something else").next("leave out -o, or write -o json"))
            }
            _ => Ok(()),
        }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How data is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Only ids or names, one a line.
    Name,
}
