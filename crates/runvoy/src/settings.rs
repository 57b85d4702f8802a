//! The server's settings: one table of keys, each with its default, its words and what it sets. File, environment
//! and flags all go through it, and `docs/configuration.md` is checked against it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runvoy_alerts::SlackAlerter;
use runvoy_model::git::Reach;
use runvoy_model::name::Name;
use runvoy_runners::UidRange;
use runvoy_server::Network;

/// Everything a server can be told.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where it listens; absent for a server that only has its socket.
    pub listen: String,
    /// Who the first admin is.
    pub admin_email: String,
    /// The base of page addresses.
    pub web_url: String,
    /// Whether there is a worker in the server.
    pub worker: bool,
    /// How many executions run at once.
    pub concurrency: usize,
    /// Which queues the worker serves.
    pub queues: Vec<Name>,
    /// Whose rights commands have.
    pub run_as: Option<String>,
    /// The users that executions get, one each.
    pub run_as_uids: Option<UidRange>,
    /// Commands may run as the server's own user although there are several users.
    pub allow_shared_uid: bool,
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

/// One key.
pub struct Key {
    /// Its name in the file, where `a.b` may be `b` under `a`; dashes for underscores as a flag.
    pub name: &'static str,
    /// Its name in the environment, where that is not `RUNVOY_` and its upper case.
    variable: Option<&'static str>,
    /// Its default, as it would be written.
    pub default: &'static str,
    /// What it does, as the documentation says it.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test that keeps the documentation true"))]
    pub help: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! key {
    ($field:ident, $default:literal, $help:literal, $parse:expr) => {
        key!(stringify!($field), None, $field, $default, $help, $parse)
    };
    ($name:expr, $variable:expr, $field:ident, $default:literal, $help:literal, $parse:expr) => {
        Key {
            name: $name,
            variable: $variable,
            default: $default,
            help: $help,
            set: |settings, text| {
                settings.$field = $parse(text)?;
                Ok(())
            },
        }
    };
}

impl Key {
    /// Its name in the environment.
    fn variable(&self) -> String {
        self.variable.map_or_else(|| format!("RUNVOY_{}", self.name.replace('.', "_").to_uppercase()), str::to_owned)
    }
}

/// Every key there is.
pub const KEYS: &[Key] = &[
    key!(listen, "127.0.0.1:56212", "Address and port; port 0 takes a free one.", text),
    key!(admin_email, "admin@localhost", "E-mail of the first admin, made at the first start.", text),
    key!(web_url, "", "Base of page addresses; empty is the server's own address.", text),
    key!(worker, "true", "Run commands in this server. `--no-worker` leaves that to workers elsewhere.", boolean),
    key!(concurrency, "0", "Executions at once; 0 is four times the number of cores.", number),
    key!(queues, "default", "Queues that the server's own worker serves.", names),
    key!(run_as, "", "One user that all commands run as; empty is the server's own user.", optional),
    key!(run_as_uids, "", "Uids `FIRST-LAST`: each execution runs as one of its own. Secrets of several users need it.", uids),
    key!(allow_shared_uid, "false", "Run commands as the server's own user although there are several users.", boolean),
    key!(git_allow_private, "false", "Clone from literal addresses of this machine and of private networks too.", boolean),
    key!(git_ca_file, "", "Certificates (PEM) that git trusts instead of the system's; the commands' user must be able to read it.", path),
    key!(work_dir, "", "Where each command gets a directory of its own; empty is `work` in the data directory.", path),
    key!(grace, "5s", "Time between SIGTERM and SIGKILL, at most 50s.", duration),
    key!(stop_patience, "10s", "Time that running commands have to end when the server stops.", duration),
    key!(tls_cert, "", "Certificate chain (PEM) to speak TLS with.", path),
    key!(tls_key, "", "Private key (PEM) of the certificate.", path),
    key!(insecure, "false", "Listen beyond loopback without TLS.", boolean),
    key!(behind_proxy, "false", "Listen beyond loopback without TLS because a proxy in front ends it.", boolean),
    key!(cors_origins, "", "Origins whose pages may call the API and open streams.", list),
    key!(metrics_public, "false", "Let anybody read /metrics without a key.", boolean),
    key!(failed_keys_per_minute, "60", "Wrong keys looked at, per address and per beginning of a key; 0 is any number.", number),
    key!(failed_claims_per_minute, "20", "Wrong claim tokens looked at, per address; 0 is any number.", number),
    key!(trusted_proxies, "", "Addresses or networks of proxies whose X-Forwarded-For is believed.", networks),
    key!(log_level, "info", "error, warn, info, debug or trace.", text),
    key!(log_format, "auto", "text, json, or auto: text on a terminal, else JSON.", text),
    key!("health.interval", None, health_interval, "5m", "How often what runs is looked at.", duration),
    key!("health.healthy_within", None, health_healthy_within, "5m", "An execution is healthy if it was heard of within this.", duration),
    key!("health.warning_within", None, health_warning_within, "10m", "Within this it is a warning; quiet for longer, critical.", duration),
    key!("health.overtime_after", None, health_overtime_after, "1h", "An attempt that runs longer is in overtime.", duration),
    key!(
        "alerts.slack_webhook_url",
        Some("RUNVOY_SLACK_WEBHOOK_URL"),
        slack_webhook_url,
        "",
        "Slack-compatible webhook that incidents are told to; a secret, never shown.",
        hidden
    ),
    key!(
        "alerts.allow_private_addresses",
        None,
        alerts_allow_private,
        "false",
        "Let the webhook be on this machine or in a private network, and without TLS.",
        boolean
    ),
    key!(
        "alerts.interval",
        None,
        alerts_interval,
        "1m",
        "At most one message in this time; what comes meanwhile is told in one.",
        duration
    ),
    key!(retention_log_days, "30", "Days that logs are kept.", number),
    key!(retention_heartbeat_days, "7", "Days that heartbeat events are kept.", number),
    key!(log_max_bytes, "2GiB", "The most one log may hold; what comes after is counted, not kept.", bytes),
    key!(disk_reserve_bytes, "64MiB", "Space that is left for ends of executions: below it nothing new is taken.", bytes),
    key!(limit_memory_bytes, "", "Memory of one command and its descendants.", optional_bytes),
    key!(limit_pids, "", "Processes and threads of one command.", optional_number),
    key!(limit_cpu_millis, "", "CPU of one command, in thousandths of a core.", optional_number),
    key!(limit_open_files, "", "Open files of each process.", optional_number),
    key!(limit_file_bytes, "", "Largest file a process may write.", optional_bytes),
    key!(cost_vcpu_hour_usd, "0", "Price of a vCPU hour, for cost per run.", number),
    key!(cost_gb_hour_usd, "0", "Price of a gigabyte hour, for cost per run.", number),
    key!(tenant, "default", "Tenant in event keys.", text),
    key!(app, "runvoy", "App in event keys.", text),
    key!(environment, "local", "Environment in event contexts.", text),
];

/// A kill is given up after a minute without its confirmation; a command that uses all of its grace must be gone and recorded before.
const LONGEST_GRACE: Duration = Duration::from_secs(50);

/// Where values come from, weakest first.
pub struct Sources {
    /// The text of the settings file, and its name for messages.
    pub file: Option<(String, String)>,
    /// The process's environment.
    pub env: Vec<(String, String)>,
    /// What the command line said.
    pub flags: Vec<(&'static str, String)>,
}

impl Settings {
    /// Defaults, then the file, then the environment, then flags.
    pub fn load(sources: &Sources) -> Result<Self> {
        let mut settings = Self::default();
        for key in KEYS {
            (key.set)(&mut settings, key.default).map_err(|why| anyhow::anyhow!("default of {}: {why}", key.name))?;
        }
        if let Some((name, text)) = &sources.file {
            for (key, value) in read_file(text).with_context(|| format!("{name} is not a settings file"))? {
                settings.set(&key, &value).with_context(|| format!("in {name}"))?;
            }
        }
        for key in KEYS {
            let variable = key.variable();
            if let Some((_, value)) = sources.env.iter().find(|(name, _)| *name == variable) {
                settings.set(key.name, value).with_context(|| format!("in the environment variable {variable}"))?;
            }
        }
        for (name, value) in &sources.flags {
            settings.set(name, value).with_context(|| format!("--{}", name.replace('_', "-")))?;
        }
        settings.check()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            // What is no name may be a value in the wrong place, and a secret.
            let is_name = name.len() <= 60 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            let shown = if is_name { name } else { "of a name like one of those in it" };
            bail!("there is no setting {shown}; docs/configuration.md lists them all");
        };
        (key.set)(self, value).map_err(|why| match value.contains("://") {
            // The same of an address.
            true => anyhow::anyhow!("{name}: an address does not belong here"),
            false => anyhow::anyhow!("{name}: {why}"),
        })
    }

    /// Whether the text of a settings file sets something that is a secret.
    pub fn file_holds_secret(text: &str) -> bool {
        let is_secret = |(name, value): &(String, String)| name == "alerts.slack_webhook_url" && !value.is_empty();
        read_file(text).is_ok_and(|values| values.iter().any(is_secret))
    }

    /// What tells people of incidents, if anything does.
    pub fn alerter(&self) -> Result<Option<SlackAlerter>> {
        let reach = if self.alerts_allow_private { Reach::Private } else { Reach::Public };
        let Some(url) = self.slack_webhook_url.reveal() else { return Ok(None) };
        SlackAlerter::new(url, reach).map(Some).map_err(|why| anyhow::anyhow!("alerts.slack_webhook_url {why}"))
    }

    fn check(self) -> Result<Self> {
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            bail!("tls_cert and tls_key belong together: set both or none");
        }
        if self.run_as.is_some() && self.run_as_uids.is_some() {
            bail!("run_as and run_as_uids exclude each other: one user for all commands, or one for each execution");
        }
        if self.queues.is_empty() {
            bail!("queues: name at least one");
        }
        if self.health_interval < SHORTEST_INTERVAL {
            bail!("health.interval: at least {} ms", SHORTEST_INTERVAL.as_millis());
        }
        if self.health_warning_within < self.health_healthy_within {
            bail!("health.warning_within: not shorter than health.healthy_within");
        }
        self.alerter()?;
        if self.grace > LONGEST_GRACE {
            bail!("grace: at most {}s, because a kill that is not confirmed within a minute is given up", LONGEST_GRACE.as_secs());
        }
        Ok(self)
    }
}

/// Looks at what runs are not closer together than this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// A settings file is a flat mapping; a value is a scalar or a list of scalars. What is under a name is named with a dot.
fn read_file(text: &str) -> Result<Vec<(String, String)>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    // What the parser says quotes the file, and a part of it may be a secret: where it stumbled has to do.
    let map: std::collections::BTreeMap<String, serde_json::Value> =
        serde_saphyr::from_str(text).map_err(|error| match error.location() {
            Some(at) => anyhow::anyhow!("line {}, column {}: not YAML, or not names with values", at.line(), at.column()),
            None => anyhow::anyhow!("not YAML, or not names with values"),
        })?;
    let scalar = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => Some(value.to_string()),
        serde_json::Value::Null => Some(String::new()),
        _ => None,
    };
    let flat = map.into_iter().flat_map(|(name, value)| match value {
        serde_json::Value::Object(parts) => parts.into_iter().map(|(part, value)| (format!("{name}.{part}"), value)).collect(),
        value => vec![(name, value)],
    });
    flat.map(|(key, value)| {
        let text = match &value {
            serde_json::Value::Array(items) => items.iter().map(scalar).collect::<Option<Vec<_>>>().map(|items| items.join(",")),
            other => scalar(other),
        };
        text.map(|text| (key.clone(), text)).with_context(|| format!("{key}: expected a plain value or a list of them"))
    })
    .collect()
}

fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn hidden(text: &str) -> Result<Hidden, String> {
    Ok(Hidden((!text.is_empty()).then(|| text.to_owned())))
}

fn optional(text: &str) -> Result<Option<String>, String> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn uids(text: &str) -> Result<Option<UidRange>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|error: runvoy_runners::UnfitUids| error.to_string()) }
}

fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("expected true or false, not {text:?}")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, not {text:?}"))
}

fn optional_number(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() { Ok(None) } else { number(text).map(Some) }
}

fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
}

fn names(text: &str) -> Result<Vec<Name>, String> {
    list(text)?.into_iter().map(|item| Name::new(item.clone()).map_err(|error| format!("{item:?} {error}"))).collect()
}

fn networks(text: &str) -> Result<Vec<Network>, String> {
    list(text)?.into_iter().map(|item| item.parse().map_err(|error| format!("{item:?} {error}"))).collect()
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        unit => return Err(format!("unknown unit {unit:?}: use KiB, MiB, GiB or TiB")),
    };
    number::<u64>(digits)?.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

fn optional_bytes(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() { Ok(None) } else { bytes(text).map(Some) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        unit => return Err(format!("unknown unit {unit:?}: use ms, s, m or h")),
    };
    number::<u64>(digits)?.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
        Sources {
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
    fn lists_units_and_absent_values_are_read() {
        let settings =
            Settings::load(&sources("queues: [a, b]\nlimit_memory_bytes: 512MiB\ngrace: 250ms\nrun_as:", &[], &[])).expect("settings");
        assert_eq!(settings.queues.len(), 2);
        assert_eq!(settings.limit_memory_bytes, Some(512 << 20));
        assert_eq!(settings.grace, Duration::from_millis(250));
        assert_eq!((settings.run_as, settings.run_as_uids), (None, None));
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
        assert!(wrong("lisen: x").contains("lisen"));
        assert!(wrong("concurrency: many").contains("concurrency"));
        assert!(wrong("tls_cert: a.pem").contains("tls_key"));
        assert!(wrong("listen: {a: b}").contains("listen"));
        assert!(wrong("grace: 51s").contains("a minute"));
        assert!(wrong("run_as: eve\nrun_as_uids: 70000-70999").contains("run_as_uids"));
        for range in ["70000", "0-70000", "999-2000", "70001-70000"] {
            assert!(wrong(&format!("run_as_uids: {range}")).contains("run_as_uids: "), "{range}");
        }
        assert!(wrong("trusted_proxies: [10.0.0.0/8, proxy]").contains("trusted_proxies"));
    }

    #[test]
    fn the_documentation_lists_every_key_with_its_default() {
        let documented = include_str!("../../../docs/configuration.md");
        for key in KEYS {
            let default = if key.default.is_empty() { "–".to_owned() } else { format!("`{}`", key.default) };
            let row = format!("| `{}` | `{}` | {} | {} |", key.name, key.variable(), default, key.help);
            assert!(documented.contains(&row), "docs/configuration.md lacks the row\n{row}");
        }
        let rows = documented.lines().filter(|line| line.contains("| `RUNVOY_")).count();
        assert_eq!(rows, KEYS.len(), "docs/configuration.md lists a key that does not exist");
    }
}
