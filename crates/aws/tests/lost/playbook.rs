//! Playbooks that lie in the bucket.

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
