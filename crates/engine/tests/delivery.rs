//! That events cannot be handed on is an incident, which ends when they can; a server that does not hand them on says nothing.

mod stage;

use std::sync::Arc;

use parking_lot::Mutex;
use runvoy_engine::{Config, Delivery, DeliveryWatch};
use runvoy_model::incident::{IncidentKind, Phase};
use runvoy_model::record::Kind;
use runvoy_ports::record::{IncidentQuery, RecordStore as _};

use self::stage::Stage;

/// A watch over something that tests make fail.
fn watch(stage: &Stage) -> (DeliveryWatch, Arc<Mutex<Delivery>>) {
    let state = Arc::new(Mutex::new(Delivery::Elsewhere));
    let seen = Arc::clone(&state);
    (DeliveryWatch::new(Arc::clone(&stage.engine), "eventbridge", move || seen.lock().clone()), state)
}

/// What goes on, by why it began.
async fn open(stage: &Stage) -> Vec<String> {
    let query = IncidentQuery { phase: Phase::Begun, kind: Some(IncidentKind::Delivery), limit: 10 };
    let mut open = Vec::new();
    for mark in stage.store.incidents(query).await.expect("the store answers") {
        let record = stage.store.record(Kind::Incident, &mark.name).await.expect("the store answers").expect("it is there");
        open.push(record.incident().expect("an incident").message.clone());
    }
    open
}

#[tokio::test]
async fn a_bus_that_fails_is_an_incident_until_it_works() {
    let stage = Stage::new(Config::default());
    let (watch, state) = watch(&stage);
    watch.turn().await;
    assert!(open(&stage).await.is_empty());
    *state.lock() = Delivery::Fails("EventBridge: denied".into());
    for _ in 0..2 {
        watch.turn().await;
        assert_eq!(open(&stage).await, ["events cannot be delivered to eventbridge: EventBridge: denied"]);
    }
    *state.lock() = Delivery::Works;
    watch.turn().await;
    assert!(open(&stage).await.is_empty());
}

#[tokio::test]
async fn a_server_without_the_turn_ends_no_incident_and_one_with_it_does() {
    let stage = Stage::new(Config::default());
    let ((one, of_one), (two, of_two)) = (watch(&stage), watch(&stage));
    *of_one.lock() = Delivery::Fails("EventBridge: denied".into());
    one.turn().await;
    two.turn().await;
    assert_eq!(open(&stage).await.len(), 1, "two hands nothing on");
    *of_one.lock() = Delivery::Elsewhere;
    one.turn().await;
    assert_eq!(open(&stage).await.len(), 1, "one does not any more");
    *of_two.lock() = Delivery::Works;
    two.turn().await;
    assert!(open(&stage).await.is_empty());
}
