//! The one table of settings: every key with its default, its words and what it sets. `docs/configuration.md` is checked against it.

use anyhow::Result;

use super::Settings;
use super::value::{
    backend, boolean, bytes, duration, event_layout, hidden, isolation, list, names, network, networks, number, optional, optional_bytes,
    optional_number, pairs, path, runners, text, uids,
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
    key!(listen, "127.0.0.1:56212", "The address and port to listen on; port 0 takes a free one.", text),
    key!(admin_email, "admin@localhost", "The e-mail address of the first admin, who is created at the first start.", text),
    key!(web_url, "", "The base of page addresses; empty: `public_url`, or else the server's own address.", text),
    key!(
        public_url,
        "",
        "The address under which clients reach the server, such as that of a proxy; empty: the address of each request.",
        optional
    ),
    key!(worker, "true", "Run commands in this server. `--no-worker` leaves that to workers elsewhere.", boolean),
    key!(concurrency, "0", "How many executions run at the same time; 0: four times the number of cores.", number),
    key!(queues, "default", "The queues that the server's own worker serves.", names),
    key!(worker_audience, "runvoy", "The audiences that tokens signed by workers may have, besides the server's addresses.", list),
    key!(run_as, "", "The operating-system user that runs all commands; empty: the server's own user.", optional),
    key!(
        run_as_uids,
        "",
        "A range of user ids, `FIRST-LAST`: each execution runs as one of its own. Required before several users can use secrets.",
        uids
    ),
    key!(
        isolation,
        "",
        "With `run_as_uids`: `strict`, `basic` (private /tmp, /dev/shm, /proc and IPC only) or `off`; empty: as strict as the machine supports.",
        isolation
    ),
    key!(isolation_writable, "", "Directories outside of their own that commands may write to under strict isolation.", list),
    key!(
        default_limits,
        "true",
        "With `run_as_uids`: limit commands without other limits to 4096 processes and half of the machine's memory.",
        boolean
    ),
    key!(
        allow_shared_uid,
        "false",
        "Run the commands of several users as the server's own operating-system user, so that they can read each other's data.",
        boolean
    ),
    key!(
        runners,
        "",
        "What runs commands: `process` (image `local`), `container` (all other images), or both; empty: containers where a daemon answers.",
        runners
    ),
    key!(
        container_network,
        "default",
        "The network of containers: `none`, `default`, or the name of a network of the daemon; never that of the machine.",
        network
    ),
    key!(git_allow_private, "false", "Also clone from literal addresses of this machine and of private networks.", boolean),
    key!(
        git_ca_file,
        "",
        "A file of certificates (PEM) that Git trusts instead of the system's; the user that runs commands must be able to read it.",
        path
    ),
    key!(work_dir, "", "Where each command gets a work directory; no other server may use it. Empty: `work` in the data directory.", path),
    key!(grace, "5s", "The time between SIGTERM and SIGKILL, at most 50s.", duration),
    key!(stop_patience, "10s", "How long running commands may go on when the server stops.", duration),
    key!(tls_cert, "", "The TLS certificate chain (PEM).", path),
    key!(tls_key, "", "The private key (PEM) of the TLS certificate.", path),
    key!(insecure, "false", "Listen beyond loopback without TLS.", boolean),
    key!(behind_proxy, "false", "Listen beyond loopback without TLS, because a proxy in front terminates it.", boolean),
    key!(cors_origins, "", "The origins whose pages may call the API and open streams.", list),
    key!(metrics_public, "false", "Serve `/metrics` without an API key.", boolean),
    key!(
        failed_keys_per_minute,
        "60",
        "How many wrong API keys to check per minute, per address and per key prefix; more get 429. 0: any number.",
        number
    ),
    key!(
        failed_claims_per_minute,
        "20",
        "How many wrong invitations to check per minute and address; more get 429. 0: any number.",
        number
    ),
    key!(denials_per_minute, "60", "How many refused requests of a user to record per minute; more get 429. 0: any number.", number),
    key!(max_waiting_per_user, "100000", "How many executions of a user may wait; more get 429. 0: any number.", number),
    key!(max_waiting_per_queue, "1000000", "How many executions may wait in a queue; more get 429. 0: any number.", number),
    key!(trusted_proxies, "", "Addresses or networks of proxies whose X-Forwarded-For, -Proto and -Host the server trusts.", networks),
    key!(log_level, "info", "`error`, `warn`, `info`, `debug` or `trace`.", text),
    key!(log_format, "auto", "`text`, `json` or `auto`: text on a terminal, else JSON.", text),
    key!("health.interval", None, health_interval, "5m", "How often to check the health of running executions.", duration),
    key!(
        "health.healthy_within",
        None,
        health_healthy_within,
        "5m",
        "An execution that was heard from within this time is healthy.",
        duration
    ),
    key!(
        "health.warning_within",
        None,
        health_warning_within,
        "10m",
        "An execution that was heard from within this time is a warning; a longer silence is critical.",
        duration
    ),
    key!("health.overtime_after", None, health_overtime_after, "1h", "An attempt that runs longer is in overtime.", duration),
    key!(
        "alerts.slack_webhook_url",
        Some("RUNVOY_SLACK_WEBHOOK_URL"),
        slack_webhook_url,
        "",
        "The Slack-compatible webhook that receives alerts; a secret, never shown.",
        hidden
    ),
    key!(
        "alerts.allow_private_addresses",
        None,
        alerts_allow_private,
        "false",
        "Allow a webhook on this machine or in a private network, and without TLS.",
        boolean
    ),
    key!(
        "alerts.interval",
        None,
        alerts_interval,
        "1m",
        "The minimum time between two messages of a server; the next one has all incidents in between.",
        duration
    ),
    key!(retention_log_days, "30", "How many days to keep logs.", number),
    key!(retention_heartbeat_days, "7", "How many days to keep heartbeat events.", number),
    key!(
        token_key_days,
        "30",
        "After how many days to rotate the key that signs task tokens; 0: only with `workers rotate-signing-key`.",
        number
    ),
    key!(
        log_max_bytes,
        "2GiB",
        "The maximum size of a log; further output is counted but not kept. Lines of runvoy itself have 1 MiB more.",
        bytes
    ),
    key!(disk_reserve_bytes, "64MiB", "Disk space to keep for work that has started; with less, new executions are refused.", bytes),
    key!(limit_memory_bytes, "", "The memory limit of a command and its descendants.", optional_bytes),
    key!(limit_pids, "", "The maximum number of processes and threads of a command.", optional_number),
    key!(limit_cpu_millis, "", "The CPU limit of a command, in thousandths of a core.", optional_number),
    key!(limit_open_files, "", "The maximum number of open files of each process.", optional_number),
    key!(limit_file_bytes, "", "The maximum size of a file that a process writes.", optional_bytes),
    key!(
        limit_disk_bytes,
        "",
        "How much an execution may write to its work directory and its own `/tmp`; one that writes more is stopped.",
        optional_bytes
    ),
    key!(
        cost_vcpu_hour_usd,
        "0",
        "The price of a vCPU hour in dollars. An execution is charged for the CPU of its image, else for one vCPU.",
        number
    ),
    key!(
        cost_gb_hour_usd,
        "0",
        "The price of a gigabyte hour of memory in dollars. Needs `limit_memory_bytes`: an execution is charged for the memory of its image, else for that limit.",
        number
    ),
    key!(tenant, "default", "The tenant in event keys.", text),
    key!(app, "runvoy", "The app in event keys.", text),
    key!(environment, "local", "The environment in event contexts.", text),
    key!(
        backend,
        "embedded",
        "Where records are stored: `embedded` (files in the data directory) or `aws` (needs a build with that feature).",
        backend
    ),
    key!(
        aws.prefix,
        "runvoy",
        "The prefix of every table name, and of other names that are not set below; keys are stored under `/PREFIX/keys` in SSM.",
        text
    ),
    key!(aws.region, "", "The region; empty: as the AWS SDK finds it, such as in AWS_REGION.", optional),
    key!(aws.endpoint, "", "Another address for every AWS service, for emulators; empty: AWS, or AWS_ENDPOINT_URL.", optional),
    key!(
        aws.bucket,
        "",
        "The bucket for large specs, finished logs and blobs; empty: the one of the first start, which is `PREFIX-data-ACCOUNT`.",
        optional
    ),
    key!(aws.event_bus, "", "The EventBridge bus to publish events to; empty: `PREFIX-events`.", optional),
    key!(aws.queue_prefix, "", "The prefix of every SQS queue name; empty: `PREFIX-`.", optional),
    key!(aws.queue_urls, "", "The SQS address that a queue must have, as NAME=URL; with another one the server does not start.", pairs),
    key!(aws.executions_table, "", "The table of executions; empty: `PREFIX-executions`.", optional),
    key!(aws.events_table, "", "The table of events; empty: `PREFIX-events`.", optional),
    key!(
        aws.event_layout,
        "seed",
        "How events are stored: `seed` (seven indexes by tenant) or `sharded` (by entity only, cheaper); cannot change once there are events.",
        event_layout
    ),
    key!(aws.events_ttl_days, "0", "After how many days the copies of events for other readers expire; 0: never.", number),
    key!(aws.log_group, "/runvoy/executions", "The CloudWatch log group to copy logs to; empty: none.", optional),
    key!(aws.log_stream_prefix, "exec/", "The prefix of every log stream name.", text),
    key!(aws.shards, "4", "Parts of each day of an index, 1 to 64; the same for every server, and fixed once there is data.", number),
    key!(
        aws.set_up,
        "true",
        "Create missing tables, bucket and bus at the start; `false` leaves that to the account's own setup.",
        boolean
    ),
];
