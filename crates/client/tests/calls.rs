//! Calls: keys, repeats, errors, kept connections, and each kind of endpoint.

mod fake;

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fake::{Fake, Reply};
use runvoy_client::wire::{RunRequest, Status};
use runvoy_client::{Client, ClientError, Detail, Endpoint, Killed, ListQuery, Options, Retry, Submission};
use serde_json::json;

fn options(endpoint: impl std::fmt::Display) -> Options {
    Options::new(endpoint.to_string().parse::<Endpoint>().expect("an endpoint"))
}

fn accepted() -> Reply {
    Reply::json(202, json!({"execution_id": "0192ab", "log_url": "", "status": "PENDING", "command": "true", "image_id": ""}))
}

fn health() -> Reply {
    Reply::json(200, json!({"status": "ok", "version": "0.1.0", "provider": "local"}))
}

fn submission() -> Submission {
    Submission::new(RunRequest { command: "true".into(), ..RunRequest::default() }, None)
}

#[tokio::test]
async fn a_submit_is_repeated_with_its_key_and_its_request_id() {
    let tries = AtomicUsize::new(0);
    let fake = Fake::new(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::Cut,
        1 => Reply::error(503, "DATABASE_ERROR", "the store is busy"),
        2 => Reply::Answer(429, vec![("retry-after", "0".to_owned())], Vec::new()),
        _ => accepted(),
    });
    let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
    let response = client.run(&submission()).await.expect("the fourth attempt is answered");
    assert_eq!(response.execution_id, "0192ab");
    let seen = fake.seen();
    assert_eq!(seen.len(), 4);
    for name in ["idempotency-key", "x-request-id"] {
        let first = seen[0].header(name).expect("every attempt has it");
        assert_eq!(first.len(), 32);
        assert!(seen.iter().all(|seen| seen.header(name) == Some(first)), "{name}");
    }
    client.run(&submission()).await.expect("another submit");
    assert_ne!(fake.seen()[4].header("idempotency-key"), seen[0].header("idempotency-key"));
}

#[tokio::test]
async fn what_cannot_pass_is_not_repeated() {
    for (status, code) in [(400, "INVALID_REQUEST"), (401, "UNAUTHORIZED"), (403, "FORBIDDEN"), (409, "CONFLICT"), (500, "INTERNAL_ERROR")]
    {
        let fake = Fake::new(move |_| Reply::error(status, code, "no"));
        let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
        let error = client.run(&submission()).await.expect_err("refused");
        assert_eq!(fake.seen().len(), 1, "{code}");
        let refusal = error.refusal().expect("an answer");
        assert_eq!((refusal.status, refusal.code.as_str()), (status, code));
        assert_eq!(Some(refusal.request_id.as_str()), fake.seen()[0].header("x-request-id"));
    }
}

#[tokio::test]
async fn one_connection_serves_many_calls_and_its_loss_goes_unnoticed() {
    let fake = Fake::new(|seen| {
        let close = if seen.parameter("limit") == Some("3") { vec![("connection", "close".to_owned())] } else { Vec::new() };
        Reply::Answer(200, close, b"[]".to_vec())
    });
    let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
    for limit in 1..=6 {
        client.list(&ListQuery { limit: Some(limit), ..ListQuery::default() }).await.expect("an empty list");
    }
    assert_eq!((fake.seen().len(), fake.connections()), (6, 2));
}

#[tokio::test]
async fn a_list_tells_where_it_goes_on() {
    let fake = Fake::new(|seen| {
        let item = json!({"execution_id": "0192ab", "started_at": "2026-01-03T14:22:19Z", "status": "RUNNING", "exit_code": null});
        let headers = if seen.parameter("cursor").is_none() { vec![("x-next-cursor", "abc".to_owned())] } else { Vec::new() };
        Reply::Answer(200, headers, serde_json::to_vec(&json!([item])).expect("plain data"))
    });
    let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
    let query = ListQuery { status: vec![Status::Running, Status::Pending], user: Some("a b".into()), ..ListQuery::default() };
    let page = client.list(&query).await.expect("a page");
    assert_eq!((page.items.len(), page.next_cursor.as_deref()), (1, Some("abc")));
    let last = client.list(&ListQuery { cursor: page.next_cursor, ..query }).await.expect("a page");
    assert_eq!(last.next_cursor, None);
    assert_eq!(fake.seen()[0].target, "/api/v1/executions?status=RUNNING%2CPENDING&user=a%20b");
}

#[tokio::test]
async fn killing_what_has_ended_is_no_error() {
    let fake = Fake::new(|seen| match seen.target.as_str() {
        "/api/v1/executions/ended" => Reply::Answer(204, Vec::new(), Vec::new()),
        _ => Reply::json(200, json!({"execution_id": "open", "message": "asked"})),
    });
    let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
    assert_eq!(client.kill("ended", false).await.expect("taken"), Killed::AlreadyEnded);
    assert!(matches!(client.kill("open", true).await.expect("taken"), Killed::Asked(_)));
    assert_eq!(fake.seen()[1].parameter("force"), Some("true"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_with_its_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let retry = runvoy_client::Retry::NONE;
    let client = Client::new(Options { retry, ..options(format!("http://{address}")) }).expect("plain options");
    let error = client.health().await.expect_err("nobody listens");
    assert!(matches!(&error, ClientError::Unreachable { connected: false, .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot reach the server at http://{address}"));
    assert!(!error.causes().is_empty());
}

#[tokio::test]
async fn a_unix_socket_needs_no_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let fake = Fake::new(|_| health());
    fake.unix(&dir.path().join("sock"));
    let client = Client::new(options(format!("unix:{}", dir.path().join("sock").display()))).expect("plain options");
    assert_eq!(client.health().await.expect("it answers").version, "0.1.0");
    assert_eq!(fake.seen()[0].header("x-api-key"), None);
}

/// A server that is started, at `socket`, by being asked for the `start`th time; and how often it was asked for.
fn revived(fake: &Fake, socket: &Path, start: usize) -> (Options, Arc<AtomicUsize>) {
    let (fake, path, asked) = (fake.clone(), socket.to_owned(), Arc::new(AtomicUsize::new(0)));
    let (options, count) = (options(format!("unix:{}", socket.display())), asked.clone());
    let revive = move || {
        if asked.fetch_add(1, Ordering::SeqCst) + 1 == start {
            fake.unix(&path);
        }
        Box::pin(async { Ok(()) }) as Pin<Box<dyn Future<Output = Result<(), String>> + Send>>
    };
    (Options { revive: Some(Arc::new(revive)), retry: runvoy_client::Retry::NONE, ..options }, count)
}

#[tokio::test]
async fn a_server_that_left_before_its_first_answer_is_brought_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let (absent, stale) = (dir.path().join("absent"), dir.path().join("stale"));
    drop(std::os::unix::net::UnixListener::bind(&stale).expect("a new socket"));
    for (socket, refused) in [(absent, false), (stale, true)] {
        let (fake, tries) = (Fake::new(|_| accepted()), submission());
        let (mut options, asked) = revived(&fake, &socket, 2);
        if refused {
            let (inner, path) = (options.revive.take().expect("given"), socket.clone());
            options.revive = Some(Arc::new(move || {
                // A new server takes the place of what an old one left.
                let _ = std::fs::remove_file(&path);
                inner()
            }));
        }
        let client = Client::new(options).expect("plain options");
        client.run(&tries).await.expect("the second server answers");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        assert_eq!(fake.seen()[0].header("idempotency-key"), Some(tries.idempotency_key.as_str()));
    }
}

#[tokio::test]
async fn a_submit_that_was_cut_off_by_a_leaving_server_reaches_the_next_one_with_its_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let (socket, tries) = (dir.path().join("sock"), submission());
    let leaving = tokio::net::UnixListener::bind(&socket).expect("a new socket");
    let (fake, path) = (Fake::new(|_| accepted()), socket.clone());
    let (options, asked) = revived(&fake, &socket, 1);
    let client = Client::new(Options { retry: runvoy_client::Retry::default(), ..options }).expect("plain options");
    let leave = async move {
        let taken = leaving.accept().await.expect("the client comes");
        std::fs::remove_file(&path).expect("there");
        drop((leaving, taken));
    };
    let (submitted, ()) = tokio::join!(client.run(&tries), leave);
    submitted.expect("the next server answers");
    assert_eq!((asked.load(Ordering::SeqCst), fake.seen().len()), (1, 1));
    assert_eq!(fake.seen()[0].header("idempotency-key"), Some(tries.idempotency_key.as_str()));
}

#[tokio::test]
async fn bringing_a_server_back_is_bounded_and_ends_with_its_first_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let (fake, socket) =
        (Fake::new(|_| Reply::Answer(200, vec![("connection", "close".to_owned())], b"[]".to_vec())), dir.path().join("sock"));
    let (hopeless, asked) = revived(&fake, &socket, usize::MAX);
    let error = Client::new(hopeless).expect("plain options").health().await.expect_err("it never comes");
    assert!(matches!(error, ClientError::Unreachable { connected: false, .. }), "{error:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let (options, asked) = revived(&fake, &socket, 1);
    let client = Client::new(options).expect("plain options");
    client.list(&ListQuery::default()).await.expect("it was brought back");
    std::fs::remove_file(&socket).expect("there");
    client.list(&ListQuery::default()).await.expect_err("somebody stopped it");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tls_is_trusted_only_with_its_certificate() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a directory");
    let ca_file = dir.path().join("ca.pem");
    std::fs::write(&ca_file, made.cert.pem()).expect("written");
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a matching key");
    let (acceptor, listener) =
        (tokio_rustls::TlsAcceptor::from(Arc::new(config)), tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
    let port = listener.local_addr().expect("bound").port();
    let fake = Fake::new(|_| health());
    let server = fake.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(server.clone().serve(stream));
            }
        }
    });
    let endpoint = format!("https://localhost:{port}");
    let trusting_file = Some(ca_file.clone());
    let trusting = Client::new(Options { ca_file: Some(ca_file), ..options(&endpoint) }).expect("a readable CA file");
    assert_eq!(trusting.health().await.expect("trusted").status, "ok");
    let error = Client::new(options(&endpoint)).expect("plain options").health().await.expect_err("not trusted");
    assert!(matches!(error, ClientError::Tls { .. }), "{error:?}");
    assert!(error.causes().iter().all(|cause| cause.contains("signed by an unknown CA")), "{:?}", error.causes());
    let by_address = Client::new(Options { ca_file: trusting_file, ..options(format!("https://127.0.0.1:{port}")) });
    let error = by_address.expect("a readable CA file").health().await.expect_err("another name");
    assert!(error.causes().iter().all(|cause| cause.contains("is for localhost, not for 127.0.0.1")), "{:?}", error.causes());
    let missing = Client::new(Options { ca_file: Some(dir.path().join("none.pem")), ..options(&endpoint) });
    assert!(matches!(missing.err(), Some(ClientError::Invalid { what: "CA file", .. })));
}

#[tokio::test]
async fn http_and_tls_mixed_up_are_told_in_words() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        // As a server of either kind answers what it does not understand: in its own protocol.
        for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x15\x03\x03\x00\x02\x02\x32"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut first = [0; 1];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await.expect("a byte");
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.expect("written");
            // What was sent is read, so that closing does not take the answer back.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.ok();
        }
    });
    let asked = |endpoint: String| async move {
        let client = Client::new(Options { retry: Retry::NONE, ..options(&endpoint) }).expect("plain options");
        client.health().await.expect_err("no server")
    };
    let plain = asked(format!("https://127.0.0.1:{port}")).await;
    assert_eq!(plain.causes(), ["the server does not speak TLS on this port"]);
    let tls = asked(format!("http://127.0.0.1:{port}")).await;
    assert!(tls.to_string().contains("use https:// in the address") && !tls.is_retryable(), "{tls}");
}

#[tokio::test]
async fn tracing_shows_requests_and_never_the_key() {
    let lines = Arc::new(Mutex::new(Vec::<(Detail, String)>::new()));
    let (sink, fake) = (lines.clone(), Fake::new(|_| accepted()));
    let mut options = options(format!("http://{}", fake.tcp().await));
    options.api_key = Some("rv_hunter2".to_owned());
    options.trace = Some(Arc::new(move |detail, line| sink.lock().expect("free").push((detail, line.to_owned()))));
    let mut submission = submission();
    submission.request.env.insert("PASSWORD".to_owned(), "hunter2".to_owned());
    Client::new(options).expect("plain options").run(&submission).await.expect("taken");
    assert_eq!(fake.seen()[0].header("x-api-key"), Some("rv_hunter2"));
    let lines = lines.lock().expect("free");
    let text = lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    assert!(text.contains("POST http://127.0.0.1") && text.contains("-> 202") && text.contains("PASSWORD"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(lines.iter().any(|(detail, _)| *detail == Detail::Brief));
}

#[tokio::test]
async fn an_answer_that_is_not_ours_is_called_so() {
    let fake = Fake::new(|_| Reply::Answer(200, Vec::new(), b"<html>router login</html>".to_vec()));
    let client = Client::new(options(format!("http://{}", fake.tcp().await))).expect("plain options");
    let error = client.whoami().await.expect_err("no JSON");
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}
