//! DynamoDB as the rest of this crate speaks to it: consistent reads by key, queries page by page, conditional writes, and transactions that
//! are named by what they write. Whoever asks an index that may lag asks for it by name and knows that it may.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select, TransactWriteItem};
use sha2::{Digest, Sha256};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::item::Item;
use crate::setup;
use crate::table::Table;

const SERVICE: &str = "DynamoDB";
/// So many keys are read at once at most.
const MOST_KEYS: usize = 100;
/// What was not processed is asked for again so often.
const ROUNDS: u32 = 10;

/// The tables of one installation. A clone shares the connections.
#[derive(Debug, Clone)]
pub(crate) struct Dynamo {
    client: aws_sdk_dynamodb::Client,
    config: Arc<Config>,
}

/// A query: which part of a table or index, and how.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub table: Table,
    /// An index; `None` is the table itself, which is read consistently, as is an index within a partition.
    pub index: Option<&'static str>,
    /// The partition attribute and its value.
    pub hash: (&'static str, AttributeValue),
    /// A condition on the sort attribute: `#r …` with these values.
    pub range: Option<(&'static str, &'static str, Vec<(&'static str, AttributeValue)>)>,
    pub descending: bool,
    /// Stop when there are so many.
    pub limit: usize,
    /// Go on after this key.
    pub after: Option<Item>,
}

impl Query {
    /// Everything in a partition of a table, in order.
    pub fn of(table: Table, hash: &'static str, value: AttributeValue) -> Self {
        Self { table, index: None, hash: (hash, value), range: None, descending: false, limit: usize::MAX, after: None }
    }

    /// The same of an index.
    pub fn index(mut self, name: &'static str) -> Self {
        self.index = Some(name);
        self
    }

    /// Only where the sort attribute fits: `condition` speaks of it as `#r`.
    pub fn range(mut self, name: &'static str, condition: &'static str, values: Vec<(&'static str, AttributeValue)>) -> Self {
        self.range = Some((name, condition, values));
        self
    }

    /// From the other end.
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// No more than so many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Dynamo {
    pub fn new(clients: &Clients, config: Arc<Config>) -> Self {
        Self { client: clients.dynamo.clone(), config }
    }

    /// The name of a table.
    pub fn name(&self, table: Table) -> String {
        setup::name(&self.config, table)
    }

    /// One item as it is now.
    pub async fn get(&self, table: Table, key: Item) -> Result<Option<Item>, Fault> {
        let request = self.client.get_item().table_name(self.name(table)).set_key(Some(key)).consistent_read(true);
        Ok(request.send().await.map_err(|error| Fault::of(SERVICE, error))?.item)
    }

    /// Items as they are now, in no order; those that are not there are left out. A key must be named once.
    pub async fn get_all(&self, table: Table, keys: Vec<Item>) -> Result<Vec<Item>, Fault> {
        self.get_parts(table, keys, &[]).await
    }

    /// The same, but of each item only these attributes; all of them where none is named.
    pub async fn get_parts(&self, table: Table, keys: Vec<Item>, parts: &[&str]) -> Result<Vec<Item>, Fault> {
        let names: HashMap<String, String> = parts.iter().enumerate().map(|(i, part)| (format!("#p{i}"), (*part).to_owned())).collect();
        let expression = (0..parts.len()).map(|i| format!("#p{i}")).collect::<Vec<_>>().join(",");
        let mut found = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(MOST_KEYS) {
            let (mut wanted, mut round) = (chunk.to_vec(), 0);
            while !wanted.is_empty() {
                let mut asked = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true);
                if !parts.is_empty() {
                    asked = asked.projection_expression(&expression).set_expression_attribute_names(Some(names.clone()));
                }
                let asked = asked.build().expect("there are keys");
                let request = self.client.batch_get_item().request_items(self.name(table), asked);
                let mut answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
                found.extend(answer.responses.as_mut().and_then(|all| all.remove(&self.name(table))).unwrap_or_default());
                let rest = answer.unprocessed_keys.as_mut().and_then(|all| all.remove(&self.name(table)));
                wanted = rest.map(|rest| rest.keys).unwrap_or_default();
                if !wanted.is_empty() {
                    round += 1;
                    if round > ROUNDS {
                        return Err(throttled());
                    }
                    pause(round).await;
                }
            }
        }
        Ok(found)
    }

    /// What a query finds.
    pub async fn query(&self, query: Query) -> Result<Vec<Item>, Fault> {
        let mut found = Vec::new();
        let mut after = query.after.clone();
        loop {
            let left = query.limit.saturating_sub(found.len());
            if left == 0 {
                return Ok(found);
            }
            let mut request = self.request(&query).set_exclusive_start_key(after);
            if query.limit != usize::MAX {
                request = request.limit(i32::try_from(left).unwrap_or(i32::MAX));
            }
            let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
            found.extend(answer.items.unwrap_or_default());
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// How many items a query finds, without reading them.
    pub async fn count(&self, query: Query) -> Result<u64, Fault> {
        let (mut count, mut after) = (0, None);
        loop {
            let request = self.request(&query).select(Select::Count).set_exclusive_start_key(after);
            let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
            count += u64::try_from(answer.count).unwrap_or(0);
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    fn request(&self, query: &Query) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        let is_local = query.index.is_none_or(|name| query.table.local_indexes().iter().any(|index| index.name == name));
        let mut condition = "#h = :h".to_owned();
        let mut request = self
            .client
            .query()
            .table_name(self.name(query.table))
            .set_index_name(query.index.map(str::to_owned))
            .consistent_read(is_local)
            .scan_index_forward(!query.descending)
            .expression_attribute_names("#h", query.hash.0)
            .expression_attribute_values(":h", query.hash.1.clone());
        if let Some((name, range, values)) = &query.range {
            condition = format!("{condition} AND {range}");
            request = request.expression_attribute_names("#r", *name);
            for (name, value) in values {
                request = request.expression_attribute_values(*name, value.clone());
            }
        }
        request.key_condition_expression(condition)
    }

    /// A page of everything in a table, read consistently, and where to go on.
    pub async fn scan(&self, table: Table, after: Option<Item>) -> Result<(Vec<Item>, Option<Item>), Fault> {
        let request = self.client.scan().table_name(self.name(table)).consistent_read(true).set_exclusive_start_key(after);
        let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }

    /// Everything in a table, read consistently.
    pub async fn scan_all(&self, table: Table) -> Result<Vec<Item>, Fault> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = self.scan(table, after).await?;
            found.extend(page);
            after = next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Puts an item, whatever was there.
    pub async fn put(&self, table: Table, item: Item) -> Result<(), Fault> {
        let request = self.client.put_item().table_name(self.name(table)).set_item(Some(item));
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Puts an item where there is none; `Conflict` where there is.
    pub async fn put_new(&self, table: Table, item: Item) -> Result<(), Fault> {
        let request = self.client.put_item().table_name(self.name(table)).set_item(Some(item));
        let request = request.condition_expression("attribute_not_exists(#k)").expression_attribute_names("#k", table.key().0);
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Removes an item.
    pub async fn delete(&self, table: Table, key: Item) -> Result<(), Fault> {
        let request = self.client.delete_item().table_name(self.name(table)).set_key(Some(key));
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Changes an item by an expression; `values` and `names` are what it speaks of. `Conflict` where the condition does not hold.
    pub async fn update(&self, table: Table, key: Item, change: Change) -> Result<(), Fault> {
        let request = self
            .client
            .update_item()
            .table_name(self.name(table))
            .set_key(Some(key))
            .update_expression(change.expression)
            .set_condition_expression(change.condition.map(str::to_owned))
            .set_expression_attribute_names(names(&change.names))
            .set_expression_attribute_values((!change.values.is_empty()).then(|| crate_values(change.values)));
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Writes all of these or none. The same writes sent again within minutes are the same transaction, answered as before. `Conflict` where
    /// a condition does not hold or another writer is at the same items.
    pub async fn transact(&self, name: &[u8], writes: Vec<TransactWriteItem>) -> Result<(), Fault> {
        if writes.len() > MOST_KEYS {
            let message = format!("{} items in one step, {MOST_KEYS} are the most", writes.len());
            return Err(Fault::Refused { service: SERVICE, code: "TooLarge".to_owned(), message });
        }
        let token = token(name, &writes);
        let request = self.client.transact_write_items().client_request_token(token).set_transact_items(Some(writes));
        request.send().await.map(drop).map_err(Fault::of_transaction)
    }
}

/// A change of one item.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub expression: &'static str,
    pub condition: Option<&'static str>,
    pub names: Vec<(&'static str, &'static str)>,
    pub values: Vec<(&'static str, AttributeValue)>,
}

fn names(pairs: &[(&str, &str)]) -> Option<HashMap<String, String>> {
    (!pairs.is_empty()).then(|| pairs.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect())
}

fn crate_values(pairs: Vec<(&str, AttributeValue)>) -> Item {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Names a transaction by who makes it and what it writes: 32 hex digits.
fn token(name: &[u8], writes: &[TransactWriteItem]) -> String {
    let mut digest = Sha256::new();
    digest.update(name);
    for write in writes {
        // Maps of attributes have no order of their own.
        let mut parts: Vec<String> = Vec::new();
        let mut add = |table: &str, map: Option<&Item>, more: Option<&Item>| {
            parts.push(table.to_owned());
            for map in [map, more].into_iter().flatten() {
                let mut attributes: Vec<_> = map.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
                attributes.sort_unstable();
                parts.extend(attributes);
            }
        };
        if let Some(put) = write.put() {
            add(put.table_name(), Some(put.item()), put.expression_attribute_values());
        }
        if let Some(update) = write.update() {
            add(update.table_name(), Some(update.key()), update.expression_attribute_values());
        }
        if let Some(delete) = write.delete() {
            add(delete.table_name(), Some(delete.key()), delete.expression_attribute_values());
        }
        if let Some(check) = write.condition_check() {
            add(check.table_name(), Some(check.key()), check.expression_attribute_values());
        }
        for part in parts {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
    }
    digest.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn throttled() -> Fault {
    let source = std::io::Error::other("items were left unprocessed again and again");
    Fault::Unavailable { service: SERVICE, code: "UnprocessedKeys".to_owned(), source: Box::new(source) }
}

/// Waits a little, longer each time, and never as long as the next one.
pub(crate) async fn pause(round: u32) {
    let most = 10_u64 << round.min(6);
    let mut random = [0; 2];
    // Without randomness all wait equally long, which is only slower.
    let _ = getrandom::fill(&mut random);
    let part = u64::from(u16::from_le_bytes(random)) * most / u64::from(u16::MAX);
    tokio::time::sleep(Duration::from_millis(most / 2 + part / 2)).await;
}
