//! What executions cost, summed up by user, image, queue, job or month.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{CostBy, CostRow};
use runvoy_model::role::Action;
use runvoy_wire::{CostItem, CostResponse, Rfc3339, one_of};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, number, time, words};
use crate::pager::MOST_LISTED;
use crate::route::{Routes, Rule};
use crate::view::dollars;

const DEFAULT_LIMIT: u64 = 100;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("getCost", "Sum up costs")
        .about(
            "Sums up what the executions cost that ended in a period. Days and months are those \
             of UTC, and a period begins with a whole day. An execution is counted when it ends, \
             with all of its attempts.",
        )
        .query("by", words(&CostBy::ALL.map(CostBy::as_str)), "What to sum up by; default: user")
        .query(
            "since",
            time(),
            "Count from the day of this time on, by month from the first day of its month on; default: 30 days ago, by month 365 days ago",
        )
        .query("limit", number(1, Some(MOST_LISTED)), "The maximum number of items; default: 100")
        .gives::<CostResponse>(200, "The costs");
    routes.get("/api/v1/cost", Rule::Key(Action::Read), operation, get);
}

async fn get(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    query.refuse_slips(&["by", "since", "limit"])?;
    let by = query.text("by")?.map_or(Ok(CostBy::User), |word| CostBy::parse(word).ok_or_else(unknown_by))?;
    let since = query.parsed::<Rfc3339>("since")?.map(Into::into);
    let limit = usize::try_from(query.number("limit", 1..=MOST_LISTED)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let report = call.engine().costs(call.caller()?, by, since, limit).await?;
    let response = CostResponse {
        by: by.as_str().to_owned(),
        since: report.since.into(),
        executions: report.total.executions,
        cost_usd: dollars(report.total.micro_usd),
        items: report.rows.into_iter().map(item).collect(),
        more: report.more,
        complete: report.is_complete,
        has_rates: report.has_rates,
    };
    Ok(answer::json(StatusCode::OK, &response))
}

fn unknown_by() -> Fault {
    Fault::invalid("by", format!("must be {}", one_of(&CostBy::ALL.map(CostBy::as_str))))
}

fn item(row: CostRow) -> CostItem {
    CostItem { name: row.name, executions: row.cost.executions, cost_usd: dollars(row.cost.micro_usd) }
}
