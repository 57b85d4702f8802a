//! `cost`: what executions cost, summed up.

use clap::Args;
use runvoy_client::CostQuery;
use runvoy_wire::{CostItem, CostResponse};

use crate::failure::Failure;
use crate::moment::Moment;
use crate::session::Session;
use crate::table::{Cell, render};
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  runvoy cost                          # by user, the last 30 days
  runvoy cost --by image --since 7d
  runvoy cost --by month               # the last year
  runvoy cost --by job --limit 10 --json";

/// Arguments of `cost`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct CostArgs {
    /// What to sum up by
    #[arg(long, value_name = "WHAT", default_value = "user", value_parser = ["user", "image", "queue", "job", "month"])]
    by: String,
    /// Start this long ago, or at a time; whole days in UTC [default: 30d, by month 365d]
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Show at most this many rows, 1 to 1000
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl CostArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let since = self.since.map(|since| since.text(session));
        let query = CostQuery { by: Some(self.by), since, limit: Some(self.limit) };
        let cost = session.connect().await?.cost(&query).await?;
        let names = || cost.items.iter().map(|item| item.name.clone()).collect();
        session.show(&cost, names, || table(&cost, session.terminal))?;
        for note in notes(&cost) {
            session.note(Tone::Dim, &note);
        }
        Ok(0)
    }
}

/// The table, the sum of all executions last.
fn table(cost: &CostResponse, terminal: Terminal) -> String {
    if cost.executions == 0 {
        return String::new();
    }
    let item = |item: &CostItem| row(Cell::whole(&item.name), item.executions, item.cost_usd);
    let total = row(Cell::new("All executions", Tone::Bold), cost.executions, cost.cost_usd);
    let rows: Vec<Vec<Cell>> = cost.items.iter().map(item).chain([total]).collect();
    render(&[&cost.by.to_uppercase(), "EXECUTIONS", "COST"], &rows, terminal.width, terminal.stdout_colour)
}

fn row(name: Cell, executions: u64, cost_usd: f64) -> Vec<Cell> {
    vec![name, executions.to_string().into(), format!("${cost_usd:.4}").into()]
}

/// What the numbers do not say themselves.
fn notes(cost: &CostResponse) -> Vec<String> {
    let since = cost.since.to_string();
    let day = since.split_once('T').map_or(since.as_str(), |(day, _)| day);
    let mut notes = Vec::new();
    if cost.executions == 0 {
        notes.push(format!("No executions have ended since {day}."));
    }
    if cost.more > 0 {
        notes.push(format!("{} shown, {} more; next: --limit N", cost.items.len(), cost.more));
    }
    if !cost.complete {
        notes.push("The latest executions are not counted yet; try again in a minute.".to_owned());
    }
    if !cost.has_rates {
        notes.push("Executions cost nothing: set cost_vcpu_hour_usd and cost_gb_hour_usd on the server.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use runvoy_wire::Rfc3339;

    use super::*;

    fn cost() -> CostResponse {
        let item = |name: &str, executions, cost_usd| CostItem { name: name.into(), executions, cost_usd };
        CostResponse {
            by: "user".into(),
            since: Rfc3339(1_767_225_600_000),
            executions: 15,
            cost_usd: 1234.5678,
            items: vec![item("ana@example.com", 12, 1234.5), item("ben@example.com", 3, 0.0678)],
            more: 0,
            complete: true,
            has_rates: true,
        }
    }

    #[test]
    fn the_sum_stands_below_the_rows() {
        insta::assert_snapshot!(table(&cost(), Terminal::none()), @r"
        USER             EXECUTIONS  COST
        ana@example.com  12          $1234.5000
        ben@example.com  3           $0.0678
        All executions   15          $1234.5678
        ");
        assert_eq!(notes(&cost()), Vec::<String>::new());
    }

    #[test]
    fn the_table_fits_80_columns() {
        let jobs: Vec<CostItem> =
            (0..3).map(|number| CostItem { name: format!("{number:032x}"), executions: u64::MAX, cost_usd: 1e9 }).collect();
        let table = table(&CostResponse { items: jobs, by: "job".into(), ..cost() }, Terminal { width: Some(80), ..Terminal::none() });
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }

    #[test]
    fn notes_say_what_the_numbers_do_not() {
        let nothing = CostResponse { executions: 0, items: Vec::new(), more: 0, complete: false, has_rates: false, ..cost() };
        assert_eq!(table(&nothing, Terminal::none()), "");
        insta::assert_snapshot!(notes(&nothing).join("\n"), @r"
        No executions have ended since 2026-01-01.
        The latest executions are not counted yet; try again in a minute.
        Executions cost nothing: set cost_vcpu_hour_usd and cost_gb_hour_usd on the server.
        ");
        assert_eq!(notes(&CostResponse { more: 7, ..cost() }), ["2 shown, 7 more; next: --limit N"]);
    }
}
