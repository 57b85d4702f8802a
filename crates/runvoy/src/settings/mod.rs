//! The server's settings, from file, environment and flags: all go through one table of keys.

mod aws;
mod file;
mod key;
mod source;
mod store;
pub mod value;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runvoy_alerts::SlackAlerter;
use runvoy_model::git::Reach;
use runvoy_model::name::Name;
use runvoy_runners::{IsolationLevel, UidRange};
use runvoy_server::Network;

use self::aws::AwsSettings;
#[cfg(feature = "aws")]
pub use self::aws::EventLayout;
use self::key::{KEYS, Key};
pub use self::source::gather;
use self::value::Runners;

/// What a build without AWS says to whoever wants it.
pub const NO_AWS: &str = "this program was built without AWS: build it with `cargo build --release --features aws` (docs/aws.md)";

/// Where everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendName {
    /// In files of the data directory.
    #[default]
    Embedded,
    /// On AWS.
    Aws,
}

/// Everything a server can be told.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where it listens; absent for a server that only has its socket.
    pub listen: String,
    /// Who the first admin is.
    pub admin_email: String,
    /// The base of page addresses.
    pub web_url: String,
    /// The address under which clients know the server.
    pub public_url: Option<String>,
    /// Whether there is a worker in the server.
    pub worker: bool,
    /// How many executions run at once.
    pub concurrency: usize,
    /// Which queues the worker serves.
    pub queues: Vec<Name>,
    /// Whom the tokens of workers must be for.
    pub worker_audience: Vec<String>,
    /// Whose rights commands have.
    pub run_as: Option<String>,
    /// The users that executions get, one each.
    pub run_as_uids: Option<UidRange>,
    /// How far commands with users of their own must be kept apart; without it as far as the machine can.
    pub isolation: Option<IsolationLevel>,
    /// Directories outside of their own that such commands may write to.
    pub isolation_writable: Vec<String>,
    /// Whether such commands have limits of memory and processes where no others are set.
    pub default_limits: bool,
    /// Commands may run as the server's own user although there are several users.
    pub allow_shared_uid: bool,
    /// What runs commands; without it whatever works here.
    pub runners: Option<Runners>,
    /// The network of containers.
    pub container_network: runvoy_containers::Network,
    /// Repositories may come from literal addresses of this machine and of private networks.
    pub git_allow_private: bool,
    /// Certificates that git trusts instead of the system's.
    pub git_ca_file: Option<PathBuf>,
    /// Where commands run.
    pub work_dir: Option<PathBuf>,
    /// Time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
    /// Time that running commands have when the server stops.
    pub stop_patience: Duration,
    /// Certificate chain.
    pub tls_cert: Option<PathBuf>,
    /// Private key.
    pub tls_key: Option<PathBuf>,
    /// Listens beyond loopback without TLS.
    pub insecure: bool,
    /// A proxy in front ends TLS.
    pub behind_proxy: bool,
    /// Pages from these origins may call.
    pub cors_origins: Vec<String>,
    /// Anybody may read the metrics.
    pub metrics_public: bool,
    /// So many wrong keys a minute.
    pub failed_keys_per_minute: u32,
    /// So many wrong claim tokens a minute.
    pub failed_claims_per_minute: u32,
    /// So many executions of one user wait at most.
    pub max_waiting_per_user: u64,
    /// So many executions wait in one queue at most.
    pub max_waiting_per_queue: u64,
    /// Refused requests of one user that are recorded in a minute.
    pub denials_per_minute: u32,
    /// Proxies whose word about a client's address is taken.
    pub trusted_proxies: Vec<Network>,
    /// How much is logged.
    pub log_level: String,
    /// `text`, `json`, or `auto`.
    pub log_format: String,
    /// How often what runs is looked at.
    pub health_interval: Duration,
    /// Heard of within this is healthy.
    pub health_healthy_within: Duration,
    /// Heard of within this is a warning, longer ago is critical.
    pub health_warning_within: Duration,
    /// Running longer than this is overtime.
    pub health_overtime_after: Duration,
    /// Where people are told of incidents.
    pub slack_webhook_url: Hidden,
    /// That may be on this machine or in a private network.
    pub alerts_allow_private: bool,
    /// No more than one message in this time.
    pub alerts_interval: Duration,
    /// Days that logs are kept.
    pub retention_log_days: u32,
    /// Days that heartbeats are kept.
    pub retention_heartbeat_days: u32,
    /// Days after which another key signs task tokens.
    pub token_key_days: u32,
    /// The most one log may hold.
    pub log_max_bytes: u64,
    /// Space on the disk that only the store may use.
    pub disk_reserve_bytes: u64,
    /// Memory of one command.
    pub limit_memory_bytes: Option<u64>,
    /// Processes of one command.
    pub limit_pids: Option<u64>,
    /// CPU of one command, in thousandths of a core.
    pub limit_cpu_millis: Option<u64>,
    /// Open files of one process.
    pub limit_open_files: Option<u64>,
    /// Largest file a process may write.
    pub limit_file_bytes: Option<u64>,
    /// What one execution may write to its work directory and its `/tmp`.
    pub limit_disk_bytes: Option<u64>,
    /// Dollars per vCPU hour.
    pub cost_vcpu_hour_usd: f64,
    /// Dollars per gigabyte hour.
    pub cost_gb_hour_usd: f64,
    /// Whose events.
    pub tenant: String,
    /// Which app's events.
    pub app: String,
    /// Which environment's events.
    pub environment: String,
    /// Where everything is kept.
    pub backend: BackendName,
    /// What everything is called on AWS.
    pub aws: AwsSettings,
}

/// A value that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(Option<String>);

impl Hidden {
    /// The value, for whoever needs it.
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Hidden(…)" } else { "Hidden(none)" })
    }
}

/// A kill is given up after a minute without its confirmation; a command that uses all of its grace must be gone and recorded before.
const LONGEST_GRACE: Duration = Duration::from_secs(50);

/// What can be done about a name that is none: what was probably meant, or all there is.
fn instead_of(name: &str) -> String {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let nearest = KEYS.iter().map(|key| (strsim::jaro_winkler(&plain, key.name), key.name)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        Some((likeness, meant)) if likeness > ALIKE => format!("did you mean {meant}?"),
        _ => format!("there are: {}", KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
    }
}

/// From here on a name is probably a slip.
const ALIKE: f64 = 0.85;

/// Where values come from, weakest first.
pub struct Sources {
    /// What an earlier start in the same data directory was told, for the settings that bind later starts.
    pub stored: Vec<(&'static str, String)>,
    /// The text of the settings file, and its name for messages.
    pub file: Option<(String, String)>,
    /// The process's environment.
    pub env: Vec<(String, String)>,
    /// What the command line said.
    pub flags: Vec<(&'static str, String)>,
}

impl Settings {
    /// Defaults, then what an earlier start was told, then the file, then the environment, then flags.
    pub fn load(sources: &Sources) -> Result<Self> {
        let mut settings = Self::default();
        for key in KEYS {
            (key.set)(&mut settings, key.default).map_err(|why| anyhow::anyhow!("default of {}: {why}", key.name))?;
        }
        let file = match &sources.file {
            Some((name, text)) => file::read(text).with_context(|| format!("{name} is not a settings file"))?,
            None => Vec::new(),
        };
        let env: Vec<(&Key, &String)> = KEYS
            .iter()
            .filter_map(|key| {
                let variable = key.variable();
                sources.env.iter().find(|(name, _)| *name == variable).map(|(_, value)| (key, value))
            })
            .collect();
        let names_users = |name: &str, value: &str| matches!(name, "run_as" | "run_as_uids") && !value.is_empty();
        let users_given = file.iter().any(|(name, value)| names_users(name, value))
            || env.iter().any(|(key, value)| names_users(key.name, value))
            || sources.flags.iter().any(|(name, value)| names_users(name, value));
        for (name, value) in sources.stored.iter().filter(|(name, value)| !(users_given && names_users(name, value))) {
            settings.set(name, value).context("in the stored options of the last start")?;
        }
        // An empty value takes nothing away from what is stored: an unset variable must not change whom commands run as.
        let is_void = |name: &str, value: &str| value.is_empty() && sources.stored.iter().any(|(stored, _)| *stored == name);
        for (key, value) in file.iter().filter(|(key, value)| !is_void(key, value)) {
            settings.set(key, value).with_context(|| format!("in {}", sources.file.as_ref().map_or("", |(name, _)| name)))?;
        }
        for (key, value) in env.into_iter().filter(|(key, value)| !is_void(key.name, value)) {
            settings.set(key.name, value).with_context(|| format!("in the environment variable {}", key.variable()))?;
        }
        for (name, value) in sources.flags.iter().filter(|(name, value)| !is_void(name, value)) {
            let key = KEYS.iter().find(|key| key.name == *name).expect("every flag is a setting");
            settings.put(key, value).map_err(|why| anyhow::anyhow!("--{}: {why}", name.replace('_', "-")))?;
        }
        settings.check()
    }

    /// What a server is told that nobody told anything.
    #[cfg(test)]
    pub fn of_defaults() -> Self {
        Self::load(&Sources { stored: Vec::new(), file: None, env: Vec::new(), flags: Vec::new() }).expect("defaults are settings")
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            // What is no name may be a value in the wrong place, and a secret.
            let is_name = name.len() <= 60 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            if !is_name {
                bail!("it has an unknown setting");
            }
            bail!("there is no setting {name}; {}", instead_of(name));
        };
        self.put(key, value).map_err(|why| anyhow::anyhow!("{name}: {why}"))
    }

    /// The reason of a refusal is without the name, which is not the same everywhere.
    fn put(&mut self, key: &Key, value: &str) -> Result<(), String> {
        // An address that stands in the wrong place may be a secret.
        (key.set)(self, value).map_err(|why| if value.contains("://") { "an address does not belong here".to_owned() } else { why })
    }

    /// Whether the text of a settings file sets something that is a secret.
    pub fn file_holds_secret(text: &str) -> bool {
        let is_secret = |(name, value): &(String, String)| name == "alerts.slack_webhook_url" && !value.is_empty();
        file::read(text).is_ok_and(|values| values.iter().any(is_secret))
    }

    /// What tells people of incidents, if anything does.
    pub fn alerter(&self) -> Result<Option<SlackAlerter>> {
        let reach = if self.alerts_allow_private { Reach::Private } else { Reach::Public };
        let Some(url) = self.slack_webhook_url.reveal() else { return Ok(None) };
        SlackAlerter::new(url, reach).map(Some).map_err(|why| anyhow::anyhow!("alerts.slack_webhook_url {why}"))
    }

    fn check(mut self) -> Result<Self> {
        // Not where it is read: what is wrong with an address is not said there, because it may be a secret in the wrong place.
        self.public_url = self.public_url.as_deref().map(value::address).transpose().map_err(|why| anyhow::anyhow!("public_url: {why}"))?;
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            bail!("tls_cert and tls_key belong together: set both or none");
        }
        if self.run_as.is_some() && self.run_as_uids.is_some() {
            bail!("run_as and run_as_uids exclude each other: one user for all commands, or one for each execution");
        }
        if self.queues.is_empty() {
            bail!("queues: name at least one");
        }
        if self.cost_gb_hour_usd > 0.0 && self.limit_memory_bytes.is_none() {
            bail!("cost_gb_hour_usd needs limit_memory_bytes: an execution is charged for the memory that it may use");
        }
        if self.health_interval < SHORTEST_INTERVAL {
            bail!("health.interval: at least {} ms", SHORTEST_INTERVAL.as_millis());
        }
        if self.health_warning_within < self.health_healthy_within {
            bail!("health.warning_within: not shorter than health.healthy_within");
        }
        if self.backend == BackendName::Aws {
            if cfg!(not(feature = "aws")) {
                bail!("backend: {NO_AWS}");
            }
            self.aws.check()?;
        }
        self.alerter()?;
        if self.grace > LONGEST_GRACE {
            bail!("grace: at most {} s, because a kill must be confirmed within a minute", LONGEST_GRACE.as_secs());
        }
        Ok(self)
    }
}

/// Looks at what runs are not closer together than this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
        Sources {
            stored: Vec::new(),
            file: Some(("server.yaml".into(), file.into())),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            flags: flags.iter().map(|(k, v)| (*k, (*v).to_owned())).collect(),
        }
    }

    #[test]
    fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
        let listen = |s: &Sources| Settings::load(s).expect("settings").listen;
        assert_eq!(listen(&sources("", &[], &[])), "127.0.0.1:56212");
        assert_eq!(listen(&sources("listen: 127.0.0.1:1", &[], &[])), "127.0.0.1:1");
        let env = [("RUNVOY_LISTEN", "127.0.0.1:2")];
        assert_eq!(listen(&sources("listen: 127.0.0.1:1", &env, &[])), "127.0.0.1:2");
        assert_eq!(listen(&sources("listen: 127.0.0.1:1", &env, &[("listen", "127.0.0.1:3")])), "127.0.0.1:3");
    }

    #[test]
    fn what_an_earlier_start_was_told_holds_until_another_value_is_given() {
        let stored = |values: &[(&'static str, &str)], from: Sources| {
            let stored = values.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            let settings = Settings::load(&Sources { stored, ..from }).expect("settings");
            (settings.worker, settings.run_as, settings.run_as_uids.map(|uids| uids.to_string()))
        };
        let uids = [("worker", "false"), ("run_as_uids", "70000-70999")];
        let kept = (false, None, Some("70000-70999".to_owned()));
        assert_eq!(stored(&uids, sources("", &[], &[])), kept);
        assert_eq!(stored(&uids, sources("run_as_uids:", &[("RUNVOY_RUN_AS_UIDS", "")], &[("run_as_uids", "")])), kept, "empty is nothing");
        assert_eq!(stored(&uids, sources("", &[], &[("run_as", "nobody")])), (false, Some("nobody".to_owned()), None));
        assert!(stored(&uids, sources("worker: true", &[], &[])).0);
    }

    #[test]
    fn lists_units_and_absent_values_are_read() {
        let settings =
            Settings::load(&sources("queues: [a, b]\nlimit_memory_bytes: 512MiB\ngrace: 250ms\nrun_as:", &[], &[])).expect("settings");
        assert_eq!(settings.queues.len(), 2);
        assert_eq!(settings.limit_memory_bytes, Some(512 << 20));
        assert_eq!(settings.grace, Duration::from_millis(250));
        assert_eq!((settings.run_as, settings.run_as_uids), (None, None));
    }

    #[test]
    fn the_public_address_is_kept_in_one_form() {
        let public = |text: &str| {
            let env = [("RUNVOY_PUBLIC_URL", text)];
            Settings::load(&sources("", &env, &[])).expect("settings").public_url
        };
        assert_eq!(public("https://Run.Example.com:443/").as_deref(), Some("https://run.example.com"));
        assert_eq!(public("http://run.example.com:8080/tools/").as_deref(), Some("http://run.example.com:8080/tools"));
        assert_eq!(public(""), None);
    }

    #[test]
    fn what_belongs_together_may_stand_under_one_name() {
        let url = "https://hooks.example.com/services/T0/B0/s3cr3t";
        let nested = format!("health: {{interval: 1m, overtime_after: 2h}}\nalerts:\n  slack_webhook_url: {url}");
        for file in [nested, format!("health.interval: 1m\nhealth.overtime_after: 2h\nalerts.slack_webhook_url: {url}")] {
            let settings = Settings::load(&sources(&file, &[("RUNVOY_HEALTH_INTERVAL", "30s")], &[])).expect("settings");
            assert_eq!((settings.health_interval, settings.health_overtime_after), (Duration::from_secs(30), Duration::from_secs(7200)));
            assert_eq!(settings.slack_webhook_url.reveal(), Some(url));
            assert!(!format!("{settings:?}").contains("s3cr3t"), "it is a secret");
        }
        let env = Settings::load(&sources("", &[("RUNVOY_SLACK_WEBHOOK_URL", url)], &[])).expect("settings");
        assert_eq!(env.slack_webhook_url.reveal(), Some(url));
    }

    #[test]
    fn security_13_a_webhook_that_cannot_be_used_is_refused_without_being_shown() {
        let wrong = |file: &str| format!("{:#}", Settings::load(&sources(file, &[], &[])).expect_err("wrong"));
        let private = wrong("alerts.slack_webhook_url: https://10.0.0.1/s3cr3t");
        assert!(private.contains("alerts.allow_private_addresses") && !private.contains("s3cr3t"), "{private}");
        assert!(wrong("alerts.slack_webhook_url: http://hooks.example.com/s3cr3t").contains("https://"));
        assert!(wrong("health: {warning_within: 1m}").contains("health.healthy_within"));
        assert!(wrong("health: {interval: 0s}").contains("health.interval"));
        let allowed = "alerts: {slack_webhook_url: 'http://127.0.0.1:9/x', allow_private_addresses: true}";
        assert!(Settings::load(&sources(allowed, &[], &[])).is_ok());
    }

    #[test]
    fn security_13_a_settings_file_that_cannot_be_read_is_not_quoted() {
        const URL: &str = "https://hooks.example.com/services/T0/B0/s3cr3t";
        for file in [
            format!("alerts:\n  slack_webhook_url: {URL}\n interval: 1m\n"),
            format!("alerts:\n  slack_webhook_url: \"{URL}\n"),
            format!("alerts.slack_webhook_url: [{URL}\n"),
            format!("alerts.slack_webhook_url: {{a: {{b: {URL}}}}}"),
            URL.to_owned(),
            format!("- {URL}"),
            format!("? {URL}\n: x\n"),
            format!("? {URL}\n: x\n? {URL}\n: x\n"),
            format!("alerts: {{? '{URL}' : x}}"),
            format!("alerts: {{interval: '{URL}'}}"),
            format!("concurrency: {URL}"),
        ] {
            let said = Settings::load(&sources(&file, &[], &[])).expect_err("wrong");
            for shown in [format!("{said:#}"), format!("{said:?}")] {
                assert!(!shown.contains("s3cr3t") && shown.contains("server.yaml"), "{file}\n{shown}");
            }
        }
        let said = format!("{:#}", Settings::load(&sources("listen: a\n  b: c\n", &[], &[])).expect_err("wrong"));
        assert!(said.contains("line 2"), "{said}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |file: &str| format!("{:#}", Settings::load(&sources(file, &[], &[])).expect_err("wrong"));
        assert!(wrong("lisen: x").contains("lisen; did you mean listen?"));
        assert!(wrong("git-allow-privat: true").contains("did you mean git_allow_private?"));
        assert!(wrong("colour: x").contains("there are: ") && wrong("colour: x").contains("concurrency"));
        assert!(wrong("concurrency: many").contains("concurrency"));
        assert!(wrong("tls_cert: a.pem").contains("tls_key"));
        assert!(wrong("listen: {a: b}").contains("listen"));
        assert!(wrong("grace: 51s").contains("a minute"));
        assert!(wrong("cost_gb_hour_usd: 0.004").contains("limit_memory_bytes"));
        assert!(wrong("run_as: eve\nrun_as_uids: 70000-70999").contains("run_as_uids"));
        for range in ["70000", "0-70000", "999-2000", "70001-70000"] {
            assert!(wrong(&format!("run_as_uids: {range}")).contains("run_as_uids: "), "{range}");
        }
        let flag = Settings::load(&sources("", &[], &[("queues", "a b")])).expect_err("no name");
        assert!(format!("{flag:#}").starts_with("--queues: ") && !format!("{flag:#}").contains("queues: queues"), "{flag:#}");
        assert!(wrong("trusted_proxies: [10.0.0.0/8, proxy]").contains("trusted_proxies"));
        for address in
            ["run.example.com", "ftp://run.example.com", "unix:/run/sock", "https://eve:pw@x", "https://x/?a=1", "'https://x/#a'"]
        {
            let said = wrong(&format!("public_url: {address}"));
            assert!(said.contains("public_url: ") && said.contains("https://HOST") && !said.contains("pw"), "{said}");
        }
    }

    #[test]
    fn the_settings_of_aws_come_from_file_and_environment() {
        let file = "aws: {prefix: prod, shards: 8, log_group: ''}\naws.event_layout: sharded";
        let settings = Settings::load(&sources(file, &[("RUNVOY_AWS_PREFIX", "staging"), ("RUNVOY_AWS_REGION", "eu-central-1")], &[]));
        let aws = settings.expect("settings").aws;
        assert_eq!((aws.prefix.as_str(), aws.region.as_deref(), aws.shards), ("staging", Some("eu-central-1"), 8));
        assert_eq!((aws.log_group, aws.event_layout, aws.set_up), (None, self::aws::EventLayout::Sharded, true));
        assert_eq!(Settings::of_defaults().aws.log_group.as_deref(), Some("/runvoy/executions"));
    }

    #[test]
    fn names_that_aws_would_refuse_are_refused_first() {
        let wrong = |prefix: &str, shards: u32| {
            let aws = AwsSettings { prefix: prefix.to_owned(), shards, ..AwsSettings::default() };
            aws.check().err().map(|error| error.to_string())
        };
        assert_eq!(wrong("prod-2", 64), None);
        for prefix in ["", "Prod", "a_b", "a/b", "aws-prod", "ssm", &"a".repeat(41)] {
            assert!(wrong(prefix, 4).is_some_and(|why| why.contains("aws.prefix")), "{prefix:?}");
        }
        for shards in [0, 65] {
            assert!(wrong("prod", shards).is_some_and(|why| why.contains("aws.shards")), "{shards}");
        }
    }

    #[test]
    fn a_backend_is_named_by_flag_environment_or_file_and_is_in_this_build() {
        let load = |file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]| {
            Settings::load(&sources(file, env, flags)).map(|settings| settings.backend).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(load("", &[], &[]), Ok(BackendName::Embedded));
        assert!(load("backend: files", &[], &[]).is_err_and(|why| why.contains("embedded or aws")));
        assert_eq!(load("backend: aws", &[("RUNVOY_BACKEND", "embedded")], &[]), Ok(BackendName::Embedded));
        for wanted in [load("backend: aws", &[], &[]), load("", &[("RUNVOY_BACKEND", "aws")], &[]), load("", &[], &[("backend", "aws")])] {
            if cfg!(feature = "aws") {
                assert_eq!(wanted, Ok(BackendName::Aws));
            } else {
                assert!(wanted.is_err_and(|why| why.contains("--features aws")));
            }
        }
    }

    #[test]
    fn the_documentation_lists_every_key_with_its_default() {
        let documented = include_str!("../../../../docs/configuration.md");
        for key in KEYS {
            let default = if key.default.is_empty() { "–".to_owned() } else { format!("`{}`", key.default) };
            let row = format!("| `{}` | `{}` | {} | {} |", key.name, key.variable(), default, key.help);
            assert!(documented.contains(&row), "docs/configuration.md lacks the row\n{row}");
        }
        let rows = documented.lines().filter(|line| line.contains("| `RUNVOY_")).count();
        assert_eq!(rows, KEYS.len(), "docs/configuration.md lists a key that does not exist");
    }
}
