//! A sequence of named steps: stops at the first that fails, names it, and ends with a table of times.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The steps taken so far.
#[derive(Default)]
pub struct Steps {
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Takes one step. A failure prints the table so far and is returned with the step's name.
    pub fn take<T>(&mut self, name: &'static str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("\n==> {name}");
        let start = Instant::now();
        let outcome = step();
        self.taken.push((name, start.elapsed()));
        if outcome.is_err() {
            eprint!("\n{}", table(&self.taken, true));
        }
        outcome.with_context(|| format!("step `{name}` failed"))
    }

    /// Prints the table of a sequence that went well.
    pub fn finish(self) {
        eprint!("\n{}", table(&self.taken, false));
    }
}

fn table(taken: &[(&'static str, Duration)], failed: bool) -> String {
    let total: Duration = taken.iter().map(|(_, time)| *time).sum();
    let last = taken.len().saturating_sub(1);
    let mut text = String::from("step           seconds\n");
    for (place, (name, time)) in taken.iter().enumerate() {
        let mark = if failed && place == last { "  FAILED" } else { "" };
        text += &format!("{name:<12} {:>9.1}{mark}\n", time.as_secs_f64());
    }
    text + &format!("{:<12} {:>9.1}\n", "total", total.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_sequence_and_is_named() {
        let mut steps = Steps::default();
        steps.take("good", || Ok(())).expect("it succeeds");
        let error = steps.take("bad", || -> Result<()> { anyhow::bail!("broken") }).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `bad` failed: broken");
    }

    #[test]
    fn the_table_marks_the_failed_step_and_adds_up() {
        let taken = [("fmt", Duration::from_millis(1500)), ("tests", Duration::from_secs(60))];
        let text = table(&taken, true);
        assert_eq!(text.lines().filter(|line| line.ends_with("FAILED")).collect::<Vec<_>>(), ["tests             60.0  FAILED"]);
        assert!(text.ends_with("total             61.5\n"), "{text}");
        assert!(!table(&taken, false).contains("FAILED"));
    }
}
