//! Columns for people. On a terminal the last column is cut to fit; in a pipe nothing is.

use crate::sanitize::one_line;
use crate::terminal::{Terminal, Tone, paint};

const GAP: &str = "  ";

/// A cell: text and what it means.
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: one_line(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// The rows under their headings, each line ended by a newline.
pub(crate) fn render(headings: &[&str], rows: &[Vec<Cell>], width: Option<usize>, colour: bool) -> String {
    let heading: Vec<Cell> = headings.iter().map(|heading| Cell::new(heading, Tone::Bold)).collect();
    let lines = || std::iter::once(&heading).filter(|_| !headings.is_empty()).chain(rows);
    let columns = lines().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in lines() {
        let mut used = 0;
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let text = match width {
                Some(width) if last => cut(&cell.text, width.saturating_sub(used).max(8)),
                _ => cell.text.clone(),
            };
            let length = text.chars().count();
            out.push_str(&paint(&text, cell.tone, colour));
            if !last {
                out.push_str(&" ".repeat(widths[column] - length));
                out.push_str(GAP);
            }
            used += widths[column] + GAP.len();
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// Names and facts, one a line; what is absent or empty is left out. A fact of several lines goes on below itself.
pub(crate) fn facts(facts: impl IntoIterator<Item = (&'static str, Option<String>)>, colour: bool) -> String {
    let present = facts.into_iter().filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)));
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (name, fact) in present {
        for (n, line) in fact.lines().enumerate() {
            rows.push(vec![Cell::new(if n == 0 { name } else { "" }, Tone::Dim), line.into()]);
        }
    }
    render(&[], &rows, None, colour)
}

/// A list of things under headings; nothing at all where there is none.
pub(crate) fn list(headings: &[&str], rows: &[Vec<Cell>], terminal: Terminal) -> String {
    if rows.is_empty() { String::new() } else { render(headings, rows, terminal.width, terminal.stdout_colour) }
}

/// `text`, or as much of it as fits with a mark.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec!["0192ab".into(), Cell::new("FAILED", Tone::Bad), "make deploy ENV=production".into()],
            vec!["0192ac".into(), Cell::new("RUNNING", Tone::Busy), "echo\nhi\x1b]0;x\x07".into()],
        ]
    }

    #[test]
    fn a_fact_of_several_lines_stays_in_its_column() {
        let told =
            facts([("command", Some("set -eu\nmake\x1b]0;x\x07".to_owned())), ("none", None), ("lock", Some("prod".to_owned()))], false);
        assert_eq!(told, "command  set -eu\n         make\nlock     prod\n");
    }

    #[test]
    fn a_pipe_gets_everything_and_a_terminal_what_fits() {
        insta::assert_snapshot!(render(&["ID", "STATUS", "COMMAND"], &rows(), None, false), @r"
        ID      STATUS   COMMAND
        0192ab  FAILED   make deploy ENV=production
        0192ac  RUNNING  echo hi
        ");
        insta::assert_snapshot!(render(&["ID", "STATUS", "COMMAND"], &rows(), Some(30), false), @r"
        ID      STATUS   COMMAND
        0192ab  FAILED   make deploy …
        0192ac  RUNNING  echo hi
        ");
    }
}
