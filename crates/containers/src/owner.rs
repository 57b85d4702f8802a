//! Whom the work directory belongs to is who the command in the container runs as. A directory of root is given away first: no command in a
//! container is root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

/// The user that owns nothing on most machines.
const NOBODY: u32 = 65_534;

/// A user and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The owner of a work directory, after it was given away where that was root. Nothing runs in it meanwhile.
pub(crate) async fn settle(work_dir: &Path) -> io::Result<Owner> {
    let work_dir = work_dir.to_owned();
    tokio::task::spawn_blocking(move || settle_now(&work_dir)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn settle_now(work_dir: &Path) -> io::Result<Owner> {
    let found = fs::symlink_metadata(work_dir)?;
    if found.uid() != 0 {
        return Ok(Owner { uid: found.uid(), gid: found.gid() });
    }
    let nobody = Owner { uid: NOBODY, gid: NOBODY };
    give_away(work_dir, nobody)?;
    Ok(nobody)
}

/// Links are given away themselves, and not what they lead to.
fn give_away(top: &Path, to: Owner) -> io::Result<()> {
    let mut waiting: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        if fs::symlink_metadata(&path)?.is_dir() {
            for entry in fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
        lchown(&path, Some(to.uid), Some(to.gid))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_directory_of_root_is_given_away_with_everything_in_it() {
        let root = tempfile::tempdir().expect("a directory");
        let work = root.path().join("work");
        fs::create_dir_all(work.join("repo/.git")).expect("directories");
        fs::write(work.join("repo/file"), "x").expect("a file");
        fs::write(root.path().join("treasure"), "gold").expect("a file");
        symlink(root.path().join("treasure"), work.join("link")).expect("a link");
        let own = fs::metadata(root.path()).expect("its own").uid();
        let owner = settle(&work).await.expect("an owner");
        let uid = |path: PathBuf| fs::symlink_metadata(path).expect("it is there").uid();
        let expected = if own == 0 { NOBODY } else { own };
        assert_eq!(owner.uid, expected);
        for path in ["repo/.git", "repo/file", "link"] {
            assert_eq!(uid(work.join(path)), expected, "{path}");
        }
        assert_eq!(uid(root.path().join("treasure")), own);
    }
}
