//! Programs that run what their words or their input say: shells, `eval`, `ssh`, interpreters. It knows where such a text begins in a
//! command; it judges none. A script in a file is beyond it.

use crate::words::Unsure;

const SHELLS: [&str; 15] =
    ["ash", "bash", "csh", "dash", "fish", "ksh", "lksh", "mksh", "posh", "rbash", "rksh", "sh", "tcsh", "yash", "zsh"];

/// Programs whose words are shell text: always, or with an option that has this letter.
const TEXT_TAKERS: [(&str, Option<char>); 11] = [
    ("env", Some('S')),
    ("eval", None),
    ("flock", Some('c')),
    ("parallel", None),
    ("runuser", Some('c')),
    ("script", Some('c')),
    ("sg", Some('c')),
    ("ssh", None),
    ("su", Some('c')),
    ("trap", None),
    ("watch", None),
];

/// Programs that take code in a language of their own.
const INTERPRETERS: [&str; 11] = ["bun", "deno", "lua", "node", "nodejs", "perl", "php", "pypy", "python", "ruby", "tclsh"];

/// The first word from which on words are shell text, if there is one. Unsure if the command takes code from elsewhere.
pub(super) fn text_from(words: &[String], piped: bool) -> Result<Option<usize>, Unsure> {
    let mut from = None;
    for (at, word) in words.iter().enumerate() {
        let (program, rest) = (stem(word), &words[at + 1..]);
        let takes_text = if SHELLS.contains(&program) {
            match Shell::of(rest) {
                Shell::Input if piped => return Err(Unsure("it has a shell that reads its commands from a pipe")),
                Shell::Text(_) => true,
                Shell::Script | Shell::Input => false,
            }
        } else if INTERPRETERS.contains(&program) {
            interpreter(rest, piped)?;
            false
        } else {
            TEXT_TAKERS.iter().any(|(taker, letter)| *taker == program && letter.is_none_or(|letter| has_option(rest, letter)))
        };
        if takes_text && from.is_none() {
            from = Some(at + 1);
        }
    }
    Ok(from)
}

/// The texts that shells in this command are told to run with `-c`.
pub(crate) fn shell_texts(words: &[String]) -> Result<Vec<&str>, Unsure> {
    let mut texts = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| SHELLS.contains(&stem(word))) {
        let rest = &words[at + 1..];
        if let Shell::Text(text) = Shell::of(rest) {
            texts.push(rest.get(text).ok_or(Unsure("it has a shell whose text is unknown"))?.as_str());
        }
    }
    Ok(texts)
}

/// Where a shell takes its commands from.
enum Shell {
    /// From the word at this place after it, if there is one.
    Text(usize),
    /// From a file.
    Script,
    /// From its input.
    Input,
}

impl Shell {
    fn of(rest: &[String]) -> Self {
        let (mut at, mut text, mut input) = (0, false, false);
        while let Some(option) = rest.get(at).filter(|word| word.starts_with(['-', '+'])) {
            at += 1;
            if option == "-" || option == "--" {
                break;
            }
            if let Some(long) = option.strip_prefix("--") {
                text |= long.starts_with("command");
                continue;
            }
            text |= option.contains('c');
            input |= option.contains('s');
            at += usize::from(option.contains(['o', 'O']));
        }
        match rest.get(at) {
            _ if text => Self::Text(at),
            Some(file) if !input && !file.starts_with("/dev/") && !file.starts_with("/proc/") => Self::Script,
            _ => Self::Input,
        }
    }
}

fn interpreter(rest: &[String], piped: bool) -> Result<(), Unsure> {
    let options = rest.iter().take_while(|word| word.starts_with('-')).count();
    let takes_code = |option: &String| match option.strip_prefix("--") {
        Some(long) => long.starts_with(['e', 'p', 'r']),
        None => option.contains(['c', 'e', 'E', 'p', 'r']),
    };
    if rest[..options].iter().any(takes_code) {
        return Err(Unsure("it has code in another language"));
    }
    if piped && options == rest.len() { Err(Unsure("it has an interpreter that reads its code from a pipe")) } else { Ok(()) }
}

/// Whether there is an option with this letter, short or as the beginning of a long one.
fn has_option(words: &[String], letter: char) -> bool {
    words.iter().any(|word| match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => long.starts_with(letter.to_ascii_lowercase()),
        (None, Some(short)) => short.contains(letter),
        (None, None) => false,
    })
}

/// The name of a program without its directory and its version.
fn stem(word: &str) -> &str {
    let base = word.rsplit('/').next().unwrap_or(word);
    base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}
