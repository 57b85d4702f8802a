//! The heads of all chains, as executions, jobs and records keep them, and the records themselves; and with them the trail of an installation.

use std::sync::Arc;

use async_trait::async_trait;
use runvoy_model::chain::ChainHead;
use runvoy_model::event::{Entity, EntityType};
use runvoy_model::id::{ExecutionId, JobId};
use runvoy_model::record::Kind;
use runvoy_model::verify::{BadEvent, Problem};
use runvoy_ports::trail::AuditTrail;
use serde::Deserialize;

use crate::event::BucketWitnesses;
use crate::event::trail::{HeadCursor, HeadPage, Heads, RecordPage, Trail};
use crate::fault::Fault;
use crate::item::{Item, Read};
use crate::store::DynamoStore;
use crate::table::Table;
use crate::{execution, job, record};

/// The tables that keep heads, in the order of a walk.
const TABLES: [Table; 5] = [Table::Executions, Table::Jobs, Table::Records, Table::Images, Table::Secrets];
/// The tables that keep records, in the order of a walk.
const RECORDS: [Table; 5] = [Table::ApiKeys, Table::PendingApiKeys, Table::Records, Table::Images, Table::Secrets];

impl DynamoStore {
    /// The trail of this store's events, and of the checkpoints that were exported.
    pub fn trail(&self, witnesses: BucketWitnesses) -> Arc<dyn AuditTrail> {
        let store = Arc::new(self.clone());
        let stores = (Arc::clone(&store) as _, Arc::clone(&store) as _);
        Arc::new(Trail::new((*self.events).clone(), self.audit_key.clone(), store, stores, Some(witnesses)))
    }
}

#[async_trait]
impl Heads for DynamoStore {
    async fn heads(&self, after: Option<HeadCursor>) -> Result<HeadPage, Fault> {
        let cursor = after.unwrap_or(HeadCursor { table: TABLES[0], after: None });
        let (page, next) = self.dynamo.scan(cursor.table, cursor.after).await?;
        let mut heads = Vec::with_capacity(page.len());
        for found in &page {
            match head(cursor.table, found) {
                // One that cannot be read must not keep all others from being looked at.
                Err(Fault::Damaged(why)) => heads.push(Err(unreadable(cursor.table, found, why))),
                head => heads.extend(head?.map(Ok)),
            }
        }
        Ok((heads, further(&TABLES, cursor.table, next)))
    }

    async fn head(&self, entity: &Entity) -> Result<Option<ChainHead>, Fault> {
        let (table, key) = match entity.kind {
            EntityType::Task => match entity.id.parse::<ExecutionId>() {
                Ok(id) => (Table::Executions, execution::key(id)),
                Err(_) => return Ok(None),
            },
            EntityType::Job => match entity.id.parse::<JobId>() {
                Ok(id) => (Table::Jobs, job::key(id)),
                Err(_) => return Ok(None),
            },
            kind => {
                let Some(kind) = Kind::of(kind) else { return Ok(None) };
                (record::table(kind), record::key(kind, &entity.id))
            }
        };
        let Some(found) = self.dynamo.get(table, key).await? else { return Ok(None) };
        Ok(head(table, &found)?.map(|(_, head)| head))
    }

    async fn records(&self, after: Option<HeadCursor>) -> Result<RecordPage, Fault> {
        let cursor = after.unwrap_or(HeadCursor { table: RECORDS[0], after: None });
        let (page, next) = self.dynamo.scan(cursor.table, cursor.after).await?;
        let mut records = Vec::with_capacity(page.len());
        for found in &page {
            match record::of_item(found, &*self.blobs).await {
                Err(Fault::Damaged(why)) => records.push(Err(unreadable(cursor.table, found, why))),
                record => records.push(Ok(record?)),
            }
        }
        Ok((records, further(&RECORDS, cursor.table, next)))
    }
}

/// Where a walk over `tables` goes on: in the same table while it has more, then in the next.
fn further(tables: &[Table], table: Table, next: Option<Item>) -> Option<HeadCursor> {
    match next {
        Some(after) => Some(HeadCursor { table, after: Some(after) }),
        None => tables.iter().skip_while(|other| **other != table).nth(1).map(|table| HeadCursor { table: *table, after: None }),
    }
}

/// What executions and jobs keep of their chains.
#[derive(Deserialize)]
struct State {
    id: runvoy_model::id::Id,
    chain: ChainHead,
}

fn head(table: Table, found: &Item) -> Result<Option<(Entity, ChainHead)>, Fault> {
    match table {
        Table::Executions => {
            let State { id, chain } = found.json("state")?;
            Ok(Some((Entity::task(ExecutionId(id)), chain)))
        }
        Table::Jobs if found.text("entry")? == "job" => {
            let State { id, chain } = found.json("state")?;
            Ok(Some((Entity::job(JobId(id)), chain)))
        }
        Table::Jobs => Ok(None),
        _ => {
            let text = found.text("record_kind")?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == text).and_then(Kind::entity);
            let Some(kind) = kind else { return Ok(None) };
            Ok(Some((Entity { kind, id: found.text("record_name")?.to_owned() }, found.json("chain")?)))
        }
    }
}

/// What keeps a head, by what is left of it.
fn unreadable(table: Table, found: &Item, message: String) -> BadEvent {
    let text = |name: &str| found.text_if(name).unwrap_or("?");
    let entity = match table {
        Table::Executions => format!("TASK:{}", text("execution_id")),
        Table::Jobs => format!("JOB:{}", text("job_id")),
        _ => format!("{}:{}", text("record_kind").to_uppercase(), text("record_name")),
    };
    BadEvent { place: u64::MAX, entity, number: 0, event_id: None, problem: Problem::Unreadable, message }
}
