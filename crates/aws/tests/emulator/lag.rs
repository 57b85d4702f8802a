//! Indexes that lag: a query of one is answered as it was a moment ago, or without what was written a moment ago. Never by more than
//! [`MOST`]: behind that, an index has caught up. Indexes within a partition are read consistently and never lag.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fault::Call;

/// So far an index lags at most.
pub const MOST: Duration = Duration::from_secs(2);
/// So many earlier answers to one question are kept.
const KEPT: usize = 64;
/// The indexes that never lag.
const LOCAL: [&str; 2] = ["place-index", "task-standing-index"];
/// The keys of the tables that have indexes, by the end of their names.
const KEYS: [(&str, &[&str]); 7] = [
    ("-executions", &["execution_id"]),
    ("-jobs", &["job_id", "entry"]),
    ("-events", &["PK", "SK"]),
    ("-locks", &["lock_name", "entry"]),
    ("-api-keys", &["api_key_hash"]),
    ("-websocket-connections", &["connection_id"]),
    ("-logs", &["execution_id", "line"]),
];

#[derive(Debug, Default)]
pub struct Lag {
    /// Earlier answers by question.
    answers: HashMap<String, VecDeque<(Instant, Value)>>,
    /// What was written lately: table and key.
    writes: VecDeque<(Instant, String)>,
}

/// How an answer is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It was given before.
    Earlier,
    /// It lacks what is new.
    Without,
}

impl Lag {
    /// Whether this asks an index that may lag.
    pub fn concerns(call: &Call) -> bool {
        let index = call.body["IndexName"].as_str();
        call.operation() == "Query" && index.is_some_and(|name| !LOCAL.contains(&name))
    }

    /// Remembers what a request has written.
    pub fn wrote(&mut self, call: &Call) {
        let now = Instant::now();
        while self.writes.front().is_some_and(|(at, _)| now.duration_since(*at) > MOST) {
            self.writes.pop_front();
        }
        let body = &call.body;
        match call.operation() {
            "PutItem" => self.note(now, &body["TableName"], &body["Item"]),
            "UpdateItem" | "DeleteItem" => self.note(now, &body["TableName"], &body["Key"]),
            "TransactWriteItems" => {
                for write in body["TransactItems"].as_array().into_iter().flatten() {
                    self.note(now, &write["Put"]["TableName"], &write["Put"]["Item"]);
                    self.note(now, &write["Update"]["TableName"], &write["Update"]["Key"]);
                    self.note(now, &write["Delete"]["TableName"], &write["Delete"]["Key"]);
                }
            }
            "BatchWriteItem" => {
                for (table, writes) in body["RequestItems"].as_object().into_iter().flatten() {
                    for write in writes.as_array().into_iter().flatten() {
                        self.note(now, &Value::from(table.as_str()), &write["PutRequest"]["Item"]);
                        self.note(now, &Value::from(table.as_str()), &write["DeleteRequest"]["Key"]);
                    }
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, now: Instant, table: &Value, item: &Value) {
        if let Some(name) = name(table, item) {
            self.writes.push_back((now, name));
        }
    }

    /// Makes a true answer a stale one where that is asked for: an earlier one, or one that lacks what is new. A question that is asked for
    /// the first time has no earlier answer.
    pub fn answer(&mut self, call: &Call, body: &mut Value, stale: Option<Stale>) {
        let now = Instant::now();
        let truth = body.clone();
        let earlier = self.answers.entry(call.body.to_string()).or_default();
        earlier.retain(|(at, _)| now.duration_since(*at) <= MOST);
        match (stale, earlier.front()) {
            (Some(Stale::Earlier), Some((_, answer))) => body.clone_from(answer),
            (Some(_), _) => hold_back(&self.writes, now, &call.body["TableName"], body),
            (None, _) => {}
        }
        earlier.push_back((now, truth));
        if earlier.len() > KEPT {
            earlier.pop_front();
        }
    }
}

/// Leaves out what was written lately. Where to go on stays as it is: a page may be short, or empty.
fn hold_back(writes: &VecDeque<(Instant, String)>, now: Instant, table: &Value, body: &mut Value) {
    let is_new = |item: &Value| {
        let name = name(table, item);
        writes.iter().any(|(at, written)| now.duration_since(*at) <= MOST && name.as_ref() == Some(written))
    };
    let Some(items) = body["Items"].as_array_mut() else { return };
    items.retain(|item| !is_new(item));
    let count = items.len();
    body["Count"] = count.into();
    body["ScannedCount"] = count.into();
}

fn name(table: &Value, item: &Value) -> Option<String> {
    let table = table.as_str()?;
    let (_, keys) = KEYS.iter().find(|(end, _)| table.ends_with(end))?;
    keys.iter().map(|key| item.get(key).map(Value::to_string)).try_fold(table.to_owned(), |name, part| Some(format!("{name} {}", part?)))
}
