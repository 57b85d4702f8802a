//! What the emulators must do as AWS does for the other tests to mean anything, and that the layer of faults does what it says.

mod emulator;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use emulator::fault::{Faults, Kind};
use emulator::{Emulator, clients, clients_through, longest_lag};
use runvoy_aws::{Clients, Config, set_up};

type Item = HashMap<String, AttributeValue>;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn item(attributes: &[(&str, AttributeValue)]) -> Item {
    attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn put_new(table: &str, key: &str, item: Item) -> TransactWriteItem {
    let put = Put::builder().table_name(table).set_item(Some(item)).condition_expression("attribute_not_exists(#k)");
    TransactWriteItem::builder().put(put.expression_attribute_names("#k", key).build().expect("it is there")).build()
}

async fn installation(emulator: &Emulator) -> (Clients, Config) {
    let (clients, config) = (clients(emulator).await, emulator.config());
    set_up(&clients, &config).await.expect("an answer");
    (clients, config)
}

async fn marks(clients: &Clients, config: &Config) -> usize {
    let answer =
        clients.dynamo.scan().table_name(format!("{}-marks", config.prefix)).consistent_read(true).send().await.expect("an answer");
    answer.items().len()
}

async fn all_is_made_and_made_again(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    set_up(&clients, &config).await.expect("an answer");
    let events = clients.dynamo.describe_table().table_name(format!("{}-events", config.prefix)).send().await.expect("an answer");
    assert_eq!(events.table().expect("it is there").global_secondary_indexes().len(), 8);
    let jobs = clients.dynamo.describe_table().table_name(format!("{}-jobs", config.prefix)).send().await.expect("an answer");
    assert_eq!(jobs.table().expect("it is there").local_secondary_indexes().len(), 2);
}

async fn a_transaction_is_all_or_nothing(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let table = format!("{}-marks", config.prefix);
    let write = |names: &[&str]| {
        let writes = names.iter().map(|name| put_new(&table, "mark", item(&[("mark", s(name))]))).collect();
        clients.dynamo.transact_write_items().set_transact_items(Some(writes)).send()
    };
    write(&["a", "b"]).await.expect("an answer");
    let error = write(&["c", "b"]).await.expect_err("a refusal").into_service_error();
    let reasons = match &error {
        aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(cancelled) => {
            cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(reasons, ["None", "ConditionalCheckFailed"]);
    assert_eq!(marks(&clients, &config).await, 2);
}

/// Only one of many writers that saw the same version wins, and none undoes another.
async fn writers_of_one_version_exclude_each_other(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let table = format!("{}-marks", config.prefix);
    let writers = (0..8).map(|writer| {
        let (clients, table) = (clients.clone(), table.clone());
        tokio::spawn(async move {
            let mut won = 0;
            for round in 0..8 {
                let shared = put_new(&table, "mark", item(&[("mark", s(&format!("round-{round}")))]));
                let own = put_new(&table, "mark", item(&[("mark", s(&format!("own-{round}-{writer}")))]));
                won += usize::from(clients.dynamo.transact_write_items().transact_items(shared).transact_items(own).send().await.is_ok());
            }
            won
        })
    });
    let mut won = 0;
    for writer in writers.collect::<Vec<_>>() {
        won += writer.await.expect("an answer");
    }
    assert_eq!(won, 8);
    assert_eq!(marks(&clients, &config).await, 16);
}

/// An index in a partition gives what was just written, in the order of its own sort attribute, and only what has it.
async fn an_index_in_a_partition_never_lags(emulator: &Emulator) {
    let (clients, config) = installation(emulator).await;
    let table = format!("{}-jobs", config.prefix);
    for (entry, place) in [("job", None), ("node#b", Some("1")), ("node#a", Some("10")), ("node#c", Some("2"))] {
        let mut node = item(&[("job_id", s("j")), ("entry", s(entry)), ("phase", s("ready")), ("more", s("x"))]);
        node.extend(place.map(|place| ("place".to_owned(), AttributeValue::N(place.to_owned()))));
        clients.dynamo.put_item().table_name(&table).set_item(Some(node)).send().await.expect("an answer");
    }
    let query = clients.dynamo.query().table_name(&table).index_name("place-index").consistent_read(true);
    let found = query.key_condition_expression("job_id = :j").expression_attribute_values(":j", s("j")).send().await.expect("an answer");
    let entries: Vec<&str> = found.items().iter().map(|item| item["entry"].as_s().expect("it is there").as_str()).collect();
    assert_eq!(entries, ["node#b", "node#c", "node#a"]);
    assert!(found.items().iter().all(|item| item.contains_key("phase") && !item.contains_key("more")), "{found:?}");
}

macro_rules! on_both {
    ($($test:ident,)*) => {
        mod ministack { $(#[tokio::test] async fn $test() { super::$test(super::Emulator::ministack()).await; })* }
        mod moto { $(#[tokio::test] async fn $test() { super::$test(super::Emulator::moto()).await; })* }
    };
}

on_both! {
    all_is_made_and_made_again,
    a_transaction_is_all_or_nothing,
    writers_of_one_version_exclude_each_other,
    an_index_in_a_partition_never_lags,
}

/// As AWS does; moto takes no notice of the token and judges the conditions again.
#[tokio::test]
async fn a_transaction_that_is_sent_again_under_its_token_is_answered_as_before() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let table = format!("{}-marks", config.prefix);
    let write = |name: &str| {
        let write = put_new(&table, "mark", item(&[("mark", s(name))]));
        clients.dynamo.transact_write_items().client_request_token("token-1").transact_items(write).send()
    };
    write("a").await.expect("an answer");
    write("a").await.expect("an answer");
    let other = write("b").await.expect_err("a refusal").into_service_error();
    assert!(other.is_idempotent_parameter_mismatch_exception(), "{other:?}");
    assert_eq!(marks(&clients, &config).await, 1);
}

#[tokio::test]
async fn a_lost_answer_is_of_a_request_that_was_carried_out() {
    let (clients, config) = installation(Emulator::ministack()).await;
    let faults = Faults::seeded(1).with(Kind::LostCall, 1000);
    let through = clients_through(Emulator::ministack(), &faults).await;
    let put = |name: &str| {
        let request = through.dynamo.put_item().table_name(format!("{}-marks", config.prefix));
        request.set_item(Some(item(&[("mark", s(name))]))).send()
    };
    let error = put("a").await.expect_err("a refusal");
    assert!(error.as_service_error().is_none(), "{error:?}");
    assert_eq!((marks(&clients, &config).await, faults.happened(Kind::LostCall)), (1, 1));
    faults.switch(false);
    put("b").await.expect("an answer");
    assert_eq!(marks(&clients, &config).await, 2);
}

#[tokio::test]
async fn a_conflict_or_a_full_table_is_told_and_writes_nothing() {
    let (clients, config) = installation(Emulator::ministack()).await;
    for kind in [Kind::Conflict, Kind::Throttle] {
        let faults = Faults::seeded(1).with(kind, 1000);
        let through = clients_through(Emulator::ministack(), &faults).await;
        let write = put_new(&format!("{}-marks", config.prefix), "mark", item(&[("mark", s("a"))]));
        let error = through.dynamo.transact_write_items().transact_items(write).send().await.expect_err("a refusal").into_service_error();
        match kind {
            Kind::Conflict => assert!(error.is_transaction_canceled_exception(), "{error:?}"),
            _ => assert!(error.is_provisioned_throughput_exceeded_exception(), "{error:?}"),
        }
        assert!(faults.happened(kind) > 0);
    }
    assert_eq!(marks(&clients, &config).await, 0);
}

#[tokio::test]
async fn an_index_that_lags_knows_the_past_and_catches_up() {
    let (_, config) = installation(Emulator::ministack()).await;
    let faults = Faults::seeded(1).with(Kind::StaleIndex, 1000);
    let through = clients_through(Emulator::ministack(), &faults).await;
    let table = format!("{}-executions", config.prefix);
    let found = || async {
        let query = through.dynamo.query().table_name(&table).index_name("suffix-index").key_condition_expression("suffix = :s");
        query.expression_attribute_values(":s", s("abc")).send().await.expect("an answer").items().len()
    };
    let execution = item(&[("execution_id", s("e")), ("suffix", s("abc"))]);
    let put = Instant::now();
    through.dynamo.put_item().table_name(&table).set_item(Some(execution)).send().await.expect("an answer");
    let at_once = found().await;
    assert!(at_once == 0 || put.elapsed() > longest_lag(), "it is new");
    settles_at(&found, 1).await;
    through.dynamo.delete_item().table_name(&table).key("execution_id", s("e")).send().await.expect("an answer");
    // Each answer is an earlier one or one without what is new, by the toss of a coin.
    let (deleted, mut seen) = (Instant::now(), false);
    for _ in 0..40 {
        seen |= found().await == 1;
    }
    assert!(seen || deleted.elapsed() > longest_lag(), "it was never still in the index");
    settles_at(&found, 0).await;
}

/// Asks until the index has caught up: the same answer, often, though it lags as often as it can.
async fn settles_at<F: Future<Output = usize>>(found: &impl Fn() -> F, count: usize) {
    let give_up = Instant::now() + Duration::from_secs(60);
    let mut in_a_row = 0;
    while in_a_row < 30 {
        assert!(Instant::now() < give_up, "the index never catches up");
        in_a_row = if found().await == count { in_a_row + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_entry_of_a_batch_can_fail_alone() {
    let (_, config) = installation(Emulator::ministack()).await;
    let faults = Faults::seeded(1).with(Kind::FailedEntry, 1000);
    let through = clients_through(Emulator::ministack(), &faults).await;
    let entry = || PutEventsRequestEntry::builder().source("s").detail_type("t").detail("{}").event_bus_name(&config.event_bus).build();
    for count in [1, 3] {
        let answer = through.events.put_events().set_entries(Some((0..count).map(|_| entry()).collect())).send().await.expect("an answer");
        assert_eq!((answer.failed_entry_count(), answer.entries().len()), (1, count));
        assert_eq!(answer.entries().iter().filter(|entry| entry.event_id().is_some()).count(), count - 1);
    }
}

#[tokio::test]
async fn messages_are_doubled_and_lost() {
    let plain = clients(Emulator::ministack()).await;
    let queue =
        plain.sqs.create_queue().queue_name(format!("{}q", Emulator::ministack().config().queue_prefix)).send().await.expect("an answer");
    let url = queue.queue_url().expect("it is there");
    for (kind, count) in [(Kind::DoubledMessage, 2), (Kind::LostMessage, 0)] {
        let faults = Faults::seeded(1).with(kind, 1000);
        let through = clients_through(Emulator::ministack(), &faults).await;
        through.sqs.send_message().queue_url(url).message_body("hello").send().await.expect("an answer");
        let received = plain.sqs.receive_message().queue_url(url).max_number_of_messages(10).send().await.expect("an answer");
        assert_eq!(received.messages().len(), count, "{kind:?}");
    }
}
