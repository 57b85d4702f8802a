//! The store behind its ports. Nothing is decided here.

use async_trait::async_trait;
use runvoy_model::command::{Answer, Command};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::step::Step;
use runvoy_model::time::UnixMs;
use runvoy_ports::identity::{IdentityStore, Key, NewUser, User};
use runvoy_ports::store::{Counts, EventQuery, ExecutionStore, ListQuery, LockLine, OpenLease, Retention, StoreError, StoredEvent};

use crate::store::SqliteStore;
use crate::writer::{Done, Work};
use crate::{count, event, lock, ready, record, search, user};

#[async_trait]
impl ExecutionStore for SqliteStore {
    async fn apply(&self, step: Step, command: Command) -> Result<Answer, StoreError> {
        match self.write(Work::Step(Box::new((step, command)))).await? {
            Done::Answer(answer) => Ok(*answer),
            other => Err(mismatch(&other)),
        }
    }

    async fn get(&self, id: ExecutionId) -> Result<Option<Execution>, StoreError> {
        let record = self.readers.peek(|conn, _| record::by_id(conn, id))?;
        Ok(record.map(|record| record.execution))
    }

    async fn find(&self, digits: &str, max: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let digits = digits.to_owned();
        self.readers.read(move |conn, _| search::find(conn, &digits, max)).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Execution>, StoreError> {
        if search::is_short(&query) {
            return self.readers.peek(|conn, _| search::list(conn, &query));
        }
        self.readers.read(move |conn, _| search::list(conn, &query)).await
    }

    async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        self.readers.read(|conn, _| search::open_leases(conn)).await
    }

    async fn waits_ended(&self, at: UnixMs) -> Result<Vec<ExecutionId>, StoreError> {
        self.readers.read(move |conn, _| lock::waits_ended(conn, at)).await
    }

    async fn next_ready(&self, queues: &[Name]) -> Result<Option<UnixMs>, StoreError> {
        self.readers.peek(|conn, _| ready::next(conn, queues))
    }

    async fn locks(&self) -> Result<Vec<LockLine>, StoreError> {
        self.readers.read(|conn, _| lock::held(conn)).await
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.readers.read(move |conn, _| event::page(conn, &query)).await
    }

    async fn prune(&self, retention: Retention) -> Result<usize, StoreError> {
        match self.write(Work::Prune(retention)).await? {
            Done::Pruned(rows) => Ok(rows),
            other => Err(mismatch(&other)),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(count::count).await
    }
}

#[async_trait]
impl IdentityStore for SqliteStore {
    async fn create_first_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError> {
        self.create(Work::CreateUser { step, user, only_first: true }).await
    }

    async fn create_user(&self, step: Step, user: NewUser) -> Result<bool, StoreError> {
        self.create(Work::CreateUser { step, user, only_first: false }).await
    }

    async fn key(&self, hash: [u8; 32]) -> Result<Option<(Key, User)>, StoreError> {
        self.readers.peek(|conn, _| user::by_key(conn, hash))
    }

    async fn touch_key(&self, hash: [u8; 32], at: UnixMs) -> Result<(), StoreError> {
        match self.write(Work::TouchKey { hash, at }).await? {
            Done::Touched => Ok(()),
            other => Err(mismatch(&other)),
        }
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        self.readers.peek(|conn, _| user::all(conn))
    }
}

impl SqliteStore {
    async fn create(&self, work: Work) -> Result<bool, StoreError> {
        match self.write(work).await? {
            Done::Created(created) => Ok(created),
            other => Err(mismatch(&other)),
        }
    }
}

fn mismatch(done: &Done) -> StoreError {
    StoreError::Damaged(format!("a request was answered as another: {done:?}"))
}
