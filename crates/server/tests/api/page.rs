//! The web page as the server gives it: where it is built in, its files, their headers and their age; where it is not, a page that says so.

use http::StatusCode;

use crate::app::TestApp;

/// The page itself where the program was built with it; a machine without Node builds it without.
async fn built(app: &TestApp) -> Option<String> {
    let page = app.get("/").send().await.text();
    page.contains("id=\"app\"").then_some(page)
}

/// The addresses of the page's own files.
fn assets(page: &str) -> Vec<String> {
    let quoted = page.split('"').filter(|text| text.starts_with("./assets/"));
    quoted.map(|text| text.trim_start_matches('.').to_owned()).collect()
}

#[tokio::test]
async fn an_execution_s_address_leads_to_its_log_and_a_job_s_to_its_graph() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let home = app.get(&format!("/?execution_id={id}")).send().await;
    assert_eq!((home.status, home.header("location")), (StatusCode::FOUND, format!("/logs?execution_id={id}").as_str()));
    let slash = app.get(&format!("/logs/?execution_id={id}")).send().await;
    assert_eq!((slash.status, slash.header("location")), (StatusCode::FOUND, format!("/logs?execution_id={id}").as_str()));
    let job = app.get("/jobs/01920000000070060000000000000006").send().await;
    assert_eq!((job.status, job.header("location")), (StatusCode::FOUND, "/#/jobs/01920000000070060000000000000006"));
    let hostile = app.get("/jobs/%0d%0aX-Evil:%201").send().await;
    assert_eq!((hostile.status, hostile.header("location")), (StatusCode::FOUND, "/#/jobs"));
}

#[tokio::test]
async fn the_page_repeats_nothing_of_its_address_and_runs_nothing_of_others() {
    let app = TestApp::new().await;
    let id = app.submit("true").await;
    let page = app.get(&format!("/logs?execution_id={id}")).send().await;
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!((page.header("x-content-type-options"), page.header("referrer-policy")), ("nosniff", "no-referrer"));
    match built(&app).await {
        Some(built) => assert_eq!(page.text(), built),
        None => assert!(page.text().contains(&format!("runvoy logs {id}")) && page.text().contains("built without")),
    }
    let hostile = app.get("/logs?execution_id=%3Cscript%3Ealert(1)%3C/script%3E").send().await;
    assert_eq!(hostile.status, StatusCode::OK);
    assert!(!hostile.text().contains("alert(1)"));
}

#[tokio::test]
async fn the_page_loads_only_files_that_are_there_and_nothing_inline() {
    let app = TestApp::new().await;
    let Some(page) = built(&app).await else { return };
    let assets = assets(&page);
    assert!(assets.len() >= 2, "a script and a style: {page}");
    for asset in assets {
        let file = app.get(&asset).send().await;
        assert_eq!(file.status, StatusCode::OK, "{asset}");
        assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable", "{asset}");
        let held = file.header("etag").to_owned();
        let again = app.get(&asset).header("if-none-match", &held).send().await;
        assert_eq!((again.status, again.text().len()), (StatusCode::NOT_MODIFIED, 0), "{asset}");
        let packed = app.get(&asset).header("accept-encoding", "gzip").send().await;
        assert_eq!(packed.header("content-encoding"), "gzip", "{asset}");
    }
    assert!(
        !page.contains("<style")
            && !page.contains(" style=")
            && !page.split_whitespace().any(|word| word.starts_with("on") && word.contains('=')),
        "{page}"
    );
    assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\" crossorigin src=").count(), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    assert_eq!(app.get("/").send().await.header("cache-control"), "no-cache");
    assert_eq!(app.get("/assets/..%2findex.html").send().await.status, StatusCode::NOT_FOUND);
}
