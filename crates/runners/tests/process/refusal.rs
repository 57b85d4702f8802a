//! What cannot be started is refused in words that a person understands, and nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use runvoy_ports::runner::{Containment, ExitStatus, Start};
use runvoy_runners::{Config, ProcessRunner, User};

use crate::stage::{ALL, Stage, cgroups_with, config, nobody};

async fn assert_refused(stage: &Stage, start: Start, expected: &str) {
    let name = format!("{}-1", start.execution);
    let error = stage.refused(start).await;
    assert!(error.message.contains(expected), "{error}");
    assert!(!stage.work_root().join(&name).exists(), "the work directory is gone: {error}");
    assert!(cgroups_with(&name).is_empty(), "the cgroup is gone: {error}");
}

#[tokio::test]
async fn a_missing_program_is_named_on_every_rung() {
    for containment in ALL {
        let stage = Stage::of(containment).await;
        assert_refused(&stage, stage.program(&["no-such-tool", "x"]), "no-such-tool: not found in PATH (/usr/sbin:").await;
        assert_refused(&stage, stage.program(&["/no/such/tool"]), "/no/such/tool: not found").await;
        assert_eq!(stage.run("echo next").await.0, "next\n", "{containment:?}");
    }
}

#[tokio::test]
async fn a_missing_shell_is_told_with_a_way_out() {
    let stage = Stage::new().await;
    let mut start = stage.shell("true");
    start.env.insert("PATH".to_owned(), "/nonexistent".to_owned());
    assert_refused(&stage, start, "sh: not found in PATH (/nonexistent): shell commands need a shell").await;
    assert_refused(&stage, stage.program(&["/nonexistent/sh", "-c", "true"]), "/nonexistent/sh: not found: shell commands").await;
}

#[tokio::test]
async fn what_is_no_program_is_told() {
    let stage = Stage::new().await;
    let file = |name: &str, text: &str, mode| {
        let path = stage.root.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    assert_refused(&stage, stage.program(&[&file("plain", "#!/bin/sh\n", 0o644)]), "permission denied").await;
    assert_refused(&stage, stage.program(&[&file("headless", "echo hi\n", 0o755)]), "a script needs a first line").await;
    assert_refused(&stage, stage.program(&[&file("lost", "#!/no/such/interpreter\n", 0o755)]), "interpreter").await;
    assert_refused(&stage, stage.program(&["/tmp"]), "permission denied").await;
    assert_refused(&stage, stage.program(&["true", &"x".repeat(200_000)]), "too long").await;
    assert_refused(&stage, stage.program(&[]), "empty").await;
    assert_refused(&stage, stage.program(&["true", "a\0b"]), "NUL").await;
}

#[tokio::test]
async fn a_work_root_that_vanished_is_told() {
    let stage = Stage::new().await;
    fs::remove_dir_all(stage.work_root()).unwrap();
    assert_refused(&stage, stage.shell("true"), "could not be created: no such file or directory").await;
}

#[tokio::test]
async fn a_work_root_that_cannot_be_made_is_told() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let error = ProcessRunner::new(Config { work_root: root.path().join("file/work"), ..config(root.path()) }).await.err().unwrap();
    assert!(error.message.contains("work root") && error.message.contains("file/work"), "{error}");
}

struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        Command::new("umount").args(["-l".as_ref(), self.0.as_os_str()]).status().expect("umount is installed");
    }
}

#[tokio::test]
async fn a_full_or_read_only_disk_is_told() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path().join("work");
    fs::create_dir(&work).unwrap();
    let mount =
        |options: &str| assert!(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&work).status().unwrap().success());
    mount("size=64k,nr_inodes=4");
    let _mounted = Mounted(&work);
    let settings = config(root.path());
    let stage = Stage { runner: ProcessRunner::new(settings).await.unwrap(), root: tempfile::tempdir().unwrap(), mark: "full".to_owned() };
    while fs::write(work.join(format!("filler-{}", fs::read_dir(&work).unwrap().count())), "").is_ok() {}
    let error = stage.refused(stage.shell("true")).await;
    assert!(error.message.contains("the disk is full"), "{error}");
    mount("remount,ro");
    let error = stage.refused(stage.shell("true")).await;
    assert!(error.message.contains("read-only"), "{error}");
}

#[tokio::test]
async fn a_spawner_that_cannot_be_started_is_told() {
    let root = tempfile::tempdir().unwrap();
    for (program, expected) in [("/no/such/spawner", "could not be started"), ("/bin/true", "did not get ready")] {
        let error = ProcessRunner::new(Config { spawner_program: program.into(), ..config(root.path()) }).await.err().unwrap();
        assert!(error.message.contains(program) && error.message.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn an_instance_name_that_is_a_path_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for instance in ["", "..", "a/b", "a b"] {
        let error = ProcessRunner::new(Config { instance: instance.to_owned(), ..config(root.path()) }).await.err().unwrap();
        assert!(error.message.contains("instance name"), "{error}");
    }
}

#[tokio::test]
async fn the_same_attempt_is_not_started_twice() {
    let stage = Stage::new().await;
    let start = stage.shell("true");
    let again = start.clone();
    let (execution, started) = (start.execution, runvoy_ports::runner::Runner::start(&stage.runner, start).await.unwrap());
    assert!(stage.refused(again.clone()).await.message.contains("started here before"));
    assert_eq!(started.exit.await.unwrap().status, ExitStatus::Code(0));
    runvoy_ports::runner::Runner::clean_up(&stage.runner, execution, 1).await;
    assert_eq!(stage.run_start(again).await.1.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_user_is_refused_that_an_unprivileged_worker_cannot_become() {
    crate::stage::need_root();
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = config(root.path());
    let program = root.path().join("spawner");
    fs::copy(&settings.spawner_program, &program).unwrap();
    settings.spawner_program = "/usr/bin/setpriv".into();
    settings.spawner_args = vec!["--reuid=12345".to_owned(), "--clear-groups".to_owned(), program.display().to_string()];
    settings.user = User::One(nobody());
    settings.containment = Some(Containment::Weak);
    let error = ProcessRunner::new(settings).await.err().unwrap();
    assert!(error.message.contains("only root can change users"), "{error}");
}
