//! DynamoDB's own rules, as its developer guide has them: how large an item is, and how many units a read, a write and an entry of an index are.
//! Pure.

use serde_json::{Map, Value};

use super::count::Index;

const WRITE_UNIT: u64 = 1024;
const READ_UNIT: u64 = 4096;

/// The bytes of an item: the names of its attributes and their values.
pub fn item_bytes(item: &Value) -> u64 {
    item.as_object().into_iter().flatten().map(|(name, value)| name.len() as u64 + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> u64 {
    let Some((kind, of)) = value.as_object().and_then(|value| value.iter().next()) else { return 0 };
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let list = || of.as_array().into_iter().flatten();
    match kind.as_str() {
        "S" => text(of).len() as u64,
        "N" => number_bytes(&text(of)),
        "B" => binary_bytes(&text(of)),
        "SS" => list().map(|of| text(of).len() as u64).sum(),
        "NS" => list().map(|of| number_bytes(&text(of))).sum(),
        "BS" => list().map(|of| binary_bytes(&text(of))).sum(),
        "L" => 3 + list().map(|of| 1 + value_bytes(of)).sum::<u64>(),
        "M" => 3 + of.as_object().into_iter().flatten().map(|(name, of)| 1 + name.len() as u64 + value_bytes(of)).sum::<u64>(),
        _ => 1,
    }
}

/// A byte for two significant digits, one more, and one for a sign.
fn number_bytes(text: &str) -> u64 {
    let is_negative = text.starts_with('-');
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len() as u64;
    significant.div_ceil(2) + 1 + u64::from(is_negative)
}

fn binary_bytes(base64: &str) -> u64 {
    (base64.trim_end_matches('=').len() * 3 / 4) as u64
}

/// A write of so many bytes, outside of a transaction.
pub fn write_units(bytes: u64) -> u64 {
    bytes.div_ceil(WRITE_UNIT).max(1)
}

/// A read of so many bytes, in half units: two for each 4 KB of a consistent one, one of one that may lag. Nothing found costs as much as little.
pub fn read_halves(bytes: u64, each: u64) -> u64 {
    bytes.div_ceil(READ_UNIT).max(1) * each
}

/// The entry of an item in an index, if it has one: only what has all its keys.
pub fn entry(index: &Index, item: &Value) -> Option<Value> {
    let item = item.as_object()?;
    if !index.keys.iter().all(|key| item.contains_key(key)) {
        return None;
    }
    let held = |name: &String| index.holds.as_ref().is_none_or(|holds| holds.contains(name));
    let entry: Map<String, Value> = item.iter().filter(|(name, _)| held(name)).map(|(name, of)| (name.clone(), of.clone())).collect();
    Some(Value::Object(entry))
}

/// The units of the entries of an index that a write removes and puts, outside of a transaction: another key is a removal and a put, another
/// attribute that it holds is a put, and what it does not hold is nothing.
pub fn index_units(index: &Index, before: Option<&Value>, after: Option<&Value>) -> (u64, u64) {
    let units = |entry: &Value| write_units(item_bytes(entry));
    let keys = |entry: &Value| index.keys.iter().map(|key| entry[key].clone()).collect::<Vec<_>>();
    match (before, after) {
        (None, None) => (0, 0),
        (None, Some(new)) => (0, units(new)),
        (Some(old), None) => (units(old), 0),
        (Some(old), Some(new)) if old == new => (0, 0),
        (Some(old), Some(new)) if keys(old) == keys(new) => (0, units(old).max(units(new))),
        (Some(old), Some(new)) => (units(old), units(new)),
    }
}
