//! How a repository is cloned: one fixed script whose every datum is an argument or a variable, run like any other command of the
//! attempt. Pure: it starts nothing.
//!
//! The token is in the environment of git alone, never in an address, a log line or a process list. Redirects are not
//! followed: they would lead past the check of the address.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runvoy_model::git::{GitSource, Reach};
use runvoy_ports::lease::Material;

use crate::environment::bare_environment;

/// The repository's place in the work directory.
const REPOSITORY: &str = "repo";
/// Servers that want a token take any user with it, or this one.
const TOKEN_USER: &str = "x-access-token";

/// What a worker's machine says about repositories.
#[derive(Debug, Clone)]
pub struct Git {
    /// Which hosts may be cloned from.
    pub reach: Reach,
    /// Certificates to trust instead of the system's, for servers with a private authority.
    pub ca_file: Option<PathBuf>,
}

impl Default for Git {
    fn default() -> Self {
        Self { reach: Reach::Public, ca_file: None }
    }
}

/// `$1` repository, `$2` reference or nothing, `$3` whether the reference must be fetched by name, `$4` directory or nothing.
const SCRIPT: &str = r#"
set -eu
fail() { echo "fatal: $1" >&2; exit 1; }
command -v git >/dev/null || fail 'git is not installed on this worker'
if [ "$3" = exact ]; then
    git init --quiet --template= -- repo
    cd repo
    git remote add -- origin "$1"
    git fetch --quiet --depth=1 --no-tags --no-recurse-submodules -- origin "$2"
    git checkout --quiet --detach FETCH_HEAD
else
    git clone --quiet --template= --depth=1 --no-tags --no-recurse-submodules ${2:+--branch="$2"} -- "$1" repo
    cd repo
fi
echo "commit $(git rev-parse HEAD)"
if [ -n "$4" ]; then
    [ -d "./$4" ] || fail "the repository has no directory $4"
    root=$(pwd -P)
    inside=$(cd "./$4" && pwd -P)
    case "$inside/" in "$root"/*) ;; *) fail "the directory $4 leads out of the repository" ;; esac
fi
if [ -f ../.env ]; then
    if [ -e .env ] || [ -L .env ]; then
        echo 'the repository has its own .env file, which is kept; the .env file of the execution is in the parent directory'
    else
        cp -p ../.env .env
        mkdir -p .git/info
        echo /.env >> .git/info/exclude
    fi
fi
"#;

/// Hands the token to git on request.
const CREDENTIAL_HELPER: &str =
    r#"!f() { if [ "$1" = get ]; then printf 'username=%s\npassword=%s\n' "$RUNVOY_GIT_USERNAME" "$RUNVOY_GIT_PASSWORD"; fi; }; f"#;

/// Settings that no configuration file and no repository can change.
const SETTINGS: [(&str, &str); 13] = [
    ("advice.detachedHead", "false"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("credential.helper", ""),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("http.followRedirects", "false"),
    ("init.defaultBranch", "main"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "never"),
    ("submodule.recurse", "false"),
    ("transfer.credentialsInUrl", "die"),
];

/// How to reach a server from a closed network is the user's to say; nothing else of their environment reaches git.
const PROXIES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"];

/// A repository that may be cloned.
pub(crate) struct Checkout<'a> {
    source: &'a GitSource,
    git: &'a Git,
    home: &'a str,
    login: Option<(&'a str, &'a str)>,
}

impl<'a> Checkout<'a> {
    /// Checks source and token once more: between the server's check and this there is a store.
    pub(crate) fn new(source: &'a GitSource, git: &'a Git, home: &'a str, token: Option<&'a Material>) -> Result<Self, String> {
        source.check(git.reach).map_err(|error| error.to_string())?;
        let login = match (token, &source.token) {
            (Some(token), Some(_)) => {
                let value = token.value.trim();
                if value.is_empty() || value.contains(char::is_control) {
                    return Err(format!("the secret {} is not a token: it is empty or has line breaks", token.name));
                }
                Some(value.split_once(':').unwrap_or((TOKEN_USER, value)))
            }
            (None, Some(name)) => return Err(format!("the git token, secret {name}, could not be fetched")),
            (_, None) => None,
        };
        Ok(Self { source, git, home, login })
    }

    /// The line that comes before git's own.
    pub(crate) fn announcement(&self) -> String {
        match &self.source.reference {
            Some(reference) => format!("cloning {} at {reference}", self.source.repo),
            None => format!("cloning {}", self.source.repo),
        }
    }

    /// The command that clones.
    pub(crate) fn argv(&self) -> Vec<String> {
        let exact = if self.source.is_exact_reference() { "exact" } else { "named" };
        let reference = self.source.reference.as_deref().unwrap_or_default();
        let path = self.source.path.as_deref().unwrap_or_default();
        ["/bin/sh", "-c", SCRIPT, "sh", &self.source.repo, reference, exact, path].map(str::to_owned).to_vec()
    }

    /// Its environment: nothing of the user's but the way to the network.
    pub(crate) fn env(&self, user_env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = bare_environment(self.home);
        env.extend(user_env.iter().filter(|(name, _)| PROXIES.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())));
        let mut set = |name: &str, value: &str| drop(env.insert(name.to_owned(), value.to_owned()));
        set("GIT_ALLOW_PROTOCOL", "https:ssh");
        set("GIT_CONFIG_GLOBAL", "/dev/null");
        set("GIT_CONFIG_NOSYSTEM", "1");
        set("GIT_LFS_SKIP_SMUDGE", "1");
        set("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new");
        set("GIT_TERMINAL_PROMPT", "0");
        if let Some(ca_file) = &self.git.ca_file {
            set("GIT_SSL_CAINFO", &ca_file.to_string_lossy());
        }
        let mut settings = SETTINGS.to_vec();
        if let Some((user, token)) = self.login {
            set("RUNVOY_GIT_USERNAME", user);
            set("RUNVOY_GIT_PASSWORD", token);
            settings.push(("credential.helper", CREDENTIAL_HELPER));
        }
        set("GIT_CONFIG_COUNT", &settings.len().to_string());
        for (number, (key, value)) in settings.iter().enumerate() {
            set(&format!("GIT_CONFIG_KEY_{number}"), key);
            set(&format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        env
    }

    /// Where in the work directory the command runs.
    pub(crate) fn directory(&self) -> String {
        match &self.source.path {
            Some(path) => format!("{REPOSITORY}/{path}"),
            None => REPOSITORY.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::name::Name;

    use super::*;

    fn source(reference: Option<&str>, path: Option<&str>, token: bool) -> GitSource {
        GitSource {
            repo: "https://git.example.com/a.git".to_owned(),
            reference: reference.map(str::to_owned),
            path: path.map(str::to_owned),
            token: token.then(|| Name::new("tok").expect("a name")),
        }
    }

    fn token(value: &str) -> Material {
        Material { name: Name::new("tok").expect("a name"), key_name: "TOK".to_owned(), value: value.to_owned() }
    }

    #[test]
    fn the_token_is_in_one_variable_and_nowhere_else() {
        let (source, git, token) = (source(Some("main"), None, true), Git::default(), token("s3cr3t-token\n"));
        let checkout = Checkout::new(&source, &git, "/home", Some(&token)).expect("fine");
        assert!(!checkout.argv().concat().contains("s3cr3t-token"));
        assert!(!checkout.announcement().contains("s3cr3t-token"));
        let env = checkout.env(&BTreeMap::new());
        let holding: Vec<_> = env.iter().filter(|(_, value)| value.contains("s3cr3t-token")).map(|(name, _)| name.as_str()).collect();
        assert_eq!(holding, ["RUNVOY_GIT_PASSWORD"]);
        assert_eq!(env["RUNVOY_GIT_USERNAME"], "x-access-token");
        assert_eq!(env["GIT_ALLOW_PROTOCOL"], "https:ssh");
    }

    #[test]
    fn a_token_may_bring_its_user() {
        let (source, git, token) = (source(None, None, true), Git::default(), token("deploy:abc:def"));
        let env = Checkout::new(&source, &git, "/home", Some(&token)).expect("fine").env(&BTreeMap::new());
        assert_eq!((env["RUNVOY_GIT_USERNAME"].as_str(), env["RUNVOY_GIT_PASSWORD"].as_str()), ("deploy", "abc:def"));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let (source, git) = (source(None, None, true), Git::default());
        for value in ["", " ", "a\nb"] {
            let refused = Checkout::new(&source, &git, "/home", Some(&token(value))).err().expect("no token");
            assert!(refused.contains("tok"), "{refused}");
        }
        assert!(Checkout::new(&source, &git, "/home", None).is_err());
    }

    #[test]
    fn of_the_users_environment_only_the_proxies_reach_git() {
        let (source, git) = (source(None, None, false), Git::default());
        let user = ["https_proxy", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "LD_PRELOAD", "PATH", "HOME"];
        let user = user.map(|name| (name.to_owned(), "mine".to_owned())).into();
        let env = Checkout::new(&source, &git, "/home", None).expect("fine").env(&user);
        let mine: Vec<_> = env.iter().filter(|(_, value)| *value == "mine").map(|(name, _)| name.as_str()).collect();
        assert_eq!(mine, ["https_proxy"]);
        assert_eq!(env["GIT_CONFIG_COUNT"], SETTINGS.len().to_string());
    }

    #[test]
    fn everything_the_caller_wrote_is_an_argument_of_its_own() {
        let (source, git) = (source(Some("v1(\u{0026})"), Some("a b/c"), false), Git::default());
        let checkout = Checkout::new(&source, &git, "/home", None).expect("fine");
        assert_eq!(checkout.argv()[4..], ["https://git.example.com/a.git", "v1(&)", "named", "a b/c"]);
        assert_eq!(checkout.argv()[2], SCRIPT);
        assert_eq!(checkout.directory(), "repo/a b/c");
    }

    #[test]
    fn a_hostile_source_is_refused_here_too() {
        let git = Git::default();
        let hostile = GitSource { repo: "ext::sh -c id".to_owned(), ..source(None, None, false) };
        assert!(Checkout::new(&hostile, &git, "/home", None).is_err());
        let private = GitSource { repo: "https://127.0.0.1/a".to_owned(), ..source(None, None, false) };
        assert!(Checkout::new(&private, &git, "/home", None).is_err());
    }
}
