//! Blanks comments, strings and characters of Rust source, so that rules see code alone. Every byte keeps its place.
//! A lexer in small: it knows how literals begin and end and nothing else.

/// `text` with every byte of a comment or literal, but newlines, replaced by a space.
pub fn mask(text: &str) -> String {
    let source = text.as_bytes();
    let mut code = Vec::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let end = match source[at] {
            b'/' if source.get(at + 1) == Some(&b'/') => line_end(source, at),
            b'/' if source.get(at + 1) == Some(&b'*') => block_end(source, at),
            b'"' => string_end(source, at),
            b'\'' => char_end(source, at),
            _ => at,
        };
        if end == at {
            code.push(source[at]);
            at += 1;
        } else {
            code.extend(source[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    String::from_utf8(code).expect("literals begin and end at ASCII, so what is left is whole characters")
}

fn line_end(source: &[u8], start: usize) -> usize {
    source[start..].iter().position(|byte| *byte == b'\n').map_or(source.len(), |length| start + length)
}

fn block_end(source: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < source.len() {
        match &source[at..source.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    source.len()
}

fn string_end(source: &[u8], quote: usize) -> usize {
    let hashes = source[..quote].iter().rev().take_while(|byte| **byte == b'#').count();
    let before = &source[..quote - hashes];
    let is_raw = before.ends_with(b"r") && !ends_in_longer_word(before);
    if is_raw {
        let close: Vec<u8> = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
        let found = source[quote + 1..].windows(close.len()).position(|window| window == close);
        return found.map_or(source.len(), |length| quote + 1 + length + close.len());
    }
    escaped_end(source, quote, b'"')
}

/// Whether the `r` that `before` ends with belongs to an identifier and is not the prefix `r`, `br` or `cr`.
fn ends_in_longer_word(before: &[u8]) -> bool {
    let word = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    !matches!(&before[before.len() - word..], b"r" | b"br" | b"cr")
}

fn char_end(source: &[u8], quote: usize) -> usize {
    match source.get(quote + 1) {
        Some(b'\\') => escaped_end(source, quote, b'\''),
        Some(first) => {
            let width = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            // Otherwise it is a lifetime.
            if source.get(quote + 1 + width) == Some(&b'\'') { quote + width + 2 } else { quote }
        }
        None => quote,
    }
}

fn escaped_end(source: &[u8], quote: usize, close: u8) -> usize {
    let mut at = quote + 1;
    while at < source.len() {
        match source[at] {
            b'\\' => at += 2,
            byte if byte == close => return at + 1,
            _ => at += 1,
        }
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_blank_and_code_stays_in_place() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" y", z)"#, "f(        , z)"),
            ("r\"\\\" g", "r    g"),
            (r###"br#"a " b"# c"###, "br#         c"),
            ("'a' 'b '\\'' x", "    'b      x"),
            ("'é' x", "     x"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("expr\"x\"", "expr   "),
            ("\"a\nb\"", "  \n  "),
            ("\"open", "     "),
        ] {
            assert_eq!(mask(text), code, "{text}");
        }
    }

    #[test]
    fn length_never_changes() {
        let text = include_str!("mask.rs");
        assert_eq!(mask(text).len(), text.len());
        assert_eq!(mask(text).lines().count(), text.lines().count());
    }
}
