//! A repository to clone before a command starts, and the one check that stands between a caller's text and git's arguments.
//!
//! Only `https` and `ssh` pass, with nothing in them that git, ssh or a shell could take for an option, another transport or a
//! variable. Literal addresses of private networks are refused here; names are resolved by git itself, so a name that leads to such an
//! address is a matter of the worker's network, not of this check.

mod host;

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// Where the files of an execution come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSource {
    /// `https://…`, `ssh://…` or `git@host:path`.
    pub repo: String,
    /// A branch, a tag or a commit; the repository's default where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The directory within it that the command starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The secret that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Name>,
}

/// Why a repository is refused, by the part that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// The address.
    #[error("the repository {0}")]
    Repo(&'static str),
    /// The branch, tag or commit.
    #[error("the reference {0}")]
    Reference(&'static str),
    /// The directory.
    #[error("the path {0}")]
    Path(&'static str),
    /// The token.
    #[error("the token {0}")]
    Token(&'static str),
}

impl GitError {
    /// The field of a request that it is about.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Repo(_) => "git_repo",
            Self::Reference(_) => "git_ref",
            Self::Path(_) => "git_path",
            Self::Token(_) => "git_token",
        }
    }
}

/// Which hosts may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// No literal address of this machine or of a private network.
    Public,
    /// Any host.
    Private,
}

const LONGEST_REPO: usize = 2_048;
const LONGEST_REFERENCE: usize = 255;
const LONGEST_PATH: usize = 1_024;

impl GitSource {
    /// Refuses whatever could be more than a repository, a reference and a directory in it. Nothing reaches git without this.
    pub fn check(&self, reach: Reach) -> Result<(), GitError> {
        let transport = check_repo(&self.repo, reach).map_err(GitError::Repo)?;
        self.reference.as_deref().map_or(Ok(()), check_reference).map_err(GitError::Reference)?;
        self.path.as_deref().map_or(Ok(()), check_path).map_err(GitError::Path)?;
        if self.token.is_some() && transport == Transport::Ssh {
            return Err(GitError::Token("goes with https:// alone: ssh uses the keys of the worker's user"));
        }
        Ok(())
    }

    /// The reference is one that only a fetch by name finds: a whole commit hash, or a full ref.
    pub fn is_exact_reference(&self) -> bool {
        self.reference.as_deref().is_some_and(|reference| {
            let is_hash = matches!(reference.len(), 40 | 64) && reference.bytes().all(|b| b.is_ascii_hexdigit());
            is_hash || reference.starts_with("refs/")
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Https,
    Ssh,
}

fn check_repo(repo: &str, reach: Reach) -> Result<Transport, &'static str> {
    if repo.is_empty() || repo.len() > LONGEST_REPO {
        return Err("must have 1 to 2048 characters");
    }
    if !repo.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("must be printable ASCII without spaces or line breaks");
    }
    if repo.contains(['\\', '$', '`', '\'', '"', '<', '>', '|', ';', '&', '(', ')', '{', '}', '*', '?', '#', '!', '^']) {
        return Err("has a character that no repository address needs");
    }
    if let Some(rest) = repo.strip_prefix("https://") {
        let (authority, path) = split_authority(rest)?;
        if authority.contains('@') {
            return Err("must not hold a user or a token: name a secret as the git token instead");
        }
        check_host_and_port(authority, reach)?;
        check_repo_path(path)?;
        return Ok(Transport::Https);
    }
    if let Some(rest) = repo.strip_prefix("ssh://") {
        let (authority, path) = split_authority(rest)?;
        let host = match authority.split_once('@') {
            Some((user, host)) => check_user(user).map(|()| host)?,
            None => authority,
        };
        check_host_and_port(host, reach)?;
        check_repo_path(path)?;
        return Ok(Transport::Ssh);
    }
    // Without a user, `host:path` cannot be told from other transports; two colons would name one of git's helpers.
    let scp_like = if repo.starts_with('-') || repo.contains("::") || repo.contains("://") {
        None
    } else {
        repo.split_once('@').and_then(|(user, rest)| Some((user, rest.split_once(':')?)))
    };
    let Some((user, (host, path))) = scp_like else { return Err("must begin with https://, ssh:// or git@host:") };
    check_user(user)?;
    host::check(host, reach)?;
    check_repo_path(path)?;
    Ok(Transport::Ssh)
}

fn split_authority(rest: &str) -> Result<(&str, &str), &'static str> {
    rest.split_once('/').ok_or("needs a path after its host")
}

fn check_user(user: &str) -> Result<(), &'static str> {
    let good = !user.is_empty() && !user.starts_with('-') && user.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if good { Ok(()) } else { Err("has a user that is not letters, digits, '.', '_' and '-'") }
}

fn check_host_and_port(authority: &str, reach: Reach) -> Result<(), &'static str> {
    let port_at = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let (host, port) = port_at.map_or((authority, None), |at| (&authority[..at], Some(&authority[at + 1..])));
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    if !port.is_none_or(is_port) {
        return Err("has a port that is not a number from 1 to 65535");
    }
    host::check(host, reach)
}

fn check_repo_path(path: &str) -> Result<(), &'static str> {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() {
        return Err("needs a path after its host");
    }
    if trimmed.split('/').any(|part| part.is_empty() || part == ".." || part.starts_with('-')) {
        return Err("has a part of its path that is empty, '..' or begins with '-'");
    }
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        // Decoded control characters have been used to smuggle lines into git's own protocols.
        let code = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if !code.is_some_and(|code| code.is_ascii_graphic() || code == b' ' || code >= 0x80) {
            return Err("has a percent sign that escapes nothing printable");
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

pub(crate) fn check_reference(reference: &str) -> Result<(), &'static str> {
    if reference.is_empty() || reference.len() > LONGEST_REFERENCE {
        return Err("must have 1 to 255 characters");
    }
    if !reference.chars().all(|c| c.is_alphanumeric() || "._/-+#@=,!()&%".contains(c)) {
        return Err("has a character that no branch, tag or commit needs");
    }
    if reference.starts_with(['-', '+']) || reference == "@" {
        return Err("must not begin with '-' or '+'");
    }
    if reference.contains("..") || reference.contains("@{") {
        return Err("must name one branch, tag or commit, not a range or a log entry");
    }
    if reference.split('/').any(|part| part.is_empty() || part.starts_with(['.', '-']) || part.ends_with('.') || part.ends_with(".lock")) {
        return Err("has a part that git would not take as a name");
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > LONGEST_PATH {
        return Err("must have 1 to 1024 bytes");
    }
    if path.chars().any(|c| c.is_control() || "\\$`".contains(c)) {
        return Err("has a control character, a backslash, a dollar sign or a backtick");
    }
    if path.starts_with('/') {
        return Err("must be relative to the repository");
    }
    for part in path.strip_suffix('/').unwrap_or(path).split('/') {
        if part.is_empty() || part == ".." || part.starts_with('-') {
            return Err("has a part that is empty, '..' or begins with '-'");
        }
        if part.eq_ignore_ascii_case(".git") {
            return Err("must not lead into .git");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
