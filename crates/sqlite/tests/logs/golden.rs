//! The bytes of every kind of file, as a release wrote them: today's code must read them exactly, and write the same journal and
//! segment for the same input. `RUNVOY_BLESS=1` writes them anew, after a deliberate change of the format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runvoy_model::log::Stream;
use runvoy_ports::log::LogStore;
use runvoy_sqlite::logs::{FileLogStore, Seams};

use crate::kit::{Line, append, copy_dir, id, in_order, quick, run, small, whole, with_extension};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn open(dir: &Path) -> FileLogStore {
    FileLogStore::open_with(dir, small(), Seams { salt: Arc::new(|| Ok(0x5256_4f59)), ..quick() }).expect("opens")
}

fn small_log() -> Vec<Line> {
    vec![
        Line { stream: Stream::Platform, ..Line::new(1_700_000_000_000, "### runvoy: started") },
        Line::new(1_700_000_000_010, "hello"),
        Line { stream: Stream::Stderr, eol: false, ..Line::new(1_700_000_000_005, b"\xffno newline\0".to_vec()) },
        Line { cont: true, ..Line::new(1_700_000_000_020, "goes on") },
    ]
}

fn big_log() -> Vec<Line> {
    (0..250).map(|n| Line::new(1_700_000_000_000 + n, format!("line {n} of the big log"))).collect()
}

/// One sealed log in the journal, one open one with a file of its own.
async fn write(store: &FileLogStore) {
    store.append(id(1), append(0, None, &small_log()[..1])).await.expect("appends");
    store.append(id(1), append(1, Some(1), &small_log()[1..])).await.expect("appends");
    store.seal(id(1), 4).await.expect("seals");
    for (n, part) in big_log().chunks(50).enumerate() {
        store.append(id(2), append(3, Some(n as u64 * 50 + 1), part)).await.expect("appends");
    }
}

async fn check(dir: &Path, what: &str) {
    let store = open(dir);
    assert_eq!(whole(&store, id(1)).await, in_order(&small_log()), "{what}");
    assert_eq!(whole(&store, id(2)).await, big_log(), "{what}");
    let extent = store.extent(id(1)).await.expect("extent");
    assert!(extent.sealed && extent.raw_bytes == 6 + 12 + 8, "{what}: {extent:?}");
    let again = store.append(id(2), append(3, Some(200), &big_log()[199..])).await.expect("a repeat");
    assert_eq!((again.next_line, again.next_seq), (251, 251), "{what}");
}

#[test]
fn files_of_format_1_are_read_and_written_as_ever() {
    run(async {
        let dir = tempfile::tempdir().expect("dir");
        write(&open(dir.path())).await;
        let moved = tempfile::tempdir().expect("dir");
        copy_dir(dir.path(), moved.path());
        {
            let store = open(moved.path());
            store.seal(id(2), 250).await.expect("seals");
            store.compact().expect("compacts");
            store.settle();
        }
        if std::env::var_os("RUNVOY_BLESS").is_some() {
            for (from, to) in [(dir.path(), "written"), (moved.path(), "moved")] {
                let _ = std::fs::remove_dir_all(golden(to));
                copy_dir(from, &golden(to));
                std::fs::remove_file(golden(to).join("lock")).expect("remove");
            }
        }
        for kind in ["rvj", "seg"] {
            let (new, old) = (with_extension(dir.path(), kind), with_extension(&golden("written"), kind));
            assert_eq!((new.len(), old.len()), (1, 1), "{kind}");
            assert_eq!(std::fs::read(&new[0]).expect("read"), std::fs::read(&old[0]).expect("read"), "the bytes of a {kind} file");
        }
        assert_eq!((with_extension(&golden("moved"), "pack").len(), with_extension(&golden("moved"), "segz").len()), (1, 1));
        for name in ["written", "moved"] {
            let copy = tempfile::tempdir().expect("dir");
            copy_dir(&golden(name), copy.path());
            check(copy.path(), name).await;
        }
    });
}
