//! An installation stays with its bucket: with another one everything would look lost.

use std::sync::Arc;

use runvoy_aws::{Clients, Config, Fault, choose_bucket, claim_bucket, set_up};

use crate::emulator::{Emulator, clients};

async fn chosen(clients: &Clients, config: &Config, asked: Option<&str>) -> String {
    choose_bucket(clients, config, asked).await.expect("a name")
}

#[tokio::test]
async fn an_installation_stays_with_the_bucket_of_its_first_start() {
    let (clients, config) = (clients(Emulator::ministack()).await, Emulator::ministack().config());
    let account = clients.account().await.expect("an account");
    let named = format!("{}-data-{account}", config.prefix);
    assert_eq!(chosen(&clients, &config, None).await, named, "a new one");
    assert_eq!(chosen(&clients, &config, Some("own")).await, "own");

    let first = Arc::new(Config { bucket: format!("{}-first", config.prefix), ..config.clone() });
    set_up(&clients, &first).await.expect("an installation");
    assert_eq!(chosen(&clients, &config, None).await, named, "there is no older bucket");
    let older = Config { bucket: format!("{}-data", config.prefix), ..config.clone() };
    set_up(&clients, &older).await.expect("its bucket");
    assert_eq!(chosen(&clients, &config, None).await, older.bucket, "one from before the mark");

    for _ in 0..2 {
        claim_bucket(&clients, &first).await.expect("its own");
    }
    assert_eq!(chosen(&clients, &config, None).await, first.bucket);
    assert_eq!(chosen(&clients, &config, Some(&first.bucket)).await, first.bucket);
    let mistyped = Arc::new(Config { bucket: format!("{}-frist", config.prefix), ..config.clone() });
    for refused in [choose_bucket(&clients, &config, Some(&mistyped.bucket)).await.map(drop), claim_bucket(&clients, &mistyped).await] {
        let said = refused.as_ref().expect_err("another one").to_string();
        assert!(matches!(refused, Err(Fault::Refused { .. })) && said.contains(&first.bucket) && said.contains("aws.bucket"), "{said}");
    }
}
