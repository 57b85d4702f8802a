//! Moving a log's entries from one place to another: only what the target lacks, only what is good.

use runvoy_model::id::ExecutionId;

use super::entry::Entry;
use super::format::Header;
use super::source::{Fault, Source, Walk};
use super::summary::Summary;
use super::trouble::Trouble;

const WINDOW: usize = 1 << 20;

/// Gives every entry that `known` lacks to `put`, in order and with what was known before it, and takes it into `known`. Says whether all of them were good: damaged ones are
/// left out, so that the hole they leave stays visible, and the caller decides whether the original may go.
pub(crate) fn copy(
    id: ExecutionId,
    sources: Vec<Source>,
    known: &mut Summary,
    mut put: impl FnMut(&Entry, &Summary) -> Result<(), Trouble>,
) -> Result<bool, Trouble> {
    let mut all_good = true;
    for source in sources {
        let mut walk = Walk::new(id, source, WINDOW);
        loop {
            match walk.next(&mut |header| known.lacks(header)) {
                Ok(Some(entry)) => {
                    put(&entry, known)?;
                    known.apply(&entry.header);
                }
                Ok(None) => break,
                Err(Fault::Damaged) => all_good = false,
                Err(Fault::Trouble(trouble)) => return Err(trouble),
            }
        }
    }
    Ok(all_good)
}

/// Folds the headers of all entries into `summary`; `false` if some were damaged. Payloads are not judged.
pub(crate) fn fold(id: ExecutionId, sources: Vec<Source>, summary: &mut Summary) -> Result<bool, Trouble> {
    let mut all_good = true;
    for source in sources {
        let mut walk = Walk::new(id, source, WINDOW);
        let mut note = |header: &Header| {
            summary.apply(header);
            false
        };
        loop {
            match walk.next(&mut note) {
                Ok(_) => break,
                Err(Fault::Damaged) => all_good = false,
                Err(Fault::Trouble(trouble)) => return Err(trouble),
            }
        }
    }
    Ok(all_good)
}
