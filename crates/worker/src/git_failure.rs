//! What git's last words say about another attempt: whether it could help. Pure.

use runvoy_model::retry::Category;

/// What each kind of failure sounds like, in lower case; the first that fits counts. What is not known may pass.
const SOUNDS: [(Category, &[&str]); 4] = [
    (
        Category::Network,
        &["could not resolve host", "failed to connect", "timed out", "connection refused", "connection reset", "early eof", "error: 5"],
    ),
    (
        Category::Auth,
        &[
            "authentication failed",
            "could not read username",
            "could not read password",
            "terminal prompts disabled",
            "permission denied",
            "access denied",
            "host key verification failed",
            "certificate",
            "error: 401",
            "error: 403",
        ],
    ),
    (
        Category::NotFound,
        &[
            "not found",
            "does not exist",
            "does not appear to be a git repository",
            "couldn't find remote ref",
            "could not find remote",
            "not our ref",
            "has no directory",
            "is not installed",
            "error: 404",
            "error: 410",
        ],
    ),
    (Category::Validation, &["not allowed", "redirect", "error: 30", "invalid refspec", "not a valid", "credentials in the url"]),
];

/// What kind of failure git speaks of.
pub(crate) fn category(words: &str) -> Category {
    let words = words.to_lowercase();
    let fits = |(_, sounds): &&(Category, &[&str])| sounds.iter().any(|sound| words.contains(sound));
    SOUNDS.iter().find(fits).map_or(Category::Network, |(category, _)| *category)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_not_pass_is_told_from_what_may() {
        for (words, expected) in [
            ("unable to access 'https://git.example.com/a.git/': Could not resolve host: git.example.com", Category::Network),
            ("unable to access 'https://git.example.com/a.git/': Failed to connect to git.example.com port 443", Category::Network),
            ("unable to access 'https://git.example.com/a.git/': The requested URL returned error: 503", Category::Network),
            ("the remote end hung up unexpectedly", Category::Network),
            ("git did not say why", Category::Network),
            ("Authentication failed for 'https://git.example.com/a.git/'", Category::Auth),
            ("could not read Username for 'https://git.example.com': terminal prompts disabled", Category::Auth),
            ("git@git.example.com: Permission denied (publickey).", Category::Auth),
            ("unable to access 'https://git.example.com/a.git/': The requested URL returned error: 403", Category::Auth),
            ("repository 'https://git.example.com/a.git/' not found", Category::NotFound),
            ("Remote branch absent not found in upstream origin", Category::NotFound),
            ("couldn't find remote ref refs/heads/absent", Category::NotFound),
            ("remote error: upload-pack: not our ref 0000000000000000000000000000000000000000", Category::NotFound),
            ("the repository has no directory absent", Category::NotFound),
            ("git is not installed on this worker", Category::NotFound),
            ("transport 'file' not allowed", Category::Validation),
            ("unable to access 'https://git.example.com/a.git/': The requested URL returned error: 302", Category::Validation),
        ] {
            assert_eq!(category(words), expected, "{words}");
        }
    }
}
