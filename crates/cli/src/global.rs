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
    /// Server: http://HOST:PORT, https://HOST or unix:/PATH [env: RUNVOY_API_ENDPOINT]
    #[arg(long, global = true, value_name = "URL")]
    pub endpoint: Option<String>,
    /// File with the API key [env: RUNVOY_API_KEY, RUNVOY_API_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Additional CA certificates to trust, as PEM [env: RUNVOY_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Use the local server of this data directory [env: RUNVOY_DATA_DIR] [default: ~/.runvoy/data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Profile in ~/.runvoy/config.yaml [env: RUNVOY_PROFILE]
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
    /// When to use color
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColourChoice,
    /// Print less: -q omits progress, -qq everything but errors
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub quiet: u8,
    /// Print more: -v shows requests, -vv also their bodies; secrets are masked
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON, the same as -o json; streams print one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Filter the JSON output with a jq expression; strings are printed without quotes
    #[arg(long, global = true, value_name = "FILTER")]
    pub jq: Option<String>,
    /// Output format
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub output: Option<Output>,
    /// Answer yes to every confirmation
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Confirm a change to a profile that requires its name (set by `configure --confirm`)
    #[arg(long, global = true, value_name = "NAME", num_args = 0..=1)]
    pub confirm: Option<Option<String>>,
    /// Never prompt; fail instead [env: RUNVOY_PROMPT_DISABLED]
    #[arg(long, global = true)]
    pub no_input: bool,
}

impl GlobalArgs {
    /// How data is written.
    pub fn format(&self) -> Format {
        match self.output {
            _ if self.json || self.jq.is_some() => Format::Json,
            None | Some(Output::Table | Output::Wide) => Format::Table,
            Some(Output::Json) => Format::Json,
            Some(Output::Yaml) => Format::Yaml,
            Some(Output::Name) => Format::Name,
        }
    }

    /// Whether a table on a terminal is shown in full, with whole ids.
    pub(crate) fn is_wide(&self) -> bool {
        self.output == Some(Output::Wide)
    }

    /// What the parser cannot tell to be wrong.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.output {
            Some(output) if self.jq.is_some() && output != Output::Json => {
                Err(Failure::usage("--jq filters JSON, but -o asks for another format").next("leave out -o, or use -o json"))
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

/// The formats of `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For people, with whole ids and all columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Only ids or names, one a line.
    Name,
}

/// How data is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
