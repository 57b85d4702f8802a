//! The table of results: ours, the limit measured beside it, and how far that is from the goal.

use std::fmt;

/// A number with its unit.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// How many.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
}

/// What a row must reach. Half a goal is half as good: twice the cost or half the rate.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// At least this share of the limit.
    Share(f64),
    /// At most this many times the limit.
    Times(f64),
    /// At most this much more than the limit.
    Above(f64),
    /// At most this much, whatever the machine.
    Below(f64),
}

/// One thing measured.
#[derive(Debug)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// What the server did.
    pub ours: Quantity,
    /// What the machine can do.
    pub limit: Option<Quantity>,
    /// What was asked for.
    pub goal: Goal,
    /// What else a reader should know.
    pub note: String,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.limit.map(|limit| self.ours.value / limit.value)
    }

    fn reaches(&self, goal: Goal) -> bool {
        let limit = self.limit.map_or(f64::NAN, |limit| limit.value);
        match goal {
            Goal::Share(share) => self.ours.value >= limit * share,
            Goal::Times(times) => self.ours.value <= limit * times,
            Goal::Above(more) => self.ours.value <= limit + more,
            Goal::Below(most) => self.ours.value <= most,
        }
    }

    fn verdict(&self) -> &'static str {
        if self.reaches(self.goal) {
            "goal"
        } else if self.reaches(self.goal.half()) {
            "half"
        } else {
            "missed"
        }
    }
}

impl Goal {
    fn half(self) -> Goal {
        match self {
            Goal::Share(share) => Goal::Share(share / 2.0),
            Goal::Times(times) => Goal::Times(times * 2.0),
            Goal::Above(more) => Goal::Above(more * 2.0),
            Goal::Below(most) => Goal::Below(most * 2.0),
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Goal::Share(share) => format!("≥ {share:.2}"),
            Goal::Times(times) => format!("≤ {times:.1}×"),
            Goal::Above(more) => format!("≤ limit + {more:.0} {unit}"),
            Goal::Below(most) => format!("≤ {most:.0} {unit}"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.value < 10.0 { 2 } else { usize::from(self.value < 1_000.0) };
        write!(out, "{:.digits$} {}", self.value, self.unit)
    }
}

/// All rows, printed as Markdown with aligned columns.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds rows at the end.
    pub fn extend(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let heads = ["what", "ours", "limit beside it", "ratio", "goal", "half of it", "reached", "note"].map(str::to_owned);
        let lines: Vec<[String; 8]> = std::iter::once(heads).chain(self.rows.iter().map(cells)).collect();
        let widths: Vec<usize> = (0..8).map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)).collect();
        for (index, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                write!(out, "| {cell:<width$} ")?;
            }
            writeln!(out, "|")?;
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
                writeln!(out, "|{}|", rules.join("|"))?;
            }
        }
        Ok(())
    }
}

fn cells(row: &Row) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    [
        row.name.clone(),
        row.ours.to_string(),
        or_dash(row.limit.map(|limit| limit.to_string())),
        or_dash(row.ratio().map(|ratio| format!("{ratio:.2}"))),
        row.goal.text(row.ours.unit),
        row.goal.half().text(row.ours.unit),
        row.verdict().to_owned(),
        row.note.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, limit: Option<f64>, goal: Goal) -> Row {
        let quantity = |value| Quantity { value, unit: "ms" };
        Row { name: "a row".to_owned(), ours: quantity(ours), limit: limit.map(quantity), goal, note: String::new() }
    }

    #[test]
    fn a_verdict_is_the_better_of_goal_and_half() {
        for (ours, limit, goal, verdict) in [
            (60.0, Some(100.0), Goal::Share(0.6), "goal"),
            (31.0, Some(100.0), Goal::Share(0.6), "half"),
            (29.0, Some(100.0), Goal::Share(0.6), "missed"),
            (16.0, Some(10.0), Goal::Times(1.6), "goal"),
            (32.0, Some(10.0), Goal::Times(1.6), "half"),
            (33.0, Some(10.0), Goal::Times(1.6), "missed"),
            (35.0, Some(10.0), Goal::Above(25.0), "goal"),
            (61.0, Some(10.0), Goal::Above(25.0), "missed"),
            (50.0, None, Goal::Below(50.0), "goal"),
            (99.0, None, Goal::Below(50.0), "half"),
        ] {
            assert_eq!(row(ours, limit, goal).verdict(), verdict, "{ours} {limit:?} {goal:?}");
        }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::default();
        table.extend(vec![row(1.0, Some(2.0), Goal::Share(0.5)), row(123_456.0, None, Goal::Below(5.0))]);
        let text = table.to_string();
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 4);
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}
