//! The alerter against a local server that takes messages, fails, is busy, hangs, sends elsewhere and recovers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use runvoy_alerts::SlackAlerter;
use runvoy_model::git::Reach;
use runvoy_ports::alert::{AlertError, Alerter as _, Notice};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// How the server answers one message; `None` says nothing, for ever.
type Script = VecDeque<Option<&'static str>>;

struct Webhook {
    url: String,
    taken: Arc<Mutex<Vec<Value>>>,
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

impl Webhook {
    async fn start(script: impl IntoIterator<Item = Option<&'static str>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/services/T0/B0/s3cr3t", listener.local_addr().expect("an address"));
        let (taken, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(script.into_iter().collect::<Script>())));
        let kept = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&kept)));
            }
        });
        Self { url, taken }
    }

    fn alerter(&self) -> SlackAlerter {
        SlackAlerter::new(&self.url, Reach::Private).expect("an alerter")
    }
}

async fn serve(stream: TcpStream, script: Arc<Mutex<Script>>, taken: Arc<Mutex<Vec<Value>>>) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    taken.lock().await.push(serde_json::from_slice(&body).expect("JSON"));
    let next = script.lock().await.pop_front().unwrap_or(Some(OK));
    match next {
        Some(answer) => stream.get_mut().write_all(answer.as_bytes()).await.expect("sent"),
        None => std::future::pending().await,
    }
}

fn notice() -> Notice {
    Notice { title: "Dead letter".into(), begun: Vec::new(), more: vec!["and 40 more".into()], over: Vec::new() }
}

async fn refused(webhook: &Webhook) -> AlertError {
    let error = webhook.alerter().within(Duration::from_millis(300)).tell(&notice()).await.expect_err("not taken");
    assert!(!error.to_string().contains("s3cr3t"), "the path is a secret: {error}");
    error
}

#[tokio::test]
async fn a_message_is_a_text_and_blocks() {
    let webhook = Webhook::start([]).await;
    webhook.alerter().tell(&notice()).await.expect("taken");
    let taken = webhook.taken.lock().await;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0]["text"], ":bell: *Dead letter*\nand 40 more");
    assert_eq!(taken[0]["blocks"][0]["type"], "header");
    assert_eq!(webhook.alerter().place(), "127.0.0.1");
}

#[tokio::test]
async fn a_server_that_fails_is_told_again_when_it_recovers() {
    let webhook = Webhook::start([Some("HTTP/1.1 500 Oops\r\ncontent-length: 13\r\n\r\nrollup_error\n")]).await;
    let error = refused(&webhook).await;
    assert_eq!(error.to_string(), "127.0.0.1 answered 500 (rollup_error)");
    assert_eq!(error.retry_after, None);
    webhook.alerter().tell(&notice()).await.expect("it has recovered");
}

#[tokio::test]
async fn security_13_a_server_that_repeats_the_path_does_not_make_it_known() {
    for said in ["no route for POST /services/T0/B0/s3cr3t", "s3cr3t", "no_service /services/T0/B0/s3cr3t"] {
        let answer = format!("HTTP/1.1 404 s3cr3t\r\nlocation: /s3cr3t\r\ncontent-length: {}\r\n\r\n{said}", said.len());
        let webhook = Webhook::start([Some(&*answer.leak())]).await;
        let error = refused(&webhook).await;
        assert!(error.to_string().starts_with("127.0.0.1 answered 404; the webhook may have been revoked"), "{error}");
    }
}

#[tokio::test]
async fn a_busy_server_says_when_to_come_back() {
    let webhook = Webhook::start([Some("HTTP/1.1 429 Slow down\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n")]).await;
    assert_eq!(refused(&webhook).await.retry_after, Some(Duration::from_secs(30)));
    let webhook = Webhook::start([Some("HTTP/1.1 503 x\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\ncontent-length: 0\r\n\r\n")]).await;
    assert_eq!(refused(&webhook).await.retry_after, None);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let webhook = Webhook::start([None, Some("HTTP/1.1 200 OK\r\ncontent-le")]).await;
    assert!(refused(&webhook).await.to_string().contains("did not answer within 0.3 s"));
    refused(&webhook).await;
    webhook.alerter().tell(&notice()).await.expect("it has recovered");
}

#[tokio::test]
async fn security_23_a_redirect_is_not_followed() {
    let elsewhere = Webhook::start([]).await;
    let answer = format!("HTTP/1.1 307 Elsewhere\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url);
    let webhook = Webhook::start([Some(&*answer.leak())]).await;
    assert!(refused(&webhook).await.to_string().contains("redirects are not followed"));
    assert!(elsewhere.taken.lock().await.is_empty());
}

#[tokio::test]
async fn blocks_that_are_not_taken_go_as_text() {
    let webhook = Webhook::start([Some("HTTP/1.1 400 Bad\r\ncontent-length: 14\r\n\r\ninvalid_blocks")]).await;
    webhook.alerter().tell(&notice()).await.expect("the text is taken");
    let taken = webhook.taken.lock().await;
    assert!(taken.len() == 2 && taken[1].get("blocks").is_none() && taken[1]["text"] == taken[0]["text"], "{taken:?}");
}

#[tokio::test]
async fn a_revoked_webhook_says_what_to_do() {
    let webhook = Webhook::start([Some("HTTP/1.1 404 Gone\r\ncontent-length: 10\r\n\r\nno_service")]).await;
    assert!(refused(&webhook).await.to_string().contains("(no_service); the webhook may have been revoked"));
}

#[tokio::test]
async fn nobody_there_is_an_error_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/s3cr3t", listener.local_addr().expect("an address"));
    drop(listener);
    let error = SlackAlerter::new(&url, Reach::Private).expect("an alerter").tell(&notice()).await.expect_err("nobody");
    assert!(error.to_string().contains("cannot be reached") && !error.to_string().contains("s3cr3t"), "{error}");
}
