//! Every command in README.md and in docs/ works: each page is one session in a home directory of its own, with a server of its own.
//! A block that cannot run here says why, and its options are parsed all the same, as are commands in the text.

mod harness;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::harness::page::{Block, Step, blocks, mentions};
use self::harness::{Server, Setup, binary, eventually, process};

/// Where a page's reader sits.
enum Reader {
    /// Nothing is configured: the command line starts its own server.
    Alone,
    /// An admin of a server for several people.
    Admin,
}

/// One test a page, so that they run side by side.
macro_rules! pages {
    ($($name:ident => $path:literal, $reader:ident;)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test]
        fn $name() {
            run($path, &Reader::$reader);
        })*
    };
}

pages! {
    commands_of_readme_work => "README.md", Alone;
    commands_of_api_work => "docs/api.md", Admin;
    commands_of_audit_work => "docs/audit.md", Admin;
    commands_of_aws_work => "docs/aws.md", Admin;
    commands_of_configuration_work => "docs/configuration.md", Admin;
    commands_of_cost_work => "docs/cost.md", Admin;
    commands_of_images_work => "docs/images.md", Admin;
    commands_of_install_work => "docs/install.md", Alone;
    commands_of_jobs_work => "docs/jobs.md", Admin;
    commands_of_operations_work => "docs/operations.md", Admin;
    commands_of_page_work => "docs/page.md", Admin;
    commands_of_people_work => "docs/people.md", Admin;
    commands_of_playbooks_work => "docs/playbooks.md", Admin;
    commands_of_queues_work => "docs/queues.md", Admin;
    commands_of_rpc_work => "docs/rpc.md", Admin;
    commands_of_rules_work => "docs/rules.md", Admin;
    commands_of_secrets_work => "docs/secrets.md", Admin;
    commands_of_security_work => "docs/security.md", Admin;
    commands_of_server_work => "docs/server.md", Admin;
    commands_of_terminals_work => "docs/terminals.md", Admin;
    commands_of_workers_work => "docs/workers.md", Admin;
}

/// Pages without a session: what they say about commands is parsed.
const OTHERS: &[&str] = &["docs/errors.md", "docs/glossary.md", "docs/numbers.md", "docs/prove.md", "docs/security-tests.md"];

/// What commands of a `no-run` block and of the text go through: `--help` makes the command line check what stands before it.
const PARSE: &str = r#"
sudo() { "$@"; }
runvoy() {
    case "${1-}" in
    help) command runvoy help "${2-}" ;;
    run) command runvoy "${@:1:$#-1}" --help "${!#}" ;;
    *) command runvoy "$@" --help ;;
    esac
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_page_is_run_or_named() {
    let names = std::fs::read_dir(root().join("docs")).expect("docs").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pages: BTreeSet<String> = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    let unknown: Vec<&String> = pages.iter().filter(|page| !PAGES.contains(&page.as_str()) && !OTHERS.contains(&page.as_str())).collect();
    assert!(unknown.is_empty(), "name these pages in this file: {unknown:?}");
}

#[test]
fn commands_that_other_pages_name_exist() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let session = Session::begin(own.path(), &Reader::Alone);
    for page in OTHERS.iter().filter(|page| root().join(page).exists()) {
        let text = read(page);
        let mut script = Script::new();
        blocks(&text).iter().flat_map(Block::steps).chain(mentions(&text)).for_each(|step| script.parse(step));
        script.run(page, &session);
    }
}

/// A page's commands, one after the other.
fn run(page: &str, reader: &Reader) {
    let text = read(page);
    let own = tempfile::tempdir().expect("a temporary directory");
    let session = Session::begin(own.path(), reader);
    let mut script = Script::new();
    for block in blocks(&text) {
        assert!(!block.hides_a_command(), "{page}:{}: mark this block `console` or `sh`", block.line);
        if let Some((name, content)) = block.file() {
            std::fs::write(session.home.join(name), content).expect("written");
        }
        block.services().into_iter().for_each(|step| script.parse(step));
        if block.is_session() {
            script.add(&session, &block);
        }
    }
    mentions(&text).into_iter().for_each(|step| script.parse(step));
    script.run(page, &session);
}

/// A reader's machine.
struct Session {
    root: PathBuf,
    home: PathBuf,
    server: Option<Server>,
}

impl Session {
    fn begin(root: &Path, reader: &Reader) -> Self {
        let home = root.join("home");
        for dir in ["home", "bin", "output"] {
            std::fs::create_dir(root.join(dir)).expect("made");
        }
        std::os::unix::fs::symlink(binary(), root.join("bin/runvoy")).expect("linked");
        std::fs::write(home.join("pw.txt"), "correct-horse-battery").expect("written");
        let server = match reader {
            Reader::Alone => None,
            Reader::Admin => Some(Setup::default().arg("--allow-shared-uid").start_in(&root.join("data"))),
        };
        let session = Self { root: root.to_owned(), home, server };
        if let Some(server) = &session.server {
            let key = server.data.join("admin.key");
            let configured = session.bash(&format!("runvoy configure --endpoint {} --api-key-file {}", server.url, key.display()));
            assert!(configured.0, "{}", configured.1);
            let ran = session.bash("runvoy run 'echo error: no such region'");
            assert!(ran.0, "{}", ran.1);
        }
        session
    }

    /// Puts what is there in place of what a page names.
    fn fill(&self, command: &str) -> String {
        let Some(server) = &self.server else { return command.to_owned() };
        let root = self.root.display();
        let filled = command
            .replace("https://runvoy.example.com", &server.url)
            .replace("/var/lib/runvoy-new", &format!("{root}/restored"))
            .replace("/var/lib/runvoy", &server.data.display().to_string())
            .replace("/var/backups", &root.to_string());
        let newest = |list: &str| format!("\"$({list} -o name --limit 1)\"");
        let words = filled.split(' ').map(|word| match word {
            "ID" => newest("runvoy list"),
            "JOB" => newest("runvoy job list"),
            "REQUEST_ID" => r#""$(runvoy audit list --limit 1 --jq '.[0].request_id')""#.to_owned(),
            "TOKEN" => format!("\"$(HOME={} runvoy users renew eve@example.com -o name)\"", self.home.display()),
            word => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Runs a script; whether it succeeded, and what it said.
    fn bash(&self, script: &str) -> (bool, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).current_dir(&self.home).env_clear().stdin(Stdio::null());
        command.env("HOME", &self.home).env("PATH", format!("{}:{path}", self.root.join("bin").display()));
        let output = command.output().expect("bash runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Session {
    /// Ends the server that the command line started for itself.
    fn drop(&mut self) {
        let Ok(holder) = std::fs::read_to_string(self.home.join(".runvoy/data/lock")) else { return };
        let Ok(pid) = holder.trim().parse::<u32>() else { return };
        process::signal(pid, libc::SIGTERM);
        eventually("the local server is gone", || !Path::new(&format!("/proc/{pid}")).exists());
    }
}

/// Commands that run in one shell, each with its output in a file of its own.
struct Script {
    text: String,
    steps: Vec<Step>,
}

impl Script {
    fn new() -> Self {
        Self { text: String::new(), steps: Vec::new() }
    }

    fn add(&mut self, session: &Session, block: &Block) {
        for mut step in block.steps() {
            if step.command.starts_with("cargo ") {
                continue; // Builds the program that is tested here.
            }
            if block.not_run_because().is_some() {
                self.parse(step);
                continue;
            }
            step.command = session.fill(&step.command);
            step.output = step.output.iter().map(|line| session.fill(line)).collect();
            let home = session.root.join(block.home().unwrap_or("home"));
            let enter = format!("export HOME={home}; mkdir -p $HOME; cd $HOME", home = home.display());
            self.step(&enter, step);
        }
    }

    /// Checks a command's options without running it. Programs of others are left alone.
    fn parse(&mut self, mut step: Step) {
        if step.command.split_whitespace().any(|word| word == "runvoy") {
            step.output.clear();
            step.code = 0;
            step.command = format!("(\n{PARSE}\n{}\n)", step.command);
            self.step(":", step);
        }
    }

    fn step(&mut self, enter: &str, step: Step) {
        let (number, command, code) = (self.steps.len(), &step.command, step.code);
        let shell = format!(
            "{enter}\n{{\n{command}\n}} >$OUTPUT/{number} 2>&1\ncode=$?; [ $code -eq {code} ] || {{ echo {number} $code; exit 1; }}\n"
        );
        self.text.write_str(&shell).expect("text");
        self.steps.push(step);
    }

    fn run(&self, page: &str, session: &Session) {
        let output = session.root.join("output");
        let (ended_well, said) = session.bash(&format!("OUTPUT={}\n{}", output.display(), self.text));
        let printed = |number: usize| std::fs::read_to_string(output.join(number.to_string())).unwrap_or_default();
        if !ended_well {
            let mut words = said.split_whitespace();
            let number = words.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{page}: {said}"));
            let Step { line, command, code, .. } = &self.steps[number];
            let ended = words.next().unwrap_or_default();
            panic!("{page}:{line}: exited with {ended} instead of {code}:\n{command}\n{}", printed(number));
        }
        for (number, step) in self.steps.iter().enumerate() {
            let printed = printed(number);
            let missing = step.missing(&printed);
            assert!(missing.is_none(), "{page}:{}: {missing:?} is not in the output of {}:\n{printed}", step.line, step.command);
        }
    }
}
