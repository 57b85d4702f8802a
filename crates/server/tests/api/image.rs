//! Images as clients meet them: register, list, show, unregister, and what a run makes of them.

use runvoy_model::event::{Entity, EntityType};
use runvoy_model::role::Role;
use runvoy_ports::store::{EventQuery, ExecutionStore as _};
use serde_json::{Value, json};

use crate::app::{Answer, TestApp};

async fn register(app: &TestApp, body: Value) -> Answer {
    app.post("/api/v1/images/register").role(Role::Operator).json(&body).send().await
}

async fn registered(app: &TestApp, body: Value) -> String {
    let answer = register(app, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["image_id"].as_str().expect("an id").to_owned()
}

/// The ids of all images, and of those that are the default.
async fn listed(app: &TestApp) -> (Vec<String>, Vec<String>) {
    let list = app.get("/api/v1/images").role(Role::Viewer).send().await.json();
    let images = list["images"].as_array().expect("images");
    let id = |image: &Value| image["image_id"].as_str().expect("an id").to_owned();
    let defaults = images.iter().filter(|image| image["is_default"] == true);
    (images.iter().map(id).collect(), defaults.map(id).collect())
}

#[tokio::test]
async fn the_built_in_image_is_first_and_the_default_until_another_is() {
    let app = TestApp::new().await;
    assert_eq!(listed(&app).await, (vec!["local".to_owned()], vec!["local".to_owned()]));
    let local = app.get("/api/v1/images/local").role(Role::Developer).send().await.json();
    assert_eq!((&local["image"], &local["runners"]), (&json!("local"), &json!(["process"])));
    let alpine = registered(&app, json!({"image": "alpine:3.20", "is_default": true})).await;
    assert_eq!(listed(&app).await, (vec!["local".to_owned(), alpine.clone()], vec![alpine.clone()]));
    let debian = registered(&app, json!({"image": "debian:13", "is_default": true})).await;
    assert_eq!(listed(&app).await.1, std::slice::from_ref(&debian), "one at a time");
    registered(&app, json!({"image": "alpine:3.20"})).await;
    assert_eq!(listed(&app).await.1, std::slice::from_ref(&debian), "registered again it does not become the default");
    assert_eq!(app.delete(&format!("/api/v1/images/{debian}")).role(Role::Operator).send().await.status, 200);
    assert_eq!(listed(&app).await, (vec!["local".to_owned(), alpine], vec!["local".to_owned()]));
}

#[tokio::test]
async fn an_image_is_found_by_id_and_by_name_however_the_path_is_written() {
    let app = TestApp::new().await;
    let body =
        json!({"image": "ghcr.io/team/tool:v1", "cpu": 256, "memory": 512, "runtime_platform": "Linux/ARM64", "task_role_name": "r"});
    let answer = register(&app, body).await;
    assert_eq!(answer.json()["image"], "ghcr.io/team/tool:v1");
    assert!(answer.json()["message"].as_str().expect("a message").contains("no worker of this server"), "{}", answer.text());
    let id = answer.json()["image_id"].as_str().expect("an id").to_owned();
    let escaped = "ghcr.io%2Fteam%2Ftool%3Av1";
    for path in [id.as_str(), &id.replace(':', "%3A"), "ghcr.io/team/tool:v1", escaped] {
        let image = app.get(&format!("/api/v1/images/{path}")).role(Role::Viewer).send().await;
        assert_eq!(image.status, 200, "{path}: {}", image.text());
        let image = image.json();
        assert_eq!(image["image_id"], id, "{path}");
        assert_eq!(
            (&image["image_registry"], &image["image_name"], &image["image_tag"]),
            (&json!("ghcr.io"), &json!("team/tool"), &json!("v1"))
        );
        assert_eq!((&image["cpu"], &image["memory"], &image["runtime_platform"]), (&json!(256), &json!(512), &json!("Linux/ARM64")));
        assert_eq!((&image["created_by"], &image["owned_by"]), (&json!("operator@example.com"), &json!(["operator@example.com"])));
        assert_eq!(image["runners"], json!(["container"]));
    }
    for path in ["nobody/has/it", "team/tool:v1", "ghcr.io/team/tool", "%2F", "a%20b"] {
        assert_eq!(app.get(&format!("/api/v1/images/{path}")).admin().send().await.code(), (404, "NOT_FOUND".into()), "{path}");
    }
    let gone = app.delete(&format!("/api/v1/images/{escaped}")).role(Role::Operator).send().await;
    assert_eq!((gone.status.as_u16(), &gone.json()["image"]), (200, &json!("ghcr.io/team/tool:v1")));
    assert_eq!(app.get(&format!("/api/v1/images/{escaped}")).admin().send().await.status, 404);
    assert_eq!(app.delete(&format!("/api/v1/images/{escaped}")).admin().send().await.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn what_is_wrong_with_an_image_is_named_and_nothing_is_registered() {
    let app = TestApp::new().await;
    for (body, field) in [
        (json!({"image": "$(id)"}), "image"),
        (json!({"image": "local"}), "image"),
        (json!({"image": "alpine", "cpu": 1}), "cpu"),
        (json!({"image": "alpine", "memory": 1}), "memory"),
        (json!({"image": "alpine", "runtime_platform": "Plan9/MIPS"}), "runtime_platform"),
        (json!({"image": "alpine", "task_role_name": "a b"}), "task_role_name"),
    ] {
        let answer = register(&app, body).await;
        assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
        assert!(answer.json()["error"].as_str().expect("details").starts_with(field), "{}", answer.text());
    }
    assert_eq!(app.delete("/api/v1/images/local").admin().send().await.code(), (409, "CONFLICT".into()));
    assert_eq!(listed(&app).await.0, ["local"]);
    for role in [Role::Developer, Role::Viewer] {
        let answer = app.post("/api/v1/images/register").role(role).json(&json!({"image": "alpine"})).send().await;
        assert_eq!(answer.code(), (403, "FORBIDDEN".into()));
    }
}

#[tokio::test]
async fn an_id_unregisters_one_image_and_a_reference_all_that_have_it() {
    let app = TestApp::new().await;
    let small = registered(&app, json!({"image": "alpine", "cpu": 256})).await;
    let large = registered(&app, json!({"image": "docker.io/library/alpine:latest", "cpu": 1024})).await;
    let medium = registered(&app, json!({"image": "alpine", "cpu": 512})).await;
    let other = registered(&app, json!({"image": "alpine:3.20"})).await;
    assert_ne!(small, large);
    let one = app.delete(&format!("/api/v1/images/{small}")).admin().send().await;
    assert_eq!((one.status.as_u16(), &one.json()["image_id"]), (200, &json!(small)));
    let answer = app.delete("/api/v1/images/alpine").admin().send().await;
    assert_eq!((answer.status.as_u16(), &answer.json()["image"]), (200, &json!("alpine")));
    assert!(answer.text().contains(&medium) && answer.text().contains(&large), "{}", answer.text());
    assert_eq!(listed(&app).await.0, ["local".to_owned(), other]);
    assert_eq!(app.delete("/api/v1/images/alpine").admin().send().await.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn an_unknown_image_says_how_to_register_it_and_one_that_nobody_serves_says_so() {
    let app = TestApp::new().await;
    let answer = app.post("/api/v1/run").role(Role::Developer).json(&json!({"command": "true", "image": "alpine"})).send().await;
    assert_eq!(answer.code(), (400, "INVALID_REQUEST".into()));
    assert!(answer.text().contains("runvoy images register alpine"), "{}", answer.text());
    let image = registered(&app, json!({"image": "alpine", "is_default": true})).await;
    for body in [json!({"command": "true"}), json!({"command": "true", "image": "alpine"}), json!({"command": "true", "image": image})] {
        let id = app.submit_as(Role::Developer, body).await;
        let status = app.get(&format!("/api/v1/executions/{id}/status")).role(Role::Developer).send().await.json();
        assert_eq!((&status["image_id"], &status["status"]), (&json!(image), &json!("PENDING")));
        assert_eq!(status["waiting_for"]["code"], "image");
        assert!(status["waiting_for"]["message"].as_str().expect("a message").contains("the connected workers run only"), "{status}");
    }
    let id = app.submit_as(Role::Developer, json!({"command": "true", "image": "local"})).await;
    assert_eq!(app.get(&format!("/api/v1/executions/{id}/status")).admin().send().await.json()["waiting_for"]["code"], "worker");
}

#[tokio::test]
async fn a_repeated_registration_is_one_and_each_leaves_one_event() {
    let app = TestApp::new().await;
    let ask = async |body: &Value| {
        app.post("/api/v1/images/register").admin().header("idempotency-key", "k1").header("x-request-id", "req-7").json(body).send().await
    };
    let first = ask(&json!({"image": "alpine"})).await;
    let again = ask(&json!({"image": "alpine"})).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16(), first.text()), (201, 201, again.text()));
    assert_eq!(ask(&json!({"image": "debian"})).await.code(), (409, "CONFLICT".into()));
    let id = first.json()["image_id"].as_str().expect("an id").to_owned();
    assert_eq!(app.delete(&format!("/api/v1/images/{id}")).admin().send().await.status, 200);
    let entity = Some(Entity { kind: EntityType::Image, id });
    let events = app.store.events(EventQuery { entity, limit: 10, ..EventQuery::default() }).await.expect("events");
    let actions: Vec<&str> = events.iter().filter_map(|stored| stored.event.properties["action"].as_str()).collect();
    assert_eq!(actions, ["images.register", "images.unregister"]);
    let properties = &events[0].event.properties;
    assert_eq!(
        (&properties["user"], &properties["apiRequestId"], &properties["result"]),
        (&json!("admin@example.com"), &json!("req-7"), &json!("ok"))
    );
}

#[tokio::test]
async fn a_default_that_nobody_can_run_is_told_with_what_waits_for_it() {
    let app = TestApp::new().await;
    let told = async |body: Value| {
        let answer = app.post("/api/v1/images/register").admin().json(&body).send().await.json();
        answer["message"].as_str().expect("a message").to_owned()
    };
    let plain = told(json!({"image": "alpine:3.20"})).await;
    assert!(plain.contains("that ask for it wait") && !plain.contains("for no image"), "{plain}");
    let default = told(json!({"image": "debian:13", "is_default": true})).await;
    assert!(default.contains("for no image wait") && default.contains("--image local"), "{default}");
}
