//! The counters of costs: one item each, in a partition for each owner and dimension, by day and name; and one item with the place in the event log up
//! to which they count. A fold is one transaction, whose condition is that place.

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use runvoy_model::cost::{Cost, CostKey, Day, Dimension};
use runvoy_ports::cost::{CostFold, CostQuery, CostStore};
use runvoy_ports::store::StoreError;

use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, item, n, s};
use crate::store::DynamoStore;
use crate::table::Table;

const SUMS: &str = "sums";
const DAY_NAME: &str = "day_name";
/// No owner and dimension share this partition: theirs have a `#`.
const COUNTED: &str = "counted";
/// Digits of a day, so that days sort as text in the order of time.
const DAY_DIGITS: usize = 10;

fn partition(owner: Option<&str>, dimension: Dimension) -> String {
    format!("{}#{}", dimension.as_str(), owner.unwrap_or_default())
}

fn key(key: &CostKey) -> Item {
    let day_name = format!("{:0DAY_DIGITS$}#{}", key.day.0, key.name);
    item([(SUMS, s(partition(key.owner.as_deref(), key.dimension))), (DAY_NAME, s(day_name))])
}

fn counted_key() -> Item {
    item([(SUMS, s(COUNTED)), (DAY_NAME, s(COUNTED))])
}

fn advance(dynamo: &Dynamo, fold: &CostFold) -> TransactWriteItem {
    let update = Update::builder()
        .table_name(dynamo.name(Table::Costs))
        .set_key(Some(counted_key()))
        .update_expression("SET #p = :to")
        .expression_attribute_names("#p", "place")
        .expression_attribute_values(":to", n(fold.up_to));
    let update = match fold.after {
        0 => update.condition_expression("attribute_not_exists(#p)"),
        after => update.condition_expression("#p = :from").expression_attribute_values(":from", n(after)),
    };
    TransactWriteItem::builder().update(update.build().expect("an update has a key and an expression")).build()
}

fn add(dynamo: &Dynamo, counter: &CostKey, cost: Cost) -> TransactWriteItem {
    let update = Update::builder()
        .table_name(dynamo.name(Table::Costs))
        .set_key(Some(key(counter)))
        .update_expression("ADD executions :executions, micro_usd :micro_usd")
        .expression_attribute_values(":executions", n(cost.executions))
        .expression_attribute_values(":micro_usd", n(cost.micro_usd));
    TransactWriteItem::builder().update(update.build().expect("an update has a key and an expression")).build()
}

fn counter(found: &Item) -> Result<(Day, String, Cost), Fault> {
    let damaged = || Fault::Damaged("a counter of costs has no day".to_owned());
    let (day, name) = found.text(DAY_NAME)?.split_once('#').ok_or_else(damaged)?;
    let cost = Cost { executions: found.number("executions")?, micro_usd: found.number("micro_usd")? };
    Ok((Day(day.parse().map_err(|_| damaged())?), name.to_owned(), cost))
}

#[async_trait]
impl CostStore for DynamoStore {
    async fn counted(&self) -> Result<u64, StoreError> {
        let found = self.dynamo.get(Table::Costs, counted_key()).await?;
        Ok(found.map_or(Ok(0), |found| found.number("place"))?)
    }

    async fn count(&self, fold: CostFold) -> Result<u64, StoreError> {
        let sums = fold.added.iter().map(|(key, cost)| add(&self.dynamo, key, *cost));
        let writes = [advance(&self.dynamo, &fold)].into_iter().chain(sums).collect();
        match self.dynamo.transact(writes).await {
            Ok(()) => Ok(fold.up_to),
            // Another server counted this, or an earlier try whose answer was lost. Where neither did, the caller tries again.
            Err(Fault::Conflict) => match self.counted().await? {
                place if place == fold.after => Err(Fault::Conflict.into()),
                place => Ok(place),
            },
            Err(fault) => Err(fault.into()),
        }
    }

    async fn costs(&self, query: CostQuery) -> Result<Vec<(Day, String, Cost)>, StoreError> {
        let partition = s(partition(query.owner.as_deref(), query.dimension));
        let since = format!("{:0DAY_DIGITS$}", query.since.0);
        let query = Query::of(Table::Costs, SUMS, partition).range(DAY_NAME, "#r >= :since", vec![(":since", s(since))]);
        let found = self.dynamo.query(query).await?;
        Ok(found.iter().map(counter).collect::<Result<_, _>>()?)
    }
}
