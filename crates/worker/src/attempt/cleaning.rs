//! Removes the work directory of an attempt, once: when the attempt is done, or sooner where its space is needed. Nothing of the attempt
//! runs then, and what a task left there and was not read by then is lost, which its end says.

use runvoy_model::command::Fence;
use tokio::sync::watch;

use super::supervise::told_to_free;
use crate::worker::{DiskStop, Worker};

/// How far an attempt is with its work directory.
pub(super) struct Cleaning {
    /// The last command in it has ended.
    is_over: watch::Sender<bool>,
    is_wanted: watch::Sender<bool>,
    is_done: watch::Sender<bool>,
}

impl Cleaning {
    pub(super) fn new() -> Self {
        let no = || watch::Sender::new(false);
        Self { is_over: no(), is_wanted: no(), is_done: no() }
    }

    /// The last command in the directory has ended, or another one follows.
    pub(super) fn note_over(&self, is_over: bool) {
        self.is_over.send_replace(is_over);
    }

    /// Asks for the directory to be removed now.
    pub(super) fn begin(&self) {
        self.is_wanted.send_replace(true);
    }

    /// Waits until it is removed.
    pub(super) async fn done(&self) {
        reached(&self.is_done).await;
    }

    /// Removes the directory when that is asked for, or when the attempt is told to free space and its last command has ended.
    pub(super) async fn run(&self, worker: &Worker, fence: Fence, mut disk_stop: watch::Receiver<Option<DiskStop>>) {
        let told = async {
            told_to_free(&mut disk_stop).await;
            reached(&self.is_over).await;
        };
        tokio::select! {
            () = reached(&self.is_wanted) => {}
            () = told => {}
        }
        worker.runner.clean_up(fence.execution, fence.attempt).await;
        self.is_done.send_replace(true);
    }
}

async fn reached(state: &watch::Sender<bool>) {
    state.subscribe().wait_for(|is_reached| *is_reached).await.expect("its sender is borrowed");
}
