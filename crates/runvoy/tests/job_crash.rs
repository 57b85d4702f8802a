//! Jobs through crashes of the real server: random DAGs whose server is killed at any instant, again and again. At the end every task stands where the
//! DAG alone says, none began before its parents were done, each was released once in a generation, and the store says the same as its events.

mod harness;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use self::harness::http::{Answer, Http};
use self::harness::{Server, Setup, aws, binary, count, process, promise};

/// A seed gives the same numbers for ever (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % limit
    }

    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).expect("below a usize")
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A task: whom it waits for, and how often it fails before it succeeds; `None` is always.
struct Part {
    parents: Vec<usize>,
    fails: Option<u32>,
    retries: u32,
}

struct Dag {
    parts: Vec<Part>,
    /// Where each batch ends.
    batches: Vec<usize>,
    /// Where its commands leave their marks.
    marks: PathBuf,
    /// Somebody ends it on its way.
    is_cancelled: bool,
}

impl Dag {
    fn new(chance: &mut Chance, marks: PathBuf) -> Self {
        let tasks = 5 + chance.index(36);
        let is_hopeless = chance.percent(30);
        let mut parts = Vec::with_capacity(tasks);
        for number in 0..tasks {
            let wanted = if chance.percent(8) { 12 } else { chance.index(4) };
            let mut parents: Vec<_> = (0..wanted.min(number)).map(|_| number - 1 - chance.index(number.min(8))).collect();
            parents.sort_unstable();
            parents.dedup();
            let fails = match chance.below(20) {
                0..3 => Some(1),
                3 if is_hopeless => None,
                _ => Some(0),
            };
            parts.push(Part { parents, fails, retries: u32::from(chance.percent(30)) });
        }
        let mut batches = vec![1 + chance.index(tasks), 1 + chance.index(tasks), tasks];
        batches.sort_unstable();
        batches.dedup();
        Self { parts, batches, marks, is_cancelled: chance.percent(12) }
    }

    /// The tasks of a batch as a client sends them. A command leaves a mark where one of its parents was not done when it began.
    fn batch(&self, batch: usize) -> Value {
        let from = if batch == 0 { 0 } else { self.batches[batch - 1] };
        let task = |number: usize| {
            let Part { parents, fails, retries } = &self.parts[number];
            let names: Vec<_> = parents.iter().map(|parent| format!("t{parent}")).collect();
            let fails = fails.map_or_else(|| "999999".to_owned(), |fails| fails.to_string());
            let command = format!(
                "cd {} || exit 70; for p in {}; do [ -e $p.done ] || touch early-t{number}-$p; done; \
                 n=$(cat t{number}.n 2>/dev/null || echo 0); echo $((n + 1)) > t{number}.n; sleep 0.0{}; \
                 [ \"$n\" -ge {fails} ] || exit 64; touch t{number}.done",
                self.marks.display(),
                names.join(" "),
                number % 7,
            );
            json!({"taskId": format!("t{number}"), "dependsOn": names, "command": command, "retries": retries})
        };
        (from..self.batches[batch]).map(task).collect()
    }

    /// The status of each task when nothing can move any more.
    fn end(&self, opened: usize) -> Vec<&'static str> {
        let mut statuses: Vec<&'static str> = Vec::new();
        for part in &self.parts[..self.batches[opened - 1]] {
            let is_free = part.parents.iter().all(|parent| statuses[*parent] == "SUCCEEDED");
            statuses.push(match part.fails {
                _ if !is_free => "WAITING",
                Some(_) => "SUCCEEDED",
                None => "FAILED",
            });
        }
        statuses
    }
}

/// What the client knows: what it was told, and what it has asked for and heard nothing of.
struct Client {
    dag: Dag,
    name: String,
    job: Option<String>,
    opened: usize,
    resumes: usize,
    /// Those that were asked for: the last one may have been done though its answer was lost.
    asked_resumes: usize,
    is_closed: bool,
}

/// The server went away.
struct Gone;

impl Client {
    fn new(dag: Dag, name: String) -> Self {
        Self { dag, name, job: None, opened: 0, resumes: 0, asked_resumes: 0, is_closed: false }
    }

    /// One call with a key of its own, so that it can be made again after a crash.
    fn post(&self, http: &mut Http, path: &str, body: &Value, what: &str) -> Result<Answer, Gone> {
        let key = format!("{}-{what}", self.name);
        http.try_post(path, body, &[("idempotency-key", &key)]).map_err(|_| Gone)
    }

    /// Submits, adds, resumes and looks until nothing is left to do, or the server is gone.
    fn drive(&mut self, http: &mut Http, chance: &mut Chance) -> Result<(), Gone> {
        loop {
            let Some(job) = self.job.clone() else {
                self.submit(http)?;
                continue;
            };
            let shown = http.send("GET", &format!("/api/v1/jobs/{job}"), &[], b"").map_err(|_| Gone)?;
            assert_eq!(shown.status, 200, "an acknowledged job is gone: {}", shown.text());
            let Ok(shown) = serde_json::from_slice::<Value>(&shown.body) else { return Err(Gone) };
            let (status, failed) = (shown["status"].as_str().expect("a status"), shown["taskCounts"]["failed"].as_u64());
            let may_add = !self.is_closed && self.opened < self.dag.batches.len();
            match status {
                "CANCELLED" if is_at_rest(&shown) => return Ok(()),
                "CANCELLED" => std::thread::sleep(Duration::from_millis(15)),
                "RUNNING" | "FAILED" if self.dag.is_cancelled && chance.percent(8) => self.cancel(http, &job)?,
                "COMPLETED" if !may_add => return Ok(()),
                _ if may_add && (status != "RUNNING" || chance.percent(10)) => self.add(http, &job)?,
                "FAILED" if !self.can_succeed(&shown) => return Ok(()),
                "FAILED" => self.resume(http, &job)?,
                _ if failed > Some(0) && chance.percent(5) => self.resume(http, &job)?,
                _ => std::thread::sleep(Duration::from_millis(15)),
            }
        }
    }

    fn submit(&mut self, http: &mut Http) -> Result<(), Gone> {
        let request = json!({"name": self.name, "tasks": self.dag.batch(0)});
        let answer = self.post(http, "/api/v1/jobs", &request, "open")?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        (self.job, self.opened) = (Some(answer.json()["jobId"].as_str().expect("an id").to_owned()), 1);
        Ok(())
    }

    fn add(&mut self, http: &mut Http, job: &str) -> Result<(), Gone> {
        let request = json!({"tasks": self.dag.batch(self.opened)});
        let answer = self.post(http, &format!("/api/v1/jobs/{job}/tasks"), &request, &format!("add-{}", self.opened))?;
        match answer.status {
            200 | 201 => self.opened += 1,
            // All that it had was done before.
            409 => {
                let shown = http.send("GET", &format!("/api/v1/jobs/{job}?tasks=0"), &[], b"").map_err(|_| Gone)?;
                self.is_closed = shown.json()["status"] == "COMPLETED";
            }
            _ => panic!("{}", answer.text()),
        }
        Ok(())
    }

    fn resume(&mut self, http: &mut Http, job: &str) -> Result<(), Gone> {
        self.asked_resumes = self.resumes + 1;
        let answer = self.post(http, &format!("/api/v1/jobs/{job}/resume"), &json!({}), &format!("resume-{}", self.resumes))?;
        assert!(matches!(answer.status, 200 | 409), "{}", answer.text());
        self.resumes += 1;
        Ok(())
    }

    fn cancel(&self, http: &mut Http, job: &str) -> Result<(), Gone> {
        let answer = http.try_post(&format!("/api/v1/jobs/{job}/cancel"), &json!({}), &[]).map_err(|_| Gone)?;
        // It may be done by now.
        assert!(matches!(answer.status, 200 | 409), "{}", answer.text());
        Ok(())
    }

    fn can_succeed(&self, shown: &Value) -> bool {
        let tasks = shown["tasks"].as_array().expect("tasks");
        tasks.iter().any(|task| matches!(task["status"].as_str(), Some("FAILED" | "STOPPED")) && self.part(task).fails.is_some())
    }

    fn part(&self, task: &Value) -> &Part {
        let number: usize = task["taskId"].as_str().expect("an id")[1..].parse().expect("a number");
        &self.dag.parts[number]
    }
}

/// Nothing of it runs or waits for a worker.
fn is_at_rest(shown: &Value) -> bool {
    let rests = |task: &Value| matches!(task["status"].as_str(), Some("WAITING" | "SUCCEEDED" | "FAILED" | "STOPPED"));
    shown["tasks"].as_array().expect("tasks").iter().all(rests)
}

/// Kills the server after a while, from beside.
fn kill_soon(server: &Server, after: Duration) -> std::thread::JoinHandle<()> {
    let pid = server.pid();
    std::thread::spawn(move || {
        std::thread::sleep(after);
        process::signal(pid, libc::SIGKILL);
    })
}

/// Plays one DAG to its end; tells how often its server was killed, and how many attempts ended with it.
fn play(seed: u64, data: &Path, marks: PathBuf) -> (usize, usize) {
    let mut chance = Chance(seed);
    let mut client = Client::new(Dag::new(&mut chance, marks), format!("dag-{seed}"));
    let kills = 3 + chance.index(4);
    for _ in 0..kills {
        let mut server = Setup::default().start_in(data);
        let killer = kill_soon(&server, Duration::from_millis(chance.below(700)));
        // Where all is done before, the kill meets a server at rest.
        let _ = client.drive(&mut server.http(), &mut chance);
        killer.join().expect("no panic");
        server.kill_9();
    }
    let server = Setup::default().start_in(data);
    assert!(client.drive(&mut server.http(), &mut chance).is_ok(), "DAG {seed}: the server is gone");
    (kills, check(seed, &server, &client))
}

fn check(seed: u64, server: &Server, client: &Client) -> usize {
    let job = client.job.as_deref().expect("it was submitted");
    let shown = server.get(&format!("/api/v1/jobs/{job}")).json();
    let tasks = shown["tasks"].as_array().expect("tasks");
    let expected = client.dag.end(client.opened);
    let statuses: Vec<_> = tasks.iter().map(|task| task["status"].as_str().expect("a status")).collect();
    let is_done = if shown["status"] == "CANCELLED" {
        assert!(client.dag.is_cancelled, "DAG {seed}: nobody asked for that");
        false
    } else {
        assert_eq!(statuses, expected, "DAG {seed}: {shown}");
        let is_done = expected.iter().all(|status| *status == "SUCCEEDED");
        assert_eq!(shown["status"], if is_done { "COMPLETED" } else { "FAILED" }, "DAG {seed}");
        is_done
    };
    let early: Vec<_> =
        std::fs::read_dir(&client.dag.marks).expect("marks").filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    assert!(!early.iter().any(|name| name.starts_with("early-")), "DAG {seed}: somebody began before its parents were done: {early:?}");
    let lost = tasks.iter().map(|task| check_events(seed, server, job, task)).sum();
    let events = server.get(&format!("/api/v1/events?entity=JOB:{job}&order=asc&limit=1000")).json();
    let told = |kind: &str| events.as_array().expect("events").iter().filter(|event| event["eventType"] == kind).count();
    assert_eq!((told("Job Created"), told("Job Completed")), (1, usize::from(is_done)), "DAG {seed}");
    assert!(told("Job Failure Detected") <= 1 + client.asked_resumes, "DAG {seed}: once in a generation");
    lost
}

/// Each execution of a task is released once, in a generation of its own, and ends once. Tells how many attempts of it were lost with their server.
fn check_events(seed: u64, server: &Server, job: &str, task: &Value) -> usize {
    let id = task["taskId"].as_str().expect("an id");
    let events = server.get(&format!("/api/v1/jobs/{job}/tasks/{id}/events")).json();
    let events: Vec<&Value> = events.as_array().expect("events").iter().filter(|event| event["properties"]["late"] != true).collect();
    let about: BTreeSet<&str> = events.iter().map(|event| event["entityId"].as_str().expect("an id")).collect();
    let mut generations = BTreeSet::new();
    for execution in about {
        let own = || events.iter().filter(|event| event["entityId"] == execution);
        let released: Vec<_> = own().filter_map(|event| event["properties"]["generation"].as_u64()).collect();
        assert_eq!(released.len(), 1, "DAG {seed}: {id} was released {released:?}");
        assert!(generations.insert(released[0]), "DAG {seed}: {id} was released twice in generation {}", released[0]);
        let ends = ["Task Completed", "Task Failed", "Task Timeout", "Task Stopped"];
        let ended = own().filter(|event| ends.contains(&event["eventType"].as_str().expect("a type"))).count();
        assert_eq!(ended, 1, "DAG {seed}: {id} as {execution}");
    }
    let done = events.iter().filter(|event| event["eventType"] == "Task Completed").count();
    assert_eq!(done, usize::from(task["status"] == "SUCCEEDED"), "DAG {seed}: {id}");
    let failed = |event: &&&Value| matches!(event["eventType"].as_str(), Some("Task Processing Failed" | "Task Failed"));
    let attempts: BTreeSet<_> = events
        .iter()
        .filter(failed)
        .filter(|event| event["properties"]["error"].as_str().is_some_and(|error| !error.starts_with("exit code")))
        .map(|event| (&event["entityId"], event["properties"]["attemptNumber"].as_u64().or(event["properties"]["attempt"].as_u64())))
        .map(|(execution, attempt)| (execution.to_string(), attempt))
        .collect();
    attempts.len()
}

/// Asks whether all that is kept follows from the events: the files of a directory, or where there are none a server.
fn compare(data: &Path) -> Value {
    if aws::is_asked_for() {
        let found = Setup::default().start_in(data).get("/api/v1/audit/verify?state=true").json();
        assert_eq!(found["ok"], true, "{found}");
        return found;
    }
    let mut command = std::process::Command::new(binary());
    command.args(["audit", "verify", "--state", "--json", "--data-dir"]).arg(data).env_clear().env("HOME", data);
    let output = command.output().expect("it runs");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((output.status.code(), &found["ok"]), (Some(0), &json!(true)), "{found}");
    found
}

#[test]
fn promise_13_every_dag_ends_as_it_must_though_its_server_is_killed() {
    let dags = count(3, 50);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let (mut kills, mut lost) = (0, 0);
    for number in 0..dags as u64 {
        // Other DAGs and other instants in every run; a seed is named where it fails.
        let seed = since_1970.as_secs() + number;
        let marks = dir.path().join(format!("marks-{seed}"));
        std::fs::create_dir(&marks).expect("a directory");
        let (killed, cut) = play(seed, &data, marks);
        (kills, lost) = (kills + killed, lost + cut);
        compare(&data);
    }
    let mut server = Setup::default().start_in(&data);
    let found = server.get("/api/v1/audit/verify?state=true").json();
    assert_eq!(found["ok"], true, "{found}");
    server.kill_9();
    let compared = compare(&data)["compared"].as_u64().expect("a number");
    promise(
        13,
        "every random DAG ends as it must though its server is killed",
        format!("{dags} DAGs of up to 40 tasks, {kills} kills, {lost} attempts lost with them"),
        format!("ok, {compared} states follow from the events"),
    );
}
