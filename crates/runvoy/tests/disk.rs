//! A disk that is full or fails: nothing acknowledged is lost, nothing is acknowledged that is not stored.

mod harness;

use std::path::Path;
use std::process::Command;

use serde_json::json;

use self::harness::{Setup, count, eventually, promise};

/// A small file system of its own, gone with the value.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(dir.path()).status();
        assert!(mounted.expect("mount runs").success(), "this test mounts a tmpfs and needs to be root");
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.dir.path()).status().ok();
    }
}

#[test]
fn promise_07_a_full_disk_loses_nothing_and_heals_by_itself() {
    let rounds = count(2, 100);
    let disk = SmallDisk::mount("32m");
    let data = disk.path().join("data");
    let server = Setup::default().env("RUNVOY_DISK_RESERVE_BYTES", "4MiB").start_in(&data);
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let ballast = disk.path().join("ballast");
        let filled = Command::new("dd").args(["if=/dev/zero", "bs=64k", "status=none"]).arg(format!("of={}", ballast.display())).output();
        assert!(!filled.expect("dd runs").status.success(), "the disk is not full");
        let refused = server.http().post("/api/v1/run", &json!({"command": "echo full"}));
        assert_eq!(refused.status, 503, "{}", refused.text());
        std::fs::remove_file(&ballast).expect("space again");
        eventually("submits are taken again", || {
            let answer = server.http().post("/api/v1/run", &json!({"command": format!("echo {round}")}));
            if answer.status == 202 {
                acknowledged.push(answer.json()["execution_id"].as_str().expect("an id").to_owned());
            }
            answer.status == 202
        });
    }
    for id in &acknowledged {
        assert_eq!(server.wait(id)["status"], "SUCCEEDED");
    }
    promise(7, "a full disk loses nothing and heals by itself", format!("{rounds} times full"), "0 lost");
}

#[test]
fn promise_08_after_a_failed_fsync_nothing_is_acknowledged() {
    let places: Vec<usize> = if count(0, 1) == 1 { (1..=50).collect() } else { vec![2, 7, 9, 12] };
    let mut served = 0;
    for nth in &places {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = dir.path().join("data");
        // The first start makes the store; the second one is the one whose disk fails.
        let mut server = Setup::default().start_in(&data);
        server.stop();
        let inject = format!("inject=fdatasync,fsync:error=EIO:when={nth}+");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", &inject];
        let setup = Setup { wrapper: strace.iter().map(|word| (*word).to_owned()).collect(), ..Setup::default() };
        // A server that cannot even start on such a disk has acknowledged nothing.
        let Ok(mut server) = setup.try_start_in(&data) else { continue };
        served += 1;
        let mut acknowledged = Vec::new();
        let mut http = server.http();
        let mut refused = 0;
        for _ in 0..400 {
            match http.try_post("/api/v1/run", &json!({"command": "true"}), &[]) {
                Ok(answer) if answer.status == 202 => {
                    assert_eq!(refused, 0, "it acknowledged again after a failed fsync");
                    acknowledged.push(answer.json()["execution_id"].as_str().expect("an id").to_owned());
                }
                Ok(_) | Err(_) => refused += 1,
            }
            if refused > 3 || server.ended().is_some() {
                break;
            }
        }
        assert!(refused > 0 || server.ended().is_some(), "no fsync was made to fail");
        server.kill_9();
        let server = Setup::default().start_in(&data);
        for id in &acknowledged {
            assert_eq!(server.get(&format!("/api/v1/executions/{id}/status")).status, 200, "an acknowledged execution is gone");
        }
    }
    assert!(served > 0, "no server came far enough to be tested");
    let what = format!("{} places, {served} after the start", places.len());
    promise(8, "after a failed fsync nothing is acknowledged", what, "0 retried, 0 lost");
}
