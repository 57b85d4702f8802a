//! A shell command taken apart into simple commands and their words, as `sh` would, or a plain [`Unsure`]. It knows blanks, quotes and
//! the operators `;` `&` `&&` `||` `|`. Whatever makes words out of anything but the text itself (expansions, substitutions, globs, redirections),
//! and whatever shells disagree about, is not guessed at. It never runs, expands or looks up anything.

/// A text has at most this many bytes; a longer one is not taken apart.
pub const MOST_TEXT_BYTES: usize = 8 * 1024;

/// A text whose commands are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The words of each simple command, in order. None is empty.
    pub commands: Vec<Vec<String>>,
    /// Whether any of them reads what another writes.
    pub piped: bool,
}

/// Why nobody can know, without running it, which commands a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsure(pub &'static str);

/// Takes a text apart.
pub fn split(text: &str) -> Result<Text, Unsure> {
    if text.len() > MOST_TEXT_BYTES {
        return Err(Unsure("it is too long"));
    }
    let mut splitter = Splitter { rest: text.as_bytes(), commands: Vec::new(), words: Vec::new(), word: None, piped: false, open: false };
    while let Some(byte) = splitter.next() {
        splitter.take(byte)?;
    }
    splitter.finish()
}

struct Splitter<'a> {
    rest: &'a [u8],
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The word that is being read; an empty one is there as soon as a quote opened.
    word: Option<String>,
    piped: bool,
    /// Whether an operator waits for the command on its right.
    open: bool,
}

impl Splitter<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Takes one byte outside quotes.
    fn take(&mut self, byte: u8) -> Result<(), Unsure> {
        match byte {
            b' ' | b'\t' => self.end_word(),
            b'\'' | b'"' => self.take_quoted(byte)?,
            b';' | b'&' | b'|' => self.take_operator(byte)?,
            b'$' => return Err(Unsure("it has `$`")),
            b'`' => return Err(Unsure("it has a backtick")),
            b'\\' => return Err(Unsure("it has a backslash")),
            b'(' | b')' | b'{' | b'}' => return Err(Unsure("it has a parenthesis or a brace")),
            b'<' | b'>' => return Err(Unsure("it has a redirection")),
            b'*' | b'?' | b'[' => return Err(Unsure("it has a glob")),
            b'#' if self.word.is_none() => return Err(Unsure("it has a comment")),
            b'~' if self.word.as_ref().is_none_or(|word| word.ends_with(['=', ':'])) => return Err(Unsure("it has `~`")),
            b'\n' | b'\r' => return Err(Unsure("it has several lines")),
            _ => self.push(byte)?,
        }
        Ok(())
    }

    fn take_quoted(&mut self, quote: u8) -> Result<(), Unsure> {
        self.word.get_or_insert_default();
        loop {
            match self.next() {
                None => return Err(Unsure("it has a quote that does not end")),
                Some(byte) if byte == quote => return Ok(()),
                Some(b'$' | b'`' | b'\\') if quote == b'"' => return Err(Unsure("it has `$`, a backtick or a backslash in double quotes")),
                Some(byte) => self.push(byte)?,
            }
        }
    }

    fn take_operator(&mut self, operator: u8) -> Result<(), Unsure> {
        self.end_word();
        if self.words.is_empty() {
            return Err(Unsure("it has an operator without a command before it"));
        }
        self.commands.push(std::mem::take(&mut self.words));
        let is_double = operator != b';' && self.rest.first() == Some(&operator);
        if is_double {
            self.next();
        }
        self.piped |= operator == b'|' && !is_double;
        self.open = operator == b'|' || is_double;
        Ok(())
    }

    fn push(&mut self, byte: u8) -> Result<(), Unsure> {
        if !(b' '..=b'~').contains(&byte) {
            return Err(Unsure("it has characters that are not printable ASCII"));
        }
        self.word.get_or_insert_default().push(char::from(byte));
        Ok(())
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn finish(mut self) -> Result<Text, Unsure> {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(self.words);
        } else if self.open {
            return Err(Unsure("it has an operator without a command after it"));
        }
        if self.commands.is_empty() { Err(Unsure("it has no command")) } else { Ok(Text { commands: self.commands, piped: self.piped }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commands(text: &str) -> Vec<Vec<String>> {
        split(text).unwrap_or_else(|unsure| panic!("{text:?}: {unsure}")).commands
    }

    #[test]
    fn words_are_what_the_shell_makes_of_them() {
        for (text, words) in [
            ("kubectl get pods", &["kubectl", "get", "pods"][..]),
            ("  a\tb  ", &["a", "b"]),
            ("r''m \"x\"'y'z", &["rm", "xyz"]),
            ("a '' \"\"", &["a", "", ""]),
            ("grep '^a$ `b` \\c *' f", &["grep", "^a$ `b` \\c *", "f"]),
            ("echo \"a; b | (c) * it's\"", &["echo", "a; b | (c) * it's"]),
            ("git show HEAD~1 a#b HEAD^ x=y !", &["git", "show", "HEAD~1", "a#b", "HEAD^", "x=y", "!"]),
        ] {
            assert_eq!(commands(text), [words], "{text:?}");
        }
    }

    #[test]
    fn operators_part_commands() {
        for text in ["a b;c", "a b ; c;", "a b && c", "a b||c", "a b|c", "a b & c", "a b&c&"] {
            assert_eq!(commands(text), [vec!["a", "b"], vec!["c"]], "{text:?}");
        }
        assert!(split("a | b").expect("sure").piped);
        assert!(!split("a || b && c; d & e 'f | g'").expect("sure").piped);
    }

    #[test]
    fn what_only_the_shell_can_know_is_unsure() {
        for text in [
            "", "  ", ";", "; a", "a;;b", "a &&", "a |", "a ||", "a |& b", "a &;", "& a", "$a", "a$b", "\"$a\"", "$(a)", "`a`", "\"`a`\"",
            "a \\b", "\"\\a\"", "(a)", "a()", "{ a; }", "a {b,c}", "a > b", "a < b", "a <<b", "a 2>&1", "a *", "a ?", "a [b]", "# a",
            "a #b", "~/a", "a ~", "A=~/b", "A=b:~/c", "a\nb", "a\rb", "'a\nb'", "a\u{b}b", "a\0", "'a\tb'", "\u{7f}", "ü", "'ü'",
            "a\u{a0}b", "'a", "a\"", "$'a'",
        ] {
            assert!(split(text).is_err(), "{text:?}");
        }
        assert!(split(&"a".repeat(MOST_TEXT_BYTES)).is_ok());
        assert!(split(&"a".repeat(MOST_TEXT_BYTES + 1)).is_err());
    }

    /// What `/bin/sh` makes of a text, as far as it calls `a` or `b`.
    fn called(text: &str) -> Vec<Vec<String>> {
        let function = |name| format!("{name}() {{ printf '%s\\001' {name} \"$@\" END >&3; }}\n");
        let script = format!("exec 3>&1 1>/dev/null\n{}{}{text}\nwait", function("a"), function("b"));
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/nonexistent").output().expect("a shell");
        let output = String::from_utf8(output.stdout).expect("text");
        output.split_terminator("END\u{1}").map(|call| call.split_terminator('\u{1}').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn the_shell_agrees_about_a_plain_text() {
        let text = "a 'x y' \"\" z''z; b && a #";
        let known = commands(text.trim_end_matches(" #"));
        assert_eq!(called(text), known);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn the_shell_calls_nothing_that_is_not_known(
            text in prop_oneof!["[ab]([ '\"ab=~#!%^:,.]{0,6}[;&|]{1,2} ?[ab]){0,3}[ '\"ab]{0,4}", "[ab] [ab '\"$\\\\`;|~#*?{}<>()/-]{0,8}"]
        ) {
            let Ok(known) = split(&text) else { return Ok(()) };
            for call in called(&text) {
                // Before a command there may be assignments and `!`, which are words here.
                prop_assert!(known.commands.iter().any(|words| words.ends_with(&call)), "{:?}: called {:?}, knew {:?}", text, call, known);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn quoted_words_come_back_as_they_were(words in proptest::collection::vec("[ -&(-~]{0,6}", 1..5)) {
            let text = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(commands(&text), [words]);
        }

        #[test]
        fn no_command_of_a_text_is_empty(text in "[ab ;&|'\"]{0,16}") {
            if let Ok(text) = split(&text) {
                prop_assert!(!text.commands.is_empty() && text.commands.iter().all(|words| !words.is_empty()));
            }
        }
    }
}
