//! When attempts began and how they ended, for those that published nothing about it: from the events of their execution.

use runvoy_model::event::{Entity, Event, EventType};
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::EventQuery;

use super::Derived;
use crate::Engine;
use crate::error::EngineError;

/// So many events are read at once.
const PAGE: usize = 500;

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has not begun, or it runs.
    Open,
    /// It is over, or there never was one.
    Over {
        /// Nothing follows.
        is_last: bool,
        /// There was one.
        begun: bool,
    },
}

/// How far an attempt is, by the record.
pub(super) fn progress(execution: &Execution, attempt: u32) -> Progress {
    let (terminal, begun) = (execution.status.is_terminal(), execution.attempt >= attempt);
    let between = matches!(execution.status, Status::Pending | Status::Starting);
    if terminal || execution.attempt > attempt || (begun && between) {
        Progress::Over { is_last: terminal && execution.attempt <= attempt, begun }
    } else {
        Progress::Open
    }
}

/// What the events of an execution say of one attempt.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) started_at: Option<UnixMs>,
    pub(super) end: Option<(UnixMs, Derived)>,
}

impl Story {
    fn take(&mut self, event: &Event, attempt: u32) {
        let number = |name: &str| event.properties.get(name).and_then(serde_json::Value::as_i64);
        let is_late = event.properties.get("late").is_some_and(|late| late == true);
        if is_late || number("attempt").or(number("attemptNumber")) != Some(i64::from(attempt)) {
            return;
        }
        match event.kind {
            EventType::TaskProcessingStarted => self.started_at = Some(event.at),
            EventType::TaskProcessingFailed => {
                let message = event.properties.get("error").and_then(|error| error.as_str()).unwrap_or_default().to_owned();
                self.end = Some((event.at, Derived::Failed { message }));
            }
            EventType::TaskCompleted | EventType::TaskFailed | EventType::TaskTimeout | EventType::TaskStopped => {
                // A kill between two attempts ends the execution, and not the attempt that was over.
                if self.end.as_ref().is_some_and(|(at, _)| *at != event.at) {
                    return;
                }
                let exit_code = number("exitCode").and_then(|code| i32::try_from(code).ok()).unwrap_or_default();
                let ran_ms = number("durationMs").unwrap_or_default().max(0).unsigned_abs();
                self.end = Some((event.at, Derived::Ended { exit_code, ran_ms }));
            }
            _ => {}
        }
    }
}

impl Engine {
    /// What is known of one attempt.
    pub(super) async fn story(&self, id: ExecutionId, attempt: u32) -> Result<Story, EngineError> {
        let (mut story, mut after) = (Story::default(), None);
        loop {
            let query = EventQuery { entity: Some(Entity::task(id)), after, limit: PAGE, ..EventQuery::default() };
            let page = self.ports.store.events(query).await?;
            let Some(last) = page.last() else { return Ok(story) };
            after = Some(last.place);
            page.iter().for_each(|stored| story.take(&stored.event, attempt));
        }
    }
}
