//! Arguments of a playbook with `{{name}}` or `{{ name }}` where a parameter's value belongs. Only
//! these forms stand for a value: what other tools write in braces (`--format={{.Names}}`) stays as
//! it is, and so does a placeholder with a backslash before it, without the backslash. A value is
//! never read again: a placeholder in it stays as it is.

use std::collections::BTreeMap;

/// A part of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Text as it is.
    Text(&'a str),
    /// A name in braces, with them; and the name, without blanks around it.
    Named(&'a str, &'a str),
}

/// The parts of an argument, in order.
pub(super) fn parts(arg: &str) -> Vec<Part<'_>> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(open) = arg[at..].find("{{").map(|found| at + found) {
        let Some((whole, name)) = named(&arg[open..]) else {
            at = open + 1;
            continue;
        };
        at = open + whole.len();
        let is_escaped = arg[from..open].ends_with('\\');
        let text = &arg[from..open - usize::from(is_escaped)];
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        parts.push(if is_escaped { Part::Text(whole) } else { Part::Named(whole, name) });
        from = at;
    }
    if from < arg.len() {
        parts.push(Part::Text(&arg[from..]));
    }
    parts
}

/// The placeholder that a text begins with, and the name in it.
fn named(text: &str) -> Option<(&str, &str)> {
    let inside = &text[2..2 + text.get(2..)?.find("}}")?];
    let name = inside.trim();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !name.is_empty()).then_some((&text[..inside.len() + 4], name))
}

/// Whether a name in braces has no blanks around it: other tools write keywords with blanks (`{{
/// end }}`).
pub(super) fn is_exact(whole: &str, name: &str) -> bool {
    whole.len() == name.len() + 4
}

/// The argument with each value in its place: one argument, whatever the values are.
pub(super) fn fill(arg: &str, values: &BTreeMap<&str, String>) -> String {
    let text = |part| match part {
        Part::Text(text) => text,
        Part::Named(whole, name) => values.get(name).map_or(whole, String::as_str),
    };
    parts(arg).into_iter().map(text).collect()
}
