//! What people manage, as items: keys, claims, images and secrets in the tables that bear their names, all else by kind and name. A record
//! that was removed stays as an item without a body, because its chain must go on.

use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runvoy_model::hex;
use runvoy_model::record::{Body, Kind, ONLY, Record};
use runvoy_model::time::UnixMs;
use runvoy_ports::blob::BlobStore;
use sha2::{Digest as _, Sha256};

use crate::desk::SeenRecord;
use crate::dynamo::{Change, Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Item, Read, item, json, n, s};
use crate::table::Table;
use crate::timestamp::iso;

/// A body of more bytes than this is kept apart: an item ends at 400 KB, with its events and all.
const MOST_INLINE: usize = 200 * 1024;

/// Where records of a kind are kept.
pub(crate) const fn table(kind: Kind) -> Table {
    match kind {
        Kind::Key => Table::ApiKeys,
        Kind::Claim => Table::PendingApiKeys,
        Kind::Image | Kind::DefaultImage => Table::Images,
        Kind::Secret => Table::Secrets,
        _ => Table::Records,
    }
}

/// The key of a record's item.
pub(crate) fn key(kind: Kind, name: &str) -> Item {
    match kind {
        Kind::Key => item([("api_key_hash", s(key_hash(name)))]),
        Kind::Claim => item([("secret_token", s(name))]),
        Kind::Image => item([("image", s(name))]),
        // No image has this sign in its name.
        Kind::DefaultImage => item([("image", s(format!("#default#{name}")))]),
        Kind::Secret => item([("name", s(name))]),
        _ => item([("kind", s(kind.as_str())), ("name", s(name))]),
    }
}

/// Keeps a body that is too large for an item: a playbook may have a megabyte. Before the item is written, or it would name what is not there.
pub(crate) async fn store_large(record: &Record, blobs: &dyn BlobStore) -> Result<(), Fault> {
    match record.body.as_ref().map(text).filter(|text| text.len() > MOST_INLINE) {
        Some(text) => Ok(blobs.put(&digest(&text), text.into_bytes()).await?),
        None => Ok(()),
    }
}

fn text(body: &Body) -> String {
    serde_json::to_string(body).expect("model types are JSON")
}

fn digest(text: &str) -> String {
    hex::hex(&Sha256::digest(text.as_bytes()))
}

/// One record as it is now, also after it was removed.
pub(crate) async fn read(dynamo: &Dynamo, blobs: &dyn BlobStore, kind: Kind, name: &str) -> Result<Option<SeenRecord>, Fault> {
    match dynamo.get(table(kind), key(kind, name)).await? {
        Some(found) => Ok(Some(decode(kind, &found, blobs).await?)),
        None => Ok(None),
    }
}

/// Every record of a kind that was not removed, by name.
pub(crate) async fn all(dynamo: &Dynamo, blobs: &dyn BlobStore, kind: Kind) -> Result<Vec<Record>, Fault> {
    // Of these there is one at most, and every submit asks for it.
    if matches!(kind, Kind::DefaultImage | Kind::Admins | Kind::Ledger | Kind::Health) {
        let found = read(dynamo, blobs, kind, ONLY).await?;
        return Ok(found.map(|seen| seen.record).filter(|record| record.body.is_some()).into_iter().collect());
    }
    let found = match table(kind) {
        Table::Records => dynamo.query(Query::of(Table::Records, "kind", s(kind.as_str()))).await?,
        table => dynamo.scan_all(table).await?,
    };
    let mut records = Vec::new();
    for found in found {
        if found.text("record_kind")? == kind.as_str() {
            records.push(decode(kind, &found, blobs).await?.record);
        }
    }
    records.retain(|record| record.body.is_some());
    records.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

/// The record as an item.
pub(crate) fn encode(record: &Record, last_used: Option<i64>) -> Item {
    let mut encoded = key(record.kind, &record.name);
    encoded.extend(item([
        ("record_kind", s(record.kind.as_str())),
        ("record_name", s(&record.name)),
        ("version", n(record.version)),
        ("chain", json(&record.chain)),
    ]));
    if let Some(text) = record.body.as_ref().map(text) {
        let is_large = text.len() > MOST_INLINE;
        encoded.extend(item([if is_large { ("body_blob", s(digest(&text))) } else { ("body", s(text)) }]));
    }
    match (record.kind, &record.body) {
        (Kind::Key, Some(Body::Key(email))) => encoded.extend(item([("user_email", s(email))])),
        (Kind::Claim, Some(Body::Claim(claim))) => {
            encoded.extend(item([("user_email", s(&claim.email)), ("viewed", AttributeValue::Bool(claim.claimed.is_some()))]));
            // One that was answered says so for ever.
            if claim.claimed.is_none() {
                encoded.extend(item([("expires_at", n(claim.expires_at.seconds()))]));
            }
        }
        _ => {}
    }
    if record.kind == Kind::Key {
        encoded.extend(item([("revoked", AttributeValue::Bool(record.body.is_none()))]));
    }
    if let Some(at) = last_used {
        encoded.extend(used(at));
    }
    encoded
}

/// Remembers that a key was used. A key that is not there is not made by that.
pub(crate) async fn touch(dynamo: &Dynamo, hash: &[u8; 32], at: UnixMs) -> Result<(), Fault> {
    let minute = at.0 - at.0.rem_euclid(60_000);
    let change = Change {
        expression: "SET last_used_ms = :at, last_used = :iso",
        condition: Some("attribute_exists(api_key_hash) AND (attribute_not_exists(last_used_ms) OR last_used_ms < :at)"),
        names: Vec::new(),
        values: vec![(":at", n(minute)), (":iso", s(iso(UnixMs(minute))))],
    };
    let own = key(Kind::Key, &hex::hex(hash));
    match dynamo.update(Table::ApiKeys, own.clone(), change).await {
        Ok(()) => Ok(()),
        Err(Fault::Conflict) => match dynamo.get(Table::ApiKeys, own).await? {
            // Somebody else was at it at that moment, and it is as it was.
            Some(found) if found.number_if::<i64>("last_used_ms")?.is_none_or(|known| known < minute) => Err(Fault::Conflict),
            _ => Ok(()),
        },
        Err(fault) => Err(fault),
    }
}

/// When keys were last used, in the order they are asked for.
pub(crate) async fn uses(dynamo: &Dynamo, hashes: &[[u8; 32]]) -> Result<Vec<Option<UnixMs>>, Fault> {
    let mut names: Vec<String> = hashes.iter().map(|hash| key_hash(&hex::hex(hash))).collect();
    let wanted = names.clone();
    names.sort_unstable();
    names.dedup();
    let keys = names.iter().map(|name| item([("api_key_hash", s(name))])).collect();
    let found = dynamo.get_all(Table::ApiKeys, keys).await?;
    let mut uses = std::collections::HashMap::new();
    for found in &found {
        if let Some(at) = found.number_if::<i64>("last_used_ms")? {
            uses.insert(found.text("api_key_hash")?.to_owned(), UnixMs(at));
        }
    }
    Ok(wanted.iter().map(|name| uses.get(name).copied()).collect())
}

fn used(at: i64) -> Item {
    item([("last_used_ms", n(at)), ("last_used", s(iso(UnixMs(at))))])
}

/// The hash as the table's other readers know it: base64.
fn key_hash(name: &str) -> String {
    hex::unhex::<32>(name).map_or_else(|| name.to_owned(), |hash| STANDARD.encode(hash))
}

/// The record that an item holds, whatever its kind.
pub(crate) async fn of_item(found: &Item, blobs: &dyn BlobStore) -> Result<Record, Fault> {
    let text = found.text("record_kind")?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == text);
    let kind = kind.ok_or_else(|| Fault::Damaged(format!("there are no records of kind {text:?}")))?;
    Ok(decode(kind, found, blobs).await?.record)
}

async fn decode(kind: Kind, found: &Item, blobs: &dyn BlobStore) -> Result<SeenRecord, Fault> {
    let body = match found.text_if("body_blob") {
        None => found.contains_key("body").then(|| found.json("body")).transpose()?,
        Some(key) => match kept_apart(kind, found, key, blobs).await {
            // One playbook must not hide the others, and can be pushed again. Of nothing else is it guessed what it was.
            Err(Fault::Damaged(why)) if matches!(kind, Kind::Playbook | Kind::PlaybookVersion) => {
                tracing::error!(%why, "a playbook counts as removed: push it again");
                None
            }
            body => Some(body?),
        },
    };
    let record =
        Record { kind, name: found.text("record_name")?.to_owned(), version: found.number("version")?, chain: found.json("chain")?, body };
    Ok(SeenRecord { record, last_used: found.number_if("last_used_ms")? })
}

async fn kept_apart(kind: Kind, found: &Item, key: &str, blobs: &dyn BlobStore) -> Result<Body, Fault> {
    let what = format!("the body of {} {}", kind.as_str(), found.text_if("record_name").unwrap_or("?"));
    let bytes = blobs.get(key).await?.ok_or_else(|| Fault::Damaged(format!("{what} is not at {key} any more")))?;
    serde_json::from_slice(&bytes).map_err(|error| Fault::unread(&what, &error))
}
