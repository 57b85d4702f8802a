//! The thread that does what nobody waits for: emptying closed journals and compressing sealed logs. Takes orders, does them one
//! after another, and at its start looks for what an earlier start left undone.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::LogError;

use super::core::Core;
use super::trouble::Trouble;

/// Work for the keeper.
pub(crate) enum Chore {
    /// A journal was closed.
    Compact,
    /// A log with files of its own was sealed.
    Compress(ExecutionId),
    /// Tell when everything ordered before is done.
    Settle(SyncSender<()>),
}

/// Works until the store is closed.
pub(crate) fn keep(core: &Arc<Core>, chores: &Receiver<Chore>) {
    report("empty closed journals", do_chore(core, &Chore::Compact));
    report("look for logs to compress", sweep(core));
    while let Ok(chore) = chores.recv() {
        if core.is_closing() {
            return;
        }
        report("keep logs in order", do_chore(core, &chore));
        if let Chore::Settle(done) = chore {
            // Whoever asked may have gone.
            let _ = done.send(());
        }
    }
}

fn do_chore(core: &Core, chore: &Chore) -> Result<(), LogError> {
    let _alone = core.maintenance.lock();
    match chore {
        Chore::Compact => core.compact(None).map(|_| ()),
        Chore::Compress(id) => core.compress(*id),
        Chore::Settle(_) => Ok(()),
    }
}

/// Finishes what was sealed and not compressed when an earlier start ended.
fn sweep(core: &Core) -> Result<(), LogError> {
    for (id, dir) in big_directories(&core.big_root)? {
        if core.is_closing() {
            return Ok(());
        }
        let Some(id) = id else {
            let _alone = core.maintenance.lock();
            // The rename to this name was the removal; this is only the rest of it.
            std::fs::remove_dir_all(&dir).map_err(Trouble::io("remove", &dir))?;
            continue;
        };
        match has_plain_segment(&dir) {
            Ok(true) => report("compress a log", do_chore(core, &Chore::Compress(id))),
            Ok(false) => {}
            Err(trouble) => report("look into a log", Err(trouble.into())),
        }
    }
    Ok(())
}

/// The directories of big logs; those without an id are being removed.
pub(crate) fn big_directories(root: &Path) -> Result<Vec<(Option<ExecutionId>, std::path::PathBuf)>, Trouble> {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(root).map_err(Trouble::io("list", root))? {
        let shard = shard.map_err(Trouble::io("list", root))?.path();
        for item in std::fs::read_dir(&shard).map_err(Trouble::io("list", &shard))? {
            let path = item.map_err(Trouble::io("list", &shard))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match name.parse() {
                Ok(id) => found.push((Some(id), path)),
                Err(_) if name.ends_with(".gone") => found.push((None, path)),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

fn has_plain_segment(dir: &Path) -> Result<bool, Trouble> {
    let mut items = match std::fs::read_dir(dir) {
        Ok(items) => items,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Trouble::io("list", dir)(error)),
    };
    Ok(items.any(|item| item.is_ok_and(|item| item.path().extension().is_some_and(|extension| extension == "seg"))))
}

fn report(what: &'static str, result: Result<(), LogError>) {
    if let Err(error) = result {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(%error, cause, "log keeper could not {what}, it will be tried again");
    }
}
