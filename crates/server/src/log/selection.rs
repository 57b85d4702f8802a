//! Which records of a log were asked for.

use memchr::memmem::Finder;
use runvoy_model::log::{Record, Stream};

use crate::fault::Fault;
use crate::query::Query;

/// The parameters that choose records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// From this line on.
    pub(crate) from_line: Option<u64>,
    /// At most so many; absent means all.
    pub(crate) limit: Option<u64>,
    /// The last so many.
    pub(crate) tail: Option<u64>,
    /// Which of them.
    pub(crate) matcher: Matcher,
}

/// Which records are wanted, whatever their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matcher {
    search: Option<Finder<'static>>,
    stream: Option<Stream>,
}

impl Selection {
    /// From the query of a request.
    pub(crate) fn of(query: &Query) -> Result<Self, Fault> {
        let selection = Self {
            from_line: query.number("from_line", 1..=u64::MAX)?,
            limit: query.number("limit", 0..=u64::MAX)?.filter(|limit| *limit > 0),
            tail: query.number("tail", 0..=u64::MAX)?,
            matcher: Matcher { search: query.text("search")?.map(|text| Finder::new(text).into_owned()), stream: stream_of(query)? },
        };
        if selection.tail.is_some() && selection.from_line.is_some() {
            return Err(Fault::invalid("tail", "cannot be asked for together with from_line"));
        }
        Ok(selection)
    }

    /// Nothing was chosen: the whole log is wanted.
    pub(crate) const fn is_whole(&self) -> bool {
        self.from_line.is_none() && self.limit.is_none() && self.tail.is_none() && self.matcher.takes_all()
    }
}

impl Matcher {
    /// Whether every record is wanted.
    pub(crate) const fn takes_all(&self) -> bool {
        self.search.is_none() && self.stream.is_none()
    }

    /// Whether this record is wanted.
    pub(crate) fn takes(&self, record: &Record<'_>) -> bool {
        self.stream.is_none_or(|stream| stream == record.stream)
            && self.search.as_ref().is_none_or(|search| search.find(record.bytes).is_some())
    }
}

/// The parameter `stream`.
pub(crate) fn stream_of(query: &Query) -> Result<Option<Stream>, Fault> {
    match query.text("stream")? {
        None => Ok(None),
        Some("stdout") => Ok(Some(Stream::Stdout)),
        Some("stderr") => Ok(Some(Stream::Stderr)),
        Some("platform") => Ok(Some(Stream::Platform)),
        Some(_) => Err(Fault::invalid("stream", "must be stdout, stderr or platform")),
    }
}
