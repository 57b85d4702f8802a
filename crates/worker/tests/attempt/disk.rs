//! What a command wrote on a disk with nothing left: a stop for it is heard while the attempt
//! prepares, runs and ends.

use std::time::Duration;

use runvoy_model::command::Outcome;
use runvoy_worker::DiskLimits;

use crate::exchange::LARGE_OUTPUT;
use crate::stage::Stage;

const MIB: u64 = 1 << 20;

/// A command that sleeps over so much, which is seen whole or not at all: only what is right in the work directory counts here.
fn writes(size: &str) -> String {
    format!("mkdir in; head -c {size} /dev/zero > in/file; mv in/file .; exec sleep 1000")
}

/// Plays a command under these limits.
async fn play(command: &str, disk: DiskLimits) -> (Outcome, bool, String) {
    let mut stage = Stage::new(command);
    stage.disk = disk;
    let played = stage.play().await;
    (played.outcome, played.was_clean_at_end, played.log)
}

#[tokio::test]
async fn the_largest_writer_is_stopped_when_the_disk_is_nearly_full() {
    let disk = DiskLimits { limit_bytes: None, keep_free_bytes: 4 * MIB };
    let (outcome, was_clean, log) = play(&writes("2M"), disk).await;
    let Outcome::OutOfDisk { message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("disk full: it wrote 2.0 MiB") && log.contains(&message), "{message}\n{log}");
    assert!(was_clean, "its files were gone before its end was told");
}

#[tokio::test]
async fn a_command_over_its_disk_limit_is_stopped() {
    let disk = DiskLimits { limit_bytes: Some(MIB), keep_free_bytes: 0 };
    let (outcome, ..) = play(&writes("3M"), disk).await;
    let Outcome::OutOfDisk { message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("it wrote 3.0 MiB to disk, and its limit is 1.0 MiB"), "{message}");
}

/// The largest writer is stopped whatever it wrote.
const NOTHING_MAY_BE_WRITTEN: DiskLimits = DiskLimits { limit_bytes: None, keep_free_bytes: 4 };

fn is_disk_full(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::OutOfDisk { message } if message.contains("disk full: it wrote"))
}

#[tokio::test]
async fn a_disk_stop_is_heard_while_secrets_are_waited_for() {
    let mut stage = Stage::new("true").secret("db", "DB", "s3cr3t-Pa55w0rd");
    (stage.extends_before_materials, stage.said_to_have_written) = (usize::MAX, Some(MIB));
    stage.disk = NOTHING_MAY_BE_WRITTEN;
    let played = stage.play().await;
    assert!(is_disk_full(&played.outcome) && played.starts == 0, "{:?}", played.outcome);
}

#[tokio::test]
async fn a_disk_stop_is_heard_in_the_grace_period_of_a_kill() {
    let command = "trap 'head -c 2M /dev/zero > file' TERM; echo ready; while :; do sleep 0.1; done";
    let mut stage = Stage::new(command);
    (stage.kill_at, stage.grace) = (Some("ready"), Duration::from_secs(1_000));
    stage.disk = DiskLimits { limit_bytes: Some(MIB), keep_free_bytes: 0 };
    let played = stage.play().await;
    assert_eq!(played.outcome, Outcome::Signalled { signal: 9, after_kill: true }, "{}", played.log);
}

#[tokio::test]
async fn a_disk_stop_is_heard_while_an_output_waits_to_be_kept() {
    let mut stage = Stage::new(LARGE_OUTPUT).task("{}");
    (stage.extends_before_put, stage.disk) = (usize::MAX / 2, NOTHING_MAY_BE_WRITTEN);
    let played = stage.play().await;
    assert!(is_disk_full(&played.outcome), "{:?}\n{}", played.outcome, played.log);
    assert!(played.was_clean_at_end && played.blobs.is_empty(), "its files were gone before its end was told");
}

#[tokio::test]
async fn a_kill_is_heard_while_an_output_waits_to_be_kept() {
    let mut stage = Stage::new(LARGE_OUTPUT).task("{}");
    (stage.extends_before_put, stage.kill_in_put) = (usize::MAX / 2, true);
    let played = stage.play().await;
    let Outcome::OutputFailed { message } = &played.outcome else { panic!("{:?}\n{}", played.outcome, played.log) };
    assert_eq!(message, "ana@example.com killed it before its output was stored");
}

#[tokio::test]
async fn a_disk_stop_is_heard_while_the_end_waits_to_be_told() {
    let mut stage = Stage::new("head -c 3M /dev/zero > file");
    (stage.end_waits_for_space, stage.disk) = (true, DiskLimits { limit_bytes: Some(MIB), keep_free_bytes: 0 });
    assert!(stage.play().await.was_clean_at_end, "its files were gone before its end was told");
}
