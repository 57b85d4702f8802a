//! A task of a job: what the events of its executions say of it, and whether its node says the same.

use super::TaskState;
use super::execution::{ExecutionFold, output_digest};
use super::mismatch::{Mismatch, same};
use crate::event::Entity;
use crate::id::ExecutionId;
use crate::job::{Node, Phase};

/// A task, by what is known of it so far.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// Where in the log it was first released.
    first_released: Option<u64>,
    newest: Option<Release>,
    /// Where its node says that it stands; `None` while no node was seen.
    pub(super) kept: Option<Phase>,
    /// Its node says that its children have not all been told.
    marked: bool,
}

/// One execution of a task.
#[derive(Debug)]
struct Release {
    execution: ExecutionId,
    generation: u32,
    state: TaskState,
    ended: Option<u64>,
    output: Option<[u8; 32]>,
    is_output_cut: bool,
}

/// What a task's phase depends on beside its own executions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// The last resume of the whole job.
    pub(super) resumed: Option<Resume>,
    /// Tasks that failed before it are still to be made ready.
    pub(super) is_resuming: bool,
    /// Where in the log this task alone was last made ready again.
    pub(super) redriven: Option<u64>,
}

/// A resume: where in the log it is, and the generation that it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resume {
    pub(super) place: u64,
    pub(super) generation: u32,
}

impl Seat {
    /// The next execution of this task, in the order of their release.
    pub(super) fn release(&mut self, execution: ExecutionId, fold: &ExecutionFold) -> Result<(), String> {
        let (Some(state), Some(generation)) = (fold.state(), fold.generation) else {
            return Err(format!("has execution {execution}, but the events of that execution do not say so"));
        };
        if let Some(newest) = &self.newest {
            if newest.generation >= generation {
                return Err(format!("was released in generation {generation} as {execution}, after {} had been", newest.execution));
            }
            if newest.state != TaskState::Failed {
                return Err(format!("was released as {execution}, though {} did not fail", newest.execution));
            }
        }
        self.first_released = self.first_released.or(fold.released);
        self.newest =
            Some(Release { execution, generation, state, ended: fold.ended, output: fold.output, is_output_cut: fold.is_output_cut });
        Ok(())
    }

    /// Whether the task's node says what its executions do.
    pub(super) fn compare(&mut self, about: &Entity, node: &Node, course: Course) -> Result<(), Mismatch> {
        (self.kept, self.marked) = (Some(node.phase), node.marked);
        let field = |name: &str| format!("tasks.{}.{name}", node.task);
        let newest = self.newest.as_ref();
        same(about, field("execution"), node.execution.map(|id| id.to_string()), newest.map(|newest| newest.execution.to_string()))?;
        let possible = newest.map_or(&[Phase::Staged, Phase::Waiting, Phase::Ready][..], |newest| newest.phases(course));
        if !possible.contains(&node.phase) {
            let words: Vec<_> = possible.iter().map(|phase| word(*phase)).collect();
            let message = format!("is {}, but the events say {}", word(node.phase), words.join(" or "));
            return Err(Mismatch::of(about, field("phase"), message));
        }
        if let Some(newest) = newest.filter(|_| node.phase != Phase::Ready) {
            same(about, field("generation"), Some(node.generation), Some(newest.generation))?;
        }
        let output = newest.filter(|_| node.phase == Phase::Completed).and_then(|newest| newest.output);
        let is_told = newest.is_none_or(|newest| !newest.is_output_cut);
        if is_told && node.output.as_ref().map(output_digest) != output {
            return Err(Mismatch::of(about, field("output"), "is not what the events say"));
        }
        if node.marked && node.phase != Phase::Completed {
            return Err(Mismatch::of(about, field("marked"), "is set, but the events do not say that it is done"));
        }
        Ok(())
    }

    /// Whether it is done, and whether it may still have children to tell.
    pub(super) fn is_done(&self) -> (bool, bool) {
        (self.kept == Some(Phase::Completed), self.marked)
    }

    /// Whether it was done before another was released for the first time.
    pub(super) fn went_before(&self, child: &Self) -> bool {
        let done = self.newest.as_ref().filter(|newest| newest.state == TaskState::Completed).and_then(|newest| newest.ended);
        child.first_released.is_none_or(|released| done.is_some_and(|done| done < released))
    }

    /// Whether it ever was an execution.
    pub(super) const fn was_released(&self) -> bool {
        self.newest.is_some()
    }
}

impl Release {
    /// Where a task may stand whose newest execution this is.
    fn phases(&self, course: Course) -> &'static [Phase] {
        match self.state {
            TaskState::Pending | TaskState::Processing => &[Phase::Active],
            TaskState::Completed => &[Phase::Completed],
            TaskState::Failed if course.redriven > self.ended => &[Phase::Ready],
            TaskState::Failed => match course.resumed {
                Some(resume) if Some(resume.place) > self.ended && !course.is_resuming => &[Phase::Ready],
                // What failed while others were being made ready may have been made ready with them.
                Some(resume) if self.generation < resume.generation => &[Phase::Failed, Phase::Ready],
                _ => &[Phase::Failed],
            },
        }
    }
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Staged => "staged",
        Phase::Waiting => "waiting",
        Phase::Ready => "ready",
        Phase::Active => "active",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
    }
}
