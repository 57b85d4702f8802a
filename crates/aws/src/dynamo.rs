//! DynamoDB as the rest of this crate speaks to it: consistent reads by key, queries page by page, conditional writes, and transactions. Whoever asks an index that may lag asks for it by name and knows that it may.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, KeysAndAttributes, Select, TransactWriteItem, WriteRequest};
use runvoy_model::hex::hex;
use runvoy_ports::trouble::Trouble;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::item::{Item, n};
use crate::setup;
use crate::table::Table;

const SERVICE: &str = "DynamoDB";
/// So many requests of this process are under way at most.
const AT_ONCE: usize = 64;
/// So many keys are read at once at most.
const MOST_KEYS: usize = 100;
/// So many items are removed at once at most.
const MOST_REMOVED: usize = 25;
/// What was not processed is asked for again so often.
const ROUNDS: u32 = 10;

/// The tables of one installation. A clone shares the connections.
#[derive(Debug, Clone)]
pub(crate) struct Dynamo {
    client: aws_sdk_dynamodb::Client,
    config: Arc<Config>,
    /// Requests wait here rather than in the network, where their time would run.
    at_once: Arc<Semaphore>,
}

/// The values that an expression speaks of.
type Values = Vec<(&'static str, AttributeValue)>;

/// A query: which part of a table or index, and how.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub table: Table,
    /// An index; `None` is the table itself, which is read consistently, as is an index within a partition.
    pub index: Option<&'static str>,
    /// The partition attribute and its value.
    pub hash: (&'static str, AttributeValue),
    /// A condition on the sort attribute: `#r …` with these values.
    pub range: Option<(&'static str, &'static str, Values)>,
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
        Self { client: clients.dynamo.clone(), config, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The name of a table.
    pub fn name(&self, table: Table) -> String {
        setup::name(&self.config, table)
    }

    /// Sends a request when it is its turn.
    async fn ask<T, E, R>(&self, sending: impl Future<Output = Result<T, SdkError<E, R>>>) -> Result<T, Fault>
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let _turn = self.turn().await;
        sending.await.map_err(|error| Fault::of(SERVICE, error))
    }

    async fn turn(&self) -> SemaphorePermit<'_> {
        self.at_once.acquire().await.expect("the semaphore is never closed")
    }

    /// One item as it is now.
    pub async fn get(&self, table: Table, key: Item) -> Result<Option<Item>, Fault> {
        let request = self.client.get_item().table_name(self.name(table)).set_key(Some(key)).consistent_read(true);
        Ok(self.ask(request.send()).await?.item)
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
                let mut answer = self.ask(request.send()).await?;
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
            let answer = self.ask(request.send()).await?;
            found.extend(answer.items.unwrap_or_default());
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// One page of what a query finds: no more than a megabyte, and no more than its limit.
    pub async fn page(&self, query: &Query) -> Result<Vec<Item>, Fault> {
        let limit = (query.limit != usize::MAX).then(|| i32::try_from(query.limit).unwrap_or(i32::MAX));
        let request = self.request(query).set_exclusive_start_key(query.after.clone()).set_limit(limit);
        Ok(self.ask(request.send()).await?.items.unwrap_or_default())
    }

    /// How many items a query finds, without reading them.
    pub async fn count(&self, query: Query) -> Result<u64, Fault> {
        let (mut count, mut after) = (0, None);
        loop {
            let request = self.request(&query).select(Select::Count).set_exclusive_start_key(after);
            let answer = self.ask(request.send()).await?;
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
        let answer = self.ask(request.send()).await?;
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
        self.ask(request.send()).await.map(drop)
    }

    /// Puts an item where there is none; `Conflict` where there is.
    pub async fn put_new(&self, table: Table, item: Item) -> Result<(), Fault> {
        let request = self.client.put_item().table_name(self.name(table)).set_item(Some(item));
        let request = request.condition_expression("attribute_not_exists(#k)").expression_attribute_names("#k", table.key().0);
        self.ask(request.send()).await.map(drop)
    }

    /// Puts an item in the place of the one whose `version` was seen; zero is where there was none. `Conflict` where it is another.
    pub async fn put_over(&self, table: Table, item: Item, seen: u64) -> Result<(), Fault> {
        let request = self.client.put_item().table_name(self.name(table)).set_item(Some(item)).expression_attribute_names("#v", "version");
        let request = match seen {
            0 => request.condition_expression("attribute_not_exists(#v)"),
            seen => request.condition_expression("#v = :seen").expression_attribute_values(":seen", n(seen)),
        };
        self.ask(request.send()).await.map(drop)
    }

    /// Removes items, in no order and not all at once. A key must be named once.
    pub async fn delete_all(&self, table: Table, keys: Vec<Item>) -> Result<(), Fault> {
        let removal = |key: &Item| {
            let request = DeleteRequest::builder().set_key(Some(key.clone())).build().expect("there is a key");
            WriteRequest::builder().delete_request(request).build()
        };
        for chunk in keys.chunks(MOST_REMOVED) {
            let (mut left, mut round): (Vec<WriteRequest>, _) = (chunk.iter().map(removal).collect(), 0);
            while !left.is_empty() {
                let request = self.client.batch_write_item().request_items(self.name(table), left);
                let answer = self.ask(request.send()).await?;
                left = answer.unprocessed_items.and_then(|mut all| all.remove(&self.name(table))).unwrap_or_default();
                if !left.is_empty() {
                    round += 1;
                    if round > ROUNDS {
                        return Err(throttled());
                    }
                    pause(round).await;
                }
            }
        }
        Ok(())
    }

    /// Removes an item.
    pub async fn delete(&self, table: Table, key: Item) -> Result<(), Fault> {
        let request = self.client.delete_item().table_name(self.name(table)).set_key(Some(key));
        self.ask(request.send()).await.map(drop)
    }

    /// Removes an item of which this is true; `Conflict` where it is not.
    pub async fn delete_if(
        &self,
        table: Table,
        key: Item,
        condition: &'static str,
        values: Vec<(&'static str, AttributeValue)>,
    ) -> Result<(), Fault> {
        let request = self.client.delete_item().table_name(self.name(table)).set_key(Some(key));
        let request = request.condition_expression(condition).set_expression_attribute_values(Some(named_values(values)));
        self.ask(request.send()).await.map(drop)
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
            .set_expression_attribute_values((!change.values.is_empty()).then(|| named_values(change.values)));
        self.ask(request.send()).await.map(drop)
    }

    /// Writes all of these or none. `Conflict` where a condition does not hold or another writer is at the same items, `Busy` where a partition has no
    /// room for more writes now.
    pub async fn transact(&self, writes: Vec<TransactWriteItem>) -> Result<(), Fault> {
        if writes.len() > MOST_KEYS {
            let message = format!("{} items in one step, {MOST_KEYS} are the most", writes.len());
            return Err(Fault::Refused { service: SERVICE, code: "TooLarge".to_owned(), message });
        }
        let token = token()?;
        let request = self.client.transact_write_items().client_request_token(token).set_transact_items(Some(writes));
        let _turn = self.turn().await;
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

fn named_values(pairs: Vec<(&str, AttributeValue)>) -> Item {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A name that no other transaction has: 32 hex digits. The SDK's own repeats of a call carry it, so that a lost answer is no second transaction;
/// a step that is taken again finds its receipt.
fn token() -> Result<String, Fault> {
    let mut random = [0; 16];
    fill_random(&mut random)?;
    Ok(hex(&random))
}

/// Bytes that nobody else has.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), Fault> {
    let unavailable = |error| Fault::Unavailable { service: "the system", code: "no randomness".to_owned(), source: Box::new(error) };
    getrandom::fill(bytes).map_err(unavailable)
}

fn throttled() -> Fault {
    let source = Trouble::Throttled.mark("items were left unprocessed again and again");
    Fault::Unavailable { service: SERVICE, code: "UnprocessedKeys".to_owned(), source }
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
