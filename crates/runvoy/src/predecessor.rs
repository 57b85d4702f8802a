//! The workers of a data directory's earlier starts, where other servers share the store: only their leases may be ended at a start without
//! a watch. A worker has an id of its own for each start; the directory remembers those whose leases nobody has looked after yet.
//!
//! What an earlier start ran is known to be gone only on the machine that it ran on: a directory that was copied or moved elsewhere says
//! nothing about those that may still run where it came from.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};
use runvoy_model::id::WorkerId;

use crate::data_dir::{DataDir, write_private};

/// This start among the earlier ones of its directory.
pub struct Line {
    data: DataDir,
    own: String,
    gone: Vec<WorkerId>,
}

impl Line {
    /// Remembers this start's worker, before it can have a lease. Whatever an earlier start ran must be gone.
    pub fn join(data: &DataDir, worker: WorkerId, host: &str) -> Result<Self> {
        let path = data.workers();
        let known = match fs::read_to_string(&path) {
            Ok(known) => known,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let gone = known.lines().filter_map(|line| line.split_once(' ')).filter(|(_, there)| *there == host);
        let gone = gone.filter_map(|(id, _)| id.parse().ok()).collect();
        let own = format!("{worker} {host}\n");
        write_private(&path, format!("{known}{own}").as_bytes())?;
        Ok(Self { data: data.clone(), own, gone })
    }

    /// The workers of earlier starts.
    pub fn gone(&self) -> &[WorkerId] {
        &self.gone
    }

    /// Their leases were looked after: they need not be remembered.
    pub fn settle(self) -> Result<()> {
        write_private(&self.data.workers(), self.own.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> WorkerId {
        WorkerId::from_bytes([number; 16])
    }

    #[test]
    fn every_earlier_start_is_remembered_until_its_leases_were_looked_after() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        assert!(Line::join(&data, id(1), "here").expect("joined").gone().is_empty());
        // It was cut off before it could look.
        assert_eq!(Line::join(&data, id(2), "here").expect("joined").gone(), [id(1)]);
        let third = Line::join(&data, id(3), "here").expect("joined");
        assert_eq!(third.gone(), [id(1), id(2)]);
        third.settle().expect("written");
        assert_eq!(Line::join(&data, id(4), "here").expect("joined").gone(), [id(3)]);
    }

    #[test]
    fn what_ran_on_another_machine_is_not_known_to_be_gone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        Line::join(&data, id(1), "there").expect("joined");
        assert!(Line::join(&data, id(2), "here").expect("joined").gone().is_empty());
    }
}
