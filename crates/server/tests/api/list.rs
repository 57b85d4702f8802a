//! Lists: filters, pages, and all of it with flat memory.

use http::StatusCode;
use runvoy_model::role::Role;
use serde_json::{Value, json};

use crate::app::TestApp;

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("an array").iter().map(|item| item["execution_id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn pages_follow_one_another_without_gap_or_repeat() {
    let app = TestApp::new().await;
    let mut submitted = Vec::new();
    for _ in 0..23 {
        submitted.push(app.submit("true").await);
    }
    submitted.reverse();
    let first = app.get("/api/v1/executions/").admin().send().await;
    assert_eq!(ids(&first.json()), submitted[..10], "ten where nothing is said");
    let (mut seen, mut path) = (Vec::new(), "/api/v1/executions?limit=5".to_owned());
    loop {
        let page = app.get(&path).admin().send().await;
        seen.extend(ids(&page.json()));
        match page.header("x-next-cursor") {
            "" => break,
            cursor => path = format!("/api/v1/executions?limit=5&cursor={cursor}"),
        }
    }
    assert_eq!(seen, submitted);
}

#[tokio::test]
async fn all_are_one_array_read_in_pages() {
    let app = TestApp::new().await;
    assert_eq!(app.get("/api/v1/executions?limit=0").admin().send().await.json(), json!([]));
    let mut submitted = Vec::new();
    for n in 0..1_003 {
        submitted.push(app.submit("true").await);
        if n == 199 {
            let all = app.get("/api/v1/executions?limit=0").admin().send().await;
            assert_eq!(ids(&all.json()).len(), 200, "a page that is exactly full");
        }
    }
    submitted.reverse();
    app.store.list_limits.lock().clear();
    let all = app.get("/api/v1/executions?limit=0").admin().send().await;
    assert_eq!(ids(&all.json()), submitted);
    assert_eq!(all.header("x-next-cursor"), "");
    for (limit, expected, next) in [(1_001, 1_001, submitted[1_000].as_str()), (1_003, 1_003, ""), (u64::MAX, 1_003, "")] {
        let many = app.get(&format!("/api/v1/executions?limit={limit}")).admin().send().await;
        assert_eq!(ids(&many.json()), submitted[..expected], "{limit}");
        assert_eq!(many.header("x-next-cursor"), next, "{limit}");
    }
    let rest = app.get(&format!("/api/v1/executions?limit=5000&cursor={}", submitted[1_000])).admin().send().await;
    assert_eq!((ids(&rest.json()).as_slice(), rest.header("x-next-cursor")), (&submitted[1_001..], ""));
    assert!(app.store.list_limits.lock().iter().all(|limit| *limit <= 51), "no read was larger than a page");
}

#[tokio::test]
async fn a_page_ends_where_it_is_large_and_says_where_to_go_on() {
    let app = TestApp::new().await;
    let mut submitted = Vec::new();
    for _ in 0..20 {
        submitted.push(app.submit_as(Role::Admin, json!({"command": "true", "args": vec!["x".repeat(100_000); 9]})).await);
    }
    submitted.reverse();
    for query in ["limit=100", "limit=100&text=true"] {
        let first = app.get(&format!("/api/v1/executions?{query}")).admin().send().await;
        let (shown, next) = (ids(&first.json()), first.header("x-next-cursor"));
        assert!(first.text().len() < 17 << 20 && shown.len() < 20, "{query}: {}", shown.len());
        assert_eq!(Some(next), shown.last().map(String::as_str), "{query}");
        let rest = app.get(&format!("/api/v1/executions?{query}&cursor={next}")).admin().send().await;
        assert_eq!(([shown, ids(&rest.json())].concat(), rest.header("x-next-cursor")), (submitted.clone(), ""), "{query}");
    }
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let app = TestApp::new().await;
    let first = app.submit_as(Role::Developer, json!({"command": "true", "lock": "prod"})).await;
    app.clock.advance(60_000);
    let second = app.submit_as(Role::Operator, json!({"command": "true"})).await;
    let played = app.play().await;
    assert_eq!(played.execution.id.to_string(), first);
    let listed = async |query: &str| ids(&app.get(&format!("/api/v1/executions?{query}")).admin().send().await.json());
    assert_eq!(listed("status=PENDING").await, [second.as_str()]);
    assert_eq!(listed("status=PENDING,").await, [second.as_str()], "an empty word is none");
    assert_eq!(listed("status=running,pending").await, [second.clone(), first.clone()]);
    assert_eq!(listed("user=developer@example.com").await, [first.as_str()]);
    assert_eq!(listed("lock=prod").await, [first.as_str()]);
    assert_eq!(listed("since=2026-01-03T14:23:00Z").await, [second.as_str()]);
    assert_eq!(listed("until=2026-01-03T14:23:00Z").await, [first.as_str()]);
    assert_eq!(listed(&format!("job={}", "0a".repeat(16))).await, [""; 0]);
    assert_eq!(listed("status=FAILED&limit=0").await, [""; 0]);
}

#[tokio::test]
async fn a_text_is_found_in_commands_arguments_labels_ids_and_end_reasons() {
    let app = TestApp::new().await;
    let deploy = app.submit_as(Role::Admin, json!({"command": "Terraform apply"})).await;
    let labelled = app.submit_as(Role::Admin, json!({"command": "true", "labels": {"team": "terraforming"}})).await;
    let args = app.submit_as(Role::Admin, json!({"command": "env", "args": ["TERRAFORM=1"]})).await;
    app.submit("true").await;
    let hits = app.get("/api/v1/executions?text=terraform").admin().send().await;
    assert_eq!(ids(&hits.json()), [args, labelled.clone(), deploy.clone()]);
    assert_eq!((hits.header("x-looked-at"), hits.header("x-next-cursor")), ("4", ""));
    let first = app.get("/api/v1/executions?text=terraform&limit=2").admin().send().await;
    assert_eq!(first.header("x-next-cursor"), labelled);
    let rest = app.get(&format!("/api/v1/executions?text=terraform&limit=2&cursor={labelled}")).admin().send().await;
    assert_eq!((ids(&rest.json()), rest.header("x-next-cursor")), (vec![deploy.clone()], ""));
    let by_id = app.get(&format!("/api/v1/executions?text={}", &deploy[20..])).admin().send().await;
    assert_eq!(ids(&by_id.json()), [deploy]);
    let others = app.get("/api/v1/executions?text=terraform").role(Role::Developer).send().await;
    assert!(ids(&others.json()).is_empty(), "a text reaches no further than the caller does");
}

#[tokio::test]
async fn a_text_is_looked_for_in_so_many_at_once_and_the_page_says_where_to_go_on() {
    let app = TestApp::new().await;
    let needle = app.submit("needle").await;
    for _ in 0..10_000 {
        app.submit("true").await;
    }
    let first = app.get("/api/v1/executions?text=needle").admin().send().await;
    assert_eq!((ids(&first.json()).len(), first.header("x-looked-at")), (0, "10000"));
    let rest = app.get(&format!("/api/v1/executions?text=needle&cursor={}", first.header("x-next-cursor"))).admin().send().await;
    assert_eq!((ids(&rest.json()), rest.header("x-next-cursor")), (vec![needle.clone()], ""));
    let all = app.get("/api/v1/executions?text=needle&limit=0").admin().send().await;
    assert_eq!(ids(&all.json()), [needle.as_str()], "all of them, however many are looked at");
    let most = app.get("/api/v1/executions?limit=20000").admin().send().await;
    assert_eq!(ids(&most.json()).len(), 10_000, "no page is longer");
    let rest = app.get(&format!("/api/v1/executions?limit=20000&cursor={}", most.header("x-next-cursor"))).admin().send().await;
    assert_eq!((ids(&rest.json()), rest.header("x-next-cursor")), (vec![needle], ""), "and what is cut says where it goes on");
}

#[tokio::test]
async fn waiting_for_a_lock_names_its_holder() {
    let app = TestApp::new().await;
    app.submit_as(Role::Operator, json!({"command": "true", "lock": "prod"})).await;
    let waits = app.submit_as(Role::Developer, json!({"command": "true", "lock": "prod", "lock_wait": 60})).await;
    let reason = json!({"code": "lock", "message": "lock prod, held by operator@example.com"});
    let get = async |path: &str| app.get(path).role(Role::Developer).send().await;
    assert_eq!(get(&format!("/api/v1/executions/{waits}/status")).await.json()["waiting_for"], reason);
    assert_eq!(get("/api/v1/executions").await.json()[0]["waiting_for"], reason);
    let log = get(&format!("/api/v1/executions/{waits}/logs?from_line=1")).await.text();
    assert!(log.contains("queued, waiting for lock prod, held by operator@example.com"), "{log}");
}

/// As public clients send them where nothing was asked for. What narrows a list beyond the contract is never widened by a variable that is not set.
#[tokio::test]
async fn empty_parameters_of_the_contract_count_as_absent_and_others_are_refused() {
    let app = TestApp::new().await;
    for _ in 0..12 {
        app.submit("true").await;
    }
    let usual = app.get("/api/v1/executions").admin().send().await.json();
    for query in ["limit=&status=", "status=&limit=10", "limit="] {
        let answer = app.get(&format!("/api/v1/executions?{query}")).admin().send().await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!(answer.json(), usual, "{query}");
    }
    let id = app.ran(&["one"]).await;
    let keyed = app.get(&format!("/api/v1/executions/{id}/logs?token=")).admin().send().await;
    assert_eq!(keyed.status, StatusCode::OK, "an empty token is none: {}", keyed.text());
    assert_eq!(app.get(&format!("/api/v1/executions/{id}/logs?token=")).send().await.code(), (401, "UNAUTHORIZED".into()));
    for query in ["user=", "lock=", "queue=", "job=", "text=", "since=", "cursor="] {
        let refused = app.get(&format!("/api/v1/executions?{query}")).admin().send().await;
        assert_eq!(refused.code(), (400, "INVALID_REQUEST".into()), "{query}");
    }
}
