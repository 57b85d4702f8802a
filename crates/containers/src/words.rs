//! What the daemon says, as people read it: its own words and what to do next. Pure.

use bollard::errors::Error;
use runvoy_model::retry::Category;
use runvoy_ports::runner::{ImageError, StartError};

/// The words of the daemon itself.
pub(crate) fn said(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        error => error.to_string(),
    }
}

/// Why an image could not be had.
pub(crate) fn image_error(reference: &str, said: &str) -> ImageError {
    let words = said.to_ascii_lowercase();
    let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let (category, next) = if has(&["toomanyrequests", "rate limit"]) {
        (Category::RateLimit, "wait, or pull it on the worker's machine with an account of the registry")
    } else if has(&["denied", "unauthorized", "authentication required", "no basic auth"]) {
        (Category::Auth, "check the name; for a private registry, pull it on the worker's machine with `docker login` and `docker pull`")
    } else if has(&["manifest unknown", "not found", "no such image", "no matching manifest", "does not exist"]) {
        (Category::NotFound, "check name and tag, and register the image that exists")
    } else if has(&["no space left"]) {
        (Category::ServerError, "free space on the worker's machine, for example with `docker image prune`")
    } else if has(&["dial tcp", "no such host", "connection refused", "timeout", "tls handshake", "eof", "unreachable", "reset by peer"]) {
        (Category::Network, "check that the worker's machine reaches the registry")
    } else {
        (Category::ServerError, "look at the log of the container daemon on the worker's machine")
    };
    ImageError { message: format!("image {reference} could not be pulled: {said}; {next}"), category }
}

/// Why an image could not be looked for.
pub(crate) fn daemon_error(reference: &str, said: &str) -> ImageError {
    let message = format!("image {reference} could not be looked up: {said}; check that the container daemon of the worker's machine runs");
    ImageError { message, category: Category::ServerError }
}

/// Why a container could not be started. A program that the image lacks has the exit code that a shell gives for it.
pub(crate) fn start_error(said: &str) -> StartError {
    let exit_code = if said.contains("executable file not found") || said.contains("no such file or directory") && said.contains("exec:") {
        Some(127)
    } else if said.contains("permission denied") && said.contains("exec:") {
        Some(126)
    } else {
        None
    };
    let next = match exit_code {
        Some(_) => "name a program of the image, or `/bin/sh` where the image has no shell of that name",
        None => "check that the container daemon of the worker's machine runs, and look at its log",
    };
    StartError { message: format!("the container could not be started: {said}; {next}"), exit_code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_retried() {
        for (said, category) in [
            ("manifest for a/b:1 not found: manifest unknown", Category::NotFound),
            ("pull access denied for x, repository does not exist or may require 'docker login'", Category::Auth),
            ("Get \"https://r/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused", Category::Network),
            ("toomanyrequests: You have reached your pull rate limit", Category::RateLimit),
            ("write /var/lib/docker/tmp/x: no space left on device", Category::ServerError),
        ] {
            let error = image_error("docker.io/a/b:1", said);
            assert_eq!(error.category, category, "{said}");
            assert!(error.message.contains("docker.io/a/b:1") && error.message.contains(said), "{error}");
        }
    }

    #[test]
    fn a_missing_program_has_the_exit_code_of_a_shell() {
        let code = |said: &str| start_error(said).exit_code;
        assert_eq!(code("exec: \"nope\": executable file not found in $PATH: unknown"), Some(127));
        assert_eq!(code("exec: \"/x\": permission denied: unknown"), Some(126));
        assert_eq!(code("driver failed"), None);
    }
}
