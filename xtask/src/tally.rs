//! Adds up how many tests passed and failed, from the closing lines of nextest, of `cargo test`, and of the
//! two runners of the web page, vitest and that of Node.

use std::fmt;

/// How many tests ran, by result.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    passed: u64,
    failed: u64,
    under_nextest: bool,
}

impl Tally {
    /// Counts what `line` says, if it is a closing line.
    pub fn read(&mut self, line: &str) {
        let line = line.trim_start();
        // From here on a `test result:` is part of the output of a failed test, which its own line counts already.
        self.under_nextest |= line.starts_with("Nextest run ID");
        let closes =
            if self.under_nextest { line.starts_with("Summary [") && line.contains(" run: ") } else { line.starts_with("test result:") };
        if closes {
            self.passed += count(line, "passed");
            self.failed += count(line, "failed") + count(line, "timed out");
        }
        self.read_page(line);
    }

    /// `Tests  1 failed | 12 passed (13)` of vitest; `ℹ pass 12` and `ℹ fail 1` of Node.
    fn read_page(&mut self, line: &str) {
        if line.starts_with("Tests  ") {
            self.passed += count(line, "passed");
            self.failed += count(line, "failed");
        }
        let number = |word: &str| line.strip_prefix(word).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
        self.passed += number("ℹ pass ");
        self.failed += number("ℹ fail ");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The number right before `word`, 0 if there is none.
fn count(line: &str, word: &str) -> u64 {
    let Some(at) = line.find(&format!(" {word}")) else { return 0 };
    line[..at].rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_add_up() {
        let mut tally = Tally::default();
        tally.read("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.52s");
        tally.read("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally.read(" Nextest run ID a31a6dc8 with nextest profile: ci");
        tally.read("    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally.read("     Summary [   1.204s] 45/47 tests run: 40 passed (3 slow), 4 failed, 1 timed out, 9 skipped");
        assert_eq!(tally.to_string(), "53 passed, 7 failed");
    }

    #[test]
    fn closing_lines_of_the_page_add_up() {
        let mut tally = Tally::default();
        for line in
            [" Test Files  1 failed | 15 passed (16)", "      Tests  2 failed | 297 passed (299)", "ℹ tests 21", "ℹ pass 20", "ℹ fail 1"]
        {
            tally.read(line);
        }
        assert_eq!(tally.to_string(), "317 passed, 3 failed");
    }

    #[test]
    fn other_lines_do_not_count() {
        let mut tally = Tally::default();
        tally.read("test the_summary_says_5 passed ... ok");
        tally.read("Summary of 3 passed things");
        assert_eq!(tally, Tally::default());
    }
}
