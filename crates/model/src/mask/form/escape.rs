//! The forms that keep most characters and escape some: in URLs, in JSON, in shells, in HTML; and the value in other cases.

use std::collections::BTreeSet;

/// Every such form of a value, itself included.
pub(super) fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = BTreeSet::from([value.to_owned(), value.to_uppercase(), value.to_lowercase()]);
    forms.extend([value.to_ascii_uppercase(), value.to_ascii_lowercase()]);
    forms.extend(url(value));
    forms.extend(json(value));
    forms.extend(shell(value));
    forms.extend(html(value));
    forms.into_iter().map(String::into_bytes).collect()
}

/// The value itself, and as JSON has it.
pub(super) fn usual_forms(value: &str) -> Vec<Vec<u8>> {
    let json = rewritten(value, |c, text| json_char(c, PLAIN_JSON, text));
    let mut forms = vec![value.as_bytes().to_vec()];
    if json != value {
        forms.push(json.into_bytes());
    }
    forms
}

/// What different tools leave as it is in a URL, beside letters and digits; nothing at all for the strictest, which escape those too.
const URL_SAFE: [Option<&str>; 7] =
    [Some("-_.~"), Some("-_.~/"), Some("-_.!~*'()"), Some("-_.!~*'();/?:@&=+$,#"), Some("*-._"), Some(""), None];

fn url(value: &str) -> Vec<String> {
    let spaces: &[&str] = if value.contains(' ') { &["%20", "+"] } else { &[""] };
    let mut forms = Vec::new();
    for safe in URL_SAFE {
        let is_safe = |byte: u8| safe.is_some_and(|safe| byte.is_ascii_alphanumeric() || safe.as_bytes().contains(&byte));
        for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
            for space in spaces {
                forms.push(rewritten(value, |c, text| match c {
                    ' ' if safe.is_some() => text.push_str(space),
                    c if c.is_ascii() && is_safe(c as u8) => text.push(c),
                    c => {
                        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                            text.push('%');
                            text.push(char::from(digits[usize::from(byte >> 4)]));
                            text.push(char::from(digits[usize::from(byte & 15)]));
                        }
                    }
                }));
            }
        }
    }
    forms
}

/// A value with every character written anew.
fn rewritten(value: &str, mut write: impl FnMut(char, &mut String)) -> String {
    let mut text = String::with_capacity(value.len() * 2);
    value.chars().for_each(|c| write(c, &mut text));
    text
}

/// How a JSON writer escapes what it need not.
#[derive(Clone, Copy)]
struct Json {
    upper: bool,
    ascii: bool,
    slash: bool,
    /// Characters that are written by number.
    numbered: &'static str,
}

/// Nothing but what must be.
const PLAIN_JSON: Json = Json { upper: false, ascii: false, slash: false, numbered: "" };

/// What some writers of JSON write by number.
const NUMBERED: [&str; 5] = ["", "<>&\u{2028}\u{2029}", "<>&'\u{2028}\u{2029}", "<>&'\"", "<>&'+\"\u{7f}"];

fn json(value: &str) -> Vec<String> {
    let either = |matters: bool| if matters { &[false, true][..] } else { &[false] };
    let mut forms = vec![rewritten(value, |c, text| json_char(c, PLAIN_JSON, text))];
    for numbered in NUMBERED.into_iter().filter(|numbered| numbered.is_empty() || value.contains(|c| numbered.contains(c))) {
        for slash in either(value.contains('/')) {
            for ascii in either(!value.is_ascii() || value.contains('\u{7f}')) {
                for upper in [false, true] {
                    let json = Json { upper, ascii: *ascii, slash: *slash, numbered };
                    forms.push(rewritten(value, |c, text| json_char(c, json, text)));
                }
            }
        }
    }
    // JSON within JSON, as structured logs have it.
    forms.push(rewritten(&forms[0], |c, text| json_char(c, PLAIN_JSON, text)));
    forms.extend([true, false].map(|upper| rewritten(value, |c, text| by_number(c, upper, text))));
    forms
}

fn json_char(c: char, json: Json, text: &mut String) {
    match c {
        c if json.numbered.contains(c) => by_number(c, json.upper, text),
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        '/' if json.slash => text.push_str("\\/"),
        c if c < ' ' || (json.ascii && c >= '\u{7f}') => by_number(c, json.upper, text),
        c => text.push(c),
    }
}

fn by_number(c: char, upper: bool, text: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        text.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
    }
}

/// What shells put a backslash before: always, and only where a word begins.
const BACKSLASHED: [(&str, &str); 4] = [
    (" \t!\"$&'()*,;<>?[\\]^`{|}", ""),
    (" \t!\"$&'()*,;<>?[\\]^`{|}", "~#"),
    (" \t!\"#$&'()*;<>?[\\]^`{|}~", ""),
    (" \t!\"#$%&'()*+,:;<=>?@[\\]^`{|}~", ""),
];

fn shell(value: &str) -> Vec<String> {
    let mut forms = vec![value.replace('\'', "'\\''"), value.replace('\'', "'\"'\"'")];
    let backslashed = |c: char, text: &mut String| text.extend(['\\', c]);
    for (always, first) in BACKSLASHED {
        forms.push(rewritten(value, |c, text| {
            if always.contains(c) || (text.is_empty() && first.contains(c)) { backslashed(c, text) } else { text.push(c) }
        }));
    }
    for special in ["\"\\$`", "\"\\$`!"] {
        forms.push(rewritten(value, |c, text| if special.contains(c) { backslashed(c, text) } else { text.push(c) }));
    }
    forms.extend([true, false].map(|ascii| rewritten(value, |c, text| dollar_quoted(c, ascii, text))));
    forms
}

/// A character inside `$'…'`.
fn dollar_quoted(c: char, ascii: bool, text: &mut String) {
    match c {
        '\'' | '\\' => text.extend(['\\', c]),
        '\u{7}' => text.push_str("\\a"),
        '\u{8}' => text.push_str("\\b"),
        '\t' => text.push_str("\\t"),
        '\n' => text.push_str("\\n"),
        '\u{b}' => text.push_str("\\v"),
        '\u{c}' => text.push_str("\\f"),
        '\r' => text.push_str("\\r"),
        '\u{1b}' => text.push_str("\\E"),
        c if c.is_ascii_control() || (ascii && !c.is_ascii()) => {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
        }
        c => text.push(c),
    }
}

fn html(value: &str) -> Vec<String> {
    let basic = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = basic.replace('"', "&quot;");
    let apostrophes = ["&#39;", "&#x27;", "&apos;"].map(|apostrophe| quoted.replace('\'', apostrophe));
    let numbered = basic.replace('"', "&#34;").replace('\'', "&#39;");
    [basic, quoted, numbered].into_iter().chain(apostrophes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_as_the_usual_tools_do() {
        let value = "p/ss 'w\"\\$é+<&\n";
        let known = forms(value);
        for form in [
            "p/ss 'w\"\\$é+<&\n",
            "P/SS 'W\"\\$É+<&\n",
            // Form encoding, a browser's component encoding, and Python's default.
            "p%2Fss+%27w%22%5C%24%C3%A9%2B%3C%26%0A",
            "p%2Fss%20'w%22%5C%24%C3%A9%2B%3C%26%0A",
            "p/ss%20%27w%22%5c%24%c3%a9%2b%3c%26%0a",
            // JSON: plain, ASCII only, with escaped slashes, safe for HTML, and within JSON.
            "p/ss 'w\\\"\\\\$é+<&\\n",
            "p/ss 'w\\\"\\\\$\\u00e9+<&\\n",
            "p\\/ss 'w\\\"\\\\$\\u00E9+<&\\n",
            "p/ss 'w\\\"\\\\$é+\\u003c\\u0026\\n",
            "p/ss 'w\\\\\\\"\\\\\\\\$é+<&\\\\n",
            // Shells.
            "p/ss '\\''w\"\\$é+<&\n",
            "p/ss '\"'\"'w\"\\$é+<&\n",
            "p/ss\\ \\'w\\\"\\\\\\$é+\\<\\&\n",
            "p/ss 'w\\\"\\\\\\$é+<&\n",
            "p/ss \\'w\"\\\\$é+<&\\n",
            "p/ss \\'w\"\\\\$\\303\\251+<&\\n",
            "p/ss &#39;w&quot;\\$é+&lt;&amp;\n",
        ] {
            assert!(known.iter().any(|known| known == form.as_bytes()), "{form:?}");
        }
        let all = rewritten(value, |c, text| by_number(c, false, text));
        assert!(known.contains(&all.into_bytes()));
    }

    #[test]
    fn an_ordinary_token_has_few_forms() {
        // Itself, upper, lower, all by percent in two cases, all by number in two.
        assert!(forms("abcDEF123456").len() <= 8);
    }
}
