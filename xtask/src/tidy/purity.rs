//! Time, randomness and the environment come in at the edge: the inner crates take them as arguments and never read
//! them. Clippy's `disallowed-methods` cannot tell crates apart; this rule can. In-file tests may do as they like.

use super::file::SourceFile;
use super::finding::Finding;

const AMBIENT: [&str; 12] = [
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "std::env",
    "env::var",
    "env::args",
    "rand::",
    "thread_rng",
    "getrandom",
    "Uuid::now_v7",
    "Uuid::new_v4",
];

/// Monotonic time: adapters and engine may need it to wait, a pure crate never does.
const MONOTONIC: &str = "Instant::now";

/// Whatever an inner crate reads from around it.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let Some(krate) = file.krate().filter(|krate| file.path.starts_with(&format!("crates/{krate}/src/"))) else { return Vec::new() };
    if file.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let monotonic = match krate {
        "model" | "ports" | "memory" | "conformance" => Some(MONOTONIC),
        "engine" | "sqlite" => None,
        _ => return Vec::new(),
    };
    let code = without_tests(&file.code);
    let found = AMBIENT.iter().copied().chain(monotonic).flat_map(|what| {
        let whole = code.match_indices(what).filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        whole.map(move |(at, _)| (at, what))
    });
    found
        .map(|(at, what)| Finding::new("purity", &file.path, file.line_at(at), format!("`{what}` in `{krate}`: take it as an argument")))
        .collect()
}

/// The code before the module of tests, which the house puts last.
fn without_tests(code: &str) -> &str {
    code.find("#[cfg(test)]\nmod tests").map_or(code, |at| &code[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn inner_crates_read_neither_clock_nor_environment() {
        assert_eq!(lines("crates/model/src/a.rs", "\nlet now = SystemTime::now();"), [2]);
        assert_eq!(lines("crates/memory/src/a.rs", "Instant::now()"), [1]);
        assert_eq!(lines("crates/engine/src/a.rs", "env::var(x)"), [1]);
    }

    #[test]
    fn the_edge_may_and_so_may_tests() {
        assert!(lines("crates/runvoy/src/a.rs", "SystemTime::now()").is_empty());
        assert!(lines("crates/engine/src/a.rs", "Instant::now()").is_empty());
        assert!(lines("crates/model/src/a.rs", "#[cfg(test)]\nmod tests {\n SystemTime::now() }").is_empty());
        assert!(lines("crates/model/src/a/tests.rs", "SystemTime::now()").is_empty());
        assert!(lines("crates/model/tests/a.rs", "SystemTime::now()").is_empty());
        assert!(lines("crates/model/src/a.rs", "// SystemTime::now()\nlet operand::x = 1;").is_empty());
    }
}
