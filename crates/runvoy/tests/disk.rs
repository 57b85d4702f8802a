//! A disk that is full or fails: nothing acknowledged is lost, nothing is acknowledged that is not stored.

mod harness;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use self::harness::http::Http;
use self::harness::{Server, Setup, count, eventually, promise};

/// A small file system of its own, gone with the value.
struct SmallDisk {
    dir: tempfile::TempDir,
}

/// Says that a proof is not run here, which in CI is a failure.
fn not_run(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "not run, and CI must run it: {why}");
    eprintln!("not run: {why}");
}

impl SmallDisk {
    /// A tmpfs; `None` where this process may not mount one.
    fn mount(size: &str) -> Option<Self> {
        Self::mount_with(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
    }

    /// Of each kind that this machine can make: tmpfs, ext4 and xfs, without anything that only root may use.
    fn each(mib: u64) -> Vec<(&'static str, Self)> {
        let tmpfs = Self::mount(&format!("{mib}m")).map(|disk| ("tmpfs", disk));
        let ext4 = Self::on_loop(&["mkfs.ext4", "-q", "-m", "0"], mib).map(|disk| ("ext4", disk));
        // The smallest xfs is larger. Not every kernel has it.
        let kernel = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let has_xfs = kernel.contains("\txfs\n") && Command::new("mkfs.xfs").arg("-V").output().is_ok();
        let xfs = if has_xfs { Self::on_loop(&["mkfs.xfs", "-q"], mib.max(320)) } else { None };
        [tmpfs, ext4, xfs.map(|disk| ("xfs", disk))].into_iter().flatten().collect()
    }

    /// A file system in a file; `None` where this machine cannot make or mount it.
    fn on_loop(make: &[&str], mib: u64) -> Option<Self> {
        let image = tempfile::NamedTempFile::new().expect("a file");
        image.as_file().set_len(mib << 20).expect("a sparse file");
        let made = Command::new(make[0]).args(&make[1..]).arg(image.path()).status();
        if !made.is_ok_and(|status| status.success()) {
            not_run(&format!("{} does not work here", make[0]));
            return None;
        }
        Self::mount_with(&["-o", "loop", image.path().to_str().expect("text")])
    }

    fn mount_with(args: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mounted = Command::new("mount").args(args).arg(dir.path()).output().expect("mount runs");
        if !mounted.status.success() {
            not_run(&format!("mount {}: {}", args.join(" "), String::from_utf8_lossy(&mounted.stderr).trim()));
            return None;
        }
        Some(Self { dir })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes every block there is.
    fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).expect("a file");
        for block in [vec![0; 1 << 20], vec![0; 4096]] {
            while file.write_all(&block).is_ok() {}
        }
        ballast
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
    let Some(disk) = SmallDisk::mount("32m") else { return };
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

/// A server with 8 MiB of its disk kept free.
fn careful() -> Setup {
    Setup::default().env("RUNVOY_DISK_RESERVE_BYTES", "8MiB").arg("--allow-shared-uid")
}

/// A second user; their key.
fn bob(server: &Server) -> String {
    let invited = server.http().post("/api/v1/users/create", &json!({"email": "bob@example.com", "role": "viewer", "confirm": true}));
    let token = invited.json()["claim_token"].as_str().unwrap_or_else(|| panic!("no token: {}", invited.text())).to_owned();
    let claimed = Http::new(&server.url, None).post(&format!("/api/v1/claim/{token}"), &json!({}));
    claimed.json()["api_key"].as_str().unwrap_or_else(|| panic!("no key: {}", claimed.text())).to_owned()
}

/// The status of what a key gets.
fn status_with(server: &Server, key: &str) -> u16 {
    Http::new(&server.url, Some(key)).get("/api/v1/whoami").status
}

/// Waits until the server is ready and runs something to its end.
fn assert_healed(server: &Server) {
    eventually("the server is ready again", || server.get("/readyz").status == 200);
    let id = server.run("echo healed");
    assert_eq!(server.wait(&id)["status"], "SUCCEEDED");
    assert_eq!(server.raw(&id), b"healed\n");
}

#[test]
fn promise_07_on_a_disk_with_nothing_left_everything_can_end() {
    let disks = SmallDisk::each(96);
    if disks.is_empty() {
        return;
    }
    let kinds: Vec<&str> = disks.iter().map(|(kind, _)| *kind).collect();
    for (kind, disk) in &disks {
        let data = disk.path().join("data");
        let outside = tempfile::tempdir().expect("a temporary directory");
        let flag = outside.path().join("go");
        let mut server = careful().start_in(&data);
        let bob = bob(&server);
        assert_eq!(status_with(&server, &bob), 200);
        // Makes the client's home while there is room.
        assert!(server.cli(&["whoami"]).status.success());
        let held = server.run_with(json!({"command": "exec sleep 1000", "lock": "prod"}));
        let left = server.run("exec sleep 1000");
        let ends = server.run(&format!("until test -e {}; do sleep 0.05; done", flag.display()));
        for id in [&held, &left, &ends] {
            server.wait_until(id, "RUNNING");
        }
        let ballast = disk.fill();

        let refused = server.http().post("/api/v1/run", &json!({"command": "echo full"}));
        assert_eq!(refused.status, 503, "{kind}: {}", refused.text());
        assert!(refused.text().contains("disk full"), "{kind}: {}", refused.text());
        let said = server.cli(&["run", "echo full"]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("disk full"), "{kind}: {said:?}");
        let ready = server.get("/readyz");
        assert!(ready.status == 503 && ready.text().contains("disk"), "{kind}: {}", ready.text());
        let doctor = server.get("/api/v1/doctor");
        assert!(doctor.text().contains("disk full"), "{kind}: {}", doctor.text());

        std::fs::write(&flag, "").expect("outside there is room");
        assert_eq!(server.wait(&ends)["status"], "SUCCEEDED", "{kind}");
        let killed = server.http().post(&format!("/api/v1/executions/{held}/kill"), &json!({}));
        assert_eq!(killed.status, 200, "{kind}: {}", killed.text());
        assert_eq!(server.wait(&held)["status"], "STOPPED", "{kind}");
        assert_eq!(server.get("/api/v1/locks").json(), json!([]), "{kind}");
        let revoked = server.http().post("/api/v1/users/revoke", &json!({"email": "bob@example.com"}));
        assert_eq!(revoked.status, 200, "{kind}: {}", revoked.text());
        assert_eq!(status_with(&server, &bob), 401, "{kind}");

        server.kill_9();
        let server = careful().start_in(&data);
        assert_eq!(server.wait(&left)["end_reason"]["code"], "worker_lost", "{kind}");
        assert_eq!(server.status(&ends)["status"], "SUCCEEDED", "{kind}");
        assert_eq!(server.status(&held)["status"], "STOPPED", "{kind}");
        assert_eq!(status_with(&server, &bob), 401, "{kind}");
        std::fs::remove_file(&ballast).expect("space again");
        assert_healed(&server);
    }
    promise(7, "on a disk with nothing left everything can end", kinds.join(", "), "0 lost, ready again by itself");
}

#[test]
fn promise_07_a_disk_without_inodes_takes_no_new_work() {
    let Some(disk) = SmallDisk::mount_with(&["-t", "tmpfs", "-o", "size=256m,nr_inodes=3000", "tmpfs"]) else { return };
    let server = careful().start_in(&disk.path().join("data"));
    let left = server.run("exec sleep 1000");
    server.wait_until(&left, "RUNNING");
    let files: Vec<PathBuf> = (0..2_800).map(|number| disk.path().join(number.to_string())).collect();
    for file in &files {
        std::fs::File::create(file).expect("an inode is left");
    }
    eventually("the server is not ready", || server.get("/readyz").status == 503);
    eventually("new work is refused", || server.http().post("/api/v1/run", &json!({"command": "echo full"})).status == 503);
    let doctor = server.get("/api/v1/doctor");
    assert!(doctor.text().contains("inodes"), "{}", doctor.text());
    let killed = server.http().post(&format!("/api/v1/executions/{left}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{}", killed.text());
    assert_eq!(server.wait(&left)["status"], "STOPPED");
    files.iter().for_each(|file| std::fs::remove_file(file).expect("removed"));
    assert_healed(&server);
    promise(7, "a disk without inodes takes no new work", "tmpfs", "everything can end, ready again by itself");
}

#[test]
fn promise_07_the_command_that_fills_the_disk_is_stopped() {
    let disks = SmallDisk::each(96);
    if disks.is_empty() {
        return;
    }
    let kinds: Vec<&str> = disks.iter().map(|(kind, _)| *kind).collect();
    for (kind, disk) in &disks {
        let server = careful().start_in(&disk.path().join("data"));
        let bystander = server.run("exec sleep 1000");
        server.wait_until(&bystander, "RUNNING");
        let filler = server.run("i=0; while :; do i=$((i+1)); dd if=/dev/zero of=$i bs=64k status=none 2>/dev/null || sleep 0.01; done");
        let ended = server.wait(&filler);
        assert_eq!((&ended["status"], &ended["end_reason"]["code"]), (&json!("FAILED"), &json!("killed")), "{kind}: {ended}");
        assert!(ended["end_reason"]["message"].as_str().is_some_and(|why| why.contains("disk full: it wrote")), "{kind}: {ended}");
        assert_healed(&server);
        assert_eq!(server.status(&bystander)["status"], "RUNNING", "{kind}");
        let killed = server.http().post(&format!("/api/v1/executions/{bystander}/kill"), &json!({}));
        assert_eq!(killed.status, 200, "{kind}: {}", killed.text());
        assert_eq!(server.wait(&bystander)["status"], "STOPPED", "{kind}");
    }
    promise(7, "the command that fills the disk is stopped", kinds.join(", "), "others run on, ready again by itself");
}

#[test]
fn security_29_an_execution_over_its_disk_limit_is_stopped() {
    let server = Setup::default().env("RUNVOY_LIMIT_DISK_BYTES", "1MiB").start();
    let ended = server.wait(&server.run("head -c 3M /dev/zero > file; sync file; exec sleep 1000"));
    assert_eq!((&ended["status"], &ended["end_reason"]["code"]), (&json!("FAILED"), &json!("killed")), "{ended}");
    assert!(ended["end_reason"]["message"].as_str().is_some_and(|why| why.contains("its limit is 1.0 MiB")), "{ended}");
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
