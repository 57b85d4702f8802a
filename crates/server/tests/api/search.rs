//! Searches that take long: a deadline, places for every user, and clients that leave.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::poll;
use runvoy_conformance::tap::{LogTap, Tapped};
use runvoy_model::id::ExecutionId;
use runvoy_model::role::Role;
use runvoy_ports::log::{Found, LogError, LogStore, Search};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::app::{Answer, TestApp, key_of};

/// Logs in which a search for `slow` goes on until it is stopped. Other searches end at once.
struct SlowLogs {
    inner: Arc<dyn LogStore>,
    /// How many slow searches are under way.
    slow: watch::Sender<usize>,
    most: AtomicUsize,
}

#[async_trait]
impl LogTap for SlowLogs {
    fn inner(&self) -> &dyn LogStore {
        &*self.inner
    }

    async fn search(&self, id: ExecutionId, search: Search) -> Result<Found, LogError> {
        if search.pattern != "slow" {
            return self.inner.search(id, search).await;
        }
        self.slow.send_modify(|slow| *slow += 1);
        self.most.fetch_max(*self.slow.borrow(), Ordering::Relaxed);
        while !search.stop.is_set() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.slow.send_modify(|slow| *slow -= 1);
        Ok(Found { total: 1, hits: vec![(1, b"slow".to_vec())], next_line: Some(2), is_stopped: true })
    }
}

struct Scene {
    app: TestApp,
    logs: Arc<Tapped<SlowLogs>>,
    path: String,
}

impl Scene {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let id = app.submit("make deploy").await;
        let inner = Arc::clone(&app.engine.ports().logs);
        let logs = Arc::new(Tapped(SlowLogs { inner, slow: watch::Sender::new(0), most: AtomicUsize::new(0) }));
        let app = app.rewired(|ports| ports.logs = Arc::clone(&logs) as _);
        Self { app, logs, path: format!("/api/v1/executions/{id}/logs/search?q=") }
    }

    fn search(&self, role: Role, text: &str) -> impl Future<Output = Answer> {
        self.app.get(&format!("{}{text}", self.path)).role(role).send()
    }

    async fn until_under_way(&self, count: usize) {
        self.logs.slow.subscribe().wait_for(|slow| *slow == count).await.expect("the logs are there");
    }
}

#[tokio::test(start_paused = true)]
async fn security_29_slow_searches_of_one_user_leave_room_for_others() {
    let scene = Scene::new().await;
    let mut slow: Vec<_> = (0..4).map(|_| Box::pin(scene.search(Role::Admin, "slow"))).collect();
    for search in &mut slow {
        assert!(poll!(search).is_pending());
    }
    scene.until_under_way(2).await;
    let quick = scene.search(Role::Operator, "out").await;
    assert_eq!((quick.status.as_u16(), quick.json()["complete"].as_bool()), (200, Some(true)));
    assert_eq!(scene.logs.most.load(Ordering::Relaxed), 2, "one user has half of the places");
    assert_eq!(*scene.logs.slow.borrow(), 2, "the slow ones were still under way");
}

#[tokio::test(start_paused = true)]
async fn security_29_abandoned_searches_free_their_places() {
    let scene = Scene::new().await;
    {
        let mut slow = pin!(futures_util::future::join_all((0..4).map(|_| scene.search(Role::Admin, "slow"))));
        assert!(poll!(&mut slow).is_pending());
        tokio::select! {
            _ = &mut slow => panic!("slow searches go on"),
            () = scene.until_under_way(2) => {}
        }
    }
    let quick = scene.search(Role::Admin, "out").await;
    assert_eq!(quick.status.as_u16(), 200);
    assert_eq!(*scene.logs.slow.borrow(), 0, "nothing is searched for those who have left");
}

#[tokio::test(start_paused = true)]
async fn a_search_answers_at_its_deadline_with_what_it_found() {
    let scene = Scene::new().await;
    let found = scene.search(Role::Admin, "slow").await.json();
    assert_eq!(found, json!({"total": 1, "hits": [{"line": 1, "message": "slow"}], "next_line": 2, "complete": false}));
}

#[tokio::test(start_paused = true)]
async fn a_search_that_finds_no_place_is_told_the_limit() {
    let scene = Scene::new().await;
    let answers = futures_util::future::join_all((0..3).map(|_| scene.search(Role::Admin, "slow"))).await;
    let statuses: HashSet<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    assert_eq!(statuses, HashSet::from([200, 429]));
    let refused = answers.iter().find(|answer| answer.status.as_u16() == 429).expect("one found no place");
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(refused.code().1, "RATE_LIMITED");
    assert!(refused.text().contains("2 of one user"), "{}", refused.text());
}

#[tokio::test]
async fn a_search_ends_when_its_client_leaves() {
    let scene = Scene::new().await;
    let served = scene.app.listen().await;
    let mut connection = TcpStream::connect(&served.address).await.expect("the server listens");
    let request = format!("GET {}slow HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\n\r\n", scene.path, key_of(Role::Admin));
    connection.write_all(request.as_bytes()).await.expect("sent");
    scene.until_under_way(1).await;
    drop(connection);
    scene.until_under_way(0).await;
}
