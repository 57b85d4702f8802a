//! A consistent copy of all logs while they are being written: immutable files are linked, growing ones copied up to what is on
//! stable storage. Opening the copy gives every record that was synced when the copy began.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use runvoy_ports::log::LogError;

use super::check::files_in;
use super::core::Core;
use super::keeper::big_directories;
use super::trouble::Trouble;

impl Core {
    /// Copies everything into `target`, which must not exist or be empty.
    pub(crate) fn backup(&self, target: &Path) -> Result<(), LogError> {
        // Nothing moves between files while this is held, so a log cannot slip from a file not yet copied to one already copied.
        let _alone = self.maintenance.lock();
        let [journal, big, pack] = ["journal", "big", "pack"].map(|name| target.join(name));
        for dir in [&journal, &big, &pack] {
            std::fs::create_dir_all(dir).map_err(Trouble::io("create", dir))?;
        }
        let files = self.journals.lock().files();
        for file in files {
            file.flush_now()?;
            let name = file.path().file_name().expect("a journal has a name");
            copy_file(file.path(), file.written(), &journal.join(name))?;
        }
        for name in self.packs.names() {
            let path = self.packs.path(name);
            link_or_copy(&path, &pack.join(path.file_name().expect("a pack has a name")))?;
        }
        for (id, dir) in big_directories(&self.big_root)? {
            if id.is_some() {
                self.backup_big(&dir, &big)?;
            }
        }
        for dir in [journal.as_path(), &pack, &big, target] {
            flush_directory(dir)?;
        }
        Ok(())
    }

    fn backup_big(&self, dir: &Path, target: &Path) -> Result<(), Trouble> {
        let shard = dir.parent().and_then(Path::file_name).expect("below a shard");
        let target = target.join(shard).join(dir.file_name().expect("a log's directory has a name"));
        std::fs::create_dir_all(&target).map_err(Trouble::io("create", &target))?;
        for path in files_in(dir)? {
            let to = target.join(path.file_name().expect("a file has a name"));
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("segz") => link_or_copy(&path, &to)?,
                Some("seg") => {
                    let file = File::open(&path).map_err(Trouble::io("open", &path))?;
                    self.medium.flush_data(&file, &path)?;
                    let len = file.metadata().map_err(Trouble::io("examine", &path))?.len();
                    copy_file(&path, len, &to)?;
                }
                _ => {}
            }
        }
        flush_directory(&target)?;
        flush_directory(target.parent().expect("below a shard"))
    }
}

fn link_or_copy(from: &Path, to: &Path) -> Result<(), Trouble> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    // Another file system, or one without links.
    let len = std::fs::metadata(from).map_err(Trouble::io("examine", from))?.len();
    copy_file(from, len, to)
}

fn copy_file(from: &Path, len: u64, to: &Path) -> Result<(), Trouble> {
    let source = File::open(from).map_err(Trouble::io("open", from))?;
    let mut target = File::create_new(to).map_err(Trouble::io("create", to))?;
    std::io::copy(&mut source.take(len), &mut target).map_err(Trouble::io("copy", from))?;
    // Not flushed through the medium: a failing backup disk must not poison the store.
    target.sync_all().map_err(Trouble::io("flush", to))
}

fn flush_directory(dir: &Path) -> Result<(), Trouble> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Trouble::io("flush", dir))
}
