//! Lists of jobs: by page, for those who count pages, and by cursor, for those who read much.

use runvoy_engine::ListFilter;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_rpc::buffa::Message as _;
use runvoy_rpc::job::v1::{Job, ListJobsRequest, ListJobsResponse};

use super::call::Call;
use super::error::RpcFault;
use super::job;

const DEFAULT_SIZE: usize = 50;
const MOST_SIZE: usize = 1_000;
/// Pages that begin beyond this are reached by cursor.
const MOST_SKIPPED: usize = 10_000;
/// So far beyond a page the list is looked at for its last one.
const LOOK_AHEAD: usize = 1_000;
/// How many are read at once. Each may be as large as a submit.
const AT_ONCE: usize = 50;
/// A page is no larger, unless one job is: less than what clients take in one message unless they are told otherwise.
const MOST_PAGE_BYTES: usize = 3 << 20;

pub(super) async fn list(call: Call, request: ListJobsRequest) -> Result<ListJobsResponse, RpcFault> {
    let size = match usize::try_from(request.page_size) {
        Ok(0) => DEFAULT_SIZE,
        Ok(size @ 1..=MOST_SIZE) => size,
        _ => return Err(RpcFault::invalid("page_size", format!("must be from 0 to {MOST_SIZE}"))),
    };
    let mut reading = Reading::of(&call, &request)?;
    if !request.cursor.is_empty() {
        let after = request.cursor.parse::<ExecutionId>();
        reading.filter.after = Some(after.map_err(|_| RpcFault::invalid("cursor", "is not a cursor of this server: start without one"))?);
        let jobs = reading.show(size).await?;
        return Ok(reading.response(jobs, 0));
    }
    let page = match usize::try_from(request.page) {
        Ok(page) => page.max(1),
        Err(_) => return Err(RpcFault::invalid("page", "must not be negative")),
    };
    let skipped = (page - 1).saturating_mul(size);
    if skipped > MOST_SKIPPED {
        return Err(RpcFault::invalid("page", format!("begins after the first {MOST_SKIPPED} jobs: continue by cursor")));
    }
    let passed = reading.skip(skipped).await?;
    let jobs = reading.show(size).await?;
    // Whoever counts pages would never see what a shorter one leaves out.
    if reading.is_cut && request.page > 0 {
        let message =
            format!("{size} of these jobs are more than {MOST_PAGE_BYTES} bytes: ask for fewer, or read on by cursor from page 0");
        return Err(RpcFault::invalid("page_size", message));
    }
    let (seen, after) = (passed + jobs.len(), reading.filter.after);
    let beyond = reading.skip(LOOK_AHEAD).await?;
    reading.filter.after = after;
    // An empty list has one page, which is empty.
    let last_page = i32::try_from((seen + beyond).div_ceil(size).max(1)).unwrap_or(i32::MAX);
    reading.is_more = beyond > 0;
    Ok(reading.response(jobs, last_page))
}

/// A list that is read on and on. Of what was read no more is kept than what is shown of it.
struct Reading<'a> {
    call: &'a Call,
    filter: ListFilter,
    is_more: bool,
    /// More would have been shown, had it not been too large.
    is_cut: bool,
}

impl<'a> Reading<'a> {
    fn of(call: &'a Call, request: &ListJobsRequest) -> Result<Self, RpcFault> {
        let queue = Some(&request.queue).filter(|queue| !queue.is_empty()).map(|queue| Name::new(queue.as_str()));
        let queue = queue.transpose().map_err(|error| RpcFault::invalid("queue", error.to_string()))?;
        let state = request.state.as_known().ok_or_else(|| RpcFault::invalid("state", "is unknown to this server"))?;
        let statuses = job::statuses(state);
        Ok(Self { call, filter: ListFilter { statuses, queue, ..ListFilter::default() }, is_more: true, is_cut: false })
    }

    /// Passes over the next `most`, or fewer at the end; how many they were.
    async fn skip(&mut self, most: usize) -> Result<usize, RpcFault> {
        let mut passed = 0;
        while passed < most && self.is_more {
            passed += self.read(most - passed).await?.len();
        }
        Ok(passed)
    }

    /// The next `most`; fewer at the end, and where more would be too many bytes.
    async fn show(&mut self, most: usize) -> Result<Vec<Job>, RpcFault> {
        let (mut shown, mut bytes, mut last) = (Vec::new(), 0, self.filter.after);
        while shown.len() < most && self.is_more {
            let executions = self.read(most - shown.len()).await?;
            let jobs = job::jobs(self.call.engine(), &executions).await?;
            for (execution, job) in executions.iter().zip(jobs) {
                bytes += usize::try_from(job.encoded_len()).unwrap_or(usize::MAX);
                if bytes > MOST_PAGE_BYTES && !shown.is_empty() {
                    (self.filter.after, self.is_more, self.is_cut) = (last, true, true);
                    return Ok(shown);
                }
                last = Some(execution.id);
                shown.push(job);
            }
        }
        Ok(shown)
    }

    /// The next few.
    async fn read(&mut self, most: usize) -> Result<Vec<Execution>, RpcFault> {
        let filter = ListFilter { limit: most.min(AT_ONCE), ..self.filter.clone() };
        let page = self.call.engine().list(&self.call.caller, filter).await?;
        self.is_more = page.next.is_some();
        self.filter.after = page.executions.last().map(|execution| execution.id).or(self.filter.after);
        Ok(page.executions)
    }

    fn response(&self, jobs: Vec<Job>, last_page: i32) -> ListJobsResponse {
        let next_cursor = self.filter.after.filter(|_| self.is_more && !jobs.is_empty()).map(|last| last.to_string()).unwrap_or_default();
        ListJobsResponse { jobs, last_page, next_cursor, ..ListJobsResponse::default() }
    }
}
