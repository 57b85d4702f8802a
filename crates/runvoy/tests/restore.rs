//! Backups and restores that were cut off: never taken for whole ones, and repeated without ado.

mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use self::harness::http::Http;
use self::harness::{Server, Setup, binary};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn backup(server: &Server, to: &Path) -> Output {
    server.cli(&["backup", to.to_str().expect("a path"), "--data-dir", server.data.to_str().expect("a path")])
}

/// A backup with one execution in it.
struct Made {
    copy: PathBuf,
    id: String,
    key: String,
}

fn made(dir: &Path) -> Made {
    let server = Server::start();
    let id = server.run("echo kept");
    server.wait(&id);
    let copy = dir.join("copy");
    let output = backup(&server, &copy);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Made { copy, id, key: server.key() }
}

/// Restores; with a call of the system, at its so-manieth time it is killed there.
fn restore(copy: &Path, data: &Path, cut_off: Option<(&str, usize)>) -> Output {
    let mut words = Vec::new();
    if let Some((call, nth)) = cut_off {
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        words.extend(["strace", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject].map(str::to_owned));
    }
    words.push(binary().to_owned());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("restore").arg(copy).arg("--data-dir").arg(data).output().expect("it runs")
}

#[test]
fn a_restored_backup_has_a_whole_trail() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (data, copy, restored) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("restored"));
    // Each life leaves a checkpoint.
    for _ in 0..2 {
        let mut server = Setup::default().start_in(&data);
        server.wait(&server.run("true"));
        server.stop();
    }
    let server = Setup::default().start_in(&data);
    let output = backup(&server, &copy);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = restore(&copy, &restored, None);
    let said = text(&output.stderr);
    assert!(said.contains("restored") && said.contains("runvoy serve --data-dir"), "{said}");
    let verified = server.cli(&["audit", "verify", "--data-dir", restored.to_str().expect("a path")]);
    assert_eq!(verified.status.code(), Some(0), "{}{}", text(&verified.stdout), text(&verified.stderr));
}

#[test]
fn a_backup_is_of_the_named_data_directory_or_refused_and_starts_no_server() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start();
    let copy = dir.path().join("copy");
    let to = copy.to_str().expect("a path");
    // The harness names its server in RUNVOY_API_ENDPOINT.
    let refused = server.cli(&["backup", to]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("on the server's machine"), "{}", text(&refused.stderr));
    let nobody = dir.path().join("nobody");
    let none = server.cli(&["backup", to, "--data-dir", nobody.to_str().expect("a path")]);
    assert_eq!(none.status.code(), Some(1), "{}", text(&none.stderr));
    assert!(text(&none.stderr).contains("no server runs"), "{}", text(&none.stderr));
    assert!(!copy.exists() && !nobody.exists() && !server.data.join("home/.runvoy").exists());
}

#[test]
fn a_restore_can_be_repeated_wherever_it_was_cut_off() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Made { copy, id, key } = made(dir.path());
    let mut cuts = 0;
    for call in ["rename", "fsync", "unlink"] {
        for nth in 1.. {
            let data = dir.path().join(format!("{call}-{nth}"));
            if restore(&copy, &data, Some((call, nth))).status.success() {
                break;
            }
            cuts += 1;
            if data.join("restoring").exists() {
                let said = Setup::default().try_start_in(&data).err().expect("no server starts in half a restore");
                assert!(said.contains("restore"), "{said}");
            }
            // Cut off at its last step it is whole, and then it is refused like every other that is there already.
            let again = restore(&copy, &data, None);
            let whole = !again.status.success();
            assert!(!whole || text(&again.stderr).contains("exists already"), "{call} {nth}: {}", text(&again.stderr));
            let server = Setup::default().start_in(&data);
            let raw = Http::new(&server.url, Some(&key)).get(&format!("/api/v1/executions/{id}/logs?format=raw"));
            assert_eq!(raw.text(), "kept\n", "{call} {nth}");
        }
    }
    assert!(cuts > 5, "only {cuts} places were tried");
}

#[test]
fn a_restore_never_takes_the_place_of_anything() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let copy = made(dir.path()).copy;
    for name in ["runvoy.db", "logs", "runvoy.db-wal"] {
        let data = dir.path().join(format!("with-{name}"));
        std::fs::create_dir(&data).expect("made");
        std::fs::write(data.join(name), "mine").expect("written");
        let output = restore(&copy, &data, None);
        assert!(!output.status.success() && text(&output.stderr).contains(name), "{}", text(&output.stderr));
        assert_eq!(std::fs::read(data.join(name)).expect("it is there"), b"mine");
    }
}

#[test]
fn a_backup_that_was_cut_off_is_none_and_makes_room_for_the_next() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start();
    let (copy, partial) = (dir.path().join("copy"), dir.path().join("copy.partial"));
    std::fs::create_dir_all(partial.join("keys")).expect("made");
    std::fs::write(partial.join("runvoy.db"), "half").expect("written");
    assert!(!restore(&partial, &dir.path().join("data"), None).status.success());
    let output = backup(&server, &copy);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(copy.join("runvoy.db").exists() && !partial.exists());
    // What only has the name is not ours to remove.
    let (copy, partial) = (dir.path().join("other"), dir.path().join("other.partial"));
    std::fs::create_dir(&partial).expect("made");
    std::fs::write(partial.join("novel.txt"), "chapter one").expect("written");
    let output = backup(&server, &copy);
    assert!(output.status.code() != Some(0) && text(&output.stderr).contains("is left from an earlier backup"), "{}", text(&output.stderr));
    assert!(partial.join("novel.txt").exists() && !copy.exists());
}
