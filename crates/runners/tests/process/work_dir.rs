//! What a command finds in its work directory, and what the next one of the same attempt does.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use runvoy_ports::runner::{ExitStatus, Runner, Start, Unread, WorkDir, WorkFile};
use runvoy_runners::User;

use crate::stage::{ALL, Stage, nobody, read_all};

fn with_file(start: Start, name: &str, contents: &[u8]) -> Start {
    Start { work_dir: WorkDir::New(vec![WorkFile { name: name.to_owned(), contents: contents.to_vec() }]), ..start }
}

#[tokio::test]
async fn a_second_command_finds_what_the_first_left_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        let first = stage.shell("mkdir -p repo/sub; echo left > repo/sub/file");
        let second =
            Start { argv: stage.shell("pwd; cat file").argv, work_dir: WorkDir::Kept, directory: "repo/sub".to_owned(), ..first.clone() };
        let started = stage.runner.start(first).await.unwrap();
        let work_dir = started.work_dir.clone();
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0), "{containment:?}");
        let (text, exit) = stage.run_start(second).await;
        assert_eq!(exit.status, ExitStatus::Code(0));
        assert_eq!(text, format!("{}/repo/sub\nleft\n", work_dir.display()), "{containment:?}");
        assert!(!work_dir.exists());
    }
}

#[tokio::test]
async fn files_belong_to_the_user_of_the_command_and_to_nobody_else() {
    let user = nobody();
    let stage = Stage::with(|config| config.user = User::One(nobody())).await;
    let contents = b"KEY='a\nb'\0\xff";
    let start = with_file(stage.shell("stat -c '%a %u %g' .env; wc -c < .env; echo more >> .env"), ".env", contents);
    let (text, exit) = stage.run_start(start).await;
    assert_eq!(text, format!("600 {} {}\n{}\n", user.uid, user.gid, contents.len()));
    assert_eq!(exit.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_file_larger_than_a_packet_arrives_whole() {
    let stage = Stage::new().await;
    let start = with_file(stage.shell("wc -c < big"), "big", &vec![7; 300_000]);
    assert_eq!(stage.run_start(start).await.0.trim(), "300000");
}

#[tokio::test]
async fn a_start_that_fails_leaves_no_file_behind() {
    let stage = Stage::new().await;
    stage.refused(with_file(stage.program(&["/nonexistent"]), ".env", b"A=1")).await;
    let left = fs::read_dir(stage.work_root()).unwrap().flatten().filter(|entry| entry.metadata().unwrap().is_dir()).count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_second_command_that_cannot_start_leaves_the_first_ones_work_alone() {
    let stage = Stage::new().await;
    let first = stage.shell("echo kept > file");
    let started = stage.runner.start(first.clone()).await.unwrap();
    let work_dir = started.work_dir.clone();
    started.exit.await.unwrap();
    let next = Start { work_dir: WorkDir::Kept, ..first.clone() };
    let error = stage.refused(Start { directory: "absent".to_owned(), ..next.clone() }).await;
    assert!(error.message.contains("directory absent of the work directory"), "{error}");
    stage.refused(Start { argv: vec!["/nonexistent".to_owned()], ..next.clone() }).await;
    assert_eq!(stage.run_start(Start { argv: stage.shell("cat file").argv, ..next }).await.0, "kept\n");
    assert!(!work_dir.exists());
}

#[tokio::test]
async fn nothing_is_started_in_a_work_directory_that_was_never_made() {
    let stage = Stage::new().await;
    let error = stage.refused(Start { work_dir: WorkDir::Kept, ..stage.shell("true") }).await;
    assert!(error.message.contains("has no work directory here"), "{error}");
}

#[tokio::test]
async fn a_file_does_not_outlive_its_attempt() {
    let stage = Stage::new().await;
    let start = with_file(stage.shell("true"), ".env", b"TOKEN=x");
    let name = format!("{}-1", start.execution);
    let inode = {
        let started = stage.runner.start(start.clone()).await.unwrap();
        read_all(started.stdout).await;
        started.exit.await.unwrap();
        fs::metadata(stage.work_root().join(&name).join(".env")).unwrap().ino()
    };
    assert!(inode > 0);
    stage.runner.clean_up(start.execution, 1).await;
    assert!(!stage.work_root().join(name).exists());
}

#[tokio::test]
async fn what_a_command_of_another_user_left_is_read_and_nothing_that_it_points_at() {
    for user in [User::One(nobody()), User::Worker] {
        let stage = Stage::with(|config| config.user = user.clone()).await;
        // A file that only the worker can read, in a place that the command can name.
        let treasure = stage.root.path().join("treasure");
        fs::write(&treasure, "gold").unwrap();
        fs::set_permissions(&treasure, fs::Permissions::from_mode(0o600)).unwrap();
        let script =
            format!("echo mine > file; ln -s {0} link; ln {0} hard 2>/dev/null; mkfifo pipe; mkdir directory; pwd", treasure.display());
        let start = stage.shell(&script);
        let (execution, attempt) = (start.execution, start.attempt);
        let started = stage.runner.start(start).await.unwrap();
        let place = String::from_utf8(read_all(started.stdout).await).unwrap();
        assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0));
        assert_eq!(stage.runner.work_dir(execution, attempt).display().to_string(), place.trim(), "as the command sees it");
        let read = async |name: &str| stage.runner.read(execution, attempt, name, 100).await;
        assert_eq!(read("file").await, Ok(b"mine\n".to_vec()));
        for name in ["link", "pipe", "directory"] {
            assert_eq!(read(name).await, Err(Unread::NotAFile), "{name}");
        }
        // Whether the link could be made at all is the system's to say.
        assert!(matches!(read("hard").await, Err(Unread::NotAFile | Unread::Missing)));
        assert_eq!(read("absent").await, Err(Unread::Missing));
        stage.runner.clean_up(execution, attempt).await;
    }
}
