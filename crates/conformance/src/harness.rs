//! How a promise gets at the store it is asked of: a fresh one, which can be closed and opened again on the same data.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_model::chain::AuditKey;
use runvoy_ports::cost::CostStore;
use runvoy_ports::job::JobStore;
use runvoy_ports::log::LogStore;
use runvoy_ports::record::RecordStore;
use runvoy_ports::roster::Roster;
use runvoy_ports::store::ExecutionStore;

/// The key that stores under test make their chains with.
pub const AUDIT_KEY: AuditKey = AuditKey::new([0x5a; 32]);

/// Executions, jobs, records, the roster and costs in one store: a step may change several, and one reader sees all.
pub trait TransactionalStore: ExecutionStore + JobStore + RecordStore + Roster + CostStore {}

impl<S: ExecutionStore + JobStore + RecordStore + Roster + CostStore + ?Sized> TransactionalStore for S {}

/// A store under test.
#[async_trait]
pub trait Harness<S: ?Sized>: Send + Sync {
    /// A handle on the store as it is open now.
    fn store(&self) -> Arc<S>;

    /// Closes the store, and opens it again on the same data. Whoever holds a handle lets go of it before.
    async fn reopen(&self);
}

/// The harness of an [`ExecutionStore`].
pub type Executions<'h> = &'h dyn Harness<dyn ExecutionStore>;
/// The harness of a [`TransactionalStore`].
pub type Records<'h> = &'h dyn Harness<dyn TransactionalStore>;
/// The harness of a [`LogStore`].
pub type Logs<'h> = &'h dyn Harness<dyn LogStore>;

type Opening<S> = Pin<Box<dyn Future<Output = Arc<S>> + Send>>;

/// The harness of anything that can be opened: made from the one function that opens it.
pub struct Opener<S: ?Sized> {
    open: Box<dyn Fn() -> Opening<S> + Send + Sync>,
    current: Mutex<Option<Arc<S>>>,
}

impl<S: ?Sized + Send + Sync> Opener<S> {
    /// Opens for the first time.
    pub async fn new<F, O>(open: O) -> Self
    where
        F: Future<Output = Arc<S>> + Send + 'static,
        O: Fn() -> F + Send + Sync + 'static,
    {
        let first = open().await;
        Self { open: Box::new(move || Box::pin(open())), current: Mutex::new(Some(first)) }
    }
}

#[async_trait]
impl<S: ?Sized + Send + Sync> Harness<S> for Opener<S> {
    fn store(&self) -> Arc<S> {
        self.current.lock().clone().expect("the store is open except within a reopen")
    }

    async fn reopen(&self) {
        let closing = self.current.lock().take();
        assert!(closing.as_ref().is_some_and(|store| Arc::strong_count(store) == 1), "a handle was kept over a reopen");
        drop(closing);
        let opened = (self.open)().await;
        *self.current.lock() = Some(opened);
    }
}
