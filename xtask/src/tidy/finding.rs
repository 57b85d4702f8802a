//! One thing that is wrong, and where.

use std::fmt;

/// What a rule found. Sorts by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule, as the table of exceptions names it.
    pub rule: &'static str,
    /// The item in the file that it is about, where a rule judges items.
    pub item: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about a line of a file.
    pub fn new(rule: &'static str, path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, rule, item: None, message: message.into() }
    }

    /// What an exception has to name: the file, or `file::item`.
    pub fn subject(&self) -> String {
        self.item.as_ref().map_or_else(|| self.path.clone(), |item| format!("{}::{item}", self.path))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}
