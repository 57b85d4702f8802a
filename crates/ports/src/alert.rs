//! Telling people: the seam to whatever brings them a message. It may be away for long; whoever tells keeps what is not told yet and tries again.

use std::time::Duration;

use async_trait::async_trait;
use runvoy_model::time::UnixMs;

/// Brings people a message.
#[async_trait]
pub trait Alerter: Send + Sync {
    /// Tells people. When this returns well the message was taken; after an error it may have been taken all the same.
    async fn tell(&self, notice: &Notice) -> Result<(), AlertError>;

    /// Where messages go, for people. Never what a message could be sent with.
    fn place(&self) -> &str;
}

/// A message. All texts are plain; how they are shown is the adapter's matter, and that nothing in them acts as markup. Commands, values of facts and
/// reasons are other people's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about, in one line.
    pub title: String,
    /// What is wrong, the worst first.
    pub begun: Vec<Entry>,
    /// What is wrong beside that, in numbers.
    pub more: Vec<String>,
    /// What is over, a line each.
    pub over: Vec<Line>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// How bad it is.
    pub tone: Tone,
    /// What is wrong.
    pub headline: String,
    /// Since when.
    pub since: UnixMs,
    /// The command it is about.
    pub command: Option<String>,
    /// What is known: a name and a value each.
    pub facts: Vec<(&'static str, String)>,
    /// Command lines that help.
    pub next: Vec<String>,
    /// The page to look at.
    pub link: Option<String>,
}

/// One thing that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What was wrong.
    pub text: String,
    /// How that was over.
    pub why: Option<String>,
    /// The command it was about.
    pub command: Option<String>,
    /// The page to look at.
    pub link: Option<String>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// Somebody should look.
    Warning,
    /// Somebody should look now.
    Bad,
}

/// Why people were not told. It may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AlertError {
    /// What went wrong, without any secret of the address.
    pub message: String,
    /// Not before so long.
    pub retry_after: Option<Duration>,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AlertError {
    /// An error that says this.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry_after: None, source: None }
    }
}
