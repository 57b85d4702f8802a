//! What one server cannot read, another one may: it is passed by and shown as far as it goes, and nobody gives it up.

use std::sync::Arc;

use runvoy_aws::Config;
use runvoy_model::command::Kill;
use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_ports::store::{ExecutionStore, ListQuery};

use super::stage::{Server, large, servers, small, step};
use crate::emulator::Emulator;

/// Whoever stands behind it is leased, all are listed, and it waits on.
async fn assert_passed_by(server: &Server, unknown: ExecutionId, healthy: ExecutionId) {
    let leased: Vec<_> = server.lease().await.iter().map(|execution| execution.id).collect();
    assert_eq!(leased, [healthy]);
    assert!(server.lease_in_vain().await.is_empty(), "another server may read it");
    assert_eq!(server.store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list").len(), 2);
    assert_eq!(server.get(unknown).await.status, Status::Pending);
    // A step goes by the whole record, and would write over what it does not know.
    assert!(server.store.give_up(step(), unknown, "says somebody".into()).await.is_err());
    assert!(server.store.kill(step(), Kill { execution: unknown, force: false }).await.is_err());
}

#[tokio::test]
async fn what_a_newer_server_wrote_is_left_to_it() {
    for (attribute, old, new) in [("state", "\"PENDING\"", "\"HELD_BACK\""), ("spec", "\"make\"", "[\"make\"]")] {
        let [server] = servers(Emulator::ministack()).await;
        let (unknown, healthy) = (server.submit(small()).await, server.submit(small()).await);
        let text = server.attribute(unknown, attribute).await.expect("a text");
        assert!(text.contains(old), "{text}");
        server.write(unknown, attribute, &text.replacen(old, new, 1)).await;
        assert_passed_by(&server, unknown, healthy).await;
        server.write(unknown, attribute, &text).await;
        assert_eq!(server.lease().await.len(), 1, "it was only passed by");
    }
}

#[tokio::test]
async fn a_spec_that_s3_refuses_holds_up_nobody_else() {
    let [server] = servers(Emulator::ministack()).await;
    let (unknown, healthy) = (server.submit(large()).await, server.submit(small()).await);
    // One that asks a bucket that is not there.
    let config = Arc::new(Config { bucket: format!("{}-elsewhere", server.config.prefix), ..(*server.config).clone() });
    let other = Server::start(Emulator::ministack(), config).await;
    assert_passed_by(&other, unknown, healthy).await;
    assert_eq!(server.lease().await.len(), 1, "it was only passed by");
}
