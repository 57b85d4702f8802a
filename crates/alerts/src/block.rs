//! A message in Slack's words: blocks for those who show them, and a text that says the same for those who do not. Nothing in a message acts as
//! markup: what could mention somebody, make a link or end a quotation is written so that it does not.

use jiff::Timestamp;
use runvoy_model::time::UnixMs;
use runvoy_ports::alert::{Entry, Line, Notice, Tone};
use serde_json::{Value, json};

/// Slack takes no more in one section, one header, one message.
const MOST_SECTION: usize = 2_900;
const MOST_HEADER: usize = 140;

/// The message as blocks.
pub(crate) fn blocks(notice: &Notice) -> Vec<Value> {
    let mut blocks = vec![json!({
        "type": "header",
        "text": {"type": "plain_text", "text": cut(&format!("{} {}", sign(notice), notice.title), MOST_HEADER), "emoji": true},
    })];
    for entry in &notice.begun {
        blocks.push(section(&format!("*{}*\n{}", escaped(&entry.headline), details(entry).join("\n"))));
        blocks.push(json!({"type": "divider"}));
    }
    if !notice.more.is_empty() {
        blocks.push(section(&notice.more.iter().map(|more| escaped(more)).collect::<Vec<_>>().join("\n")));
    }
    if !notice.over.is_empty() {
        blocks.push(section(&notice.over.iter().map(over).collect::<Vec<_>>().join("\n")));
    }
    blocks
}

/// The message as one text.
pub(crate) fn text(notice: &Notice) -> String {
    let mut lines = vec![format!("{} *{}*", sign(notice), escaped(&notice.title))];
    for entry in &notice.begun {
        lines.push(format!("• {}: {}", escaped(&entry.headline), details(entry).join(" · ")));
    }
    lines.extend(notice.more.iter().map(|more| escaped(more)));
    lines.extend(notice.over.iter().map(over));
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
    details.extend(entry.command.as_deref().map(code));
    details.extend(entry.facts.iter().map(|(name, value)| format!("*{name}:* {}", escaped(value))));
    details.push(format!("*Since:* {}", time(entry.since)));
    if !entry.next.is_empty() {
        details.push(format!("*Next:* {}", entry.next.iter().map(|next| code(next)).collect::<Vec<_>>().join(" · ")));
    }
    details.extend(entry.link.as_deref().map(link));
    details
}

fn over(line: &Line) -> String {
    let command = line.command.as_deref().map_or(String::new(), |command| format!(" {}", code(command)));
    let link = line.link.as_deref().map_or(String::new(), |address| format!(" {}", link(address)));
    format!(":white_check_mark: {}{command}{link}", escaped(&line.text))
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": cut(text, MOST_SECTION)}})
}

/// Text that is only text: `<` begins every mention and every link.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A command line as it is typed. A backtick would end it.
fn code(text: &str) -> String {
    format!("`{}`", escaped(&text.replace('`', "'")))
}

fn link(address: &str) -> String {
    format!("<{}|Open the log>", escaped(address).replace('|', "%7C"))
}

fn time(at: UnixMs) -> String {
    Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// A text of at most so many bytes, with a mark where it was cut.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &str) -> Entry {
        Entry {
            tone: Tone::Warning,
            headline: "Overtime: an execution runs for very long".into(),
            since: UnixMs(1_767_453_739_640),
            command: Some(command.into()),
            facts: vec![("Who", "ada@example.com".into()), ("Why", "it has run for 2 h 0 min".into())],
            next: vec!["runvoy logs -f 01".into(), "runvoy kill 01".into()],
            link: Some("https://runvoy.example.com/logs?execution_id=01".into()),
        }
    }

    fn notice(begun: Vec<Entry>) -> Notice {
        Notice { title: "Overtime: an execution runs for very long".into(), begun, more: Vec::new(), over: Vec::new() }
    }

    #[test]
    fn a_person_sees_what_who_since_when_why_and_what_to_do() {
        let blocks = blocks(&notice(vec![entry("make deploy")]));
        assert_eq!(blocks[0]["text"]["text"], ":warning: Overtime: an execution runs for very long");
        let expected = "*Overtime: an execution runs for very long*\n`make deploy`\n*Who:* ada@example.com\n*Why:* it has run for 2 h 0 min\n\
                        *Since:* 2026-01-03 15:22:19 UTC\n*Next:* `runvoy logs -f 01` · `runvoy kill 01`\n\
                        <https://runvoy.example.com/logs?execution_id=01|Open the log>";
        assert_eq!(blocks[1]["text"]["text"], expected);
        assert_eq!(blocks[1]["text"]["type"], "mrkdwn");
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
    fn nothing_is_larger_than_slack_takes() {
        let mut long = notice((0..10).map(|_| entry(&"é".repeat(5_000))).collect());
        long.title = "x".repeat(500);
        long.over = (0..11).map(|_| Line { text: "y".repeat(2_000), command: None, link: None }).collect();
        let blocks = blocks(&long);
        assert!(blocks.len() <= 50, "{}", blocks.len());
        for block in &blocks {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            let most = if block["type"] == "header" { 150 } else { 3_000 };
            assert!(text.len() <= most, "{} of {most}", text.len());
        }
    }

    #[test]
    fn what_is_over_is_a_line() {
        let over = vec![Line { text: "critical execution 01: over".into(), command: Some("make".into()), link: None }];
        let said = Notice { title: "Resolved: critical execution".into(), begun: Vec::new(), more: Vec::new(), over };
        assert_eq!(text(&said), ":white_check_mark: *Resolved: critical execution*\n:white_check_mark: critical execution 01: over `make`");
    }
}
