//! The one table of settings: every key with its default, its words and what it sets. `docs/configuration.md` is checked against it.

use anyhow::Result;

use super::Settings;
use super::value::{
    backend, boolean, bytes, duration, event_layout, hidden, isolation, list, names, networks, number, optional, optional_bytes,
    optional_number, pairs, path, text, uids,
};

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
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! key {
    ($field:ident, $default:literal, $help:literal, $parse:expr) => {
        key!(stringify!($field), None, $field, $default, $help, $parse)
    };
    (aws.$field:ident, $default:literal, $help:literal, $parse:expr) => {
        key!(concat!("aws.", stringify!($field)), None, aws.$field, $default, $help, $parse)
    };
    ($name:expr, $variable:expr, $($field:ident).+, $default:literal, $help:literal, $parse:expr) => {
        Key {
            name: $name,
            variable: $variable,
            default: $default,
            help: $help,
            set: |settings, text| {
                settings.$($field).+ = $parse(text)?;
                Ok(())
            },
        }
    };
}

impl Key {
    /// Its name in the environment.
    pub(super) fn variable(&self) -> String {
        self.variable.map_or_else(|| format!("RUNVOY_{}", self.name.replace('.', "_").to_uppercase()), str::to_owned)
    }
}

/// Every key there is.
pub const KEYS: &[Key] = &[
    key!(listen, "127.0.0.1:56212", "Address and port; port 0 takes a free one.", text),
    key!(admin_email, "admin@localhost", "E-mail of the first admin, made at the first start.", text),
    key!(web_url, "", "Base of page addresses; empty is `public_url`, else the server's own address.", text),
    key!(
        public_url,
        "",
        "Address under which clients know the server, such as that of a proxy in front; empty follows the request.",
        optional
    ),
    key!(worker, "true", "Run commands in this server. `--no-worker` leaves that to workers elsewhere.", boolean),
    key!(concurrency, "0", "Executions at once; 0 is four times the number of cores.", number),
    key!(queues, "default", "Queues that the server's own worker serves.", names),
    key!(
        worker_audience,
        "runvoy",
        "Tokens that workers sign for themselves must be for one of these, or for an address of the server.",
        list
    ),
    key!(run_as, "", "One user that all commands run as; empty is the server's own user.", optional),
    key!(run_as_uids, "", "Uids `FIRST-LAST`: each execution runs as one of its own. Secrets of several users need it.", uids),
    key!(
        isolation,
        "",
        "With `run_as_uids`: strict, basic (private /tmp, /dev/shm, /proc and IPC only) or off; empty is strict as far as the machine can.",
        isolation
    ),
    key!(isolation_writable, "", "Directories outside of their own that commands may write to under strict isolation.", list),
    key!(
        default_limits,
        "true",
        "With `run_as_uids`: 4096 processes and half of the machine's memory for a command without other limits.",
        boolean
    ),
    key!(allow_shared_uid, "false", "Run commands as the own user of a server with several users, or of a worker elsewhere.", boolean),
    key!(git_allow_private, "false", "Clone from literal addresses of this machine and of private networks too.", boolean),
    key!(git_ca_file, "", "Certificates (PEM) that git trusts instead of the system's; the commands' user must be able to read it.", path),
    key!(
        work_dir,
        "",
        "Where each command of this server, and of no other, gets a directory of its own; empty is `work` in the data directory.",
        path
    ),
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
    key!(max_waiting_per_user, "100000", "Executions of one user that may wait; more are refused (429). 0 is any number.", number),
    key!(max_waiting_per_queue, "1000000", "Executions that may wait in one queue; more are refused (429). 0 is any number.", number),
    key!(trusted_proxies, "", "Addresses or networks of proxies whose X-Forwarded-For, -Proto and -Host are believed.", networks),
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
    key!(token_key_days, "30", "Days after which another key signs task tokens; 0 is only at `workers rotate-signing-key`.", number),
    key!(
        log_max_bytes,
        "2GiB",
        "The most one log may hold; what comes after is counted, not kept. Lines of runvoy itself have 1 MiB more.",
        bytes
    ),
    key!(
        disk_reserve_bytes,
        "64MiB",
        "Space that is kept for what has begun: with less than that nothing new is taken. Half of it, 64MiB at most, is set aside in a file for ends of executions.",
        bytes
    ),
    key!(limit_memory_bytes, "", "Memory of one command and its descendants.", optional_bytes),
    key!(limit_pids, "", "Processes and threads of one command.", optional_number),
    key!(limit_cpu_millis, "", "CPU of one command, in thousandths of a core.", optional_number),
    key!(limit_open_files, "", "Open files of each process.", optional_number),
    key!(limit_file_bytes, "", "Largest file a process may write.", optional_bytes),
    key!(
        limit_disk_bytes,
        "",
        "What one execution may take in its work directory and its own `/tmp`; one that takes more is stopped.",
        optional_bytes
    ),
    key!(cost_vcpu_hour_usd, "0", "Price of a vCPU hour, for cost per run.", number),
    key!(cost_gb_hour_usd, "0", "Price of a gigabyte hour, for cost per run.", number),
    key!(tenant, "default", "Tenant in event keys.", text),
    key!(app, "runvoy", "App in event keys.", text),
    key!(environment, "local", "Environment in event contexts.", text),
    key!(
        backend,
        "embedded",
        "Where everything is kept: embedded (files in the data directory) or aws (needs a build with that feature).",
        backend
    ),
    key!(
        aws.prefix,
        "runvoy",
        "Before the name of every table, and of what else is not named below; keys are under `/PREFIX/keys` in SSM.",
        text
    ),
    key!(aws.region, "", "The region; empty is what the AWS SDK finds, such as AWS_REGION.", optional),
    key!(aws.endpoint, "", "Another address for every AWS service, for emulators; empty is AWS, or AWS_ENDPOINT_URL.", optional),
    key!(
        aws.bucket,
        "",
        "Bucket of large specs, sealed logs and blobs; empty is the one of the first start, which is `PREFIX-data-ACCOUNT`.",
        optional
    ),
    key!(aws.event_bus, "", "EventBridge bus that events are published to; empty is `PREFIX-events`.", optional),
    key!(aws.queue_prefix, "", "Before the name of every SQS queue; empty is `PREFIX-`.", optional),
    key!(
        aws.queue_urls,
        "",
        "Queues whose SQS address must be this one, as NAME=URL; the server does not start where it is another.",
        pairs
    ),
    key!(aws.executions_table, "", "Table of executions; empty is `PREFIX-executions`.", optional),
    key!(aws.events_table, "", "Table of events; empty is `PREFIX-events`.", optional),
    key!(
        aws.event_layout,
        "seed",
        "How events are laid out: seed (seven indexes by tenant) or sharded (by entity only, cheaper); fixed once there are events.",
        event_layout
    ),
    key!(aws.events_ttl_days, "0", "Days after which the copies of events for other readers expire; 0 is never.", number),
    key!(aws.log_group, "/runvoy/executions", "CloudWatch log group that logs are mirrored to; empty mirrors nothing.", optional),
    key!(aws.log_stream_prefix, "exec/", "Before the name of every log stream.", text),
    key!(
        aws.shards,
        "4",
        "Parts that each day of an index is cut into, 1 to 64; the same for every server, and fixed once there is data.",
        number
    ),
    key!(
        aws.set_up,
        "true",
        "Make tables, bucket and bus where they are missing at the start; false leaves that to whoever set up the account.",
        boolean
    ),
];
