//! Incidents reach people: the real binary, real commands, and a local webhook that is there, fails, hangs, and is away for a while.

mod harness;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use self::harness::{Server, Setup, count, eventually, promise};

/// How the webhook behaves.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Takes,
    Fails,
    Hangs,
}

struct Webhook {
    url: String,
    mood: Arc<Mutex<Mood>>,
    /// What was sent, but for what was answered with a failure.
    taken: Arc<Mutex<Vec<Value>>>,
    /// How often somebody came.
    visits: Arc<Mutex<u32>>,
}

impl Webhook {
    fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/services/s3cr3t-path", listener.local_addr().expect("an address"));
        let (mood, taken, visits) = (Arc::new(Mutex::new(mood)), Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<u32>>::default());
        let shared = (Arc::clone(&mood), Arc::clone(&taken), Arc::clone(&visits));
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                *shared.2.lock().expect("visits") += 1;
                let mood = *shared.0.lock().expect("a mood");
                if mood == Mood::Hangs {
                    held.push(stream);
                } else {
                    answer(stream, mood, &shared.1);
                }
            }
        });
        Self { url, mood, taken, visits }
    }

    fn setup(&self) -> Setup {
        Setup::default()
            .env("RUNVOY_SLACK_WEBHOOK_URL", &self.url)
            .env("RUNVOY_ALERTS_ALLOW_PRIVATE_ADDRESSES", "true")
            .env("RUNVOY_ALERTS_INTERVAL", "200ms")
            .env("RUNVOY_HEALTH_INTERVAL", "300ms")
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().expect("a mood") = mood;
    }

    /// How many messages say this, anywhere.
    fn count(&self, text: &str) -> usize {
        self.taken.lock().expect("messages").iter().filter(|said| said["text"].as_str().is_some_and(|said| said.contains(text))).count()
    }
}

/// Reads a message and answers it. One that is taken is in the list before its sender knows.
fn answer(stream: TcpStream, mood: Mood, taken: &Mutex<Vec<Value>>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    if mood == Mood::Takes {
        taken.lock().expect("messages").push(serde_json::from_slice(&body).expect("JSON"));
    }
    // One that fails repeats what it was asked for, which is a secret.
    let (status, said) = if mood == Mood::Takes { ("200 OK", "") } else { ("500 Oops", "no route for /services/s3cr3t-path") };
    stream.get_mut().write_all(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{said}", said.len()).as_bytes()).ok()
}

fn probe(server: &Server) -> Value {
    let probes = server.get("/api/v1/doctor").json();
    probes["probes"].as_array().expect("probes").iter().find(|probe| probe["name"] == "alerts").expect("a probe").clone()
}

#[test]
fn overtime_is_told_once_and_so_is_its_end() {
    let webhook = Webhook::start(Mood::Takes);
    let server = webhook.setup().env("RUNVOY_HEALTH_OVERTIME_AFTER", "500ms").start();
    let id = server.run(": '<!channel>'; sleep 300");
    eventually("the beginning is told", || webhook.count("Overtime") == 1);
    let health = server.get(&format!("/api/v1/health/tasks/{id}")).json();
    assert_eq!((&health["health"], &health["requestId"]), (&json!("overtime"), &json!(id)));
    let all = server.get("/api/v1/health/tasks").json();
    assert_eq!(all["summary"], json!({"totalProcessing": 1, "healthy": 0, "warning": 0, "critical": 0, "overtime": 1}));
    assert_eq!(server.cli(&["health", "tasks"]).status.code(), Some(1), "somebody should look");
    assert_eq!(server.http().delete(&format!("/api/v1/executions/{id}")).status, 200);
    server.wait(&id);
    eventually("the end is told", || webhook.count("it finished as STOPPED") == 1);
    assert_eq!(server.get(&format!("/api/v1/health/tasks/{id}")).status, 409);
    assert_eq!(server.get("/api/v1/health/tasks/0123456789abcdef0123456789abcdef").status, 404);
    let done = server.run("true");
    server.wait(&done);
    // A few more looks: nothing is told again.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!((webhook.count("Overtime"), webhook.count("it finished as STOPPED")), (1, 1));
    let taken = webhook.taken.lock().expect("messages").clone();
    let shown = taken[0].to_string();
    assert!(!shown.contains("!channel"), "{shown}");
    let page = format!("{}/logs?execution_id={id}|", server.url);
    assert!(taken.iter().all(|said| said.to_string().contains(&page)), "{page}: {shown}");
    let events = server.get("/api/v1/audit/verify").json();
    assert_eq!(events["ok"], true, "{events}");
    assert!(probe(&server)["detail"].as_str().is_some_and(|detail| detail.starts_with("to 127.0.0.1; last message ")));
}

#[test]
fn a_webhook_that_is_away_slows_nobody_and_loses_nothing() {
    let webhook = Webhook::start(Mood::Hangs);
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let critical = |setup: Setup| setup.env("RUNVOY_HEALTH_HEALTHY_WITHIN", "300ms").env("RUNVOY_HEALTH_WARNING_WITHIN", "600ms");
    let mut server = critical(webhook.setup()).start_in(&data);
    let id = server.run("sleep 4");
    eventually("somebody was to be told", || *webhook.visits.lock().expect("visits") > 0);
    // While the webhook hangs, everything else goes on.
    for _ in 0..5 {
        assert_eq!(server.wait(&server.run("true"))["exit_code"], 0);
    }
    assert_eq!(server.wait(&id)["exit_code"], 0);
    server.kill_9();
    webhook.set(Mood::Fails);
    let before = *webhook.visits.lock().expect("visits");
    let server = critical(webhook.setup()).start_in(&data);
    eventually("it is tried after the restart", || *webhook.visits.lock().expect("visits") > before);
    eventually("the failure is known", || probe(&server)["status"] == "warn");
    let detail = probe(&server).to_string();
    assert!(detail.contains("answered 500") && !detail.contains("s3cr3t"), "{detail}");
    webhook.set(Mood::Takes);
    eventually("it is told", || webhook.count(&id) == 1);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(webhook.count(&id), 1, "once");
    assert_eq!(webhook.count("critical execution"), 1);
}

/// How many dead letters the messages so far tell of, as their titles count them.
fn dead_letters(webhook: &Webhook) -> usize {
    let taken = webhook.taken.lock().expect("messages");
    let counted = |said: &Value| {
        let title = said["blocks"][0]["text"]["text"].as_str().expect("a title").to_owned();
        assert!(title.contains("ead letter"), "{title}");
        let number = title.split_whitespace().zip(title.split_whitespace().skip(1)).find(|(_, word)| *word == "dead");
        number.map_or(1, |(number, _)| number.parse().expect("a number"))
    };
    taken.iter().map(counted).sum()
}

#[test]
fn promise_25_what_fails_for_good_is_told_once_and_many_are_one_message() {
    let webhook = Webhook::start(Mood::Takes);
    let letters = count(40, 1_000);
    // At full counts as often as by default: once a minute.
    let interval = Duration::from_secs(count(2, 60) as u64);
    let server = webhook.setup().env("RUNVOY_ALERTS_INTERVAL", &format!("{}s", interval.as_secs())).start();
    let poison = json!({"command": "exit 69", "retries": 1});
    let first = server.run_with(poison.clone());
    assert_eq!(server.wait(&first)["attempt"], 2);
    eventually("the first is told", || webhook.count(&first) == 1);
    let began = std::time::Instant::now();
    let ids: Vec<String> = (1..letters).map(|_| server.run_with(poison.clone())).collect();
    ids.iter().for_each(|id| drop(server.wait(id)));
    eventually("all of them are told", || dead_letters(&webhook) == letters);
    let messages = webhook.taken.lock().expect("messages").len() as u64;
    let most = 1 + began.elapsed().as_secs() / interval.as_secs() + 1;
    assert!(messages <= most, "{messages} messages, {most} may be");
    std::thread::sleep(interval + Duration::from_secs(1));
    assert_eq!((dead_letters(&webhook), webhook.count(&first)), (letters, 1), "nothing is told twice");
    assert!(server.get("/api/v1/queues/default/dead?limit=1").json()[0]["execution_id"].is_string());
    promise(25, "poison job: one alert, grouped", format!("{letters} dead letters"), format!("{messages} messages"));
}

#[test]
fn security_13_no_message_shows_a_secret() {
    const CANARY: &str = "canary-5c1e-value";
    let webhook = Webhook::start(Mood::Takes);
    let server = webhook.setup().start();
    let secret = json!({"name": "db", "key_name": "DB", "value": CANARY});
    assert_eq!(server.http().post("/api/v1/secrets", &secret).status, 201);
    let command = r#"printf '{"category":"network","message":"token %s is refused"}' "$DB" > "$RUNVOY_ERROR"; exit 69"#;
    let id = server.run_with(json!({"command": command, "secrets": ["db"], "retries": 1}));
    assert_eq!(server.wait(&id)["exit_code"], 69);
    eventually("it is told", || webhook.count(&id) == 1);
    let taken = webhook.taken.lock().expect("messages")[0].to_string();
    assert!(taken.contains("token *** is refused") && !taken.contains(CANARY), "{taken}");
}

#[test]
fn a_message_can_be_tried() {
    let webhook = Webhook::start(Mood::Takes);
    let server = webhook.setup().start();
    let tried = server.cli(&["alerts", "test"]);
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
    assert_eq!(webhook.count("Test: runvoy alerts arrive here"), 1);
    webhook.set(Mood::Fails);
    let tried = server.cli(&["alerts", "test"]);
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(!tried.status.success() && said.contains("answered 500") && !said.contains("s3cr3t"), "{said}");
    drop(server);
    let without = Server::start();
    let tried = without.cli(&["alerts", "test"]);
    assert!(String::from_utf8_lossy(&tried.stderr).contains("alerts.slack_webhook_url"));
    assert_eq!(probe(&without)["status"], "ok");
}

#[test]
fn security_13_a_webhook_in_a_file_that_others_may_read_keeps_the_server_from_starting() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (data, config) = (home.path().join("data"), home.path().join("own.yaml"));
    for (name, text, mode, refused) in [
        (data.join("server.yaml"), "alerts: {slack_webhook_url: 'https://hooks.example.com/s3cr3t'}\n", 0o644, true),
        (config.clone(), "alerts.slack_webhook_url: https://hooks.example.com/s3cr3t\n", 0o640, true),
        (config, "alerts.slack_webhook_url: https://hooks.example.com/s3cr3t\nworker: s3cr3t?\n", 0o600, false),
    ] {
        std::fs::create_dir_all(&data).expect("a directory");
        std::fs::write(&name, text).expect("written");
        std::fs::set_permissions(&name, std::fs::Permissions::from_mode(mode)).expect("permissions");
        let mut serve = std::process::Command::new(harness::binary());
        serve.arg("serve").arg("--data-dir").arg(&data).args(["--listen", "127.0.0.1:0"]);
        if name.parent() != Some(&data) {
            serve.arg("--config").arg(&name);
        }
        let output = serve.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !said.contains("hooks.example.com"), "{said}");
        assert_eq!(said.contains(&format!("chmod 600 {}", name.display())), refused, "{said}");
    }
}
