//! Columns for people. On a terminal columns are cut to fit: the widest first, and never what was
//! marked as whole. In a pipe nothing is cut.

use crate::sanitize::one_line;
use crate::terminal::{Terminal, Tone, paint};

const GAP: &str = "  ";
/// The narrowest that a column is made.
const MIN_COLUMN: usize = 8;
/// So much of the last column should be seen before the others are cut.
const LAST_COLUMN: usize = 20;

/// A cell: text and what it means.
pub(crate) struct Cell {
    text: String,
    tone: Tone,
    /// A part of it would be of no use: an id.
    is_whole: bool,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: one_line(text.as_ref()), tone, is_whole: false }
    }

    /// A cell that is never cut.
    pub(crate) fn whole(text: impl AsRef<str>) -> Self {
        Self { is_whole: true, ..Self::new(text, Tone::Plain) }
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
    let widest = |column: usize, counts: fn(&Cell) -> bool| {
        let cells = lines().filter_map(|row| row.get(column)).filter(|cell| counts(cell));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns).map(|column| widest(column, |_| true)).collect();
    if let Some(width) = width {
        let named = |column: usize| heading.get(column).map_or(0, |cell| cell.text.chars().count());
        let least: Vec<usize> =
            (0..columns).map(|column| widest(column, |cell| cell.is_whole).max(named(column)).max(MIN_COLUMN)).collect();
        shrink(&mut widths, &least, width);
    }
    let mut out = String::new();
    for row in lines() {
        let mut used = 0;
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let text = match width {
                Some(width) if last => cut(&cell.text, width.saturating_sub(used).max(MIN_COLUMN)),
                Some(_) => cut(&cell.text, widths[column]),
                None => cell.text.clone(),
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

/// Makes the widest columns narrower until the table fits, as far as each can be cut.
fn shrink(widths: &mut [usize], least: &[usize], width: usize) {
    let Some((last, before)) = widths.split_last_mut() else { return };
    let needed = |before: &[usize]| before.iter().map(|column| column + GAP.len()).sum::<usize>() + (*last).min(LAST_COLUMN);
    while needed(before) > width {
        let can = (0..before.len()).filter(|column| before[*column] > least[*column]);
        let Some(widest) = can.max_by_key(|column| before[*column]) else { return };
        before[widest] -= 1;
    }
}

/// Breaks a text between words into lines of at most so many characters.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
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
    fn a_table_is_cut_to_the_terminal_and_ids_are_not() {
        let row = vec![
            Cell::whole("0192ab34c56d7e8f"),
            "a.long.name@example.com".into(),
            "jobs.add-tasks".into(),
            "make deploy ENV=production".into(),
        ];
        let text = render(&["ID", "USER", "ACTION", "COMMAND"], &[row], Some(60), false);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("0192ab34c56d7e8f") && text.contains('…'), "{text}");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("averylongword x", 4), ["averylongword", "x"]);
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
