//! Lists of jobs: by page, for those who count pages, and by cursor, for those who read much.

use runvoy_engine::ListFilter;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_rpc::job::v1::{ListJobsRequest, ListJobsResponse};

use super::call::Call;
use super::error::RpcFault;
use super::job;

const DEFAULT_SIZE: usize = 50;
const MOST_SIZE: usize = 1_000;
/// Pages that begin beyond this are reached by cursor.
const MOST_SKIPPED: usize = 10_000;
/// So far beyond a page the list is looked at for its last one.
const LOOK_AHEAD: usize = 1_000;
/// How many are read at once.
const AT_ONCE: usize = 500;

pub(super) async fn list(call: Call, request: ListJobsRequest) -> Result<ListJobsResponse, RpcFault> {
    let size = match usize::try_from(request.page_size) {
        Ok(0) => DEFAULT_SIZE,
        Ok(size @ 1..=MOST_SIZE) => size,
        _ => return Err(RpcFault::invalid("page_size", format!("must be from 0 to {MOST_SIZE}"))),
    };
    let mut reading = Reading::of(&call, &request)?;
    if !request.cursor.is_empty() {
        let after = request.cursor.parse::<ExecutionId>();
        reading.filter.after = Some(after.map_err(|_| RpcFault::invalid("cursor", "is none of this server's"))?);
        let shown = reading.next(size).await?;
        return Ok(reading.response(&shown, 0));
    }
    let page = match usize::try_from(request.page) {
        Ok(page) => page.max(1),
        Err(_) => return Err(RpcFault::invalid("page", "must not be negative")),
    };
    let skipped = (page - 1).saturating_mul(size);
    if skipped > MOST_SKIPPED {
        return Err(RpcFault::invalid("page", format!("begins beyond the first {MOST_SKIPPED} jobs: read on by cursor")));
    }
    let passed = reading.next(skipped).await?.len();
    let shown = reading.next(size).await?;
    let (seen, after) = (passed + shown.len(), reading.filter.after);
    let beyond = reading.next(LOOK_AHEAD).await?.len();
    reading.filter.after = after;
    let last_page = i32::try_from((seen + beyond).div_ceil(size)).unwrap_or(i32::MAX);
    reading.is_more = beyond > 0;
    Ok(reading.response(&shown, last_page))
}

/// A list that is read on and on.
struct Reading<'a> {
    call: &'a Call,
    filter: ListFilter,
    is_more: bool,
}

impl<'a> Reading<'a> {
    fn of(call: &'a Call, request: &ListJobsRequest) -> Result<Self, RpcFault> {
        let queue = Some(&request.queue).filter(|queue| !queue.is_empty()).map(|queue| Name::new(queue.as_str()));
        let queue = queue.transpose().map_err(|error| RpcFault::invalid("queue", error.to_string()))?;
        let state = request.state.as_known().ok_or_else(|| RpcFault::invalid("state", "is none that is known here"))?;
        let statuses = job::statuses(state);
        Ok(Self { call, filter: ListFilter { statuses, queue, ..ListFilter::default() }, is_more: true })
    }

    /// The next `most`, or fewer at the end.
    async fn next(&mut self, most: usize) -> Result<Vec<Execution>, RpcFault> {
        let mut found = Vec::new();
        while found.len() < most && self.is_more {
            let limit = (most - found.len()).min(AT_ONCE);
            let page = self.call.engine().jobs_seen(&self.call.caller, ListFilter { limit, ..self.filter.clone() }).await?;
            self.is_more = page.next.is_some();
            self.filter.after = page.executions.last().map(|execution| execution.id).or(self.filter.after);
            found.extend(page.executions);
        }
        Ok(found)
    }

    fn response(&self, shown: &[Execution], last_page: i32) -> ListJobsResponse {
        let next_cursor = shown.last().filter(|_| self.is_more).map(|last| last.id.to_string()).unwrap_or_default();
        let jobs = shown.iter().map(|execution| job::job(self.call.engine(), execution)).collect();
        ListJobsResponse { jobs, last_page, next_cursor, ..ListJobsResponse::default() }
    }
}
