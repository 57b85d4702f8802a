//! The command line of a client: one file per command, below `command/`. Data goes to stdout and everything else to stderr. It sees only
//! the client and the wire types; the binary adds the commands that need more, and says how to reach a local server.

mod ambiguity;
mod attach;
pub mod command;
pub mod complete;
mod config_file;
mod confirm;
mod document;
mod duration;
mod environment;
mod expiry;
mod failure;
pub mod global;
mod graph;
mod help;
mod holder;
mod job_file;
mod jq;
mod local;
mod moment;
mod output;
mod playbook;
mod printer;
mod private_file;
mod progress;
mod reason;
mod rule_file;
mod sanitize;
mod session;
mod settings;
mod sink;
mod skew;
mod spinner;
mod summary;
mod table;
mod terminal;
mod value;
mod words;

pub use command::{ClientCommand, execute};
pub use duration::Seconds;
pub use environment::Environment;
pub use global::GlobalArgs;
pub use local::LocalServer;
pub use words::parse;
