//! That the counter counts as DynamoDB's developer guide has it.

use serde_json::{Value, json};

use crate::emulator::count::Index;
use crate::emulator::unit::{entry, index_units, item_bytes, read_halves, write_units};

#[test]
fn an_item_is_as_large_as_the_developer_guide_says() {
    assert_eq!(item_bytes(&json!({"ab": {"S": "é"}, "n": {"N": "-1200.50"}})), 2 + 2 + 1 + (3 + 1 + 1));
    assert_eq!(item_bytes(&json!({"b": {"B": "AAECAw=="}, "t": {"BOOL": true}})), 1 + 4 + 1 + 1);
    assert_eq!(item_bytes(&json!({"l": {"L": [{"S": "x"}]}, "m": {"M": {"k": {"N": "7"}}}})), 1 + 3 + 1 + 1 + 1 + 3 + 1 + 1 + 2);
    assert_eq!(item_bytes(&json!({"s": {"SS": ["ab", "c"]}})), 1 + 3);
}

#[test]
fn units_are_rounded_up_and_never_nothing() {
    assert_eq!([0, 1, 1024, 1025].map(write_units), [1, 1, 1, 2]);
    assert_eq!([0, 4096, 4097].map(|bytes| read_halves(bytes, 2)), [2, 2, 4]);
    assert_eq!(read_halves(100, 1), 1);
}

#[test]
fn an_index_costs_what_changes_in_it() {
    let holds = Some(["k", "id"].map(str::to_owned).into());
    let index = Index { name: "i".into(), keys: vec!["k".into()], holds, is_local: false };
    let item = |k: &str, other: &str| entry(&index, &json!({"k": {"S": k}, "id": {"S": "1"}, "other": {"S": other}}));
    let cost = |before: Option<Value>, after: Option<Value>| index_units(&index, before.as_ref(), after.as_ref());
    assert_eq!(cost(None, item("a", "x")), (0, 1));
    assert_eq!(cost(item("a", "x"), item("a", "y")), (0, 0));
    assert_eq!(cost(item("a", "x"), item("b", "x")), (1, 1));
    assert_eq!(cost(item("a", "x"), None), (1, 0));
    assert_eq!(entry(&index, &json!({"id": {"S": "1"}})), None);
}
