//! The server that the command line starts for itself: where it runs, what it takes along, and what is told if it cannot start.

mod harness;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use self::harness::{Setup, binary, eventually, process};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The environment of somebody who has nothing configured.
fn bare(mut command: Command, home: &Path) -> Command {
    command.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn alone(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args);
    bare(command, home).output().expect("it runs")
}

/// The pid of the server of a data directory.
fn holder(data: &Path) -> u32 {
    std::fs::read_to_string(data.join("lock")).expect("the lock file").trim().parse().expect("a pid")
}

/// Ends the server of a data directory.
fn end(data: &Path) {
    let pid = holder(data);
    process::signal(pid, libc::SIGTERM);
    eventually("the local server is gone", || !Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_relative_data_directory_is_that_of_the_caller() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = alone(home.path(), &["run", "--data-dir", "here/data", "echo hello"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("hello\n", Some(0)), "{}", text(&output.stderr));
    end(&home.path().join("here/data"));
}

#[test]
fn a_server_that_cannot_start_is_told_with_its_reason() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join(".runvoy/data");
    std::fs::create_dir_all(&data).expect("made");
    std::fs::write(data.join("server.yaml"), "lisen: 127.0.0.1:1\n").expect("written");
    let output = alone(home.path(), &["run", "true"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    // Not "does not answer", which is what is told when patience ends.
    assert!(said.contains("cannot start") && said.contains("no setting lisen"), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    let served = alone(home.path(), &["serve"]);
    assert_eq!(served.status.code(), Some(2), "{}", text(&served.stderr));
    assert!(text(&served.stderr).contains("did you mean listen?"), "{}", text(&served.stderr));
    std::fs::write(data.join("server.yaml"), "").expect("written");
    let output = alone(home.path(), &["run", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let log = std::fs::read_to_string(data.join("server.log")).expect("the log");
    assert!(log.contains("no setting lisen"), "what an earlier server said is kept: {log}");
    end(&data);
}

#[test]
fn a_store_that_cannot_be_opened_is_told_with_its_reason() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join(".runvoy/data");
    assert_eq!(alone(home.path(), &["run", "true"]).status.code(), Some(0));
    end(&data);
    std::fs::remove_file(data.join("keys/audit.key")).expect("removed");
    let output = alone(home.path(), &["run", "true"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(125) && said.contains("cannot start") && said.contains("audit.key"), "{said}");
}

#[test]
fn a_data_directory_whose_path_is_too_long_for_a_socket_is_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let long = home.path().join("a".repeat(120));
    let long = long.to_str().expect("a path");
    for args in [["run", "--data-dir", long, "true"].as_slice(), &["serve", "--data-dir", long]] {
        let output = alone(home.path(), args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("socket") && said.contains("RUNVOY_DATA_DIR"), "{said}");
    }
    assert!(!Path::new(long).exists(), "nothing was made");
}

#[test]
fn the_local_server_has_nothing_of_who_started_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 9>held; exec \"$0\" run true", binary()]);
    let output = bare(shell, home.path()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let data = home.path().join(".runvoy/data");
    let pid = holder(&data);
    let held = home.path().join("held");
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let open: Vec<_> = open.collect();
    assert!(open.contains(&data.join("server.log")) && !open.contains(&held), "{open:?}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let session = stat.rsplit(')').next().expect("fields").split_whitespace().nth(3).expect("a session");
    assert_eq!(session, pid.to_string());
    end(&data);
}

#[test]
fn a_hangup_stops_a_server_unless_it_was_started_to_ignore_it() {
    let under = |how: &str| Setup { wrapper: vec!["env".to_owned(), format!("--{how}-signal=HUP")], ..Setup::default() }.start();
    let mut server = under("default");
    process::signal(server.pid(), libc::SIGHUP);
    let mut status = None;
    eventually("it has stopped", || {
        status = server.ended();
        status.is_some()
    });
    assert_eq!(status.expect("ended").code(), Some(0));
    assert!(!server.data.join("endpoint").exists());
    let server = under("ignore");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    assert_eq!(u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1, 1, "SIGHUP is still ignored: {ignored}");
}

#[test]
fn a_stale_endpoint_is_gone_before_anything_else_can_fail() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    server.kill_9();
    assert!(data.join("endpoint").exists(), "a crash leaves it");
    std::fs::remove_file(data.join("keys/audit.key")).expect("removed");
    let said = Setup::default().try_start_in(&data).err().expect("refused");
    assert!(said.contains("audit.key") && !data.join("endpoint").exists(), "{said}");
}

#[test]
fn a_server_waits_for_the_one_that_a_command_brought_and_that_one_hurries() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join(".runvoy/data");
    assert_eq!(alone(home.path(), &["run", "--detach", "sleep 2; echo done > \"$HOME/ended\""]).status.code(), Some(0));
    let passing = holder(&data);
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut server = bare(command, home.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().expect("piped")), &mut line).expect("a line");
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert_ne!(holder(&data), passing, "the other one has left");
    assert!(!data.join("wanted").exists(), "nobody waits any more");
    let listed = alone(home.path(), &["list", "--json"]);
    assert!(text(&listed.stdout).contains("SUCCEEDED"), "it left its work done: {}", text(&listed.stdout));
    process::signal(server.id(), libc::SIGTERM);
    server.wait().expect("it ends");
}
