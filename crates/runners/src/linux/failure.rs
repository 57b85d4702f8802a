//! Puts a failed start into words for the person who submitted the command. It looks at the file system once, to tell a missing
//! program from a missing interpreter.

use std::io;
use std::path::Path;

use runvoy_ports::runner::{Start, StartError};

use super::message::Failure;
use super::step::Step;
use crate::command;

/// What a failed start was about.
pub(crate) struct Context<'a> {
    pub(crate) start: &'a Start,
    pub(crate) work_dir: &'a Path,
    /// Who the command was to run as, if not the worker's user.
    pub(crate) uid: Option<u32>,
}

/// Says what happened and what to do.
pub(crate) fn explain(failure: &Failure, context: &Context<'_>) -> StartError {
    let why = reason(failure.errno);
    let directory = context.work_dir.display();
    let message = match (failure.step, failure.errno) {
        (_, libc::ENOSPC | libc::EDQUOT) => {
            format!("the disk is full: work directory {directory} could not be created (free space on the worker's machine)")
        }
        (Step::MakeDirectory, libc::EEXIST) => {
            format!("work directory {directory} exists already: this attempt was started before (a restart of the worker removes it)")
        }
        (Step::MakeDirectory, _) => {
            let root = context.work_dir.parent().unwrap_or(context.work_dir).display();
            format!("work directory {directory} could not be created: {why} (the worker must be able to write to {root})")
        }
        (Step::EnterDirectory, _) if !context.start.directory.is_empty() => {
            format!("directory {} of the work directory could not be entered: {why}", context.start.directory)
        }
        (Step::EnterDirectory, libc::EACCES) => {
            let uid = context.uid.unwrap_or(0);
            format!("uid {uid} cannot enter work directory {directory}: every directory above it must let other users pass (chmod o+x)")
        }
        (Step::EnterDirectory, _) => format!("work directory {directory} could not be entered: {why}"),
        (Step::MakeCgroup | Step::EnterCgroup, _) => {
            let place = if failure.detail.is_empty() { "the command's cgroup" } else { &failure.detail };
            format!("{place} could not be used: {why} (restart the worker to have its containment chosen anew)")
        }
        (Step::SetLimit, _) => format!("the limit cannot be enforced on this worker: {} ({why})", failure.detail),
        (Step::ResourceLimit, _) => format!("the limit of open files or file size could not be set: {why}"),
        (Step::User | Step::Privileges, _) => {
            let uid = context.uid.map_or_else(|| "another user".to_owned(), |uid| format!("uid {uid}"));
            format!("the command could not become {uid}: {why} (the worker must run as root to run commands as other users)")
        }
        (Step::Clone, libc::EAGAIN | libc::ENOMEM) => {
            format!("no process could be made: {why} (the worker's machine is out of processes or memory, or the limit is too low)")
        }
        (Step::Clone, _) => format!("no process could be made: {why}"),
        (Step::Confine, _) => format!("the command could not be confined: {why} (set isolation to basic to run it without)"),
        (Step::Namespace, _) => format!("the command's namespace could not be set up: {why}"),
        (Step::Prepare | Step::Descriptors, _) => format!("the command's output could not be connected: {why} {}", failure.detail),
        (Step::Execute, errno) => explain_execute(errno, context),
    };
    let exit_code = if failure.step == Step::Execute { command::exit_code(&context.start.argv[0], failure.errno) } else { None };
    StartError { message: message.trim_end().to_owned(), exit_code }
}

fn explain_execute(errno: i32, context: &Context<'_>) -> String {
    let program = &context.start.argv[0];
    let looked_up = !program.contains('/');
    let shell = command::is_shell(program);
    match errno {
        libc::ENOENT if command::candidates(context.start).iter().any(|path| Path::new(path).exists()) => {
            format!("{program}: the interpreter or loader that it names is not on this worker")
        }
        libc::ENOENT | libc::ENOTDIR => {
            let path = context.start.env.get("PATH").map_or("its default", String::as_str);
            let place = if looked_up { format!(" in PATH ({path})") } else { String::new() };
            let next = if shell { ": shell commands need a shell on the worker; give program and arguments instead" } else { "" };
            format!("{program}: not found{place}{next}")
        }
        libc::EACCES => {
            let who = context.uid.map_or_else(|| "the worker's user".to_owned(), |uid| format!("uid {uid}"));
            format!("{program}: permission denied: it is not executable for {who}")
        }
        libc::ENOEXEC => format!("{program}: not a program that this machine can run (a script needs a first line like #!/bin/sh)"),
        libc::E2BIG => "the command with its environment is too long for this machine (one argument may have 128 KiB)".to_owned(),
        libc::ETXTBSY => format!("{program}: another process is writing to it"),
        errno => format!("{program}: could not be run: {}", reason(errno)),
    }
}

/// The system's words without its number.
fn reason(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use runvoy_model::id::ExecutionId;
    use runvoy_ports::runner::{Limits, WorkDir};

    use super::*;

    fn say(program: &str, step: Step, errno: i32) -> String {
        let start = Start {
            execution: ExecutionId::from_bytes([0; 16]),
            attempt: 1,
            argv: vec![program.to_owned()],
            env: [("PATH".to_owned(), "/nowhere".to_owned())].into(),
            limits: Limits::default(),
            directory: String::new(),
            work_dir: WorkDir::Kept,
            live_for: None,
            terminal: false,
            container: None,
        };
        let context = Context { start: &start, work_dir: Path::new("/data/work/x-1"), uid: Some(77) };
        let error = explain(&Failure { step, errno, detail: String::new() }, &context);
        let code = error.exit_code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
        format!("{} ({code})", error.message)
    }

    #[test]
    fn a_program_that_cannot_be_executed_has_the_code_that_a_shell_gives() {
        for (program, step, errno, expected) in [
            ("tool", Step::Execute, libc::ENOENT, "(code 127)"),
            ("a/tool", Step::Execute, libc::ENOTDIR, "(code 127)"),
            ("tool", Step::Execute, libc::EACCES, "(code 126)"),
            ("tool", Step::Execute, libc::ENOEXEC, "(code 126)"),
            ("tool", Step::Execute, libc::E2BIG, "(no code)"),
            ("sh", Step::Execute, libc::ENOENT, "(no code)"),
            ("tool", Step::EnterDirectory, libc::ENOENT, "(no code)"),
        ] {
            let said = say(program, step, errno);
            assert!(said.ends_with(expected), "{program} {errno}: {said}");
        }
    }

    #[test]
    fn a_person_can_tell_what_to_do() {
        for (program, step, errno, expected) in [
            ("sh", Step::Execute, libc::ENOENT, "sh: not found in PATH (/nowhere): shell commands need a shell"),
            ("/no/such/sh", Step::Execute, libc::ENOENT, "/no/such/sh: not found: shell commands"),
            ("tool", Step::Execute, libc::ENOENT, "tool: not found in PATH (/nowhere)"),
            ("/etc/passwd", Step::Execute, libc::EACCES, "/etc/passwd: permission denied: it is not executable for uid 77"),
            ("/etc/passwd", Step::Execute, libc::ENOENT, "interpreter"),
            ("tool", Step::MakeDirectory, libc::ENOSPC, "the disk is full"),
            ("tool", Step::MakeDirectory, libc::EACCES, "must be able to write to /data/work"),
            ("tool", Step::EnterDirectory, libc::EACCES, "uid 77 cannot enter work directory /data/work/x-1"),
            ("tool", Step::User, libc::EPERM, "could not become uid 77"),
            ("tool", Step::Clone, libc::EAGAIN, "no process could be made"),
        ] {
            let said = say(program, step, errno);
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("os error"), "{said}");
        }
    }
}
