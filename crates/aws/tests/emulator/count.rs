//! A layer between the SDK and an emulator that counts what AWS would: calls by name, items, bytes by DynamoDB's own rule, and units by its rules of
//! tables, transactions and indexes. It reads every item before and after it is written, beside what it counts. It changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::unit::{entry, index_units, item_bytes, read_halves, write_units};

const DYNAMO: &str = "DynamoDB_20120810.";

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls by name.
    pub calls: BTreeMap<String, u64>,
    /// Items that a read found, of tables and of indexes.
    pub items_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Half units of reading: a read that may lag costs half of one that may not.
    pub read_halves: u64,
    /// Items of tables that were put, changed, removed or checked.
    pub items_written: u64,
    /// Their bytes.
    pub bytes_written: u64,
    /// Entries of indexes that were put or removed.
    pub entries_written: u64,
    /// Units of writing by table, or by table and index.
    pub write_units: BTreeMap<String, u64>,
    /// Units of writing by table or index and the value of its partition key.
    pub partitions: BTreeMap<(String, String), u64>,
    /// Events that were given to the bus.
    pub events: u64,
}

impl Tally {
    /// All units of writing.
    pub fn written(&self) -> u64 {
        self.write_units.values().sum()
    }
}

/// The counter. A clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tally: Mutex<Tally>,
    tables: Mutex<HashMap<String, Arc<Schema>>>,
}

/// A table as it was made.
#[derive(Debug)]
struct Schema {
    keys: Vec<String>,
    indexes: Vec<Index>,
}

/// An index as it was made.
#[derive(Debug)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its partition and sort attributes.
    pub keys: Vec<String>,
    /// Which attributes it holds; `None` is all.
    pub holds: Option<BTreeSet<String>>,
    /// It lies within the partitions of its table.
    pub is_local: bool,
}

impl Counter {
    /// The HTTP client to build clients with.
    pub fn client(&self) -> SharedHttpClient {
        SharedHttpClient::new(Through { shared: Arc::clone(&self.shared), inner: aws_smithy_http_client::Builder::new().build_http() })
    }

    /// What was counted since the last time this was asked.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut self.shared.tally.lock())
    }
}

#[derive(Debug)]
struct Through {
    shared: Arc<Shared>,
    inner: SharedHttpClient,
}

impl HttpClient for Through {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Line { shared: Arc::clone(&self.shared), inner })
    }
}

#[derive(Debug, Clone)]
struct Line {
    shared: Arc<Shared>,
    inner: SharedHttpConnector,
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let line = self.clone();
        HttpConnectorFuture::new(async move { line.carry(request).await })
    }
}

/// One item that a request writes or checks.
struct Write {
    table: String,
    key: Value,
    is_transacted: bool,
}

impl Line {
    async fn carry(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let name = match target.rsplit_once('.') {
            Some((_, name)) => name.to_owned(),
            None => format!("S3 {}", request.method()),
        };
        *self.shared.tally.lock().calls.entry(name.clone()).or_default() += 1;
        let body: Value = request.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or(Value::Null);
        self.shared.tally.lock().events += if name == "PutEvents" { body["Entries"].as_array().map_or(0, Vec::len) as u64 } else { 0 };
        let Some(asked) = request.try_clone().filter(|_| target.starts_with(DYNAMO)) else { return self.inner.call(request).await };
        let writes = self.writes(&asked, &name, &body).await?;
        let before = self.images(&asked, &writes).await?;
        let (response, answer) = read_out(self.inner.call(request).await?).await?;
        if !writes.is_empty() {
            let after = self.images(&asked, &writes).await?;
            for ((write, before), after) in writes.iter().zip(&before).zip(&after) {
                let schema = self.schema(&asked, &write.table).await?;
                self.shared.tally.lock().wrote(write, &schema, before.as_ref(), after.as_ref());
            }
        }
        // What a count reads is not in its answer: the same is asked for beside it.
        let mut whole = body.clone();
        let is_count = whole.as_object_mut().is_some_and(|whole| whole.remove("Select").is_some());
        let answer = if is_count { self.beside(&asked, &name, &whole).await? } else { answer };
        self.shared.tally.lock().read(&name, &body, &answer);
        Ok(response)
    }

    async fn writes(&self, asked: &HttpRequest, name: &str, body: &Value) -> Result<Vec<Write>, ConnectorError> {
        let mut found = Vec::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let single = |request: &Value| if request["Item"].is_null() { request["Key"].clone() } else { request["Item"].clone() };
        match name {
            "PutItem" | "UpdateItem" | "DeleteItem" => found.push((text(&body["TableName"]), single(body), false)),
            "TransactWriteItems" => {
                for action in body["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(Map::values) {
                    found.push((text(&action["TableName"]), single(action), true));
                }
            }
            "BatchWriteItem" => {
                for (table, actions) in body["RequestItems"].as_object().into_iter().flatten() {
                    for action in actions.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(Map::values) {
                        found.push((table.clone(), single(action), false));
                    }
                }
            }
            _ => {}
        }
        let mut writes = Vec::with_capacity(found.len());
        for (table, item, is_transacted) in found {
            let schema = self.schema(asked, &table).await?;
            let key = schema.keys.iter().map(|key| (key.clone(), item[key].clone())).collect::<Map<_, _>>();
            writes.push(Write { table, key: Value::Object(key), is_transacted });
        }
        Ok(writes)
    }

    async fn images(&self, asked: &HttpRequest, writes: &[Write]) -> Result<Vec<Option<Value>>, ConnectorError> {
        try_join_all(writes.iter().map(|write| async {
            let body = json!({"TableName": write.table, "Key": write.key, "ConsistentRead": true});
            let mut answer = self.beside(asked, "GetItem", &body).await?;
            Ok(Some(answer["Item"].take()).filter(|item| !item.is_null()))
        }))
        .await
    }

    async fn schema(&self, asked: &HttpRequest, table: &str) -> Result<Arc<Schema>, ConnectorError> {
        if let Some(known) = self.shared.tables.lock().get(table) {
            return Ok(Arc::clone(known));
        }
        let answer = self.beside(asked, "DescribeTable", &json!({"TableName": table})).await?;
        let schema = Arc::new(Schema::of(&answer["Table"]));
        self.shared.tables.lock().insert(table.to_owned(), Arc::clone(&schema));
        Ok(schema)
    }

    /// Asks the emulator something that is not counted; it does not look at signatures.
    async fn beside(&self, asked: &HttpRequest, operation: &str, body: &Value) -> Result<Value, ConnectorError> {
        let mut request = asked.try_clone().expect("its body is in memory");
        let bytes = body.to_string().into_bytes();
        request.headers_mut().insert("x-amz-target", format!("{DYNAMO}{operation}"));
        request.headers_mut().insert("content-length", bytes.len().to_string());
        *request.body_mut() = SdkBody::from(bytes);
        Ok(read_out(self.inner.call(request).await?).await?.1)
    }
}

impl Schema {
    fn of(table: &Value) -> Self {
        let keys = |of: &Value| -> Vec<String> {
            let elements = of["KeySchema"].as_array().expect("a table and an index have keys");
            elements.iter().filter_map(|element| element["AttributeName"].as_str()).map(str::to_owned).collect()
        };
        let own = keys(table);
        let index = |of: &Value, is_local: bool| {
            let projection = &of["Projection"];
            let others = projection["NonKeyAttributes"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let holds = keys(of).into_iter().chain(own.iter().cloned()).chain(others).collect();
            let name = of["IndexName"].as_str().expect("an index has a name").to_owned();
            Index { name, keys: keys(of), holds: (projection["ProjectionType"] != "ALL").then_some(holds), is_local }
        };
        let all = |list: &str, is_local| table[list].as_array().into_iter().flatten().map(move |of| (of, is_local));
        let indexes = all("GlobalSecondaryIndexes", false).chain(all("LocalSecondaryIndexes", true));
        let indexes = indexes.map(|(of, is_local)| index(of, is_local)).collect();
        Self { keys: own, indexes }
    }
}

impl Tally {
    /// An item was written, or only checked: then it is the same before and after.
    fn wrote(&mut self, write: &Write, schema: &Schema, before: Option<&Value>, after: Option<&Value>) {
        let bytes = before.map_or(0, item_bytes).max(after.map_or(0, item_bytes));
        let times = if write.is_transacted { 2 } else { 1 };
        self.items_written += 1;
        self.bytes_written += bytes;
        self.add(write.table.clone(), &write.key[&schema.keys[0]], write_units(bytes) * times);
        for index in &schema.indexes {
            let (old, new) = (before.and_then(|item| entry(index, item)), after.and_then(|item| entry(index, item)));
            let (removed, put) = index_units(index, old.as_ref(), new.as_ref());
            // An index of its own is written after the transaction; one within the partition is part of it.
            let times = if index.is_local { times } else { 1 };
            for (entry, units) in [(old, removed), (new, put)].into_iter().filter(|(_, units)| *units > 0) {
                let partition = entry.map_or(Value::Null, |mut entry| entry[&index.keys[0]].take());
                self.entries_written += 1;
                self.add(format!("{}/{}", write.table, index.name), &partition, units * times);
            }
        }
    }

    fn add(&mut self, place: String, partition: &Value, units: u64) {
        *self.write_units.entry(place.clone()).or_default() += units;
        *self.partitions.entry((place, partition["S"].as_str().unwrap_or_default().to_owned())).or_default() += units;
    }

    fn read(&mut self, name: &str, body: &Value, answer: &Value) {
        let halves_each = |consistent: &Value| if consistent == &Value::Bool(true) { 2 } else { 1 };
        match name {
            "GetItem" => {
                let item = Some(&answer["Item"]).filter(|item| !item.is_null());
                self.found(item.into_iter(), item.map_or(0, item_bytes), halves_each(&body["ConsistentRead"]));
            }
            "Query" | "Scan" => {
                let items = answer["Items"].as_array().map_or(&[][..], Vec::as_slice);
                // Everything on a page is added up before it is rounded.
                self.found(items.iter(), items.iter().map(item_bytes).sum(), halves_each(&body["ConsistentRead"]));
            }
            "BatchGetItem" => {
                for (table, asked) in body["RequestItems"].as_object().into_iter().flatten() {
                    let items = answer["Responses"][table].as_array().map_or(&[][..], Vec::as_slice);
                    let halves = halves_each(&asked["ConsistentRead"]);
                    items.iter().for_each(|item| self.found(std::iter::once(item), item_bytes(item), halves));
                    let missing = asked["Keys"].as_array().map_or(0, Vec::len) - items.len();
                    (0..missing).for_each(|_| self.found(std::iter::empty(), 0, halves));
                }
            }
            _ => {}
        }
    }

    fn found<'v>(&mut self, items: impl Iterator<Item = &'v Value>, bytes: u64, halves: u64) {
        self.items_read += items.count() as u64;
        self.bytes_read += bytes;
        self.read_halves += read_halves(bytes, halves);
    }
}

/// The JSON of an answer, and the answer as it was.
async fn read_out(response: HttpResponse) -> Result<(HttpResponse, Value), ConnectorError> {
    let status = response.status();
    let headers: Vec<_> = response.headers().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let bytes = ByteStream::new(response.into_body()).collect().await.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
    let answer = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let mut again = HttpResponse::new(status, SdkBody::from(bytes));
    for (name, value) in headers {
        again.headers_mut().insert(name, value);
    }
    Ok((again, answer))
}
