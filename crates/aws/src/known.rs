//! Sets of names that lists begin with: on which days there is something, of everybody or of one user, and which queues there are. A name
//! is added before the first thing of that name is written, so that a set may name too much and never too little.

use std::collections::{BTreeSet, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use parking_lot::Mutex;
use runvoy_model::name::Name;

use crate::day::Day;
use crate::dynamo::{Change, Dynamo};
use crate::fault::Fault;
use crate::item::{Item, item, s};
use crate::table::Table;

/// No more names than this are remembered as added; then all are forgotten, and added again when they come.
const MOST_REMEMBERED: usize = 20_000;

/// The sets, and what this process added to them.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By mark, set and name.
    added: Mutex<HashSet<(String, &'static str, String)>>,
}

/// On which days there is something.
#[derive(Debug, Default)]
pub(crate) struct Days {
    pub days: BTreeSet<Day>,
    /// Those of them where a time of submit is further from the time in the id than clocks are apart.
    pub odd: BTreeSet<Day>,
}

impl Known {
    /// Adds a name to a set, if this process has not yet. Two processes may do so at once, or one twice.
    pub async fn add(&self, dynamo: &Dynamo, mark: &str, set: &'static str, name: String) -> Result<(), Fault> {
        let entry = (mark.to_owned(), set, name);
        if self.added.lock().contains(&entry) {
            return Ok(());
        }
        let change = Change {
            expression: "ADD #set :name",
            condition: None,
            names: vec![("#set", set)],
            values: vec![(":name", AttributeValue::Ss(vec![entry.2.clone()]))],
        };
        dynamo.update(Table::Marks, key(mark), change).await?;
        let mut added = self.added.lock();
        if added.len() >= MOST_REMEMBERED {
            added.clear();
        }
        added.insert(entry);
        Ok(())
    }

    /// Adds a day to the days under a mark.
    pub async fn add_day(&self, dynamo: &Dynamo, mark: &str, day: Day, is_odd: bool) -> Result<(), Fault> {
        if is_odd {
            self.add(dynamo, mark, "odd", day.to_string()).await?;
        }
        self.add(dynamo, mark, "days", day.to_string()).await
    }

    /// Adds a queue.
    pub async fn add_queue(&self, dynamo: &Dynamo, queue: &Name) -> Result<(), Fault> {
        self.add(dynamo, QUEUES, QUEUES, queue.to_string()).await
    }
}

/// The days under a mark.
pub(crate) async fn days(dynamo: &Dynamo, mark: &str) -> Result<Days, Fault> {
    let found = dynamo.get(Table::Marks, key(mark)).await?.unwrap_or_default();
    let read = |set: &str| -> Result<BTreeSet<Day>, Fault> {
        let parse = |text: &String| text.parse().map_err(|error| Fault::Damaged(format!("mark {mark} names {text}: {error}")));
        names(&found, set).iter().map(parse).collect()
    };
    Ok(Days { days: read("days")?, odd: read("odd")? })
}

/// Every queue that was ever used.
pub(crate) async fn queues(dynamo: &Dynamo) -> Result<Vec<Name>, Fault> {
    let found = dynamo.get(Table::Marks, key(QUEUES)).await?.unwrap_or_default();
    let parse = |text: &String| Name::new(text).map_err(|error| Fault::Damaged(format!("mark {QUEUES} names {text}: {error}")));
    names(&found, QUEUES).iter().map(parse).collect()
}

/// The mark of the days of all executions.
pub(crate) const ALL_DAYS: &str = "days#all";
const QUEUES: &str = "queues";

/// The mark of the days of a user's executions.
pub(crate) fn user_days(user: &str) -> String {
    format!("days#user#{user}")
}

fn names<'i>(item: &'i Item, set: &str) -> &'i [String] {
    match item.get(set) {
        Some(AttributeValue::Ss(names)) => names,
        _ => &[],
    }
}

fn key(mark: &str) -> Item {
    item([("mark", s(mark))])
}
