//! Job events: what workers publish about their attempts, kept as published and streamed back so.
//!
//! They are kept in a log of their own beside the log of lines. That log is the truth, and the lines follow from it: an event is appended, put on stable storage, and only
//! then its output becomes lines. Each event says which lines are its own, so whoever comes after a crash between the two makes those that are missing. What is published
//! again is recognised by its sequence; one that comes late and was never stored is kept where it came.
//!
//! An attempt that our own worker ran has no events; for readers they are made from its lines. Decision 015 has the reasons.

mod attempt;
mod derive;
mod desk;
mod find;
mod follow;
mod ledger;
mod load;
mod masks;
mod order;
mod publish;
mod settle;
mod standing;
mod straggler;

use runvoy_model::job_event::{JobEvent, Kept};
use runvoy_model::log::Stream;
use runvoy_model::time::UnixMs;

pub(crate) use self::desk::Desk;
pub use self::follow::{JobEventFilter, JobEventFollower};
pub use self::order::Covers;

/// The protocol's numbers of the kinds of events that are made here.
mod kind {
    pub(super) const STARTED: u8 = 1;
    pub(super) const ENDED: u8 = 2;
    pub(super) const FAILED: u8 = 3;
    pub(super) const OUTPUT: u8 = 5;
}

/// An event as a worker publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedEvent {
    /// The event.
    pub event: JobEvent,
    /// What it means beside being kept.
    pub effect: Effect,
}

/// What an event means beside being kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing more than its output, if it has any.
    Kept,
    /// The process has started. Such an event finds room in a full log.
    Started {
        /// Its id on the worker's machine.
        pid: Option<u32>,
    },
    /// The process has ended, or could not be started: what the worker completes the execution with decides. Such an event finds room in a full log.
    Ended,
}

/// An event as readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamedEvent {
    /// As its worker published it.
    Published(Kept),
    /// Made from the lines and the record of an attempt that published none.
    Derived(DerivedEvent),
}

/// An event of an attempt that published none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedEvent {
    /// The sequence that readers see.
    pub sequence: i64,
    /// When.
    pub at: UnixMs,
    /// What happened.
    pub what: Derived,
}

/// What happened in an attempt that published no events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Derived {
    /// It began.
    Started,
    /// The command wrote something.
    Output {
        /// Standard output or standard error.
        stream: Stream,
        /// The bytes, with the newline if there was one.
        bytes: Vec<u8>,
    },
    /// It ended.
    Ended {
        /// What it returned.
        exit_code: i32,
        /// How long it ran.
        ran_ms: u64,
    },
    /// It failed, and another attempt follows.
    Failed {
        /// Why.
        message: String,
    },
}

impl StreamedEvent {
    /// The sequence that readers see.
    pub fn sequence(&self) -> i64 {
        match self {
            Self::Published(kept) => kept.event.place.reader_sequence(kept.attempt),
            Self::Derived(derived) => derived.sequence,
        }
    }

    /// When.
    pub fn at(&self) -> UnixMs {
        match self {
            Self::Published(kept) => kept.event.at,
            Self::Derived(derived) => derived.at,
        }
    }

    /// What kind of event, by the protocol's number.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Published(kept) => kept.event.kind,
            Self::Derived(derived) => match derived.what {
                Derived::Started => kind::STARTED,
                Derived::Output { .. } => kind::OUTPUT,
                Derived::Ended { .. } => kind::ENDED,
                Derived::Failed { .. } => kind::FAILED,
            },
        }
    }
}
