//! A graceful stop: nothing new begins, what runs has its time, and every end is recorded as it was.

mod harness;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use self::harness::{Server, Setup, count, eventually, process, promise};

#[test]
fn a_command_that_ends_in_time_is_recorded_as_it_ended() {
    let mut server = Server::start();
    let id = server.run("sleep 1; exit 3");
    server.wait_until(&id, "RUNNING");
    assert_eq!(server.stop(), Some(0));
    let server = Setup::default().start_in(&server.data);
    let status = server.wait(&id);
    assert_eq!((&status["status"], &status["exit_code"]), (&json!("FAILED"), &json!(3)), "{status}");
    assert_eq!(status["end_reason"]["code"], "exit");
}

#[test]
fn a_command_that_does_not_end_is_ended_and_says_so() {
    let mut server = Setup::default().arg("--stop-patience").arg("200ms").arg("--grace").arg("200ms").start();
    let id = server.run("trap '' TERM; while :; do sleep 1; done");
    let mark = format!("RUNVOY_EXECUTION_ID={id}");
    eventually("it runs", || !process::with_env(&mark).is_empty());
    assert_eq!(server.stop(), Some(0));
    assert!(process::with_env(&mark).is_empty(), "it outlived its server");
    let server = Setup::default().start_in(&server.data);
    let status = server.status(&id);
    assert_eq!((&status["status"], &status["end_reason"]["code"]), (&json!("FAILED"), &json!("worker_lost")), "{status}");
}

/// One request over the Unix socket, whose owner needs no key; the answer with its head.
fn over_the_socket(server: &Server, method: &str, path: &str, body: &str) -> String {
    let mut socket = UnixStream::connect(server.data.join("sock")).expect("the socket is served");
    let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
    write!(socket, "{method} {path} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_server_that_was_told_to_stop_refuses_new_work_and_nothing_else() {
    let mut server = Setup::default().arg("--stop-patience").arg("10m").start();
    let id = server.run("echo begun; exec sleep 600");
    let logged = || server.get(&format!("/api/v1/executions/{id}/logs?format=raw")).text();
    eventually("it runs", || logged() == "begun\n");
    process::signal(server.pid(), libc::SIGTERM);
    eventually("it was told", || server.get("/readyz").status == 503);
    let again = format!("/api/v1/executions/{id}/rerun");
    for (path, body) in [("/api/v1/run", json!({"command": "true"})), (&again, json!({}))] {
        let refused = server.http().post(path, &body);
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{path}: {}", refused.text());
        assert_eq!(refused.json()["code"], "SERVICE_UNAVAILABLE", "{}", refused.text());
        let refused = over_the_socket(&server, "POST", path, &body.to_string());
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{path}: {refused}");
    }
    assert_eq!(server.status(&id)["status"], "RUNNING");
    assert_eq!(logged(), "begun\n");
    let killed = server.http().post(&format!("/api/v1/executions/{id}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{}", killed.text());
    eventually("it leaves", || server.ended().is_some());
    assert_eq!(server.ended().and_then(|ended| ended.code()), Some(0));
    assert_eq!(Setup::default().start_in(&server.data).status(&id)["status"], "STOPPED");
}

#[test]
fn promise_22_a_graceful_stop_loses_nothing() {
    let rounds = count(5, 200);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let (mut acknowledged, mut slowest) = (Vec::new(), Duration::ZERO);
    for round in 0..rounds {
        let mut server = Setup::default().arg("--stop-patience").arg("500ms").start_in(&data);
        let (url, key) = (server.url.clone(), server.key());
        std::thread::scope(|scope| {
            let submitting = scope.spawn(|| {
                let mut http = harness::http::Http::new(&url, Some(&key));
                let mut ids = Vec::new();
                while let Ok(answer) = http.try_post("/api/v1/run", &json!({"command": "echo x"}), &[]) {
                    if answer.status == 202 {
                        ids.push(answer.json()["execution_id"].as_str().expect("an id").to_owned());
                    }
                }
                ids
            });
            std::thread::sleep(Duration::from_millis(30 + 7 * (round as u64 % 13)));
            let began = Instant::now();
            assert_eq!(server.stop(), Some(0));
            slowest = slowest.max(began.elapsed());
            acknowledged.extend(submitting.join().expect("no panic"));
        });
    }
    let server = Setup::default().start_in(&data);
    for id in &acknowledged {
        let status = server.wait(id);
        assert_eq!(status["status"], "SUCCEEDED", "{status}");
    }
    let what = format!("{rounds} stops, {} executions, slowest stop {:.1} s", acknowledged.len(), slowest.as_secs_f64());
    promise(22, "a graceful stop loses nothing", what, "0 lost");
}
