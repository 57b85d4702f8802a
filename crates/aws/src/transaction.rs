//! A transaction as it grows: one write or check for each item, all of them or none.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update};

use crate::dynamo::Dynamo;
use crate::item::{Item, n};
use crate::table::Table;

/// What must be true of an item for the transaction to go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Was {
    /// It was not there.
    Absent,
    /// This attribute had this value.
    At(&'static str, u64),
    /// Whatever it was: something else in the transaction guards it.
    Anything,
}

/// A transaction.
pub(crate) struct Transaction<'d> {
    dynamo: &'d Dynamo,
    writes: BTreeMap<(Table, String), TransactWriteItem>,
}

impl<'d> Transaction<'d> {
    pub fn new(dynamo: &'d Dynamo) -> Self {
        Self { dynamo, writes: BTreeMap::new() }
    }

    /// Puts a whole item.
    pub fn put(&mut self, table: Table, item: Item, was: Was) {
        let (expression, names, values) = condition(table, was);
        let put = Put::builder()
            .table_name(self.dynamo.name(table))
            .set_item(Some(item.clone()))
            .set_condition_expression(expression)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .build()
            .expect("a put has a table and an item");
        self.add(table, &item, TransactWriteItem::builder().put(put).build());
    }

    /// Removes an item.
    pub fn delete(&mut self, table: Table, key: Item, was: Was) {
        let (expression, names, values) = condition(table, was);
        let delete = Delete::builder()
            .table_name(self.dynamo.name(table))
            .set_key(Some(key.clone()))
            .set_condition_expression(expression)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .build()
            .expect("a delete has a table and a key");
        self.add(table, &key, TransactWriteItem::builder().delete(delete).build());
    }

    /// Raises a number of an item that is there by one, and sets further attributes.
    pub fn raise(&mut self, table: Table, key: Item, attribute: &'static str, was: Was) {
        let (expression, names, values) = condition(table, was);
        let (mut names, mut values) = (names.unwrap_or_default(), values.unwrap_or_default());
        names.insert("#g".to_owned(), attribute.to_owned());
        values.insert(":one".to_owned(), n(1));
        let update = Update::builder()
            .table_name(self.dynamo.name(table))
            .set_key(Some(key.clone()))
            .update_expression("ADD #g :one")
            .set_condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .build()
            .expect("an update has a table, a key and an expression");
        self.add(table, &key, TransactWriteItem::builder().update(update).build());
    }

    /// Sets one attribute of an item that is there.
    pub fn set(&mut self, table: Table, key: Item, attribute: &'static str, value: AttributeValue) {
        let update = Update::builder()
            .table_name(self.dynamo.name(table))
            .set_key(Some(key.clone()))
            .update_expression("SET #a = :a")
            .condition_expression("attribute_exists(#k)")
            .expression_attribute_names("#a", attribute)
            .expression_attribute_names("#k", table.key().0)
            .expression_attribute_values(":a", value)
            .build()
            .expect("an update has a table, a key and an expression");
        self.add(table, &key, TransactWriteItem::builder().update(update).build());
    }

    /// Only if an item still is as it was; nothing where it is written anyway.
    pub fn check(&mut self, table: Table, key: Item, was: Was) {
        let (Some(expression), names, values) = condition(table, was) else { return };
        if self.holds(table, &key) {
            return;
        }
        let check = ConditionCheck::builder()
            .table_name(self.dynamo.name(table))
            .set_key(Some(key.clone()))
            .condition_expression(expression)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .build()
            .expect("a check has a table, a key and a condition");
        self.add(table, &key, TransactWriteItem::builder().condition_check(check).build());
    }

    /// Whether an item is written or checked.
    pub fn holds(&self, table: Table, key: &Item) -> bool {
        self.writes.contains_key(&(table, name(table, key)))
    }

    /// Everything, in an order that is the same whenever the same is written.
    pub fn into_writes(self) -> Vec<TransactWriteItem> {
        self.writes.into_values().collect()
    }

    fn add(&mut self, table: Table, item: &Item, write: TransactWriteItem) {
        self.writes.insert((table, name(table, item)), write);
    }
}

type Condition = (Option<String>, Option<std::collections::HashMap<String, String>>, Option<Item>);

fn condition(table: Table, was: Was) -> Condition {
    let name = |name: &str, of: &str| Some([(name.to_owned(), of.to_owned())].into());
    match was {
        Was::Absent => (Some("attribute_not_exists(#k)".to_owned()), name("#k", table.key().0), None),
        Was::At(attribute, value) => (Some("#v = :v".to_owned()), name("#v", attribute), Some([(":v".to_owned(), n(value))].into())),
        Was::Anything => (None, None, None),
    }
}

fn name(table: Table, item: &Item) -> String {
    let (hash, range) = table.key();
    let part = |attribute: &str| format!("{:?}", item.get(attribute));
    format!("{}/{}", part(hash), range.map(|(range, _)| part(range)).unwrap_or_default())
}
