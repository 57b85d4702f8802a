//! Whether a shell text has every parameter in double quotes. Without them the shell splits a value at its blanks, and a part of it may be an option. What
//! this cannot follow (backticks, here-documents) it does not judge: such a text may not use parameters.

use crate::playbook::ENV_PREFIX;
use crate::rule::shell_texts;
use crate::words;

/// What stands for the value of a parameter where a text is taken apart.
const VALUE: &str = "RUNVOY_VALUE";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Quotes,
    /// `$(…)` or `(…)`.
    Group,
    /// `${…}`, in quotes or not.
    Braces {
        quoted: bool,
    },
}

/// Refuses a text with a parameter that is not in double quotes, or that becomes part of another shell's text.
pub(super) fn check(text: &str) -> Result<(), String> {
    if !text.contains(ENV_PREFIX) {
        return Ok(());
    }
    let marked = scan(text)?;
    let commands = words::split(&marked).map(|text| text.commands).unwrap_or_default();
    let is_spliced = |words: &Vec<String>| {
        let has_value = |text: &str| text.contains(VALUE);
        words.first().is_some_and(|program| program == "eval") && words.iter().any(|word| has_value(word))
            || shell_texts(words).is_ok_and(|texts| texts.into_iter().any(has_value))
    };
    if commands.iter().any(is_spliced) {
        return Err("puts a parameter into the text of another shell, which would run it: pass it on, as in sh -c 'tool \"$1\"' sh \
                    \"$RUNVOY_PARAM_NAME\""
            .into());
    }
    Ok(())
}

/// Follows the quotes of a text. Gives it back with [`VALUE`] in the place of each parameter in double quotes.
fn scan(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let (mut open, mut marked, mut kept) = (Vec::new(), String::new(), 0);
    let (mut at, mut begins_word) = (0, true);
    while let Some(byte) = bytes.get(at) {
        let quoted = matches!(open.last(), Some(Open::Quotes | Open::Braces { quoted: true }));
        let was_begin = std::mem::replace(&mut begins_word, !quoted && b" \t\n;&|()<>".contains(byte));
        at += 1;
        match byte {
            b'\\' => {
                begins_word = was_begin && bytes.get(at) == Some(&b'\n');
                at += 1;
            }
            b'`' => return Err(unsure("backticks")),
            b'"' if open.last() == Some(&Open::Quotes) => drop(open.pop()),
            b'"' | b'\'' if open.last() == Some(&Open::Braces { quoted: true }) => {
                return Err(unsure("quotes within braces within quotes"));
            }
            b'"' => open.push(Open::Quotes),
            b'\'' if !quoted => {
                let length = text[at..].find('\'').ok_or_else(|| unsure("a quote that does not end"))?;
                // It may be the text of another shell.
                let inner = &text[at..at + length];
                if inner.contains(ENV_PREFIX) {
                    scan(inner)?;
                }
                at += length + 1;
            }
            b'#' if was_begin && !quoted && !matches!(open.last(), Some(Open::Braces { .. })) => {
                at += text[at..].find('\n').unwrap_or(text.len() - at)
            }
            b'<' if !quoted && bytes.get(at) == Some(&b'<') => {
                if bytes.get(at + 1) != Some(&b'<') {
                    return Err(unsure("a here-document"));
                }
                at += 2;
            }
            b'(' if !quoted => open.push(Open::Group),
            b')' if open.last() == Some(&Open::Group) => drop(open.pop()),
            b'}' if matches!(open.last(), Some(Open::Braces { .. })) => drop(open.pop()),
            b'$' => {
                let rest = &text[at..];
                let (braced, name) = rest.strip_prefix('{').map_or((false, rest), |inside| (true, inside.trim_start_matches(['#', '!'])));
                if name.starts_with(ENV_PREFIX) {
                    let length = name.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                    let name = &name[..length];
                    if !quoted {
                        return Err(format!(
                            "has ${name} without double quotes: write \"${name}\", else the shell splits the value into words, and a part of \
                             it may be an option"
                        ));
                    }
                    // Within the braces of another parameter it is a part of what stands for that one.
                    if let Some(before) = text.get(kept..at - 1) {
                        marked.push_str(before);
                        marked.push_str(VALUE);
                        kept = if braced { text[at..].find('}').map_or(text.len(), |end| at + end + 1) } else { at + length };
                    }
                }
                match rest.as_bytes().first() {
                    Some(b'\'') if !quoted => return Err(unsure("$'…'")),
                    Some(b'$') => at += 1,
                    Some(b'{') => {
                        open.push(Open::Braces { quoted });
                        at += 1;
                    }
                    Some(b'(') if has_case(text) => return Err(unsure("`case` beside $(…)")),
                    Some(b'(') => {
                        open.push(Open::Group);
                        (at, begins_word) = (at + 1, true);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    marked.push_str(text.get(kept..).unwrap_or_default());
    if open.contains(&Open::Quotes) { Err(unsure("a quote that does not end")) } else { Ok(marked) }
}

/// Whether `case` is a word of the text: its patterns end with a parenthesis that none opens.
fn has_case(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).any(|word| word == "case")
}

fn unsure(what: &str) -> String {
    format!("has {what}, so it is not certain that its parameters are in double quotes: rewrite it, or use args")
}
