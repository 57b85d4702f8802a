//! Checks a command and finds where its program may be. Pure: it looks at no file.

use std::os::fd::OwnedFd;

use runvoy_ports::runner::{Limits, Output, Start, StartError, WorkDir};
use tokio::net::unix::pipe;

/// Where programs are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The name of an attempt's cgroup and work directory.
pub(crate) fn attempt_name(execution: runvoy_model::id::ExecutionId, attempt: u32) -> String {
    format!("{execution}-{attempt}")
}

/// Whether a name is one that [`attempt_name`] makes.
pub(crate) fn is_attempt_name(name: &str) -> bool {
    name.split_once('-').is_some_and(|(execution, attempt)| {
        execution.len() == 32
            && execution.bytes().all(|b| b.is_ascii_hexdigit())
            && !attempt.is_empty()
            && attempt.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Refuses what the operating system cannot take, by name.
pub(crate) fn check(start: &Start) -> Result<(), StartError> {
    let refuse = |message: String| Err(StartError { message, exit_code: None });
    if let Some(container) = &start.container {
        return refuse(format!("the process runner cannot run image {}", container.spec.reference));
    }
    if start.argv.first().is_none_or(String::is_empty) {
        return refuse("the command is empty: name a program".to_owned());
    }
    if let Some(position) = start.argv.iter().position(|arg| arg.contains('\0')) {
        return refuse(format!("argument {position} of the command contains a NUL byte, which no program can receive"));
    }
    for (key, value) in &start.env {
        if key.is_empty() || key.contains(['=', '\0']) {
            return refuse(format!("environment variable `{}` has a name that is empty or contains '=' or NUL", key.escape_debug()));
        }
        if value.contains('\0') {
            return refuse(format!("environment variable {key} has a value with a NUL byte, which no program can receive"));
        }
    }
    check_places(start)?;
    match zero_limit(&start.limits) {
        Some(name) => refuse(format!("a {name} limit of zero would let nothing run: give a positive number or leave it out")),
        None => Ok(()),
    }
}

/// A pipe that a command writes to, as its runner hands it out. Must be called in a tokio runtime.
pub(crate) fn readable(pipe: OwnedFd) -> Result<Output, StartError> {
    let opened = pipe::Receiver::from_owned_fd(pipe);
    let refuse = |error| StartError { message: format!("the command's output cannot be read: {error}"), exit_code: None };
    opened.map(|pipe| Box::new(pipe) as Output).map_err(refuse)
}

/// Nothing leads out of the work directory by name.
fn check_places(start: &Start) -> Result<(), StartError> {
    let is_inside = |path: &str| !path.contains('\0') && !path.starts_with('/') && !path.split('/').any(|part| part == "..");
    if !is_inside(&start.directory) {
        return Err(StartError {
            message: format!("directory `{}` is not inside the work directory", start.directory.escape_debug()),
            exit_code: None,
        });
    }
    let WorkDir::New(files) = &start.work_dir else { return Ok(()) };
    match files.iter().find(|file| matches!(file.name.as_str(), "" | "." | "..") || file.name.contains(['/', '\0'])) {
        Some(file) => {
            Err(StartError { message: format!("`{}` cannot name a file in the work directory", file.name.escape_debug()), exit_code: None })
        }
        None => Ok(()),
    }
}

fn zero_limit(limits: &Limits) -> Option<&'static str> {
    let named = [
        ("memory", limits.memory_bytes),
        ("process", limits.pids),
        ("cpu", limits.cpu_millis),
        ("open file", limits.open_files),
        ("file size", limits.file_bytes),
    ];
    named.into_iter().find(|(_, limit)| *limit == Some(0)).map(|(name, _)| name)
}

/// The exit code that a shell gives for a program that cannot be executed; none where that is no fault of the program's name, or where
/// the shell itself is missing.
pub(crate) fn exit_code(program: &str, errno: i32) -> Option<i32> {
    match errno {
        _ if is_shell(program) => None,
        libc::ENOENT | libc::ENOTDIR => Some(127),
        libc::EACCES | libc::ENOEXEC => Some(126),
        _ => None,
    }
}

/// Whether a program is what shell commands are given to.
pub(crate) fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh"))
}

/// The paths that may hold the program, in the order they are tried.
pub(crate) fn candidates(start: &Start) -> Vec<String> {
    let program = &start.argv[0];
    if program.contains('/') {
        return vec![program.clone()];
    }
    let path = start.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    path.split(':').map(|dir| if dir.is_empty() { format!("./{program}") } else { format!("{dir}/{program}") }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runvoy_model::id::ExecutionId;
    use runvoy_ports::runner::WorkFile;

    use super::*;

    fn start(argv: &[&str], env: &[(&str, &str)]) -> Start {
        Start {
            execution: ExecutionId::from_bytes([7; 16]),
            attempt: 1,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
            limits: Limits::default(),
            directory: String::new(),
            work_dir: WorkDir::New(Vec::new()),
            live_for: None,
            terminal: false,
            container: None,
        }
    }

    #[test]
    fn a_bare_name_is_looked_up_in_the_given_path_alone() {
        assert_eq!(candidates(&start(&["sh"], &[("PATH", "/a:/b")])), ["/a/sh", "/b/sh"]);
        assert_eq!(candidates(&start(&["./sh"], &[("PATH", "/a:/b")])), ["./sh"]);
        assert!(candidates(&start(&["sh"], &[])).contains(&"/bin/sh".to_owned()));
    }

    #[test]
    fn what_the_system_cannot_take_is_refused_by_name() {
        assert!(check(&start(&[], &[])).is_err());
        assert!(check(&start(&["a", "b\0"], &[])).expect_err("NUL").message.contains("argument 1"));
        assert!(check(&start(&["a"], &[("K=", "v")])).expect_err("name").message.contains("K="));
        assert!(check(&start(&["a"], &[("K", "v\0")])).expect_err("value").message.contains('K'));
        let mut zero = start(&["a"], &[]);
        zero.limits.pids = Some(0);
        assert!(check(&zero).expect_err("zero").message.contains("process"));
        assert!(check(&start(&["a"], &[("K", "")])).is_ok());
    }

    #[test]
    fn nothing_leads_out_of_the_work_directory() {
        for directory in ["/", "..", "a/../..", "a\0"] {
            assert!(check(&Start { directory: directory.to_owned(), ..start(&["a"], &[]) }).is_err(), "{directory:?}");
        }
        assert!(check(&Start { directory: "repo/a..b".to_owned(), ..start(&["a"], &[]) }).is_ok());
        for name in ["", ".", "..", "a/b", "/a", "a\0"] {
            let files = vec![WorkFile { name: name.to_owned(), contents: Vec::new() }];
            assert!(check(&Start { work_dir: WorkDir::New(files), ..start(&["a"], &[]) }).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_names_of_attempts_are_recognised() {
        let name = attempt_name(ExecutionId::from_bytes([0xab; 16]), 12);
        assert!(is_attempt_name(&name));
        for other in ["", "..", "a-1", &name[..32], &format!("{name}.handle"), &format!("../{name}"), &name.replace('-', "/")] {
            assert!(!is_attempt_name(other), "{other}");
        }
    }
}
