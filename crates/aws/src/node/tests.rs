//! Tasks and edges as items: what goes in comes out, and every look finds what the reference would.

use runvoy_memory::MemoryBlobStore;
use runvoy_model::id::ExecutionId;
use runvoy_model::job::JobStatus;
use runvoy_model::view::Standing;
use serde_json::json;

use super::*;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::job::tests::{job, job_id, tables};
use crate::table::Table;

const JOB: JobId = JobId::from_bytes([7; 16]);

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn node(task: &str, place: u32) -> Node {
    let spec = json!({"command": "echo é", "image": "local", "queue": "default", "priority": 3, "retries": 1});
    Node {
        job: JOB,
        task: name(task),
        place,
        batch: u64::MAX - 1,
        name: format!("the task {task}"),
        depends_on: vec![name("a"), name("b/c")],
        input: Some(Payload::Inline(json!({"é": [1.5, null, 18_446_744_073_709_551_615_u64]}))),
        spec: serde_json::from_value(spec).expect("a spec"),
        revision: None,
        phase: Phase::Waiting,
        looked: 2,
        open_parents: 1,
        marked: false,
        generation: 3,
        execution: None,
        output: None,
    }
}

#[tokio::test]
async fn a_task_is_read_back_as_it_was_written() {
    let blobs = MemoryBlobStore::default();
    let plain = node("t", 4);
    let done = Node {
        phase: Phase::Completed,
        marked: true,
        execution: Some(ExecutionId::from_bytes([9; 16])),
        output: Some(Payload::Blob { key: "ab".repeat(32), bytes: 300_000 }),
        ..plain.clone()
    };
    for node in [plain, done] {
        assert_eq!(from_item(&to_item(&node), &blobs).await.expect("a task"), node);
    }
}

#[tokio::test]
async fn what_is_large_of_a_task_lies_in_the_blob_store() {
    let blobs = MemoryBlobStore::default();
    let mut large = node("t", 4);
    large.spec.command = "x".repeat(MOST_INLINE);
    let lost = from_item(&to_item(&large), &blobs).await.expect("what is left of it");
    assert!(lost.spec.is_lost(), "nothing was kept before");
    assert_eq!((lost.phase, lost.open_parents, lost.task), (large.phase, large.open_parents, large.task.clone()));
    store_large(&large, None, &blobs).await.expect("kept");
    assert!(text(&to_item(&large)["fixed_blob"].as_s().expect("a key")).len() < 100 && !to_item(&large).contains_key("fixed"));
    let mut done = Node { phase: Phase::Completed, ..large.clone() };
    done.output = Some(Payload::Inline(json!("y".repeat(150_000))));
    store_large(&done, Some(&large), &blobs).await.expect("kept");
    assert_eq!(from_item(&to_item(&done), &blobs).await.expect("a task"), done);
    let fresh = MemoryBlobStore::default();
    store_large(&done, Some(&done), &fresh).await.expect("nothing to keep");
    assert!(from_item(&to_item(&done), &fresh).await.is_err(), "what was kept before is not kept again");
}

#[test]
fn a_task_stands_in_one_way() {
    let stand = |phase, marked| stand(&Node { phase, marked, ..node("t", 12) });
    assert_eq!(stand(Phase::Staged, false).as_deref(), Some("staged#18446744073709551614#0000000012"));
    assert_eq!(stand(Phase::Ready, false).as_deref(), Some("ready#0000000012"));
    assert_eq!(stand(Phase::Failed, false).as_deref(), Some("failed#0000000012"));
    assert_eq!(stand(Phase::Completed, true).as_deref(), Some("marked#0000000012"));
    for phase in [Phase::Completed, Phase::Waiting, Phase::Active] {
        assert_eq!(stand(phase, false), None);
    }
}

/// A job with tasks of every phase, in a table.
struct Shelf {
    dynamo: Dynamo,
    blobs: MemoryBlobStore,
    nodes: Vec<Node>,
}

const PHASES: [Phase; 6] = [Phase::Waiting, Phase::Ready, Phase::Failed, Phase::Completed, Phase::Active, Phase::Staged];

impl Shelf {
    async fn new() -> Self {
        let (dynamo, config) = tables().await;
        let blobs = MemoryBlobStore::default();
        let mut nodes = Vec::new();
        for place in 0..120_u32 {
            let phase = PHASES[place as usize % PHASES.len()];
            nodes.push(Node {
                phase,
                marked: phase == Phase::Completed && place < 60,
                generation: place / 30,
                batch: if place < 60 { u64::MAX - 1 } else { 5 },
                execution: matches!(phase, Phase::Active | Phase::Failed)
                    .then(|| ExecutionId::from_bytes([u8::try_from(place).expect("small"); 16])),
                output: (phase == Phase::Completed).then(|| Payload::Inline(json!("z".repeat(20_000 * (place as usize % 2 + 1))))),
                ..node(&format!("t{place}"), place)
            });
        }
        let shelf = Self { dynamo, blobs, nodes };
        shelf.fill(&config).await;
        shelf
    }

    async fn fill(&self, config: &Config) {
        let job = runvoy_model::job::Job { opening: Some(5), ..job(JOB, JobStatus::Running) };
        self.dynamo.put(Table::Jobs, crate::job::to_item(&job, 1, config)).await.expect("a put");
        for node in &self.nodes {
            store_large(node, None, &self.blobs).await.expect("kept");
            self.dynamo.put(Table::Jobs, to_item(node)).await.expect("a put");
        }
        let other = Node { job: job_id(1, 1), ..node("t1", 0) };
        self.dynamo.put(Table::Jobs, to_item(&other)).await.expect("a put");
        for place in [30, 9, 11, 101] {
            let child = &self.nodes[place];
            let edge = edge_item(JOB, &name("t3"), &child.task, child.place);
            self.dynamo.put(Table::Jobs, edge).await.expect("a put");
        }
        let other = edge_item(JOB, &name("t30"), &name("t31"), 31);
        self.dynamo.put(Table::Jobs, other).await.expect("a put");
    }
}

#[tokio::test]
async fn tasks_are_found_by_how_they_stand_by_place() {
    let shelf = Shelf::new().await;
    for kind in [
        Standing::Staged(u64::MAX - 1),
        Standing::Staged(5),
        Standing::Staged(6),
        Standing::Ready,
        Standing::FailedBefore(0),
        Standing::FailedBefore(2),
        Standing::FailedBefore(u32::MAX),
        Standing::FailedFrom(40),
        Standing::FailedFrom(u32::MAX),
        Standing::Marked,
    ] {
        for max in [0, 1, 7, 1_000] {
            let expected: Vec<_> = shelf.nodes.iter().filter(|node| kind.fits(node)).take(max).cloned().collect();
            let found = standing(&shelf.dynamo, &shelf.blobs, JOB, kind, max).await.expect("tasks");
            assert_eq!(found, expected, "{kind:?} {max}");
        }
    }
    assert_eq!(staged(&shelf.dynamo, JOB, u64::MAX - 1).await.expect("a count"), 10);
    assert_eq!(staged(&shelf.dynamo, JOB, 6).await.expect("a count"), 0);
}

#[tokio::test]
async fn tasks_are_found_by_name_and_by_their_parent() {
    let shelf = Shelf::new().await;
    let (dynamo, blobs) = (&shelf.dynamo, &shelf.blobs);
    assert_eq!(read(dynamo, blobs, JOB, "t7").await.expect("a task").as_ref(), Some(&shelf.nodes[7]));
    for unknown in ["t999", "", "no name#", &"x".repeat(2_000)] {
        assert_eq!(read(dynamo, blobs, JOB, unknown).await.expect("a look"), None);
    }
    let asked = ["t100", "never", "t3", "t0"].map(name);
    let found = by_name(dynamo, blobs, JOB, &asked).await.expect("tasks");
    assert_eq!(found, [100, 3, 0].map(|place| shelf.nodes[place].clone()));
    let mut briefs = briefs(dynamo, JOB, &asked).await.expect("tasks");
    briefs.sort_unstable_by_key(|brief| brief.place);
    let expected = [0, 3, 100].map(|place| &shelf.nodes[place]);
    assert!(briefs.iter().map(|brief| (&brief.task, brief.phase)).eq(expected.map(|node| (&node.task, node.phase))));
    let gave = outputs(dynamo, blobs, JOB, &["t3", "t0", "never", "t9", "t3"].map(name)).await.expect("outputs");
    let expected = [3, 0, 0, 9, 3].map(|place| shelf.nodes[place].output.clone());
    assert_eq!(gave, expected);
    assert_eq!(children(dynamo, JOB, "t3", 10).await.expect("children"), ["t9", "t11", "t30", "t101"].map(name));
    assert_eq!(children(dynamo, JOB, "t3", 2).await.expect("children"), ["t9", "t11"].map(name));
    assert!(children(dynamo, JOB, "t", 2).await.expect("children").is_empty());
}

#[tokio::test]
async fn tasks_are_paged_by_place_and_by_size() {
    let shelf = Shelf::new().await;
    let (dynamo, blobs) = (&shelf.dynamo, &shelf.blobs);
    let opened: Vec<_> = shelf.nodes.iter().filter(|node| node.phase != Phase::Staged || node.batch == 5).cloned().collect();
    for limit in [7, 60, 1_000] {
        let mut seen: Vec<Node> = Vec::new();
        loop {
            let page = page(dynamo, blobs, JOB, seen.last().map(|last| last.place), limit).await.expect("a page");
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit);
            seen.extend(page);
        }
        assert_eq!(seen, opened, "{limit}");
    }
    assert!(page(dynamo, blobs, job_id(1, 2), None, 10).await.expect("a page").is_empty());
    let expected: Vec<_> =
        shelf.nodes.iter().filter(|node| node.phase != Phase::Staged).map(|node| (node.task.clone(), node.phase)).collect();
    assert_eq!(phases(dynamo, JOB).await.expect("phases"), expected);
    let running: Vec<_> =
        shelf.nodes.iter().filter(|node| node.phase == Phase::Active).filter_map(|node| Some((node.place, node.execution?))).collect();
    assert_eq!(active(dynamo, JOB, None, 100).await.expect("executions"), running);
    assert_eq!(active(dynamo, JOB, Some(running[2].0), 3).await.expect("executions"), running[3..6]);
}

#[tokio::test]
async fn the_first_tasks_of_a_job_are_named_until_there_are_no_more() {
    let shelf = Shelf::new().await;
    let (mut left, mut rounds) = (120, 0);
    loop {
        let (keys, is_all) = first_keys(&shelf.dynamo, JOB, 50).await.expect("keys");
        for found in keys {
            assert!(found["entry"].as_s().expect("a key").starts_with("node#t"));
            shelf.dynamo.delete(Table::Jobs, found).await.expect("a delete");
            left -= 1;
        }
        rounds += 1;
        if is_all {
            break;
        }
    }
    assert_eq!((left, rounds), (0, 3));
}
