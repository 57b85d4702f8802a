//! The proof of a store's events: whatever another hand changed in the files is found and named.

mod mutator;
mod state;
mod used;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runvoy_model::chain::AuditKey;
use runvoy_model::time::UnixMs;
use runvoy_model::verify::Problem;
use runvoy_sqlite::verify;

use self::used::{KEY, START, Used};

const ANA: &str = "ana@example.com";

fn about(entity: &str, number: u64, named: bool, problem: Problem) -> (String, u64, bool, Problem) {
    (entity.to_owned(), number, named, problem)
}

fn files(of: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(of).expect("a directory");
    let files = entries.map(|entry| entry.expect("an entry").path()).filter(|path| !path.to_string_lossy().contains(".db-"));
    files.map(|path| (path.clone(), std::fs::read(&path).expect("a file"))).collect()
}

#[tokio::test]
async fn a_store_that_nobody_touched_is_whole_and_is_left_as_it_was() {
    let used = Used::new().await;
    let before = files(used.dir.path());
    let verdict = used.verify();
    assert_eq!(verdict.first_bad, None);
    assert!(verdict.checked > 25, "{}", verdict.checked);
    assert_eq!(verdict.checkpoint_at, Some(UnixMs(START)));
    assert_eq!(files(used.dir.path()), before);
    drop(used.open());
}

#[tokio::test]
async fn security_15_whatever_is_altered_in_an_event_is_named() {
    for set in [
        "properties = replace(properties, 'developer', 'admin')",
        "properties = json_set(properties, '$.user', 'nobody@example.com')",
        "at = at + 1",
        "context = '{}'",
        "mac = zeroblob(32)",
        "kind = 0",
    ] {
        let used = Used::new().await;
        let place = used.place(ANA, 4);
        used.tamper(&format!("UPDATE events SET {set} WHERE seq = {place}"));
        assert_eq!(used.found(), about("USER:ana@example.com", 4, true, Problem::Altered), "{set}");
    }
}

#[tokio::test]
async fn security_15_what_cannot_be_read_is_named() {
    for set in ["properties = '{'", "id = x'00'", "kind = 77", "number = -1"] {
        let used = Used::new().await;
        let place = used.place(ANA, 2);
        used.tamper(&format!("UPDATE events SET {set} WHERE seq = {place}"));
        let (entity, _, _, problem) = used.found();
        assert_eq!((entity.as_str(), problem), ("USER:ana@example.com", Problem::Unreadable), "{set}");
    }
}

#[tokio::test]
async fn security_15_a_removed_event_is_named_in_the_middle_and_at_the_end() {
    let used = Used::new().await;
    used.tamper(&format!("DELETE FROM events WHERE seq = {}", used.place(ANA, 2)));
    assert_eq!(used.found(), about("USER:ana@example.com", 2, false, Problem::Removed));
    let used = Used::new().await;
    used.tamper(&format!("DELETE FROM events WHERE seq = {}", used.place(ANA, 4)));
    assert_eq!(used.found(), about("USER:ana@example.com", 4, false, Problem::Removed));
    let used = Used::new().await;
    used.tamper("DELETE FROM events WHERE entity_kind = 1 AND entity = (SELECT seq FROM records WHERE name = 'ana@example.com')");
    assert_eq!(used.found(), about("USER:ana@example.com", 1, false, Problem::Removed));
}

#[tokio::test]
async fn security_15_a_removed_end_is_found_also_where_the_head_was_put_back() {
    let used = Used::new().await;
    let (third, fourth) = (used.place(ANA, 3), used.place(ANA, 4));
    used.tamper(&format!(
        "UPDATE records SET chain_count = 3, chain_mac = (SELECT mac FROM events WHERE seq = {third}) WHERE name = '{ANA}'; \
         DELETE FROM events WHERE seq = {fourth}"
    ));
    assert_eq!(used.found(), about("LEDGER:only", 1, true, Problem::Removed));
}

#[tokio::test]
async fn security_15_a_whole_entity_that_is_gone_is_found() {
    let of_ana = "(SELECT seq FROM records WHERE kind = 0 AND name = 'ana@example.com')";
    let used = Used::new().await;
    used.tamper(&format!("DELETE FROM events WHERE entity_kind = 1 AND entity = {of_ana}; DELETE FROM records WHERE seq = {of_ana}"));
    assert_eq!(used.found(), about("LEDGER:only", 1, true, Problem::Removed));
    let used = Used::new().await;
    used.tamper("DELETE FROM events WHERE entity_kind = 0 AND entity = 3; DELETE FROM executions WHERE seq = 3");
    assert_eq!(used.found(), about("LEDGER:only", 2, true, Problem::Removed));
    // Only the record: its events have nothing to be about.
    let used = Used::new().await;
    used.tamper(&format!("DELETE FROM records WHERE seq = {of_ana}"));
    let (entity, number, named, problem) = used.found();
    assert!(entity.starts_with("USER:"), "{entity}");
    assert_eq!((number, named, problem), (1, true, Problem::Removed));
    let used = Used::new().await;
    used.tamper("DELETE FROM executions WHERE seq = 1");
    let (entity, number, named, problem) = used.found();
    assert!(entity.starts_with("TASK:"), "{entity}");
    assert_eq!((number, named, problem), (1, true, Problem::Removed));
}

#[tokio::test]
async fn security_15_events_that_changed_places_are_found() {
    let used = Used::new().await;
    let (second, third) = (used.place(ANA, 2), used.place(ANA, 3));
    let set = |from: i64, to: i64| format!("UPDATE events SET seq = {to} WHERE seq = {from};");
    let swap = |a: i64, b: i64| format!("{}{}{}", set(a, -1), set(b, a), set(-1, b));
    used.tamper(&swap(second, third));
    assert_eq!(used.found(), about("USER:ana@example.com", 2, true, Problem::Reordered));
    // Across entities no chain tells, but the whole log does.
    let used = Used::new().await;
    let (user, group) = (used.place(ANA, 4), used.place("ana", 1));
    used.tamper(&swap(user, group));
    assert_eq!(used.found(), about("LEDGER:only", 1, true, Problem::Reordered));
    let used = Used::new().await;
    used.tamper(&format!("UPDATE events SET id = x'00112233445566778899aabbccddeeff' WHERE seq = {user}"));
    assert_eq!(used.found(), about("LEDGER:only", 1, true, Problem::Reordered));
}

#[tokio::test]
async fn security_15_what_was_put_there_is_found() {
    let copy = "INSERT INTO events (entity_kind, entity, number, kind, at, id, mac, context, properties) \
                SELECT entity_kind, entity, number + 1, kind, at, randomblob(16), mac, context, properties FROM events WHERE seq = ";
    let used = Used::new().await;
    used.tamper(&format!("{copy}{}", used.place(ANA, 4)));
    assert_eq!(used.found(), about("USER:ana@example.com", 5, true, Problem::Altered));
    let used = Used::new().await;
    used.tamper(&format!("{copy}{}; UPDATE records SET chain_count = 5 WHERE name = '{ANA}'", used.place(ANA, 4)));
    assert_eq!(used.found(), about("USER:ana@example.com", 5, true, Problem::Altered));
}

#[tokio::test]
async fn security_15_a_head_that_was_rewritten_is_found() {
    let used = Used::new().await;
    used.tamper(&format!("UPDATE records SET chain_mac = randomblob(32) WHERE name = '{ANA}'"));
    assert_eq!(used.found(), about("USER:ana@example.com", 4, false, Problem::Altered));
    let used = Used::new().await;
    used.tamper("UPDATE executions SET state = json_set(state, '$.chain.count', 1) WHERE seq = 1");
    let (entity, number, _, problem) = used.found();
    assert!(entity.starts_with("TASK:"), "{entity}");
    assert_eq!((number, problem), (2, Problem::Altered));
}

#[tokio::test]
async fn security_15_a_checkpoint_that_was_changed_or_removed_is_found() {
    let used = Used::new().await;
    used.tamper("UPDATE events SET properties = json_set(properties, '$.leaves', 1) WHERE kind = 9 AND number = 2");
    assert_eq!(used.found(), about("LEDGER:only", 2, true, Problem::Altered));
    // The last one with its head put back: only the export knows.
    let used = Used::new().await;
    used.tamper(
        "UPDATE records SET chain_count = 1, version = 1, body = '{\"ledger\":1}', \
         chain_mac = (SELECT mac FROM events WHERE kind = 9 AND number = 1) WHERE kind = 11; \
         DELETE FROM events WHERE kind = 9 AND number = 2",
    );
    assert_eq!(used.found(), about("LEDGER:only", 2, false, Problem::Removed));
}

#[tokio::test]
async fn security_15_a_store_that_was_put_back_is_found() {
    let used = Used::new().await;
    let before = std::fs::read(used.path()).expect("the file");
    let store = used.open();
    used.work(&store, "cem").await;
    used.checkpoint(&store).await;
    store.close().await.expect("a clean end");
    assert!(used.verify().is_whole());
    for beside in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{beside}", used.path().display())).ok();
    }
    std::fs::write(used.path(), before).expect("put back");
    let found = used.verify().first_bad.expect("found");
    assert_eq!((found.entity.as_str(), found.number, found.problem), ("LEDGER:only", 3, Problem::Removed));
    assert!(found.message.contains("earlier state"), "{}", found.message);
    // Also after it went on from there.
    let store = used.open();
    used.work(&store, "dan").await;
    used.checkpoint(&store).await;
    store.close().await.expect("a clean end");
    let (_, number, _, problem) = used.found();
    assert_eq!((number, problem), (3, Problem::Altered));
}

#[tokio::test]
async fn security_15_exported_checkpoints_that_were_cut_or_changed_are_found() {
    let used = Used::new().await;
    let store = used.open();
    used.work(&store, "cem").await;
    used.checkpoint(&store).await;
    store.close().await.expect("a clean end");
    let whole = std::fs::read_to_string(used.exported()).expect("the file");
    let lines: Vec<&str> = whole.lines().collect();
    let with =
        |kept: &[&str]| std::fs::write(used.exported(), kept.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("cut");
    with(&[lines[0], lines[2]]);
    assert_eq!(used.found(), about("LEDGER:only", 2, false, Problem::Removed));
    with(&[lines[0], &lines[1].replace("\"leaves\":", "\"leaves\":1"), lines[2]]);
    let (_, _, _, problem) = used.found();
    assert_eq!(problem, Problem::Altered);
    std::fs::remove_file(used.exported()).expect("removed");
    assert_eq!(used.found(), about("LEDGER:only", 1, false, Problem::Removed));
    // What was told again because nobody heard that it was told is no sign of anything; told again in other words it is.
    for repeated in [&[0, 0, 1, 2][..], &[0, 1, 1, 1, 2], &[0, 1, 2, 1, 2], &[0, 1, 2, 2]] {
        with(&repeated.iter().map(|at| lines[*at]).collect::<Vec<_>>());
        let verdict = used.verify();
        assert_eq!((verdict.first_bad, verdict.unexported_from), (None, None), "{repeated:?}");
    }
    let other = Used::new().await;
    let others = std::fs::read_to_string(other.exported()).expect("the file");
    with(&[lines[0], lines[1], others.lines().next().expect("a line"), lines[2]]);
    assert_eq!(used.found(), about("LEDGER:only", 1, false, Problem::Reordered));
    // Where exporting fails for long, nothing was removed; where from is told.
    with(&lines[..1]);
    let verdict = used.verify();
    assert_eq!((verdict.first_bad, verdict.unexported_from), (None, Some(2)));
    // A crash may have kept the last one from being told, or cut its line short; and the file may have been begun anew.
    with(&lines[..2]);
    assert_eq!(used.verify().first_bad, None);
    std::fs::write(used.exported(), &whole[..whole.len() - 5]).expect("cut");
    assert_eq!(used.verify().first_bad, None);
    with(&lines[1..]);
    assert_eq!(used.verify().first_bad, None);
}

#[tokio::test]
async fn a_page_that_another_hand_wrote_is_found_though_every_event_is_whole() {
    let used = Used::new().await;
    used.tamper("UPDATE records SET body = body || ' ' WHERE kind = 0 AND name = 'ana@example.com'");
    let found = used.verify().first_bad.expect("found");
    assert_eq!((found.entity.as_str(), found.problem), ("STORE", Problem::Altered));
    assert!(found.message.contains("page"), "{}", found.message);
}

#[tokio::test]
async fn a_store_that_is_no_database_any_more_is_unreadable() {
    let used = Used::new().await;
    let mut bytes = std::fs::read(used.path()).expect("the file");
    bytes[..100].fill(0x55);
    std::fs::write(used.path(), bytes).expect("overwritten");
    let found = used.verify().first_bad.expect("found");
    assert_eq!((found.entity.as_str(), found.problem), ("STORE", Problem::Unreadable));
    assert!(verify(&used.dir.path().join("none.db"), &KEY, None).is_err(), "no store is no finding");
}

#[tokio::test]
async fn another_key_proves_nothing() {
    let used = Used::new().await;
    let verdict = verify(&used.path(), &AuditKey::new([8; 32]), Some(&used.exported())).expect("it can be read");
    assert_eq!(verdict.first_bad.map(|bad| bad.problem), Some(Problem::Altered));
}

#[tokio::test]
async fn a_store_is_proved_while_it_is_open_and_written_to() {
    let used = Used::new().await;
    let store = used.open();
    let (path, exported) = (used.path(), used.exported());
    let proving = tokio::task::spawn_blocking(move || {
        (0..20).map(|_| verify(&path, &KEY, Some(&exported)).expect("it can be read")).find(|verdict| !verdict.is_whole())
    });
    let mut round = 0;
    while !proving.is_finished() {
        used.work(&store, &format!("x{round}")).await;
        used.checkpoint(&store).await;
        round += 1;
    }
    assert_eq!(proving.await.expect("no panic"), None, "after {round} rounds");
    store.close().await.expect("a clean end");
    assert!(used.verify().is_whole());
}
