//! Logs as answers: which records were asked for, how they are written, and the pages in between. Nothing here ever holds more than a page of
//! a log.

mod format;
mod pages;
mod range;
mod selection;

pub(crate) use format::{Form, Writer};
pub(crate) use pages::Pages;
pub(crate) use range::{Range, etag, is_same_log};
pub(crate) use selection::{Selection, stream_of};
