//! The same server with AWS as its store: an emulator that the test command has started, and an installation of its own for every data
//! directory, so that a server that is started there again finds what it left.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Whether the suite runs with AWS as the store.
pub fn is_asked_for() -> bool {
    std::env::var("RUNVOY_TEST_BACKEND").is_ok_and(|backend| backend == "aws")
}

/// Where the emulator is.
pub fn endpoint() -> String {
    std::env::var("RUNVOY_MINISTACK_URL").expect("RUNVOY_MINISTACK_URL names the emulator: cargo xtask check starts it")
}

/// The environment of a server whose installation has this prefix.
pub fn environment(prefix: &str) -> Vec<(String, String)> {
    [
        ("RUNVOY_BACKEND", "aws".to_owned()),
        ("RUNVOY_AWS_PREFIX", prefix.to_owned()),
        ("RUNVOY_AWS_ENDPOINT", endpoint()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The installation of a data directory.
pub fn prefix_of(data: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    format!("t{:016x}", hasher.finish())
}
