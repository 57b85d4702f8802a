//! Each part of AWS by name, whether it answers, and its last error.

mod emulator;

use std::sync::Arc;

use emulator::{Emulator, clients, clients_at};
use runvoy_aws::{Clients, Config, Dependencies, Dependency, check_queue, set_up};

/// How things stand: others keep the emulator busy, and a part that answers late is away for that look.
async fn settled(clients: &Clients, config: &Config, away: &[&str]) -> Vec<Dependency> {
    let mut found = Vec::new();
    for _ in 0..10 {
        found = Dependencies::new(clients.clone(), Arc::new(config.clone())).look().await;
        let is_late = |one: &Dependency| one.last_error.as_ref().is_some_and(|(error, _)| error.contains("does not answer"));
        if found.iter().all(|one| one.is_there != away.contains(&one.name) && !is_late(one)) {
            break;
        }
    }
    found
}

#[tokio::test]
async fn each_part_is_named_and_one_that_refuses_says_why() {
    let (clients, made) = (clients(Emulator::ministack()).await, Emulator::ministack().config());
    let config = || made.clone();
    set_up(&clients, &config()).await.expect("it is set up");
    let found = settled(&clients, &config(), &[]).await;
    let names: Vec<&str> = found.iter().map(|one| one.name).collect();
    assert_eq!(names, ["DynamoDB", "S3", "SSM", "SQS", "EventBridge", "CloudWatch Logs"]);
    assert!(found.iter().all(|one| one.is_there && one.last_error.is_none()), "{found:?}");

    let astray = Config { bucket: "nobodys-bucket".to_owned(), event_bus: "nobodys-bus".to_owned(), log_group: None, ..config() };
    let found = settled(&clients, &astray, &["S3", "EventBridge"]).await;
    let away: Vec<&str> = found.iter().filter(|one| !one.is_there).map(|one| one.name).collect();
    assert_eq!(away, ["S3", "EventBridge"]);
    let bucket = &found[1];
    assert!(bucket.is_needed && bucket.last_error.as_ref().is_some_and(|(error, _)| error == "refuses (NoSuchBucket)"), "{bucket:?}");
    assert!(!found[4].is_needed, "events are published when the bus is back");

    let queue = format!("{}default", made.queue_prefix);
    clients.sqs.create_queue().queue_name(&queue).send().await.expect("a queue");
    let said = clients.sqs.get_queue_url().queue_name(&queue).send().await.expect("it is there").queue_url.expect("an address");
    check_queue(&clients, &config(), "default", &said).await.expect("it is that one");
    check_queue(&clients, &config(), "not-made-yet", "https://sqs.example.com/1/not-made-yet").await.expect("nothing is wrong yet");
    let another = check_queue(&clients, &config(), "default", "https://sqs.example.com/999/default").await;
    assert!(another.is_err_and(|fault| fault.to_string().contains("was said to be at")));
}

#[tokio::test]
async fn where_nothing_answers_every_part_is_named_in_seconds() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let dependencies = Dependencies::new(clients_at(&format!("http://{free}")).await, Arc::new(Config::new("prod")));
    let found = dependencies.look().await;
    assert!(found.len() == 6 && found.iter().all(|one| !one.is_there && one.last_error.is_some()), "{found:?}");
    assert_eq!(dependencies.look().await.len(), 6, "a second look is answered from memory");
}
