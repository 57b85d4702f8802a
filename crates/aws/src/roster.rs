//! The roster of workers: one item each, replaced whenever it says something newer, read by a look at all of them. DynamoDB tidies away whoever was not
//! heard of for long, sooner or later.

use async_trait::async_trait;
use runvoy_model::id::WorkerId;
use runvoy_model::time::UnixMs;
use runvoy_model::worker::Presence;
use runvoy_ports::roster::Roster;
use runvoy_ports::store::StoreError;

use crate::dynamo::Change;
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::store::DynamoStore;
use crate::table::Table;

/// An item is kept for so long after its worker was last heard of, unless it is forgotten before.
const KEPT_SECONDS: i64 = 48 * 3600;

fn key(worker: WorkerId) -> Item {
    item([("worker_id", s(worker.to_string()))])
}

impl DynamoStore {
    /// When a worker was last heard of. A write that was refused is looked into with it: DynamoDB refuses one that meets another too.
    async fn seen_at(&self, worker: Item) -> Result<Option<UnixMs>, Fault> {
        let found = self.dynamo.get(Table::Workers, worker).await?;
        found.map(|found| found.number("seen_at").map(UnixMs)).transpose()
    }
}

#[async_trait]
impl Roster for DynamoStore {
    async fn note(&self, presence: Presence) -> Result<(), StoreError> {
        let change = Change {
            expression: "SET seen_at = :seen, expires_at = :expires, body = :body",
            condition: Some("attribute_not_exists(seen_at) OR seen_at <= :seen"),
            names: Vec::new(),
            values: vec![
                (":seen", n(presence.seen_at.0)),
                (":expires", n(presence.seen_at.seconds() + KEPT_SECONDS)),
                (":body", json(&presence)),
            ],
        };
        match self.dynamo.update(Table::Workers, key(presence.worker), change).await {
            Ok(()) => Ok(()),
            // Something newer is known.
            Err(Fault::Conflict) if self.seen_at(key(presence.worker)).await? > Some(presence.seen_at) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn present(&self) -> Result<Vec<Presence>, StoreError> {
        // One that cannot be read, perhaps because a later version wrote it, says something again soon.
        let found = self.dynamo.scan_all(Table::Workers).await?;
        let mut workers: Vec<Presence> = found.iter().filter_map(|found| found.json("body").ok()).collect();
        workers.sort_by(|one, other| (&one.name, one.worker).cmp(&(&other.name, other.worker)));
        Ok(workers)
    }

    async fn leave(&self, worker: WorkerId) -> Result<(), StoreError> {
        Ok(self.dynamo.delete(Table::Workers, key(worker)).await?)
    }

    async fn forget(&self, before: UnixMs) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for found in self.dynamo.scan_all(Table::Workers).await? {
            if found.number::<i64>("seen_at")? >= before.0 {
                continue;
            }
            let own = item([("worker_id", s(found.text("worker_id")?))]);
            match self.dynamo.delete_if(Table::Workers, own.clone(), "seen_at < :before", vec![(":before", n(before.0))]).await {
                Ok(()) => forgotten += 1,
                // It was heard of since, or another server has forgotten it.
                Err(Fault::Conflict) if self.seen_at(own).await?.is_none_or(|seen| seen >= before) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(forgotten)
    }
}
