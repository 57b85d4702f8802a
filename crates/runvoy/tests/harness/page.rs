//! A page of the documentation as a test reads it: its fenced blocks, and the commands in them and in its text.
//!
//! The first word after the fence is the language. `console` shows a session: `$ ` begins a command, other lines are output that it
//! must print (`…` stands for anything). `sh` has a command on each line. Words after the language say more: `home: NAME` runs the
//! block as somebody else, `no-run: REASON` only parses its options, and `yaml NAME.yaml` is a file that later commands find.

/// A fenced block.
pub struct Block {
    pub line: usize,
    language: String,
    info: String,
    lines: Vec<String>,
}

/// A command and what it should do.
pub struct Step {
    pub line: usize,
    pub command: String,
    pub output: Vec<String>,
    pub code: i32,
}

/// The fenced blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (None, None) => {}
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (Some(_), Some(block)) => blocks.push(block),
            (Some(head), None) => {
                let (language, info) = head.split_once(' ').unwrap_or((head, ""));
                let (language, info) = (language.to_owned(), info.trim().to_owned());
                open = Some(Block { line: index + 1, language, info, lines: Vec::new() });
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Commands of this program in the text between the blocks, such as `runvoy list`, with their lines.
pub fn mentions(page: &str) -> Vec<Step> {
    let mut in_block = false;
    let mut text = String::new();
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        // A block keeps its empty lines, so that lines are counted right.
        text.push_str(if in_block || is_fence { "" } else { line });
        text.push('\n');
    }
    let mut mentions = Vec::new();
    let mut line = 1;
    for (index, piece) in text.split('`').enumerate() {
        let is_command = index % 2 == 1 && piece.starts_with("runvoy ") && !piece.contains(['…', '|', '<', '[']);
        if is_command {
            mentions.push(Step { line, command: piece.replace('\n', " "), output: Vec::new(), code: 0 });
        }
        line += piece.matches('\n').count();
    }
    mentions
}

impl Block {
    pub fn is_session(&self) -> bool {
        ["console", "sh"].contains(&self.language.as_str())
    }

    /// Why its commands are not run.
    pub fn not_run_because(&self) -> Option<&str> {
        self.info.strip_prefix("no-run: ")
    }

    /// Whose home directory it is run in, if not the admin's.
    pub fn home(&self) -> Option<&str> {
        self.info.strip_prefix("home: ")
    }

    /// The file that this block is the content of.
    pub fn file(&self) -> Option<(&str, String)> {
        (!self.is_session() && self.info.contains('.')).then(|| (self.info.as_str(), self.lines.join("\n") + "\n"))
    }

    /// Whether a command stands where no test looks.
    pub fn hides_a_command(&self) -> bool {
        !self.is_session() && self.lines.iter().any(|line| line.trim_start_matches("$ ").starts_with("runvoy "))
    }

    /// What a systemd unit starts.
    pub fn services(&self) -> Vec<Step> {
        let text = self.lines.join("\n").replace("\\\n", " ");
        let started = text.lines().filter_map(|line| line.strip_prefix("ExecStart="));
        let command = |words: &str| words.trim_start_matches("/usr/local/bin/").to_owned();
        started.map(|words| Step { line: self.line, command: command(words), output: Vec::new(), code: 0 }).collect()
    }

    /// Its commands, in order; none where it is no session.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        if !self.is_session() {
            return steps;
        }
        let mut continues = false;
        for (index, line) in self.lines.iter().enumerate() {
            let command = if self.language == "console" { line.strip_prefix("$ ") } else { Some(line.as_str()) };
            match (command, steps.last_mut()) {
                (_, Some(step)) if continues => {
                    step.command.push('\n');
                    step.command.push_str(line);
                }
                (Some(command), _) if command.trim().is_empty() || command.starts_with('#') => {}
                (Some(command), _) => {
                    let line = self.line + 1 + index;
                    steps.push(Step { line, command: command.to_owned(), output: Vec::new(), code: 0 });
                }
                (None, Some(step)) => step.output.push(line.clone()),
                (None, None) => panic!("line {}: output before the first command", self.line + 1 + index),
            }
            continues = line.ends_with('\\');
        }
        for step in &mut steps {
            let said = step.command.split_once("# exits ").map(|(_, rest)| rest);
            let digits = said.and_then(|said| said.split(|c: char| !c.is_ascii_digit()).next());
            step.code = digits.map_or(0, |digits| digits.parse().expect("an exit code"));
        }
        steps
    }
}

impl Step {
    /// The first line of output that was shown and not printed.
    pub fn missing<'a>(&'a self, printed: &str) -> Option<&'a str> {
        let is_printed = |shown: &str| printed.lines().any(|line| matches(line.trim_end(), shown.trim_end()));
        self.output.iter().map(String::as_str).find(|shown| !is_printed(shown))
    }
}

/// Whether a line is as it was shown, where `…` stands for anything.
fn matches(line: &str, shown: &str) -> bool {
    let mut pieces = shown.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}
