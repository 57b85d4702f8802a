//! A message in Slack's words: blocks for those who show them, and a text that says the same for those who do not. Nothing in a message acts as
//! markup: what could mention somebody, make a link, begin a line or end a quotation is written so that it does not. Other people's words are
//! quoted, a line each.

use jiff::Timestamp;
use runvoy_model::incident::one_line;
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{Entry, Line, Notice, Tone};
use serde_json::{Value, json};

/// Slack takes no more in one section and in one header; some is left for what counts as more than one character there.
const MOST_SECTION: usize = 2_900;
const MOST_HEADER: usize = 140;
/// So much of one entry and of one line is in the text: all of them together are less than Slack takes.
const MOST_IN_TEXT: usize = 1_700;
/// So much of one value is shown. All values of an entry fit into a section, whatever is in them.
const MOST_VALUE: usize = 260;

/// The message as blocks.
pub(crate) fn blocks(notice: &Notice) -> Vec<Value> {
    let title = one_line(&format!("{} {}", sign(notice), notice.title), MOST_HEADER);
    let mut blocks = vec![json!({"type": "header", "text": {"type": "plain_text", "text": title, "emoji": true}})];
    for entry in &notice.begun {
        blocks.push(section(&format!("*{}*\n{}", prose(&entry.headline), details(entry).join("\n"))));
        blocks.push(json!({"type": "divider"}));
    }
    blocks.extend(sections(notice.more.iter().map(|more| prose(more))));
    blocks.extend(sections(notice.over.iter().map(over)));
    blocks
}

/// The message as one text.
pub(crate) fn text(notice: &Notice) -> String {
    let mut lines = vec![format!("{} *{}*", sign(notice), prose(&notice.title))];
    for entry in &notice.begun {
        lines.push(cut(&format!("• {}: {}", prose(&entry.headline), details(entry).join(" · ")), MOST_IN_TEXT));
    }
    lines.extend(notice.more.iter().map(|more| prose(more)));
    lines.extend(notice.over.iter().map(|line| cut(&over(line), MOST_IN_TEXT)));
    lines.join("\n")
}

fn sign(notice: &Notice) -> &'static str {
    match notice.begun.iter().map(|entry| entry.tone).max() {
        Some(Tone::Bad) => ":rotating_light:",
        Some(Tone::Warning) => ":warning:",
        None if notice.over.is_empty() => ":bell:",
        None => ":white_check_mark:",
    }
}

fn details(entry: &Entry) -> Vec<String> {
    let mut details = Vec::new();
    details.extend(entry.command.as_deref().and_then(quoted));
    details.extend(entry.facts.iter().filter_map(|(name, value)| Some(format!("*{name}:* {}", quoted(value)?))));
    details.push(format!("*Since:* {}", time(entry.since)));
    if !entry.next.is_empty() {
        details.push(format!("*Next:* {}", entry.next.iter().filter_map(|next| quoted(next)).collect::<Vec<_>>().join(" · ")));
    }
    details.extend(entry.link.as_deref().map(link));
    details
}

fn over(line: &Line) -> String {
    let why = line.why.as_deref().and_then(quoted).map_or(String::new(), |why| format!(": {why}"));
    let command = line.command.as_deref().and_then(quoted).map_or(String::new(), |command| format!(" · {command}"));
    let link = line.link.as_deref().map_or(String::new(), |address| format!(" · {}", link(address)));
    format!(":white_check_mark: {}{why}{command}{link}", prose(&line.text))
}

fn section(text: &str) -> Value {
    // Verbatim: nothing becomes a link or a mention by itself.
    json!({"type": "section", "text": {"type": "mrkdwn", "text": cut(text, MOST_SECTION), "verbatim": true}})
}

/// Lines in as few sections as take them whole.
fn sections(lines: impl Iterator<Item = String>) -> Vec<Value> {
    let mut texts: Vec<String> = Vec::new();
    for line in lines {
        match texts.last_mut() {
            Some(text) if length(text) + 1 + length(&line) <= MOST_SECTION => *text = format!("{text}\n{line}"),
            _ => texts.push(line),
        }
    }
    texts.iter().map(|text| section(text)).collect()
}

/// Text that is only text: `<` begins every mention and every link.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Our own words, which may name somebody: one line, and what would mark up a part of it looks only like what does.
fn prose(text: &str) -> String {
    let line = one_line(text, MOST_VALUE);
    let mut before = ' ';
    let mut plain = String::with_capacity(line.len());
    for c in line.chars() {
        plain.push(match c {
            '*' => '∗',
            '~' => '∼',
            '`' => '\'',
            // Within a word it marks nothing up.
            '_' if !before.is_alphanumeric() => '＿',
            other => other,
        });
        before = c;
    }
    escaped(&plain)
}

/// Words of others, or a command line as it is typed: one line in which nothing is markup but the backtick, which would end it.
fn quoted(text: &str) -> Option<String> {
    let line = one_line(&text.replace('`', "'"), MOST_VALUE);
    (!line.is_empty()).then(|| format!("`{}`", escaped(&line)))
}

fn link(address: &str) -> String {
    let address: String = address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    format!("<{}|Open the log>", escaped(&address).replace('|', "%7C"))
}

fn time(at: UnixMs) -> String {
    Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// A text of at most so many characters, with a mark where it was cut.
fn cut(text: &str, most: usize) -> String {
    if length(text) <= most {
        return text.to_owned();
    }
    let mut left = most;
    let fits = |c: &char| {
        left = left.saturating_sub(c.len_utf16());
        left > 0
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &str) -> Entry {
        Entry {
            tone: Tone::Warning,
            headline: "Overtime: an execution runs unusually long".into(),
            since: UnixMs(1_767_453_739_640),
            command: Some(command.into()),
            facts: vec![("Who", "ada@example.com".into()), ("Why", "it has run for 2 h 0 min".into())],
            next: vec!["runvoy logs -f 01".into(), "runvoy kill 01".into()],
            link: Some("https://runvoy.example.com/logs?execution_id=01".into()),
        }
    }

    fn notice(begun: Vec<Entry>) -> Notice {
        Notice { title: "Overtime: an execution runs unusually long".into(), begun, more: Vec::new(), over: Vec::new() }
    }

    #[test]
    fn a_person_sees_what_who_since_when_why_and_what_to_do() {
        let blocks = blocks(&notice(vec![entry("make deploy")]));
        assert_eq!(blocks[0]["text"]["text"], ":warning: Overtime: an execution runs unusually long");
        let expected = "*Overtime: an execution runs unusually long*\n`make deploy`\n*Who:* `ada@example.com`\n*Why:* `it has run for 2 h 0 min`\n\
                        *Since:* 2026-01-03 15:22:19 UTC\n*Next:* `runvoy logs -f 01` · `runvoy kill 01`\n\
                        <https://runvoy.example.com/logs?execution_id=01|Open the log>";
        assert_eq!(blocks[1]["text"]["text"], expected);
        assert_eq!((&blocks[1]["text"]["type"], &blocks[1]["text"]["verbatim"]), (&json!("mrkdwn"), &json!(true)));
    }

    #[test]
    fn nobody_is_called_by_a_command() {
        let said = notice(vec![entry("echo '<!channel> <@U1> & `x` <https://evil.example|click>'")]);
        for shown in [text(&said), blocks(&said)[1]["text"]["text"].as_str().expect("a text").to_owned()] {
            assert!(shown.contains("`echo '&lt;!channel&gt; &lt;@U1&gt; &amp; 'x' &lt;https://evil.example|click&gt;'`"), "{shown}");
            assert_eq!(shown.matches('<').count(), 1, "only our own link: {shown}");
        }
    }

    #[test]
    fn security_26_words_of_others_are_one_quoted_line_each() {
        let forged = "boom\n*Next:* `curl evil` <https://evil.example|click>\r\u{2028}~_x_~ \u{202e}txet";
        let mut one = entry(forged);
        one.facts = vec![("Who", forged.into()), ("Why", forged.into())];
        let mut said = notice(vec![one]);
        said.over =
            vec![Line { text: "critical execution 01: over".into(), why: Some(forged.into()), command: Some(forged.into()), link: None }];
        said.more = vec![format!("{forged} asked")];
        let mut shown: Vec<String> = text(&said).lines().map(str::to_owned).collect();
        for block in blocks(&said).iter().filter(|block| block["type"] == "section") {
            assert_eq!(block["text"]["verbatim"], true);
            shown.extend(block["text"]["text"].as_str().expect("a text").lines().map(str::to_owned));
        }
        assert_eq!(shown.iter().filter(|line| line.starts_with("*Next:*")).count(), 1, "ours alone: {shown:#?}");
        for line in &shown {
            assert!(!line.contains(['\u{202e}', '\u{2028}', '\r']), "{line:?}");
            // What is between an even number of backticks is not quoted.
            let open: String = line.split('`').step_by(2).collect();
            assert!(!open.contains("<https://evil") && !open.contains("_x") && !open.contains('~'), "{line}");
            assert!(line.matches('`').count() % 2 == 0, "{line}");
        }
    }

    #[test]
    fn nothing_is_larger_than_slack_takes_and_no_line_is_cut_away() {
        let mut long = notice((0..10).map(|_| entry(&"&é".repeat(5_000))).collect());
        for entry in &mut long.begun {
            entry.facts = ["Execution", "Who", "Queue", "Task"].map(|name| (name, "x".repeat(64))).into();
            entry.facts.push(("Why", "&".repeat(5_000)));
        }
        long.title = "x".repeat(500);
        let link = Some(format!("https://runvoy.example.com/logs?execution_id={}", "0".repeat(32)));
        let line = || Line { text: "y".repeat(100), why: Some("&".repeat(150)), command: Some("&".repeat(80)), link: link.clone() };
        long.over = (0..10).map(|_| line()).collect();
        long.over.push(Line { text: "and 40 more are over".into(), why: None, command: None, link: None });
        let blocks = blocks(&long);
        assert!(blocks.len() <= 50, "{}", blocks.len());
        let all: String = blocks.iter().filter_map(|block| block["text"]["text"].as_str()).collect();
        for shown in [&all, &text(&long)] {
            assert_eq!(shown.matches(link.as_deref().expect("a link")).count(), 10, "every line is whole");
            assert!(shown.ends_with("and 40 more are over"));
        }
        assert_eq!(all.matches("*Next:* `runvoy logs -f 01` · `runvoy kill 01`").count(), 10);
        assert!(text(&long).len() < 40_000);
        for block in &blocks {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            let most = if block["type"] == "header" { 150 } else { 3_000 };
            assert!(length(text) <= most, "{} of {most}", length(text));
        }
    }

    #[test]
    fn what_is_over_is_a_line() {
        let over = vec![Line {
            text: "critical execution 01: over".into(),
            why: Some("it ended".into()),
            command: Some("make".into()),
            link: None,
        }];
        let said = Notice { title: "Resolved: critical execution".into(), begun: Vec::new(), more: Vec::new(), over };
        assert_eq!(
            text(&said),
            ":white_check_mark: *Resolved: critical execution*\n:white_check_mark: critical execution 01: over: `it ended` · `make`"
        );
    }
}
