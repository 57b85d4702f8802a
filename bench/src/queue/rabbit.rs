//! RabbitMQ, the peer: a node of its own with everything under one directory, on loopback alone. Its port mapper is started here too, in
//! the foreground, because the one that Erlang would start by itself stays behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::queue::process::{Process, free_address};

/// The Debian package.
pub const PACKAGE: &str = "rabbitmq-server";
/// Where it keeps its own start script, which unlike the one in the path does not change the user.
const LIBRARY: &str = "/usr/lib/rabbitmq/lib";

/// A running node. Fields are dropped in this order: the node needs the mapper to its end.
pub struct Rabbit {
    /// Where it speaks AMQP.
    pub address: String,
    node: Process,
    _mapper: Process,
}

impl Rabbit {
    /// Starts a node with its data under `dir`.
    pub fn start(dir: &Path) -> Result<Rabbit> {
        let script = script()?;
        let (address, distribution, mapping) = (free_address()?, free_address()?, free_address()?);
        let mut mapper = Command::new("epmd");
        mapper.args(["-address", "127.0.0.1", "-port", port(&mapping)]);
        mapper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut mapper = Process::start("epmd", &mut mapper, PACKAGE)?;
        mapper.wait_for(&mapping)?;

        let plugins = dir.join("plugins");
        fs::write(&plugins, "[].\n").with_context(|| format!("cannot write {}", plugins.display()))?;
        let log = dir.join("rabbitmq.log");
        let log = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(script);
        command.env("HOME", dir).env("ERL_EPMD_ADDRESS", "127.0.0.1").env("ERL_EPMD_PORT", port(&mapping));
        command.env("RABBITMQ_NODENAME", "bench@localhost").env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
        command.env("RABBITMQ_NODE_PORT", port(&address)).env("RABBITMQ_DIST_PORT", port(&distribution));
        command.env("RABBITMQ_MNESIA_BASE", dir.join("data")).env("RABBITMQ_LOG_BASE", dir.join("log"));
        command.env("RABBITMQ_CONFIG_FILE", dir.join("none")).env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins);
        command.env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
        command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}");
        command.stdin(Stdio::null()).stdout(log.try_clone().context("cannot share a log file")?).stderr(log);
        let mut node = Process::start("rabbitmq-server", &mut command, PACKAGE)?;
        node.wait_for(&address)?;
        Ok(Rabbit { address, node, _mapper: mapper })
    }

    /// The process that stands for the node; the node descends from it.
    pub fn pid(&self) -> u32 {
        self.node.pid()
    }
}

fn script() -> Result<PathBuf> {
    let versions = fs::read_dir(LIBRARY).with_context(|| {
        format!("no RabbitMQ in {LIBRARY}; `cargo xtask bench queue` installs it, by hand it is `apt-get install {PACKAGE}`")
    })?;
    let scripts = versions.filter_map(|version| Some(version.ok()?.path().join("sbin/rabbitmq-server")));
    scripts.filter(|script| script.is_file()).max().with_context(|| format!("no start script of RabbitMQ in {LIBRARY}"))
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}
