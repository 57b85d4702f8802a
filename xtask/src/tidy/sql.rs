//! SQL is constant text with parameters. In the SQLite adapter no statement is made by formatting.

use super::file::SourceFile;
use super::finding::Finding;

const MACROS: [&str; 3] = ["format!(", "write!(", "format_args!("];

const KEYWORDS: [&str; 12] =
    ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "REPLACE INTO", "CREATE ", "DROP ", "ALTER ", "WHERE ", "VALUES", "PRAGMA ", "ORDER BY"];

/// Formatting macros whose text looks like SQL.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.is_rust() || !file.path.starts_with("crates/sqlite/src/") {
        return Vec::new();
    }
    let calls = MACROS.iter().flat_map(|name| file.code.match_indices(name).map(move |(at, _)| (at, at + name.len())));
    let sql = calls.filter(|(_, open)| {
        let text = &file.text[*open..call_end(&file.code, *open)];
        KEYWORDS.iter().any(|keyword| text.contains(keyword))
    });
    sql.map(|(at, _)| Finding::new("sql", &file.path, file.line_at(at), "SQL made by formatting: use constant text and parameters"))
        .collect()
}

/// Where the parenthesis that opened before `open` closes.
fn call_end(code: &str, open: usize) -> usize {
    let mut depth = 1;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return offset;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn formatted_sql_is_found_also_over_several_lines() {
        assert_eq!(lines("crates/sqlite/src/a.rs", "\nformat!(\n  \"SELECT * FROM {table}\")"), [2]);
        assert_eq!(lines("crates/sqlite/src/a.rs", "write!(sql, \" WHERE {column} = ?\")"), [1]);
    }

    #[test]
    fn other_formatting_constant_sql_and_other_crates_pass() {
        assert!(lines("crates/sqlite/src/a.rs", "format!(\"cannot open {path}\"); run(\"SELECT 1\")").is_empty());
        assert!(lines("crates/cli/src/a.rs", "format!(\"SELECT {x}\")").is_empty());
    }
}
