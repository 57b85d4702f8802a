//! What a command and the platform pass to each other in files: real processes read and write them.

use runvoy_model::command::Outcome;
use runvoy_model::job::Payload;
use runvoy_model::retry::Category;
use serde_json::json;

use crate::stage::Stage;

const SECRET: &str = "s3cr3t-Pa55/w0rd+x";
pub const LARGE_OUTPUT: &str =
    "printf '\"' > \"$RUNVOY_OUTPUT\"; head -c 300000 /dev/zero | tr '\\0' x >> \"$RUNVOY_OUTPUT\"; printf '\"' >> \"$RUNVOY_OUTPUT\"";
const INPUT: &str = r#"{"input":{"n":1},"dependencyOutputs":{"a":[2]}}"#;

#[tokio::test]
async fn a_task_reads_its_input_and_gives_its_output() {
    let command = "stat -c %a \"$RUNVOY_INPUT\"; echo $RUNVOY_TASK_ID $RUNVOY_JOB_ID; cp \"$RUNVOY_INPUT\" \"$RUNVOY_OUTPUT\"";
    let played = Stage::new(command).task(INPUT).play().await;
    played.assert_exit(0);
    assert!(played.log.contains("out: 600\n") && played.log.contains(&format!("out: build {}\n", "04".repeat(16))), "{}", played.log);
    assert_eq!(played.ended.output, Some(Payload::Inline(json!({"input": {"n": 1}, "dependencyOutputs": {"a": [2]}}))));
    assert!(played.blobs.is_empty() && !played.log.contains("no output") && played.ended.remark.is_none(), "{}", played.log);
}

#[tokio::test]
async fn an_output_without_secrets_is_what_is_kept() {
    let command = "printf '{\"token\":\"%s\"}' \"$DB\" > \"$RUNVOY_OUTPUT\"";
    let played = Stage::new(command).task(INPUT).secret("db", "DB", SECRET).play().await;
    assert_eq!(played.ended.output, Some(Payload::Inline(json!({"token": "***"}))), "{}", played.log);
}

#[tokio::test]
async fn a_large_output_goes_by_reference() {
    let played = Stage::new(LARGE_OUTPUT).task(INPUT).play().await;
    played.assert_exit(0);
    assert_eq!(played.ended.output, Some(Payload::Blob { key: "k".to_owned(), bytes: 300_002 }), "{}", played.log);
    assert_eq!(played.blobs[0].len(), 300_002);
}

#[tokio::test]
async fn security_29_a_large_output_has_reserved_its_memory() {
    let played = Stage::new(LARGE_OUTPUT).task(INPUT).play().await;
    // Its file and its masked text, or that text and what is sent.
    assert!(played.reserved_bytes >= 2 * 300_002, "{} bytes", played.reserved_bytes);
}

#[tokio::test]
async fn the_lease_is_kept_while_a_large_output_is_stored() {
    let mut stage = Stage::new(LARGE_OUTPUT).task(INPUT);
    stage.extends_before_put = 3;
    let played = stage.play().await;
    assert!(matches!(played.assert_exit(0).ended.output, Some(Payload::Blob { .. })), "{}", played.log);
}

#[tokio::test]
async fn a_put_that_was_not_answered_is_made_anew() {
    let mut stage = Stage::new(LARGE_OUTPUT).task(INPUT);
    stage.unanswered_puts = 2;
    let played = stage.play().await;
    assert!(matches!(played.assert_exit(0).ended.output, Some(Payload::Blob { .. })), "{}", played.log);
    assert_eq!(played.blobs.len(), 1);
}

#[tokio::test]
async fn the_usage_of_a_large_output_is_carried_with_the_end() {
    let command = "printf '{\"usage\":{\"inputTokens\":7},\"x\":\"' > \"$RUNVOY_OUTPUT\"; head -c 300000 /dev/zero | tr '\\0' x >> \"$RUNVOY_OUTPUT\"; \
                   printf '\"}' >> \"$RUNVOY_OUTPUT\"";
    let played = Stage::new(command).task(INPUT).play().await;
    assert!(matches!(played.ended.output, Some(Payload::Blob { .. })), "{}", played.log);
    assert_eq!(played.ended.usage, Some(json!({"inputTokens": 7})));
}

#[tokio::test]
async fn an_output_that_cannot_be_used_is_told_and_the_task_is_done() {
    for (command, says) in [
        ("echo '{' > \"$RUNVOY_OUTPUT\"", "it is not JSON"),
        (": > \"$RUNVOY_OUTPUT\"", "it is empty"),
        ("truncate -s 20M \"$RUNVOY_OUTPUT\"", "larger than 16777216 bytes"),
        ("ln -s /etc/passwd \"$RUNVOY_OUTPUT\"", "not an ordinary file"),
        ("mkfifo \"$RUNVOY_OUTPUT\"", "not an ordinary file"),
    ] {
        let played = Stage::new(command).task(INPUT).play().await;
        played.assert_exit(0);
        assert_eq!(played.ended.output, None);
        let told: Vec<&str> = played.log.lines().filter(|line| line.contains("the task has no output")).collect();
        assert!(told.len() == 1 && told[0].contains(says), "{command}: {}", played.log);
        assert!(played.log.trim_end().lines().last().is_some_and(|line| line.contains("exit code 0")), "{}", played.log);
        assert!(played.ended.remark.as_ref().is_some_and(|remark| remark.contains(says)), "{:?}", played.ended.remark);
    }
}

#[tokio::test]
async fn a_task_that_gives_no_output_is_told_nothing_of_it() {
    let played = Stage::new("true").task(INPUT).play().await;
    played.assert_exit(0);
    assert_eq!((&played.ended.output, &played.ended.remark), (&None, &None));
    assert!(!played.log.contains("output"), "{}", played.log);
}

#[tokio::test]
async fn a_plain_execution_has_neither_input_nor_output_and_says_nothing_of_them() {
    let played =
        Stage::new("env | grep -c -e RUNVOY_INPUT -e RUNVOY_OUTPUT -e RUNVOY_JOB; env | grep -o '^RUNVOY_ERROR'; true").play().await;
    played.assert_exit(0);
    assert!(played.log.contains("out: 0\nout: RUNVOY_ERROR\n"), "{}", played.log);
    assert!(!played.log.contains("no output"), "{}", played.log);
}

#[tokio::test]
async fn a_command_says_what_kind_of_failure_it_was() {
    let command =
        "printf '{\"category\":\"rate-limit\",\"message\":\"ask %s later\",\"retryAfter\":7}' \"$DB\" > \"$RUNVOY_ERROR\"; exit 3";
    let played = Stage::new(command).secret("db", "DB", SECRET).play().await;
    played.assert_exit(3);
    let said = played.ended.said.expect("a mark");
    assert_eq!((said.category, said.message.as_str(), said.retry_after_ms), (Category::RateLimit, "ask *** later", Some(7_000)));
    let silent = Stage::new("exit 3").play().await;
    assert!(silent.ended.said.is_none() && !silent.log.contains("RUNVOY_ERROR"), "{}", silent.log);
    let fine = Stage::new("echo '{\"category\":\"auth\"}' > \"$RUNVOY_ERROR\"").play().await;
    assert!(fine.assert_exit(0).ended.said.is_none(), "what succeeded failed of nothing");
}

#[tokio::test]
async fn a_word_about_a_failure_that_is_not_understood_is_told() {
    let played = Stage::new("echo '{\"category\":\"weather\"}' > \"$RUNVOY_ERROR\"; exit 3").play().await;
    played.assert_exit(3);
    assert!(played.ended.said.is_none() && played.log.contains("unknown category weather; expected timeout"), "{}", played.log);
}

#[tokio::test]
async fn what_a_command_says_it_does_travels_with_the_extends() {
    // A worker reads it at each extend, so the command waits until it was heard of; the kill comes only then.
    let command = "printf '{\"type\":\"step_running\",\"stepName\":\"%s\"}' \"$DB\" > \"$RUNVOY_ACTIVITY\"; echo said; sleep 0.5; echo heard; sleep 60";
    let mut stage = Stage::new(command).secret("db", "DB", SECRET);
    stage.kill_at = Some("heard");
    let played = stage.play().await;
    assert!(
        matches!(played.outcome, Outcome::Exited { after_kill: true, .. } | Outcome::Signalled { after_kill: true, .. }),
        "{}",
        played.log
    );
    assert_eq!(played.activities, [json!({"type": "step_running", "stepName": "***"})]);
}

#[tokio::test]
async fn a_repository_s_command_finds_its_files_beside_the_repository() {
    let server = crate::server::GitServer::start().await;
    server.fill(&[&[("a", "1")]]);
    let command = "pwd; cat \"$RUNVOY_INPUT\"; echo; echo 5 > \"$RUNVOY_OUTPUT\"";
    let mut stage = Stage::new(command).task(INPUT).repo(&format!("{}/public/a.git", server.url));
    stage.git.ca_file = Some(server.ca_file.clone());
    let played = stage.play().await;
    played.assert_exit(0);
    assert!(played.log.contains(&format!("out: {INPUT}\n")) && played.log.contains("/repo\n"), "{}", played.log);
    assert_eq!(played.ended.output, Some(Payload::Inline(json!(5))));
}
