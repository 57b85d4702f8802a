//! What must not stay in source: unfinished work, debugging, silenced lints, skipped tests.

use super::file::SourceFile;
use super::finding::Finding;

/// Found in code, never in comments or strings.
const IN_CODE: [(&str, &str); 6] = [
    ("todo!(", "unfinished work: do it or leave it out"),
    ("unimplemented!(", "unfinished work: do it or leave it out"),
    ("dbg!(", "debugging: remove it"),
    ("#[ignore", "a test that is skipped proves nothing: run it or remove it"),
    ("#[allow(", "use `#[expect(…, reason = \"…\")]`"),
    ("#![allow(", "use `#![expect(…, reason = \"…\")]`"),
];

// In two parts, so that this file does not find itself.
const IN_TEXT: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// Every such word.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if ![".rs", ".ts", ".svelte"].iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let in_code = IN_CODE.iter().flat_map(|(word, why)| {
        let whole = file.code.match_indices(word).filter(|(at, _)| !file.code[..*at].ends_with(is_word));
        whole.map(move |(at, _)| Finding::new("word", &file.path, file.line_at(at), format!("`{word}`: {why}")))
    });
    let in_text = IN_TEXT.iter().flat_map(|word| {
        let whole = file
            .text
            .match_indices(word)
            .filter(|(at, _)| !file.text[..*at].ends_with(is_word) && !file.text[at + word.len()..].starts_with(is_word));
        whole.map(move |(at, _)| Finding::new("word", &file.path, file.line_at(at), format!("`{word}`: do it now or leave it out")))
    });
    in_code.chain(in_text).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_word_is_found_in_code() {
        for (word, _) in IN_CODE {
            assert_eq!(lines("a.rs", &format!("\n{word}x")), [2], "{word}");
        }
    }

    #[test]
    fn code_words_in_comments_and_strings_pass() {
        assert!(lines("a.rs", "// todo!()\nlet s = \"dbg!(\";\nmy_dbg!(x)").is_empty());
    }

    #[test]
    fn marks_are_found_in_comments_but_not_in_longer_words() {
        for word in IN_TEXT {
            assert_eq!(lines("a.rs", &format!("// {word}: later")), [1]);
            assert_eq!(lines("a.ts", &format!("// {word}")), [1]);
            assert!(lines("a.rs", &format!("mktemp {word}{word}")).is_empty());
        }
    }
}
