//! What is asked to be run, in the two forms that rules look at. An allow-list needs certainty: every simple command, as it stands. A deny needs
//! suspicion: every place where a command could begin, in the text and in what it carries. Neither is more than a guard rail.

use crate::pattern;
use crate::rule::Asked;
use crate::rule::carrier;
use crate::words::{self, Unsure};

/// Readings of one command have at most this many bytes together; what needs more cannot be judged.
const MOST_READ_BYTES: usize = 64 * 1024;
/// Stands for a blank inside a word, so that the blank of an allow pattern is always the end of a word.
const INNER_BLANK: &str = "\u{1f}";

/// The pattern that allows also what cannot be judged.
pub(super) const ANYTHING: &str = "*";

/// The simple commands that an allow-list must all know: those of the text or argv, and those of the shells in it.
pub(super) fn simple(asked: &Asked<'_>) -> Result<Vec<Vec<String>>, Unsure> {
    let mut commands = match argv(asked) {
        Some(argv) => vec![argv],
        None => words::split(asked.command)?.commands,
    };
    let mut at = 0;
    while let Some(command) = commands.get(at) {
        let mut carried = Vec::new();
        for text in carrier::shell_texts(command)? {
            carried.extend(words::split(text)?.commands);
        }
        commands.extend(carried);
        at += 1;
        if commands.len() > words::MOST_TEXT_BYTES {
            return Err(Unsure("it has too many commands"));
        }
    }
    Ok(commands)
}

/// Whether a pattern of an allow-list knows a simple command.
pub(super) fn is_allowed(pattern: &str, words: &[String]) -> bool {
    let Some(program) = words.first() else { return false };
    // A path or an assignment decides what is run: a wildcard must not let in one that nobody wrote down.
    let needs_itself = program.contains(['/', '=']);
    if needs_itself && pattern.split(' ').next() != Some(program) {
        return false;
    }
    let line = words.iter().map(|word| word.replace(' ', INNER_BLANK)).collect::<Vec<_>>().join(" ");
    pattern::matches(pattern, &line)
}

/// Every place where a command could begin, for patterns that deny.
pub(super) struct Suspects {
    lines: Vec<Line>,
    left: usize,
}

/// Words with one blank between them, and where among them a command could begin, in order.
struct Line {
    text: String,
    starts: Vec<usize>,
}

impl Suspects {
    /// All of what is asked.
    pub(super) fn of(asked: &Asked<'_>) -> Result<Self, Unsure> {
        let mut suspects = Self { lines: Vec::new(), left: MOST_READ_BYTES };
        match argv(asked) {
            Some(_) if !asked.command.is_ascii() => return Err(Unsure("its program is not plain ASCII")),
            Some(argv) => suspects.add(&argv, false)?,
            None => suspects.read(asked.command, false)?,
        }
        // Where an error was of no account it may have been this one.
        if suspects.left == 0 { Err(Unsure("it holds too much")) } else { Ok(suspects) }
    }

    /// The first of these patterns that denies it.
    ///
    /// A deny pattern reaches further than its letters: `rm` also denies `rm x`, and `rm *` also a bare `rm`, which `xargs` would give its words.
    pub(super) fn matched<'p>(&self, patterns: &'p [String]) -> Option<&'p str> {
        patterns
            .iter()
            .map(String::as_str)
            .find(|pattern| reaches(pattern).iter().any(|pattern| self.lines.iter().any(|line| line.has(pattern))))
    }

    fn add(&mut self, words: &[String], piped: bool) -> Result<(), Unsure> {
        let line = Line::of(words);
        self.spend(line.text.len())?;
        self.lines.push(line);
        let carried = carrier::text_from(words, piped);
        let from = carried.ok().flatten().unwrap_or(words.len());
        let mut result = carried.map(|_| ());
        for word in &words[..from] {
            // Any word may be a text for somebody; but only one that surely is must be understood.
            for text in readings(word) {
                let _maybe = self.read(text, piped);
            }
        }
        for word in &words[from..] {
            for text in readings(word).chain(clustered(word)) {
                result = result.and(self.read(text, piped));
            }
        }
        let rest = &words[from..];
        if rest.len() > 1 { result.and(self.read(&rest.join(" "), piped)) } else { result }
    }

    fn read(&mut self, text: &str, piped: bool) -> Result<(), Unsure> {
        let read = words::split(text)?;
        self.spend(text.len())?;
        // A plain word is in the line that it was read from; only the whole text has none yet.
        if !self.lines.is_empty() && read.commands == [[text]] {
            return Ok(());
        }
        let mut result = Ok(());
        for words in &read.commands {
            result = result.and(self.add(words, piped || read.piped));
        }
        result
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Unsure> {
        self.left = self.left.saturating_sub(bytes);
        if self.left == 0 { Err(Unsure("it holds too much")) } else { Ok(()) }
    }
}

impl Line {
    fn of(words: &[String]) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for word in words {
            if !starts.is_empty() {
                text.push(' ');
            }
            let at = text.len();
            let first = word.split_ascii_whitespace().next().unwrap_or_default();
            let first = if word.starts_with(first) { first } else { "" };
            starts.push(at);
            starts.extend(first.find('=').map(|equals| at + equals + 1));
            starts.extend(first.rfind('/').map(|slash| at + slash + 1));
            starts.extend(attached(first).map(|value| at + first.len() - value.len()));
            text.push_str(word);
        }
        starts.sort_unstable();
        Self { text, starts }
    }

    /// Whether the pattern fits from any start on. Of all starts that fit up to the pattern's first star only the first needs a full look: what
    /// the rest fits after a later one it fits after an earlier one too. So a long line with many starts is still read about once.
    fn has(&self, pattern: &str) -> bool {
        let fits = |pattern: &str, start: usize| pattern::matches(pattern, &self.text[start..]);
        let mut starts = self.starts.iter().copied();
        match pattern.find('*') {
            Some(star) => starts.find(|start| fits(&pattern[..=star], *start)).is_some_and(|start| fits(pattern, start)),
            None => starts.any(|start| fits(pattern, start)),
        }
    }
}

/// The program and its arguments, where there is no shell.
fn argv(asked: &Asked<'_>) -> Option<Vec<String>> {
    asked.args.map(|args| std::iter::once(asked.command.to_owned()).chain(args.iter().cloned()).collect())
}

/// What a word could be as a text: itself, what follows its `=`, what follows the letter of its option.
fn readings(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    [Some(word), value, attached(word)].into_iter().flatten().filter(|text| !text.is_empty())
}

/// What is written right after the letter of a short option.
fn attached(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|short| !short.starts_with('-')).and_then(|short| short.get(1..)).filter(|value| !value.is_empty())
}

/// What could be written right after the last letter of several short options in one word.
fn clustered(word: &str) -> impl Iterator<Item = &str> {
    const MOST_LETTERS: usize = 8;
    let letters = attached(word).unwrap_or_default();
    (1..letters.len().min(MOST_LETTERS)).filter_map(|at| letters.get(at..))
}

/// A deny pattern and what it stands for as well.
fn reaches(pattern: &str) -> Vec<String> {
    let (program, rest) = pattern.split_at(pattern.find(' ').unwrap_or(pattern.len()));
    let base = program.rsplit('/').next().filter(|base| *base != program && !base.is_empty() && !base.contains(['*', '?']));
    let mut reaches = Vec::new();
    for pattern in std::iter::once(pattern.to_owned()).chain(base.map(|base| format!("{base}{rest}"))) {
        match pattern.strip_suffix(" *") {
            Some(bare) => reaches.push(bare.to_owned()),
            None if pattern.ends_with('*') => {}
            None => reaches.push(format!("{pattern} *")),
        }
        reaches.push(pattern);
    }
    reaches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_line_has_what_fits_from_any_start(words in proptest::collection::vec("[ab/=ü-]{0,4}", 1..5), pattern in "[ab ?ü]{0,2}[ab *?]{0,4}") {
            let line = Line::of(&words);
            prop_assert_eq!(line.has(&pattern), line.starts.iter().any(|start| pattern::matches(&pattern, &line.text[*start..])));
        }
    }
}
