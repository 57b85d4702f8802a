//! Secrets reach the command and nothing else.

use runvoy_model::command::Outcome;
use runvoy_model::retry::Category;

use crate::stage::Stage;

const SECRET: &str = "s3cr3t-Pa55/w0rd+x";

#[tokio::test]
async fn a_secret_reaches_its_command_and_no_log_in_any_form() {
    let command = "printf '%s' \"$DB_PASSWORD\" | wc -c; echo \"out $DB_PASSWORD\"; echo \"err $DB_PASSWORD\" >&2; \
        printf %s \"user:$DB_PASSWORD\" | base64; printf %s \"$DB_PASSWORD\" | od -An -tx1 | tr -d ' \\n'; echo; env | grep DB_; set -x; : \"$DB_PASSWORD\"";
    let played = Stage::new(command).secret("db", "DB_PASSWORD", SECRET).play().await;
    played.assert_exit(0);
    assert!(played.log.contains(&format!("out: {}\n", SECRET.len())), "{}", played.log);
    assert!(played.log.contains("out: out ***\n") && played.log.contains("err: err ***\n"), "{}", played.log);
    assert!(played.log.contains("out: DB_PASSWORD=***\n"), "{}", played.log);
    for leak in [SECRET, "s3cr3t-Pa5", "czNjcjN0", "M2NyM3Qt", "733363723374"] {
        assert!(!played.log.contains(leak), "{leak}: {}", played.log);
    }
}

#[tokio::test]
async fn the_key_of_the_worker_reaches_no_log() {
    const KEY: &str = "rv_0123456789abcdef";
    let plain = Stage::new("echo found rv_0123456789abcdef");
    let with_secret = Stage::new("echo found rv_0123456789abcdef; echo $DB_PASSWORD").secret("db", "DB_PASSWORD", SECRET);
    for mut stage in [plain, with_secret] {
        stage.own_key = Some(KEY);
        let played = stage.play().await;
        played.assert_exit(0);
        assert!(played.log.contains("out: found ***\n") && !played.log.contains(KEY), "{}", played.log);
        assert!(!played.log.contains(SECRET), "{}", played.log);
    }
}

#[tokio::test]
async fn a_secret_written_in_two_parts_with_a_silence_between_is_masked() {
    let command = "printf %s \"${DB_PASSWORD%??????}\"; sleep 0.5; printf '%s\\n' \"${DB_PASSWORD#????????????}\"";
    let played = Stage::new(command).secret("db", "DB_PASSWORD", SECRET).play().await;
    played.assert_exit(0);
    assert!(played.log.contains("out: ***\n") && !played.log.contains("s3cr3t"), "{}", played.log);
}

#[tokio::test]
async fn a_command_that_ends_within_a_secret_shows_none_of_it() {
    let played = Stage::new("printf %s \"${DB_PASSWORD%??????}\"").secret("db", "DB_PASSWORD", SECRET).play().await;
    played.assert_exit(0);
    assert!(played.log.contains("out: ***\n") && !played.log.contains("s3cr3t"), "{}", played.log);
}

#[tokio::test]
async fn the_users_own_variable_comes_before_a_secret_and_the_platforms_before_both() {
    let stage = Stage::new("echo $A $RUNVOY_USER").env("A", "mine");
    let played = stage.secret("a", "A", "the-secret-a").secret("u", "RUNVOY_USER", "somebody-else").play().await;
    assert!(played.log.contains("out: mine ana@example.com\n"), "{}", played.log);
}

#[tokio::test]
async fn a_short_secret_is_told_by_name() {
    let played = Stage::new("echo $PIN").secret("pin-code", "PIN", "1").play().await;
    played.assert_exit(0);
    assert!(played.log.contains("platform: ### runvoy: secret pin-code is too short to be masked"), "{}", played.log);
}

#[tokio::test]
async fn without_its_secrets_nothing_starts() {
    let mut stage = Stage::new("true").secret("db", "DB", SECRET);
    stage.materials = Err("secret db was deleted".to_owned());
    let played = stage.play().await;
    assert_eq!(played.outcome, Outcome::Refused { message: "secret db was deleted".to_owned(), category: Category::Auth });
    assert_eq!(played.starts, 0);
}

#[tokio::test]
async fn what_nobody_knows_any_more_is_not_started() {
    let played = Stage::new("").play().await;
    assert_eq!(played.outcome, Outcome::StartFailed { message: "its spec is lost".to_owned(), exit_code: None });
    assert_eq!(played.starts, 0);
}

#[tokio::test]
async fn the_lease_is_kept_while_secrets_are_waited_for() {
    let mut stage = Stage::new("echo \"$DB\"").secret("db", "DB", SECRET);
    stage.extends_before_materials = 3;
    let played = stage.play().await;
    played.assert_exit(0);
    assert!(played.log.contains("out: ***\n"), "{}", played.log);
}

#[tokio::test]
async fn a_kill_is_heard_while_secrets_are_waited_for() {
    let mut stage = Stage::new("true").secret("db", "DB", SECRET);
    (stage.extends_before_materials, stage.kill_at) = (usize::MAX, Some(""));
    let played = stage.play().await;
    assert!(played.was_ended_before_its_start(), "{:?}", played.outcome);
    assert_eq!(played.starts, 0);
}

#[tokio::test]
async fn a_large_secret_of_many_lines_reaches_its_command_and_no_log() {
    let lines: Vec<String> = (0..1_100usize).map(|n| format!("{:058x}", n * n * 7_919 + 0xabc_def0)).collect();
    let large = lines.join("\n");
    let command = "printf %s \"$CERT\" | wc -c; echo \"<$CERT>\"; printf %s \"$CERT\" | base64";
    let played = Stage::new(command).secret("cert", "CERT", &large).play().await;
    played.assert_exit(0);
    assert!(played.log.contains(&format!("out: {}\n", large.len())), "{}", played.log);
    assert!(played.log.contains("platform: ### runvoy: secret cert is long"), "{}", played.log);
    let shown: Vec<&str> = played.log.lines().filter_map(|line| line.strip_prefix("out: ")).collect();
    assert_eq!(shown[1..], ["<***>", "***"], "{shown:?}");
}

#[tokio::test]
async fn more_secrets_than_can_be_masked_are_refused() {
    let mut stage = Stage::new("true");
    for n in 0..5 {
        stage = stage.secret(&format!("s{n}"), &format!("S{n}"), &"0123456789abcdef".repeat(4 << 10));
    }
    let played = stage.play().await;
    let Outcome::Refused { message, category: Category::Validation } = &played.outcome else { panic!("{:?}", played.outcome) };
    assert!(message.contains("too much to mask"), "{message}");
    assert_eq!(played.starts, 0);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_without_the_secret_in_its_name() {
    let mut stage = Stage::new(&format!("/nonexistent/{SECRET}")).secret("db", "DB", SECRET);
    stage.spec.args = Some(Vec::new());
    let played = stage.play().await;
    assert!(matches!(played.outcome, Outcome::StartFailed { .. }));
    assert!(!played.log.contains(SECRET) && !format!("{:?}", played.outcome).contains(SECRET), "{}", played.log);
}
