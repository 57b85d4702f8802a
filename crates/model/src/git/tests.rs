//! The corpus of hostile addresses, references and paths, each refused before git starts, and the ordinary ones, which are not.

use super::*;

fn source(repo: &str, reference: Option<&str>, path: Option<&str>) -> GitSource {
    GitSource { repo: repo.to_owned(), reference: reference.map(str::to_owned), path: path.map(str::to_owned), token: None }
}

const REPO: &str = "https://git.example.com/team/project.git";

const HOSTILE_REPOS: [&str; 62] = [
    "",
    " ",
    "--upload-pack=touch /tmp/canary",
    "--upload-pack=touch${IFS}canary",
    "-u./canary",
    "-oProxyCommand=touch canary",
    "ext::sh -c touch% canary",
    "ext::sh",
    "fd::17/foo",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "/etc",
    "./local",
    "../up",
    "~/repo",
    "http://example.com/a.git",
    "git://example.com/a.git",
    "ftp://example.com/a.git",
    "ftps://example.com/a.git",
    "git+ssh://example.com/a.git",
    "HTTPS://example.com/a.git",
    "https:/example.com/a.git",
    "https:example.com/a.git",
    "https://",
    "https:///a.git",
    "https://example.com",
    "https://example.com/",
    "https://-oProxyCommand=x/a.git",
    "ssh://-oProxyCommand=touch/a.git",
    "ssh://-oProxyCommand=x@example.com/a.git",
    "ssh://git@-oProxyCommand=x/a.git",
    "ssh://git@example.com:-1/a.git",
    "ssh://git@example.com:0/a.git",
    "ssh://git@example.com:+22/a.git",
    "ssh://git:password@example.com/a.git",
    "git@-oProxyCommand=x:a.git",
    "-oProxyCommand=x@example.com:a.git",
    "git@example.com:--upload-pack=x",
    "git@example.com:-x",
    "git@example.com:../../x",
    "git@ext::sh",
    "example.com:a.git",
    "C:\\repo",
    "https://user:password@example.com/a.git",
    "https://ghp_token@example.com/a.git",
    "https://example.com/a.git\n--upload-pack=x",
    "https://example.com/a%0aprotocol=ssh",
    "https://example.com/a%00",
    "https://example.com/a%",
    "https://example.com/$HOME/a.git",
    "https://example.com/`id`/a.git",
    "https://example.com/$(id)",
    "https://example.com/a b.git",
    "https://example.com/../../etc",
    "https://example.com//a.git/../x",
    "https://example.com/-x/a.git",
    "https://example.com/a.git?service=x",
    "https://example.com/a.git#x",
    "https://example.com\\@evil.com/a.git",
    "https://example.com:99999/a.git",
    "https://ex\u{430}mple.com/a.git",
    "https://[::1/a.git",
];

const HOSTILE_REFERENCES: [&str; 24] = [
    "",
    "--upload-pack=touch canary",
    "-b",
    "+refs/heads/*:refs/heads/*",
    "main:evil",
    "main..evil",
    "HEAD@{1}",
    "@",
    "main~1",
    "main^",
    "ma in",
    "main\n",
    "main\0",
    "$HOME",
    "`id`",
    "$(id)",
    "a\\b",
    "refs//heads",
    "/main",
    "main/",
    ".hidden",
    "a/.b",
    "main.lock",
    "*",
];

const HOSTILE_PATHS: [&str; 16] =
    ["", "/", "/etc", "..", "../x", "a/../../x", "a//b", "-rf", "a/-x", ".git", ".GIT/hooks", "a/.git", "$HOME", "`id`", "a\\b", "a\nb"];

#[test]
fn security_24_hostile_repositories_references_and_paths_are_refused() {
    for repo in HOSTILE_REPOS {
        let refused = source(repo, None, None).check(Reach::Private);
        assert!(matches!(refused, Err(GitError::Repo(_))), "{repo:?}: {refused:?}");
    }
    for reference in HOSTILE_REFERENCES {
        let refused = source(REPO, Some(reference), None).check(Reach::Private);
        assert!(matches!(refused, Err(GitError::Reference(_))), "{reference:?}: {refused:?}");
    }
    for path in HOSTILE_PATHS {
        let refused = source(REPO, None, Some(path)).check(Reach::Private);
        assert!(matches!(refused, Err(GitError::Path(_))), "{path:?}: {refused:?}");
    }
}

#[test]
fn ordinary_repositories_references_and_paths_pass() {
    for repo in [
        REPO,
        "https://git.example.com:8443/team/project",
        "https://git.example.com/~ana/project+1.git/",
        "https://git.example.com/team/with%20space.git",
        "ssh://git@git.example.com/team/project.git",
        "ssh://git.example.com:2222/team/project.git",
        "git@git.example.com:team/project.git",
        "deploy-bot@git.example.com:/srv/project.git",
    ] {
        assert_eq!(source(repo, None, None).check(Reach::Public), Ok(()), "{repo}");
    }
    let hash = "0123456789abcdef0123456789abcdef01234567";
    for reference in ["main", "v1.2.3", "feature/über-1", "fix#12", "dependabot/npm_and_yarn/@types/node-1.2", hash, "refs/pull/7/head"] {
        assert_eq!(source(REPO, Some(reference), None).check(Reach::Public), Ok(()), "{reference}");
    }
    for path in ["infra", "infra/prod/", "./a", "with space/ü", ".github", "a.git", "..."] {
        assert_eq!(source(REPO, None, Some(path)).check(Reach::Public), Ok(()), "{path}");
    }
}

#[test]
fn private_hosts_need_leave() {
    for repo in ["https://127.0.0.1/a", "https://[::1]:8443/a", "ssh://git@10.0.0.1/a", "git@2130706433:a", "https://localhost:1/a"] {
        assert!(
            source(repo, None, None).check(Reach::Public).is_err_and(|error| error.to_string().contains("git_allow_private")),
            "{repo}"
        );
        assert_eq!(source(repo, None, None).check(Reach::Private), Ok(()), "{repo}");
    }
}

#[test]
fn a_token_goes_with_https_alone() {
    let with_token = |repo| GitSource { token: Some(Name::new("tok").expect("a name")), ..source(repo, None, None) };
    assert_eq!(with_token(REPO).check(Reach::Public), Ok(()));
    let refused = with_token("git@git.example.com:team/project.git").check(Reach::Public).expect_err("ssh has keys");
    assert_eq!(refused.field(), "git_token");
}

#[test]
fn hashes_and_full_refs_are_fetched_by_name() {
    let exact = |reference: &str| source(REPO, Some(reference), None).is_exact_reference();
    assert!(exact(&"a".repeat(40)) && exact(&"0".repeat(64)) && exact("refs/pull/1/head"));
    assert!(!exact("main") && !exact(&"g".repeat(40)) && !exact("abc123") && !source(REPO, None, None).is_exact_reference());
}
