//! The event log at the command line, against the real server: what is there, and what comes while the server is killed and started again.

mod harness;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use self::harness::{Server, Setup, aws};

fn done(server: &Server, args: &[&str]) -> String {
    let output = server.cli(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The ids of all events, oldest first.
fn all(server: &Server) -> Vec<String> {
    done(server, &["events", "--order", "asc", "--limit", "0", "-o", "name"]).lines().map(str::to_owned).collect()
}

/// `events follow` as a process, and the lines it writes.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(server: &Server, args: &[&str]) -> Self {
        let mut command = server.cli_command(&[&["events", "follow"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command line runs");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(60)).expect("another line")
    }

    /// The next event, which may take several lines.
    fn event(&self) -> Value {
        let mut text = self.line();
        loop {
            match serde_json::from_str(&text) {
                Ok(event) => return event,
                Err(error) if error.is_eof() => text.push_str(&self.line()),
                Err(error) => panic!("{error}: {text}"),
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn events_are_listed_by_type_and_by_what_they_are_about() {
    let server = Server::start();
    let (good, bad) = (server.run("true"), server.run("exit 64"));
    server.wait(&good);
    server.wait(&bad);
    let told: Value =
        serde_json::from_str(&done(&server, &["events", "--entity", &format!("task:{}", &good[20..]), "--order", "asc", "--json"]))
            .expect("JSON");
    let kinds: Vec<&str> = told.as_array().expect("events").iter().map(|event| event["eventType"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["Audit", "Task Pending", "Task Processing Started", "Task Completed"]);
    assert_eq!(told[1]["GSI7SK"], format!("TENANT#default#APP#runvoy#TASK#{good}#TIMESTAMP#{}", told[1]["timestamp"]));
    let failed = done(&server, &["events", "--type", "Task Failed"]);
    assert!(failed.contains(&format!("TASK:{bad}")) && !failed.contains(&good), "{failed}");
    assert!(all(&server).len() >= 9);
    let refused = server.cli(&["events", "--type", "Nothing"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Task Completed"), "it names what there is");
    assert_ne!(refused.status.code(), Some(0));
}

#[test]
fn whoever_follows_sees_every_event_once_though_the_server_is_killed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let mut server = Setup::default().start_in(&data);
    let first = server.run("true");
    server.wait(&first);
    let listen = server.url.trim_start_matches("http://").to_owned();
    let follower = Follower::start(&server, &["--from", "1h", "-o", "name"]);
    let mut seen = vec![follower.line()];
    for round in 0..3 {
        let id = server.run_with(json!({"command": format!("echo {round}")}));
        seen.push(follower.line());
        server.wait(&id);
        if round < 2 {
            server.kill_9();
            server = Setup::default().arg("--listen").arg(&listen).start_in(&data);
        }
    }
    let last = server.run("true");
    server.wait(&last);
    let expected = all(&server);
    while seen.len() < expected.len() {
        seen.push(follower.line());
    }
    assert_eq!(seen, expected);
}

/// Numbers of heartbeats are above all numbers of chains.
const HEARTBEATS_FROM: u64 = 1 << 50;

/// What a consumer behind the event bus does with each event, by the event contract alone: it keeps it under its keys, and knows from its number whether it missed
/// one about the same entity.
#[derive(Default)]
struct Consumer {
    keys: HashSet<(String, String)>,
    last: HashMap<(String, String), u64>,
    heartbeats: HashSet<(String, u64)>,
}

impl Consumer {
    fn take(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_else(|| panic!("no {name}: {event}")).to_owned();
        assert!(self.keys.insert((text("PK"), text("SK"))), "it came twice: {event}");
        for index in 1..=7 {
            assert!(event[format!("GSI{index}PK")].is_string() && event[format!("GSI{index}SK")].is_string(), "{event}");
        }
        let number = event["number"].as_u64().expect("a number");
        if text("eventType") == "Task Heartbeat" {
            assert!(number >= HEARTBEATS_FROM && self.heartbeats.insert((text("entityId"), number)), "{event}");
        } else {
            let last = self.last.entry((text("entityType"), text("entityId"))).or_default();
            assert_eq!(number, *last + 1, "one is missing before {event}");
            *last = number;
        }
    }
}

#[test]
fn a_consumer_of_the_contract_misses_nothing_and_reads_processes_and_overflows() {
    let server = Server::start();
    let follower = Follower::start(&server, &["--from", "1h", "-o", "json"]);
    let big = "sleep 2; { printf '{\"text\": \"'; head -c 400000 /dev/zero | tr '\\0' x; printf '\"}'; } > \"$RUNVOY_OUTPUT\"";
    let made = server.http().post("/api/v1/jobs", &json!({"tasks": [{"taskId": "big", "command": big}]}));
    assert_eq!(made.status, 201, "{}", made.text());
    let (mut consumer, mut of_task) = (Consumer::default(), Vec::new());
    loop {
        let event = follower.event();
        consumer.take(&event);
        if event["eventType"].as_str().is_some_and(|kind| kind.starts_with("Task ") && kind != "Task Pending") {
            of_task.push((event["eventType"].clone(), event["properties"].clone()));
        }
        if event["eventType"] == "Task Completed" {
            break;
        }
    }
    let kinds: Vec<&Value> = of_task.iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["Task Processing Started", "Task Heartbeat", "Task Completed"]);
    let process = &of_task[0].1["processId"];
    assert!(process.as_u64().is_some_and(|process| process > 1), "{of_task:?}");
    assert!(of_task.iter().all(|(_, properties)| properties["processId"] == *process), "{of_task:?}");
    let named = &of_task[2].1["_s3Overflow"];
    assert_eq!((&named["fields"], named["bytes"].as_u64() > Some(400_000)), (&json!(["output"]), true), "{named}");
    assert_eq!(named["bucket"].is_string(), aws::is_asked_for(), "where others can read it: {named}");
    assert!(named["key"].as_str().is_some_and(|key| key.len() >= 64), "{named}");
}
