//! The environment guard: variables that make a program load code, read other settings or start another program. Rules on commands say
//! nothing where the environment decides what a command does, so whoever is bound by such rules may not set these. `docs/rules.md` has
//! the same list, and a test here keeps both equal.

use crate::name::is_reserved_env_name;

/// Names. Upper and lower case are the same: some programs (npm, curl, Windows) do not look at it.
#[rustfmt::skip]
pub const GUARDED_NAMES: &[&str] = &[
    "ACKRC", "ACK_OPTIONS", "ACK_PAGER", "ALL_PROXY", "ANT_ARGS", "ANT_OPTS", "AWKLIBPATH",
    "AWKPATH", "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_PAGER", "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "BASHOPTS", "BASH_ENV", "BAT_CONFIG_PATH",
    "BAT_PAGER", "BOTO_CONFIG", "BROWSER", "BUILDKIT_HOST", "BZIP", "BZIP2", "CAML_LD_LIBRARY_PATH",
    "CC", "CDPATH", "CFLAGS", "CLASSPATH", "CLOUDSDK_CONFIG", "CLOUDSDK_PYTHON",
    "CMAKE_TOOLCHAIN_FILE", "COMPILER_PATH", "COMPOSE_FILE", "CONTAINER_HOST", "CPATH", "CPPFLAGS",
    "CURL_CA_BUNDLE", "CURL_HOME", "CVS_RSH", "CXX", "CXXFLAGS", "DELTA_PAGER", "DOCKER_CONFIG",
    "DOCKER_CONTEXT", "DOCKER_HOST", "EDITOR", "ELECTRON_RUN_AS_NODE", "ELIXIR_ERL_OPTIONS",
    "EMACSLOADPATH", "ENV", "ERL_AFLAGS", "ERL_FLAGS", "ERL_LIBS", "ERL_ZFLAGS", "EXINIT", "FPATH",
    "FTP_PROXY", "GCC_EXEC_PREFIX", "GCONV_PATH", "GEM_HOME", "GEM_PATH", "GETCONF_DIR", "GHCRTS",
    "GLIBC_TUNABLES", "GLOBIGNORE", "GNUMAKEFLAGS", "GNUPGHOME", "GOENV", "GOFLAGS",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOPATH", "GOPROXY", "GOROOT", "GOTOOLCHAIN", "GRADLE_OPTS",
    "GRADLE_USER_HOME", "GREP_OPTIONS", "GUILE_LOAD_PATH", "GZIP", "HGRCPATH", "HOME",
    "HOSTALIASES", "HTTPS_PROXY", "HTTP_PROXY", "IFS", "INPUTRC", "JAVA_HOME", "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JULIA_DEPOT_PATH", "JULIA_LOAD_PATH", "KUBECONFIG",
    "KUBECTL_EXTERNAL_DIFF", "KUBERC", "KUBE_EDITOR", "KUSTOMIZE_PLUGIN_HOME", "LDFLAGS", "LESS",
    "LESSCLOSE", "LESSKEY", "LESSOPEN", "LIBRARY_PATH", "LOCALDOMAIN", "LOCPATH", "LUAROCKS_CONFIG",
    "MAILRC", "MAKEFILES", "MAKEFLAGS", "MAKEOVERRIDES", "MALLOC_TRACE", "MANOPT", "MANPAGER",
    "MAVEN_ARGS", "MAVEN_OPTS", "MYSQL_HOME", "MYSQL_TEST_LOGIN_FILE", "NETRC", "NIS_PATH",
    "NLSPATH", "NODE_EXTRA_CA_CERTS", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE",
    "NO_PROXY", "OCAMLRUNPARAM", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_FIPS",
    "OPENSSL_MODULES", "PAGER", "PATH", "PERLDB_OPTS", "PERLLIB", "PGPASSFILE", "PGSERVICEFILE",
    "PGSYSCONFDIR", "PHPRC", "PHP_INI_SCAN_DIR", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS0", "PS1",
    "PS2", "PS4", "PSModulePath", "PSQLRC", "PSQL_EDITOR", "REGISTRY_AUTH_FILE",
    "REQUESTS_CA_BUNDLE", "RESOLV_HOST_CONF", "RES_OPTIONS", "RIPGREP_CONFIG_PATH",
    "RSYNC_CONNECT_PROG", "RSYNC_RSH", "RUBYLIB", "RUBYOPT", "RUBYSHELL", "RUSTFLAGS", "SBT_OPTS",
    "SCREENRC", "SHELL", "SHELLOPTS", "SQLITE_HISTORY", "SSLKEYLOGFILE", "SSL_CERT_DIR",
    "SSL_CERT_FILE", "SUDO_ASKPASS", "SUDO_EDITOR", "SVN_EDITOR", "SVN_SSH", "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER", "TAR_OPTIONS", "TCLLIBPATH", "TERMCAP", "TERMINFO", "TERMINFO_DIRS",
    "TERRAFORM_CONFIG", "TF_CLI_CONFIG_FILE", "TF_DATA_DIR", "TF_PLUGIN_CACHE_DIR", "TF_WORKSPACE",
    "TMPDIR", "UNZIP", "VAULT_CONFIG_PATH", "VIM", "VIMINIT", "VIMRUNTIME", "VISUAL", "WGETRC",
    "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XZ_DEFAULTS", "XZ_OPT",
    "ZDOTDIR", "ZIPOPT", "ZSTD_CLEVEL", "_JAVA_OPTIONS",
];

/// Beginnings of names, in any case as well.
#[rustfmt::skip]
pub const GUARDED_PREFIXES: &[&str] = &[
    "ANSIBLE_", "AWS_ENDPOINT_URL", "BASH_FUNC_", "BUNDLE_", "CARGO_", "CCACHE_", "COMPOSER_",
    "COMPlus_", "CORECLR_", "COR_", "DENO_", "DOTNET_", "DYLD_", "FZF_DEFAULT_", "GIT_", "HELM_",
    "LD_", "LUA_CPATH", "LUA_INIT", "LUA_PATH", "NIX_", "NPM_CONFIG_", "PERL5", "PIP_",
    "PKG_CONFIG", "POETRY_", "PULUMI_", "PYTHON", "RUSTC", "RUSTDOC", "RUSTUP_", "R_ENVIRON",
    "R_LIBS", "R_MAKEVARS", "R_PROFILE", "SSH_", "TERRAGRUNT_", "TF_CLI_ARGS", "TG_", "UV_",
    "YARN_",
];

/// The file `.env` of a work directory has `RUNVOY_USER_NAME` as `NAME`.
const USER_PREFIX: &str = "RUNVOY_USER_";

/// Whether a variable changes what programs load or run.
pub fn is_guarded(name: &str) -> bool {
    // The prefix may be there several times.
    let mut bare = name;
    while let Some(rest) = bare.strip_prefix(USER_PREFIX) {
        bare = rest;
    }
    let begins = |prefix: &&str| bare.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    GUARDED_NAMES.iter().any(|guarded| guarded.eq_ignore_ascii_case(bare))
        || GUARDED_PREFIXES.iter().any(begins)
        || bare != name && is_reserved_env_name(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_27_what_programs_load_is_guarded_in_every_form() {
        for name in ["LD_PRELOAD", "PATH", "BASH_ENV", "GIT_SSH_COMMAND", "NODE_OPTIONS", "TAR_OPTIONS", "KUBECONFIG", "AWS_CONFIG_FILE"] {
            assert!(is_guarded(name) && is_guarded(&format!("RUNVOY_USER_{name}")), "{name}");
            assert!(is_guarded(&format!("RUNVOY_USER_RUNVOY_USER_{name}")), "{name}");
        }
        for name in ["DOTNET_STARTUP_HOOKS", "HOME", "PYTHONSTARTUP", "PERL5DB", "RUNVOY_USER_RUNVOY_TOKEN"] {
            assert!(is_guarded(name), "{name}");
        }
        for name in
            ["NPM_config_script_shell", "npm_Config_node_options", "Https_Proxy", "path", "LUA_PATH_5_4", "LUA_INIT_5_3", "R_LIBS_SITE"]
        {
            assert!(is_guarded(name) && is_guarded(&format!("RUNVOY_USER_{name}")), "{name}");
        }
        for name in ["KUBECTL_EXTERNAL_DIFF", "COMPOSE_FILE", "TERRAGRUNT_TFPATH", "TG_TF_PATH", "AWS_ENDPOINT_URL_S3", "PULUMI_HOME"] {
            assert!(is_guarded(name), "{name}");
        }
        for name in ["R_PROFILE_USER", "RIPGREP_CONFIG_PATH", "PSMODULEPATH", "PSModulePath", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER"] {
            assert!(is_guarded(name), "{name}");
        }
        for name in ["TF_VAR_region", "LANG", "REGION", "RUNVOY_USER_TOKEN", "TZ", "DEBUG", "é", "R", "PATHS"] {
            assert!(!is_guarded(name), "{name}");
        }
    }

    #[test]
    fn security_27_the_documented_list_is_the_list() {
        let page = include_str!("../../../docs/rules.md");
        let listed = |heading: &str| -> Vec<&str> {
            let (_, after) = page.split_once(heading).expect("the heading is there");
            let (_, block) = after.split_once("```text\n").expect("a list follows");
            block.split_once("```").expect("the list ends").0.split_whitespace().collect()
        };
        assert_eq!(listed("Names that are guarded"), GUARDED_NAMES);
        assert_eq!(listed("Beginnings that are guarded"), GUARDED_PREFIXES);
    }
}
