//! Clocks that jump under a running server: no lease lapses, nothing takes negative time.

mod harness;

use serde_json::{Value, json};

use self::harness::{Server, Setup, count, eventually, promise};

fn submit(server: &Server, run: &Value) -> String {
    let answer = server.http().post("/api/v1/run", run);
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()["execution_id"].as_str().expect("an id").to_owned()
}

fn libfaketime() -> Option<&'static str> {
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
}

#[test]
fn promise_09_clock_jumps_harm_nothing() {
    let library = libfaketime().expect("libfaketime: cargo xtask check installs it");
    let jumps = ["+3600", "-3600", "+86400", "-86400", "+0"];
    let rounds = count(1, 4);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let offset = dir.path().join("offset");
    std::fs::write(&offset, "+0\n").expect("written");
    let server = Setup::default()
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", offset.to_str().expect("a path"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .start_in(&dir.path().join("data"));
    let mut submitted = 0;
    for _ in 0..rounds {
        for jump in jumps {
            let id = submit(&server, &json!({"command": "sleep 2; echo done", "lock": "prod"}));
            server.wait_until(&id, "RUNNING");
            let in_line = submit(&server, &json!({"command": "echo had it", "lock": "prod", "lock_wait": 60}));
            std::fs::write(&offset, format!("{jump}\n")).expect("written");
            let during = server.run("echo during");
            eventually("it ends", || !server.status(&id)["exit_code"].is_null());
            for id in [&id, &in_line, &during] {
                let status = server.wait(id);
                assert_eq!(status["status"], "SUCCEEDED", "after {jump}: {status}");
                let seconds = status["duration_seconds"].as_f64().expect("a duration");
                assert!((0.0..600.0).contains(&seconds), "after {jump}: {status}");
                submitted += 1;
            }
        }
    }
    promise(9, "clock jumps harm nothing", format!("{} jumps, {submitted} executions", jumps.len() * rounds), "0 lapsed, 0 negative");
}
