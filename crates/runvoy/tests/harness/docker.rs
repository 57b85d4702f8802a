//! A Docker daemon of a test's own, with images made on this machine: nothing is pulled from the network. It is up in half a second, and a
//! test may do to it what it likes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::{eventually_within, process};

/// Where no daemon is: what every other test names as its daemon.
pub const NOWHERE: &str = "unix:///nonexistent/docker.sock";
/// The image that is always there.
pub const IMAGE: &str = "runvoy-test/busybox:1";

/// A daemon that ends with the test.
pub struct Docker {
    child: Child,
    directory: tempfile::TempDir,
}

impl Docker {
    /// Starts a daemon; `None`, with a loud word, on a machine that cannot have one. In CI that is a failure.
    pub fn start() -> Option<Self> {
        if let Some(why) = impossible() {
            assert!(std::env::var_os("CI").is_none(), "containers cannot be tested in CI: {why}");
            eprintln!("\n##### SKIPPED: no container was tested: {why} #####\n");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let child = daemon(directory.path());
        let docker = Self { child, directory };
        docker.wait();
        docker.import(IMAGE);
        Some(docker)
    }

    fn wait(&self) {
        eventually_within(Duration::from_secs(60), "the daemon answers", || self.docker(&["version"]).status.success());
    }

    /// Its address, as `DOCKER_HOST` names it.
    pub fn host(&self) -> String {
        format!("unix://{}", self.directory.path().join("docker.sock").display())
    }

    /// Runs Docker's own command line.
    pub fn docker(&self, args: &[&str]) -> Output {
        Command::new("docker").args(args).env("DOCKER_HOST", self.host()).stdin(Stdio::null()).output().expect("docker runs")
    }

    /// The same, which must succeed: what it wrote.
    pub fn done(&self, args: &[&str]) -> String {
        let output = self.docker(args);
        assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    /// The names of all containers, also of those that do not run.
    pub fn containers(&self) -> Vec<String> {
        self.done(&["ps", "--all", "--format", "{{.Names}}"]).lines().map(str::to_owned).collect()
    }

    /// Makes an image of busybox, with an environment of its own.
    fn import(&self, name: &str) {
        let root = self.directory.path().join("rootfs");
        let bin = root.join("bin");
        fs::create_dir_all(&bin).expect("a directory");
        fs::copy("/usr/bin/busybox", bin.join("busybox")).or_else(|_| fs::copy("/bin/busybox", bin.join("busybox"))).expect("busybox");
        let applets = Command::new(bin.join("busybox")).arg("--list").output().expect("busybox runs");
        for applet in String::from_utf8_lossy(&applets.stdout).lines().filter(|applet| *applet != "busybox") {
            symlink("busybox", bin.join(applet)).expect("a link");
        }
        fs::create_dir_all(root.join("tmp")).expect("a directory");
        let archive = self.directory.path().join("rootfs.tar");
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status().expect("tar runs");
        assert!(packed.success());
        self.done(&["import", "--change", "ENV OF_IMAGE=yes", &archive.to_string_lossy(), name]);
    }

    /// Kills the daemon as a crash would, with what it started itself.
    pub fn kill_9(&mut self) {
        process::signal(self.child.id(), libc::SIGKILL);
        self.child.wait().expect("it ends");
    }

    /// Stops it in the middle of what it does, and lets it go on.
    pub fn freeze(&self, is_frozen: bool) {
        process::signal(self.child.id(), if is_frozen { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// Starts it again over what it left.
    pub fn restart(&mut self) {
        // Its containerd died with it. While nobody has reaped that, a new daemon takes it for alive and waits for it.
        for pid in ["docker.pid", "exec/containerd/containerd.pid"] {
            fs::remove_file(self.directory.path().join(pid)).ok();
        }
        self.child = daemon(self.directory.path());
        self.wait();
    }

    /// A registry on this machine that holds the image of this name; its reference there.
    pub fn registry(&self, name: &str) -> Registry {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("config.yml");
        let storage = directory.path().join("storage");
        let text =
            format!("version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n", storage.display());
        fs::write(&config, text).expect("a file");
        let child = Command::new("docker-registry").arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let registry =
            Registry { child: child.expect("docker-registry runs"), reference: format!("127.0.0.1:{port}/{name}"), _own: directory };
        self.done(&["tag", IMAGE, &registry.reference]);
        eventually_within(Duration::from_secs(30), "the registry has the image", || {
            self.docker(&["push", &registry.reference]).status.success()
        });
        self.done(&["rmi", &registry.reference]);
        self.done(&["rmi", "--force", IMAGE]);
        registry
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            let last = log.lines().rev().take(20).collect::<Vec<_>>();
            eprintln!("the daemon's last words, the last first:\n{}", last.join("\n"));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            self.freeze(false);
            for container in self.containers() {
                self.docker(&["rm", "--force", "--volumes", &container]);
            }
            process::signal(self.child.id(), libc::SIGTERM);
            self.child.wait().ok();
        }
        // A daemon that was killed leaves its mounts, which would keep the directory.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = self.directory.path().display().to_string();
        for place in mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|place| place.starts_with(&own)) {
            Command::new("umount").arg("--lazy").arg(place).status().ok();
        }
    }
}

/// A registry that ends with the test.
pub struct Registry {
    child: Child,
    pub reference: String,
    _own: tempfile::TempDir,
}

impl Registry {
    /// Stops or continues it in the middle of whatever it does.
    pub fn freeze(&self, is_frozen: bool) {
        process::signal(self.child.id(), if is_frozen { libc::SIGSTOP } else { libc::SIGCONT });
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Why this machine can have no daemon.
fn impossible() -> Option<String> {
    if !fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0")) {
        return Some("only root can start a Docker daemon".to_owned());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&str| std::env::split_paths(&paths).any(|path| path.join(program).exists());
    let missing: Vec<&str> = ["dockerd", "docker", "containerd", "runc", "busybox", "docker-registry", "docker-init"]
        .into_iter()
        .filter(|program| !is_there(program))
        .collect();
    (!missing.is_empty()).then(|| format!("missing: {}; `cargo xtask check` installs them on Debian", missing.join(", ")))
}

/// A daemon that ends with the test, also where the test is killed.
fn daemon(directory: &Path) -> Child {
    let path = |name: &str| directory.join(name);
    let config = path("daemon.json");
    fs::write(&config, r#"{"default-ulimits": {"nofile": {"Name": "nofile", "Soft": 4096, "Hard": 4096}}}"#).expect("a file");
    let log = fs::File::options().create(true).append(true).open(path("log")).expect("a file");
    let option = |name: &str, value: PathBuf| format!("--{name}={}", value.display());
    Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false"])
        .args([
            option("config-file", config),
            option("data-root", path("data")),
            option("exec-root", path("exec")),
            option("pidfile", path("docker.pid")),
        ])
        .arg(format!("--host=unix://{}", path("docker.sock").display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .spawn()
        .expect("dockerd starts")
}
