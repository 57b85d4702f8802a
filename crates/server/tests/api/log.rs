//! Logs in all their forms.

use http::StatusCode;
use runvoy_model::log::Stream;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogStore as _;
use serde_json::json;

use crate::app::{Answer, NOW, TestApp};

const BYTES: &[u8] = b"caf\xe9 \x00 \x1b[31mred\x1b[0m";

/// One of everything: a platform line first, both streams, a prompt, bytes that are not UTF-8, an unterminated end.
async fn mixed(app: &TestApp) -> String {
    let id = app.submit("true").await;
    let mut played = app.play().await;
    played.write(&["out 1", "out 2"]).await;
    played
        .write_records(&[
            (Stream::Stderr, false, true, b"err 1"),
            (Stream::Stdout, false, false, b"name? "),
            (Stream::Stdout, true, true, b"ana"),
            (Stream::Stdout, false, true, BYTES),
            (Stream::Stderr, false, false, b"end"),
        ])
        .await;
    played.exit(0).await;
    id
}

fn raw() -> Vec<u8> {
    [b"out 1\nout 2\nerr 1\nname? ana\n", BYTES, b"\nend"].concat()
}

async fn ask(app: &TestApp, id: &str, query: &str) -> Answer {
    app.get(&format!("/api/v1/executions/{id}/logs?{query}")).admin().send().await
}

fn lines(answer: &Answer) -> Vec<u64> {
    answer.json()["events"].as_array().expect("events").iter().map(|event| event["line"].as_u64().expect("a number")).collect()
}

#[tokio::test]
async fn raw_is_exactly_what_the_command_wrote() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let answer = ask(&app, &id, "format=raw").await;
    assert_eq!(answer.body, raw());
    assert_eq!(answer.header("content-length"), raw().len().to_string());
    assert_eq!(answer.header("accept-ranges"), "bytes");
    assert_eq!(ask(&app, &id, "format=raw&stream=stderr").await.body, b"err 1\nend");
}

#[tokio::test]
async fn any_range_of_raw_is_that_part() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let whole = raw();
    let path = format!("/api/v1/executions/{id}/logs?format=raw");
    for first in 0..whole.len() {
        for last in [first, first + 7, whole.len() + 5] {
            let answer = app.get(&path).admin().header("range", &format!("bytes={first}-{last}")).send().await;
            let last = last.min(whole.len() - 1);
            assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT);
            assert_eq!(answer.body, whole[first..=last]);
            assert_eq!(answer.header("content-range"), format!("bytes {first}-{last}/{}", whole.len()));
        }
    }
    let beyond = app.get(&path).admin().header("range", &format!("bytes={}-", whole.len())).send().await;
    assert_eq!(beyond.code(), (416, "INVALID_REQUEST".into()));
    assert_eq!(beyond.header("content-range"), format!("bytes */{}", whole.len()));
    let tail = app.get(&path).admin().header("range", "bytes=-3").send().await;
    assert_eq!(tail.body, b"end");
}

#[tokio::test]
async fn a_download_of_a_growing_log_goes_on_where_it_broke_off() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let mut played = app.play().await;
    played.write(&["one"]).await;
    let path = format!("/api/v1/executions/{id}/logs?format=raw");
    let first = app.get(&path).admin().send().await;
    played.write(&["two"]).await;
    let rest = app.get(&path).admin().header("range", "bytes=4-").header("if-range", first.header("etag")).send().await;
    assert_eq!((rest.status, rest.text().as_str()), (StatusCode::PARTIAL_CONTENT, "two\n"));
    let other = app.get(&path).admin().header("range", "bytes=4-").header("if-range", "\"other\"").send().await;
    assert_eq!((other.status, other.text().as_str()), (StatusCode::OK, "one\ntwo\n"));
}

#[tokio::test]
async fn text_has_every_line_and_the_platform_s_own() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let answer = ask(&app, &id, "format=text").await;
    let platform = b"### runvoy: queued, waiting for a free worker of queue default\n";
    assert_eq!(answer.body, [&platform[..], &raw()].concat());
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

#[tokio::test]
async fn ndjson_has_one_event_a_line_and_brings_back_exact_bytes() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let answer = ask(&app, &id, "format=ndjson").await;
    let events: Vec<runvoy_wire::LogEvent> = answer.text().lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert_eq!(events.iter().map(|event| event.line).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    assert_eq!(events[6].bytes().expect("base64"), BYTES);
    assert!(events[5].cont && !events[4].eol && !events[7].eol && events[6].eol);
    let plain: serde_json::Value = serde_json::from_str(answer.text().lines().nth(1).expect("a line")).expect("JSON");
    let timestamp = plain["timestamp"].clone();
    assert_eq!(
        plain,
        json!({"event_id": format!("{id}-2"), "timestamp": timestamp, "message": "out 1", "line": 2, "stream": "stdout", "attempt": 1})
    );
}

#[tokio::test]
async fn lines_are_chosen_by_number_tail_text_and_stream() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    for (query, expected, next_line) in [
        ("", &[1, 2, 3, 4, 5, 6, 7, 8][..], 9),
        ("from_line=7", &[7, 8], 9),
        ("from_line=2&limit=2", &[2, 3], 4),
        ("limit=0", &[1, 2, 3, 4, 5, 6, 7, 8], 9),
        ("from_line=100", &[], 100),
        ("from_line=18446744073709551615", &[], u64::MAX),
        ("tail=2", &[7, 8], 9),
        ("tail=0", &[], 9),
        ("tail=100", &[1, 2, 3, 4, 5, 6, 7, 8], 9),
        ("search=out", &[2, 3], 9),
        ("search=out&limit=1", &[2], 3),
        ("stream=stderr", &[4, 8], 9),
        ("stream=stdout&tail=2", &[6, 7], 9),
        ("search=out&tail=1", &[3], 9),
        ("stream=platform", &[1], 9),
    ] {
        let answer = ask(&app, &id, query).await;
        assert_eq!(lines(&answer), expected, "{query}");
        assert_eq!(answer.json()["next_line"], json!(next_line), "{query}");
    }
    for query in ["from_line=0", "from_line=x", "tail=-1", "stream=stdin", "format=xml", "tail=1&from_line=1"] {
        assert_eq!(ask(&app, &id, query).await.code(), (400, "INVALID_REQUEST".into()), "{query}");
    }
}

#[tokio::test]
async fn a_long_log_comes_in_pages_and_whole() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let mut played = app.play().await;
    let line = "x".repeat(1_000);
    let block = vec![line.as_str(); 100];
    for _ in 0..50 {
        played.write(&block).await;
    }
    played.exit(0).await;
    assert_eq!(ask(&app, &id, "format=raw").await.body.len(), 5_000 * 1_001);
    let json = ask(&app, &id, "").await;
    assert_eq!(lines(&json), (1..=5_001).collect::<Vec<_>>());
    assert_eq!(lines(&ask(&app, &id, "stream=stdout&tail=3").await), [4_999, 5_000, 5_001]);
    let range = app.get(&format!("/api/v1/executions/{id}/logs?format=raw")).admin().header("range", "bytes=2002000-2002002").send().await;
    assert_eq!(range.text(), "xxx");
}

#[tokio::test]
async fn an_empty_log_is_an_empty_answer() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let raw = ask(&app, &id, "format=raw").await;
    assert_eq!((raw.status, raw.body.len(), raw.header("content-length")), (StatusCode::OK, 0, "0"));
    assert_eq!(ask(&app, &id, "from_line=50").await.json()["events"], json!([]));
}

#[tokio::test]
async fn a_log_that_retention_took_is_said_to_be_gone() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let forgotten = app.without_logs();
    app.logs.prune(UnixMs(i64::MAX)).await.expect("a memory log");
    for app in [app, forgotten] {
        for path in ["logs", "logs?format=raw", "logs?format=text", "logs?format=ndjson", "logs?from_line=1", "logs/search?q=out", "stream"]
        {
            let answer = app.get(&format!("/api/v1/executions/{id}/{path}")).admin().send().await;
            assert_eq!(answer.code(), (404, "NOT_FOUND".into()), "{path}");
            assert!(answer.text().contains("retention"), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_search_counts_everything_and_shows_the_first() {
    let app = TestApp::new().await;
    let id = mixed(&app).await;
    let search = async |query: &str| app.get(&format!("/api/v1/executions/{id}/logs/search?{query}")).admin().send().await;
    assert_eq!(
        search("q=out").await.json(),
        json!({"total": 2, "hits": [{"line": 2, "message": "out 1"}, {"line": 3, "message": "out 2"}], "next_line": null, "complete": true})
    );
    let first = search("q=out&limit=1").await.json();
    assert_eq!((&first["total"], &first["next_line"]), (&json!(2), &json!(3)));
    assert_eq!(search("q=%5Eerr%20%5Cd%24&regex=true").await.json()["total"], 1);
    assert_eq!(search("q=out&from_line=3").await.json()["total"], 1);
    let long = app.ran(&[&"x".repeat(10_000)]).await;
    let hit = app.get(&format!("/api/v1/executions/{long}/logs/search?q=xx")).admin().send().await.json()["hits"][0].clone();
    assert_eq!(hit["message"].as_str().expect("text"), format!("{}… (cut)", "x".repeat(4_096)));
    for bad in ["", "q=", "q=%5B&regex=1", "q=a&regex=perhaps", "q=a&limit=0"] {
        assert_eq!(search(bad).await.code(), (400, "INVALID_REQUEST".into()), "{bad}");
    }
}

#[tokio::test]
async fn times_of_a_log_never_go_back_and_are_never_in_the_future() {
    let app = TestApp::new().await;
    let id = app.submit_as(Role::Admin, json!({"command": "true", "retries": 1})).await;
    let mut played = app.play().await;
    // Its clock is ahead, then it is set back.
    played.at = UnixMs(NOW + 86_400_000);
    played.write(&["ahead"]).await;
    played.at = UnixMs(NOW - 5_000);
    played.write(&["behind"]).await;
    played.exit(69).await;
    app.clock.advance(600_000);
    let mut again = app.play().await;
    again.at = UnixMs(NOW - 1);
    again.write(&["again"]).await;
    again.exit(0).await;
    let log = app.get(&format!("/api/v1/executions/{id}/logs")).admin().send().await.json();
    let times: Vec<i64> = log["events"].as_array().expect("events").iter().map(|event| event["timestamp"].as_i64().expect("ms")).collect();
    assert!(times.len() > 3 && times.is_sorted(), "{times:?}");
    assert!(times.iter().all(|at| (NOW..=NOW + 600_000).contains(at)), "{times:?}");
}
