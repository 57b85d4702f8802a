//! Stores of tests that do some things in their own way: they fail, count, wait or answer something else. What such a store does not say itself is done by the store
//! behind it. One trait for each port, so that a test writes only the calls that it is about.

use async_trait::async_trait;
use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::limit::StepLimits;
use runvoy_model::log::Chunk;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::spec::Needs;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, Found, LogError, LogStore, Pruned, RawPlace, Search};
use runvoy_ports::queue::{Backlog, DeadQuery, QueueCounts};
use runvoy_ports::record::{IncidentMark, IncidentQuery, RecordStore};
use runvoy_ports::store::{
    Counts, EventPage, EventQuery, ExecutionStore, Leaf, ListQuery, LockLine, OpenLease, Retention, Sight, StoreError, StoredEvent,
};

/// A store of a test, as the port that it stands for.
pub struct Tapped<T>(pub T);

impl<T> std::ops::Deref for Tapped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

macro_rules! tap {
    (
        $(#[$doc:meta])*
        $tap:ident for $port:ident failing with $error:ident {
            $(async $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*
            $(plain $plain:ident($($given:ident: $of:ty),*) -> $value:ty;)*
        }
    ) => {
        $(#[$doc])*
        #[async_trait]
        pub trait $tap: Send + Sync {
            /// The store behind it.
            fn inner(&self) -> &dyn $port;

            /// Asked before each call that the test does not do itself, by its name: an error is the answer.
            fn before(&self, _call: &'static str) -> Result<(), $error> {
                Ok(())
            }

            $(
                #[doc = concat!("As [`", stringify!($port), "::", stringify!($name), "`].")]
                async fn $name(&self, $($arg: $type),*) -> Result<$answer, $error> {
                    self.before(stringify!($name))?;
                    self.inner().$name($($arg),*).await
                }
            )*
            $(
                #[doc = concat!("As [`", stringify!($port), "::", stringify!($plain), "`].")]
                fn $plain(&self, $($given: $of),*) -> $value {
                    self.inner().$plain($($given),*)
                }
            )*
        }

        #[async_trait]
        impl<T: $tap> $port for Tapped<T> {
            $(
                async fn $name(&self, $($arg: $type),*) -> Result<$answer, $error> {
                    $tap::$name(&self.0, $($arg),*).await
                }
            )*
            $(
                fn $plain(&self, $($given: $of),*) -> $value {
                    $tap::$plain(&self.0, $($given),*)
                }
            )*
        }
    };
}

tap! {
    /// A log store of a test.
    LogTap for LogStore failing with LogError {
        async append(id: ExecutionId, append: Append) -> Appended;
        async sync(id: ExecutionId) -> Extent;
        async seal(id: ExecutionId, log_end: u64) -> ();
        async extent(id: ExecutionId) -> Extent;
        async read(id: ExecutionId, from_line: u64, max_bytes: usize) -> Vec<Chunk>;
        async line_at(id: ExecutionId, at: UnixMs) -> u64;
        async raw_place(id: ExecutionId, offset: u64) -> Option<RawPlace>;
        async search(id: ExecutionId, search: Search) -> Found;
        async prune(before: UnixMs) -> Pruned;
    }
}

tap! {
    /// A store of executions of a test.
    ExecutionTap for ExecutionStore failing with StoreError {
        async apply(step: Step, command: Command) -> Answer;
        async get(id: ExecutionId) -> Option<Execution>;
        async find(digits: &str, max: usize) -> Vec<ExecutionId>;
        async made_by(user: &str, key: &str) -> Option<(Made, [u8; 32])>;
        async list(query: ListQuery) -> Vec<Execution>;
        async open_leases() -> Vec<OpenLease>;
        async waits_ended(at: UnixMs) -> Vec<ExecutionId>;
        async next_ready(queues: &[Name], serves: &[Needs]) -> Option<UnixMs>;
        async locks() -> Vec<LockLine>;
        async events(query: EventQuery) -> Vec<StoredEvent>;
        async seen_events(query: EventQuery, sight: Sight) -> EventPage;
        async leaves(after: u64, max: usize) -> Vec<Leaf>;
        async queues() -> Vec<QueueCounts>;
        async backlogs() -> Vec<Backlog>;
        async dead(query: DeadQuery) -> Vec<Execution>;
        async dead_count(query: DeadQuery) -> u64;
        async prune(retention: Retention) -> usize;
        async counts() -> Counts;
        plain step_limits() -> StepLimits;
        plain unreadable(max: usize) -> Vec<(ExecutionId, String)>;
    }
}

tap! {
    /// A store of records of a test.
    RecordTap for RecordStore failing with StoreError {
        async record(kind: Kind, name: &str) -> Option<Record>;
        async records(kind: Kind) -> Vec<Record>;
        async incidents(query: IncidentQuery) -> Vec<IncidentMark>;
        async incident_counts() -> Vec<(Phase, IncidentKind, u64)>;
        async touch_key(hash: [u8; 32], at: UnixMs) -> ();
        async key_uses(hashes: &[[u8; 32]]) -> Vec<Option<UnixMs>>;
        plain authority() -> Option<u64>;
    }
}
