//! Calls about logs: read by line number, search, download.

use std::fmt;

use http::Method;
use runvoy_wire::{LogsResponse, SearchResponse, Stream};

use crate::call::Call;
use crate::client::Client;
use crate::download::Download;
use crate::error::ClientError;
use crate::query::Target;

/// Which lines to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogsQuery {
    /// From this line on.
    pub from_line: Option<u64>,
    /// At most so many.
    pub limit: Option<u64>,
    /// The last so many.
    pub tail: Option<u64>,
    /// Only lines that hold this text.
    pub search: Option<String>,
    /// Only this stream.
    pub stream: Option<Stream>,
}

/// How a download is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The command's very bytes.
    Raw,
    /// Without escapes.
    Text,
    /// One JSON event a line.
    Ndjson,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Raw => "raw",
            Self::Text => "text",
            Self::Ndjson => "ndjson",
        })
    }
}

impl Client {
    /// Lines of the log with where to go on.
    pub async fn logs(&self, id: &str, query: &LogsQuery) -> Result<LogsResponse, ClientError> {
        self.fetch(&Call::get(target(id, query))).await
    }

    /// The same, without repeats: the follower has its own patience.
    pub(crate) async fn logs_once(&self, id: &str, query: &LogsQuery) -> Result<LogsResponse, ClientError> {
        self.fetch(&Call::get(target(id, query)).once()).await
    }

    /// Lines that match, from `from_line` on.
    pub async fn search(&self, id: &str, text: &str, regex: bool, from_line: Option<u64>) -> Result<SearchResponse, ClientError> {
        let target = Target::new(&["executions", id, "logs", "search"])
            .with("q", text)
            .with_some("regex", regex.then_some(true))
            .with_some("from_line", from_line);
        self.fetch(&Call::get(target)).await
    }

    /// The log as it comes, in constant memory.
    pub async fn download(&self, id: &str, format: Format, query: &LogsQuery) -> Result<Download, ClientError> {
        let call = Call::new(Method::GET, target(id, query).with("format", format)).once();
        Ok(Download::new(self.clone(), self.open(&call).await?))
    }
}

fn target(id: &str, query: &LogsQuery) -> Target {
    Target::new(&["executions", id, "logs"])
        .with_some("from_line", query.from_line)
        .with_some("limit", query.limit)
        .with_some("tail", query.tail)
        .with_some("search", query.search.as_ref())
        .with_some("stream", query.stream.map(Stream::as_str))
}
