//! Arguments of a playbook with `{{name}}` where a parameter's value belongs. A value is never read again: a placeholder in it stays as it is.

use std::collections::BTreeMap;

/// A part of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Text as it is.
    Text(&'a str),
    /// The value of this parameter.
    Parameter(&'a str),
}

/// The parts of an argument, in order.
pub(super) fn parts(arg: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), arg);
    while let Some((before, (name, after))) = rest.split_once("{{").and_then(|(before, open)| Some((before, open.split_once("}}")?))) {
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(Part::Parameter(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// The argument with each value in its place: one argument, whatever the values are.
pub(super) fn fill(arg: &str, values: &BTreeMap<&str, String>) -> String {
    let text = |part| match part {
        Part::Text(text) => text,
        Part::Parameter(name) => values.get(name).map_or("", String::as_str),
    };
    parts(arg).into_iter().map(text).collect()
}
