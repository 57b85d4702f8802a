//! What a command wrote on a disk with nothing left.

use runvoy_model::command::Outcome;
use runvoy_worker::DiskLimits;

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
    let (outcome, was_clean, _) = play(&writes("3M"), disk).await;
    let Outcome::OutOfDisk { message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("it wrote 3.0 MiB to disk, and its limit is 1.0 MiB"), "{message}");
    assert!(!was_clean, "there is no hurry");
}
