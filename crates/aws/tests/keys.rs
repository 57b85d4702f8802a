//! The keys of an installation in the Parameter Store: made once, by one, and never for a store that has data.

mod emulator;

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::{Emulator, clients};
use runvoy_aws::{Clients, Config, Fault, ServerKeys, SsmSealKeys, SsmSigningKeys, set_up};
use runvoy_model::chain::ChainHead;
use runvoy_model::seal::SealKey;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;
use runvoy_ports::seal::{SealKeys, SealKeysError};
use runvoy_ports::signing::SigningKeys as _;

async fn installation() -> (Clients, Config) {
    let (clients, config) = (clients(Emulator::ministack()).await, Emulator::ministack().config());
    set_up(&clients, &config).await.expect("it is set up");
    (clients, config)
}

fn same(one: &ServerKeys, other: &ServerKeys) -> bool {
    let mac = |keys: &ServerKeys| keys.audit.link(&ChainHead::default(), b"event").mac;
    one.signing == other.signing && mac(one) == mac(other)
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_at_once_agree_on_one_set_of_keys() {
    let (clients, config) = installation().await;
    let make = || ServerKeys::load_or_make(&clients, &config);
    let (one, two, three) = tokio::join!(make(), make(), make());
    let (one, two, three) = (one.expect("keys"), two.expect("keys"), three.expect("keys"));
    assert!(same(&one, &two) && same(&two, &three));
    assert!(same(&one, &make().await.expect("keys")), "a later start reads them");

    let rings = [(); 3].map(|()| SsmSealKeys::open(&clients, &config, &[]));
    let [one, two, three] = rings;
    let (one, two, three) = tokio::join!(one, two, three);
    let ids = [one, two, three].map(|ring| ring.expect("a ring").current().expect("a key").id().to_owned());
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_its_keys_is_refused() {
    let (clients, config) = installation().await;
    ServerKeys::load_or_make(&clients, &config).await.expect("keys");
    let path = |name: &str| format!("/{}/keys/{name}", config.prefix);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put =
        clients.dynamo.put_item().table_name(format!("{}-records", config.prefix)).item("kind", text("admins")).item("name", text("only"));
    put.send().await.expect("there is data");
    ServerKeys::load_or_make(&clients, &config).await.expect("the keys are there");
    clients.ssm.delete_parameter().name(path("audit")).send().await.expect("it is taken away");
    let refused = ServerKeys::load_or_make(&clients, &config).await.err();
    assert!(matches!(&refused, Some(Fault::Damaged(why)) if why.contains(&path("audit"))), "{refused:?}");

    let used = ["0123456789abcdef".to_owned()];
    let refused = SsmSealKeys::open(&clients, &config, &used).await.err();
    assert!(matches!(&refused, Some(Fault::Damaged(why)) if why.contains(&path("seal/current"))), "{refused:?}");
    SsmSealKeys::open(&clients, &config, &[]).await.expect("made where there are no secrets");
    let refused = SsmSealKeys::open(&clients, &config, &used).await.err();
    assert!(matches!(&refused, Some(Fault::Damaged(why)) if why.contains(&path("seal/0123456789abcdef"))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_by_one_server_reaches_the_others() {
    let (clients, config) = installation().await;
    let open = async || Arc::new(SsmSealKeys::open(&clients, &config, &[]).await.expect("a ring"));
    let (one, two) = (open().await, open().await);
    let before = one.current().expect("a key");
    let rotating = Arc::clone(&one);
    let after: SealKey = tokio::task::spawn_blocking(move || rotating.rotate()).await.expect("no panic").expect("a new key");
    assert_eq!(one.current().expect("a key").id(), after.id());
    // What was sealed with it can be opened elsewhere at once, also from where nobody may wait for long.
    assert_eq!(two.by_id(after.id()).expect("it is looked for").bytes(), after.bytes());
    assert!(matches!(two.by_id("0123456789abcdef"), Err(SealKeysError::Missing(_))));
    let began = Instant::now();
    while two.current().expect("a key").id() != after.id() {
        assert!(began.elapsed() < Duration::from_secs(30), "it was not seen");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Another server may be about to seal with the one before.
    let retiring = Arc::clone(&one);
    tokio::task::spawn_blocking(move || retiring.retire_all_but(&[])).await.expect("no panic").expect("nothing is in the way");
    assert_eq!(open().await.by_id(before.id()).expect("it is kept").bytes(), before.bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_task_tokens_is_made_once_and_seen_by_every_server() {
    let (clients, config) = installation().await;
    let signing = ServerKeys::load_or_make(&clients, &config).await.expect("keys").signing;
    let (one, two) = (SsmSigningKeys::new(&clients, &config), SsmSigningKeys::new(&clients, &config));
    assert!(one.all().await.expect("no ring is no failure").is_empty(), "the store's own key is none of them");
    let (here, there) = tokio::join!(one.make(UnixMs(5)), two.make(UnixMs(5)));
    let (here, there) = (here.expect("a key"), there.expect("a key"));
    assert_eq!(here.bytes(), there.bytes(), "one of them made it");
    let mut made = vec![here];
    // More than SSM lists at once.
    for at in 6..20 {
        made.push(two.make(UnixMs(at)).await.expect("a key"));
    }
    let mut found = one.all().await.expect("keys");
    found.sort_by_key(SigningKey::made_at);
    let both = |keys: &[SigningKey]| keys.iter().map(|key| (key.made_at(), *key.bytes())).collect::<Vec<_>>();
    assert_eq!(both(&found), both(&made));
    let path = format!("/{}/keys/signing/5", config.prefix);
    let kept = clients.ssm.get_parameter().name(path).send().await.expect("it is there").parameter.expect("one");
    assert_eq!(kept.r#type, Some(aws_sdk_ssm::types::ParameterType::SecureString));
    assert_eq!(ServerKeys::load_or_make(&clients, &config).await.expect("keys").signing, signing, "which stays");
}
