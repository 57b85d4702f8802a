//! Playbooks that lie in the bucket.

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::change::Change;
use runvoy_model::playbook::PlaybookBody;
use runvoy_model::record::Kind;
use runvoy_ports::record::RecordStore;
use runvoy_ports::store::ExecutionStore;

use super::stage::{name, servers, step};
use crate::emulator::Emulator;

#[tokio::test]
async fn a_playbook_of_a_megabyte_is_kept_apart_and_comes_back() {
    for emulator in [Emulator::ministack(), Emulator::moto()] {
        let [server] = servers(emulator).await;
        let env = (0..10).map(|number| (format!("V{number}"), "x".repeat(100_000))).collect();
        let body = PlaybookBody { command: "make".into(), env, ..PlaybookBody::default() };
        for version in 1..=2 {
            let push = Change::PushPlaybook(name("big"), Box::new(body.clone()));
            let (pushed, _) = server.store.change(step(), push, None).await.expect("pushed");
            assert_eq!(pushed.playbook().map(|playbook| playbook.version), Some(version));
        }
        let kept = server.store.record(Kind::Playbook, "big").await.expect("an answer").expect("it is there");
        assert_eq!(kept.playbook().map(|playbook| &playbook.steps), Some(&body));
        assert_eq!(server.store.records(Kind::Playbook).await.expect("all"), [kept]);
        let first = server.store.record(Kind::PlaybookVersion, "big@1").await.expect("an answer").expect("it is there");
        assert_eq!(first.playbook().map(|playbook| &playbook.steps), Some(&body));
    }
}

#[tokio::test]
async fn a_playbook_whose_body_is_gone_hides_no_other_and_is_pushed_again() {
    let [server] = servers(Emulator::ministack()).await;
    let large = PlaybookBody { command: "make".into(), env: [("BIG".into(), "x".repeat(300_000))].into(), ..PlaybookBody::default() };
    let small = PlaybookBody { command: "make".into(), ..PlaybookBody::default() };
    let push = async |called: &str, body: &PlaybookBody| {
        let push = Change::PushPlaybook(name(called), Box::new(body.clone()));
        server.store.change(step(), push, None).await.expect("pushed").0.playbook().expect("a playbook").version
    };
    assert_eq!((push("big", &large).await, push("other", &small).await), (1, 1));
    let (kind, called) = (AttributeValue::S(Kind::Playbook.as_str().into()), AttributeValue::S("big".into()));
    let request = server.clients.dynamo.get_item().table_name(format!("{}-records", server.config.prefix));
    let found = request.key("kind", kind).key("name", called).send().await.expect("an answer").item.expect("it is there");
    server.lose_blob(found["body_blob"].as_s().expect("a key")).await;

    let all = server.store.records(Kind::Playbook).await.expect("those that are left");
    assert_eq!(all.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!(server.store.record(Kind::Playbook, "big").await.expect("an answer"), None);
    assert_eq!(push("big", &small).await, 2, "a version is never two different texts");
    assert_eq!(server.store.records(Kind::Playbook).await.expect("all").len(), 2);
}
