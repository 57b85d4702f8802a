//! The tail, again: no function is longer than 150 lines.

use super::file::SourceFile;
use super::finding::Finding;

const MAX_LINES: usize = 150;

/// Every function that is too long.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let long = functions(&file.code).into_iter().filter_map(|function| {
        let first = file.line_at(function.start);
        let lines = file.line_at(function.end) - first + 1;
        (lines > MAX_LINES).then(|| {
            let message = format!("`{}` has {lines} lines: at most {MAX_LINES}; name its parts", function.name);
            Finding { item: Some(function.name.to_owned()), ..Finding::new("function-length", &file.path, first, message) }
        })
    });
    long.collect()
}

struct Function<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

fn functions(code: &str) -> Vec<Function<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let rest = &code[start + 3..];
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let is_keyword = !code[..start].ends_with(is_word);
        if is_keyword
            && !name.is_empty()
            && let Some(end) = body_end(code, start)
        {
            found.push(Function { name, start, end });
        }
    }
    found
}

/// Where the body of the function at `start` closes; nothing for one that has only a signature.
fn body_end(code: &str, start: usize) -> Option<usize> {
    let (mut nested, mut braces) = (0, 0);
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if nested == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(offset);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(name: &str, lines: usize) -> String {
        format!("fn {name}() {{{}}}\n", "\n".repeat(lines - 1))
    }

    #[test]
    fn only_the_long_function_is_found_where_it_starts() {
        let text = long("short", 150) + &long("long", 151);
        let found = check(&SourceFile::new("a.rs", &text));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].subject().as_str()), (151, "a.rs::long"));
    }

    #[test]
    fn braces_in_text_do_not_count() {
        let text = format!("fn f() {{ let s = \"{{\"; }} // {{\n{}", "\n".repeat(200));
        assert!(check(&SourceFile::new("a.rs", &text)).is_empty());
    }

    #[test]
    fn signatures_and_function_pointers_are_no_functions() {
        let names = |text: &str| functions(text).iter().map(|function| function.name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names("trait T { fn a(&self) -> [u8; 2]; fn b(&self) -> [u8; 2] { [0; 2] } } const F: fn (u8) = g;"), ["b"]);
    }
}
