//! What worker and spawner say to each other, one packet each. Pure: bytes in, bytes out.
//!
//! What is said once per spawner is JSON. What is said per command is binary, with every string NUL-terminated, so that the
//! spawner can hand the received bytes to `execve` as they are.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::time::Duration;

use runvoy_ports::runner::{Containment, Exit, ExitStatus, Limits, Protection, Start, WorkDir};
use serde::{Deserialize, Serialize};

use super::step::Step;
use crate::command;
use crate::config::{Isolation, User};

/// Larger requests travel in a memory file beside their packet: a packet must fit the socket's buffer.
pub(crate) const PACKET_MAX: usize = 64 * 1024;

/// The largest packet from a spawner after its first.
pub(crate) const REPORT_MAX: usize = 4096;
const DETAIL_MAX: usize = 2048;

const START: u8 = 1;
const START_LARGE: u8 = 2;
const TERMINATE: u8 = 3;
const KILL: u8 = 4;
const STARTED: u8 = 5;
const FAILED: u8 = 6;
const EXITED: u8 = 7;
const LIVE: u8 = 8;

/// The first packet to a spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) work_root: PathBuf,
    pub(crate) instance: String,
    pub(crate) user: User,
    pub(crate) isolation: Isolation,
    pub(crate) containment: Option<Rung>,
}

/// The first packet from a spawner: it is ready, or says why it will never be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Hello {
    /// Commands can be started.
    Ready {
        containment: Rung,
        /// The directory that holds the cgroup by which each command is killed.
        home: Option<PathBuf>,
        /// Every directory that may hold cgroups of commands.
        cgroups: Vec<PathBuf>,
        protections: Vec<Protection>,
    },
    /// They cannot.
    Refused { message: String },
}

/// [`Containment`] as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rung {
    CgroupV2,
    CgroupV1,
    PidNamespace,
    Weak,
}

impl From<Containment> for Rung {
    fn from(containment: Containment) -> Self {
        match containment {
            Containment::CgroupV2 => Self::CgroupV2,
            Containment::CgroupV1 => Self::CgroupV1,
            Containment::PidNamespace => Self::PidNamespace,
            Containment::Weak => Self::Weak,
        }
    }
}

impl From<Rung> for Containment {
    fn from(rung: Rung) -> Self {
        match rung {
            Rung::CgroupV2 => Self::CgroupV2,
            Rung::CgroupV1 => Self::CgroupV1,
            Rung::PidNamespace => Self::PidNamespace,
            Rung::Weak => Self::Weak,
        }
    }
}

/// A packet to a spawner, as it reads it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, read where it was received, and most of them are starts")]
pub(crate) enum Request<'a> {
    Start(StartRequest<'a>),
    /// The start request of this many bytes is in the last file.
    StartLarge {
        id: u64,
        length: u64,
    },
    Terminate(u64),
    Kill(u64),
    /// It is killed after so long, unless another one of these comes before.
    Live {
        id: u64,
        time_ms: u64,
    },
}

/// A command to start, borrowed from the packet.
#[derive(Debug)]
pub(crate) struct StartRequest<'a> {
    pub(crate) id: u64,
    pub(crate) name: &'a CStr,
    pub(crate) limits: Limits,
    /// How long it may live until another time is said.
    pub(crate) live_for: Option<Duration>,
    /// The uid that was lent to its attempt.
    pub(crate) uid: Option<u32>,
    /// The files that it writes to are its terminal.
    pub(crate) terminal: bool,
    /// Where in the work directory it runs.
    pub(crate) directory: &'a CStr,
    /// Names and contents of the files in its new work directory; none if it finds the one of an earlier command.
    pub(crate) files: Option<Files<'a>>,
    /// Paths to try, in order.
    pub(crate) programs: Vec<*const c_char>,
    /// NULL-terminated, as `execve` wants it.
    pub(crate) argv: Vec<*const c_char>,
    /// NULL-terminated, as `execve` wants it.
    pub(crate) env: Vec<*const c_char>,
}

/// Names and contents of files.
pub(crate) type Files<'a> = Vec<(&'a CStr, &'a [u8])>;

/// A packet from a spawner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Started { id: u64, pid: u32, start_time: u64 },
    Failed { id: u64, failure: Failure },
    Exited { id: u64, exit: Exit },
}

/// Where and how a start failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: i32,
    /// What the step was about, where that is not plain from the command.
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(step: Step, error: &std::io::Error, detail: impl Into<String>) -> Self {
        Self { step, errno: error.raw_os_error().unwrap_or(libc::EIO), detail: detail.into() }
    }
}

/// A command that a worker wants started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) start: &'a Start,
    /// The uid that was lent to its attempt.
    pub(crate) uid: Option<u32>,
}

/// What stands for no uid; to the kernel it is none either.
const NO_UID: u32 = u32::MAX;

/// Encodes a start request. The command has been checked: no string in it has a NUL.
pub(crate) fn encode_start(id: u64, wanted: &Wanted<'_>) -> Vec<u8> {
    let Wanted { name, start, uid } = wanted;
    let strings: usize =
        start.argv.iter().map(String::len).sum::<usize>() + start.env.iter().map(|(k, v)| k.len() + v.len() + 2).sum::<usize>();
    let mut bytes = Vec::with_capacity(strings + 512);
    bytes.push(START);
    bytes.extend_from_slice(&id.to_le_bytes());
    let limits = &start.limits;
    let live_ms = start.live_for.map(millis);
    for limit in [limits.memory_bytes, limits.pids, limits.cpu_millis, limits.open_files, limits.file_bytes, live_ms] {
        bytes.extend_from_slice(&limit.unwrap_or(u64::MAX).to_le_bytes());
    }
    bytes.extend_from_slice(&uid.unwrap_or(NO_UID).to_le_bytes());
    bytes.push(u8::from(start.terminal));
    put_string(&mut bytes, &[name]);
    put_string(&mut bytes, &[&start.directory]);
    put_work_dir(&mut bytes, &start.work_dir);
    let programs = command::candidates(start);
    put_count(&mut bytes, programs.len());
    programs.iter().for_each(|program| put_string(&mut bytes, &[program]));
    put_count(&mut bytes, start.argv.len());
    start.argv.iter().for_each(|arg| put_string(&mut bytes, &[arg]));
    put_count(&mut bytes, start.env.len());
    start.env.iter().for_each(|(key, value)| put_string(&mut bytes, &[key, "=", value]));
    bytes
}

fn put_work_dir(bytes: &mut Vec<u8>, work_dir: &WorkDir) {
    let WorkDir::New(files) = work_dir else { return bytes.push(0) };
    bytes.push(1);
    put_count(bytes, files.len());
    for file in files {
        put_string(bytes, &[&file.name]);
        bytes.extend_from_slice(&(file.contents.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&file.contents);
    }
}

/// Encodes the packet that announces a start request in a memory file.
pub(crate) fn encode_start_large(id: u64, length: usize) -> Vec<u8> {
    let mut bytes = tagged(START_LARGE, id);
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
    bytes
}

/// Encodes a request to send `SIGTERM` to a command.
pub(crate) fn encode_terminate(id: u64) -> Vec<u8> {
    tagged(TERMINATE, id)
}

/// Encodes a request to kill a command.
pub(crate) fn encode_kill(id: u64) -> Vec<u8> {
    tagged(KILL, id)
}

/// Encodes how long a command may live from now on.
pub(crate) fn encode_live(id: u64, time: Duration) -> Vec<u8> {
    let mut bytes = tagged(LIVE, id);
    bytes.extend_from_slice(&millis(time).to_le_bytes());
    bytes
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn tagged(tag: u8, number: u64) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend_from_slice(&u32::try_from(count).expect("a request has fewer than 2^32 strings").to_le_bytes());
}

fn put_string(bytes: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
    bytes.push(0);
}

impl<'a> Request<'a> {
    /// Decodes a packet; `None` if it is not one of ours.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        match rest.byte()? {
            START => rest.start().map(Self::Start),
            START_LARGE => Some(Self::StartLarge { id: rest.u64()?, length: rest.u64()? }),
            TERMINATE => Some(Self::Terminate(rest.u64()?)),
            KILL => Some(Self::Kill(rest.u64()?)),
            LIVE => Some(Self::Live { id: rest.u64()?, time_ms: rest.u64()? }),
            _ => None,
        }
    }
}

impl Report {
    /// Appends the packet to a buffer, which is emptied first.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        match self {
            Self::Started { id, pid, start_time } => {
                bytes.push(STARTED);
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&pid.to_le_bytes());
                bytes.extend_from_slice(&start_time.to_le_bytes());
            }
            Self::Failed { id, failure } => {
                bytes.push(FAILED);
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.push(failure.step as u8);
                bytes.extend_from_slice(&failure.errno.to_le_bytes());
                // A report must fit the buffer of whoever reads it.
                bytes.extend(failure.detail.bytes().take(DETAIL_MAX));
            }
            Self::Exited { id, exit } => {
                bytes.push(EXITED);
                bytes.extend_from_slice(&id.to_le_bytes());
                let (kind, value) = match exit.status {
                    ExitStatus::Code(code) => (0, code),
                    ExitStatus::Signal(signal) => (1, signal),
                    ExitStatus::Lost => (2, 0),
                };
                bytes.push(kind);
                bytes.extend_from_slice(&value.to_le_bytes());
                bytes.push(u8::from(exit.oom_killed));
                bytes.extend_from_slice(&exit.cpu_ms.to_le_bytes());
                bytes.extend_from_slice(&exit.max_rss_bytes.to_le_bytes());
            }
        }
    }

    /// Decodes a packet; `None` if it is not one of ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let (tag, id) = (rest.byte()?, rest.u64()?);
        match tag {
            STARTED => Some(Self::Started { id, pid: rest.u32()?, start_time: rest.u64()? }),
            FAILED => {
                let step = Step::from_u8(rest.byte()?)?;
                let errno = rest.u32()?.cast_signed();
                Some(Self::Failed { id, failure: Failure { step, errno, detail: String::from_utf8_lossy(rest.0).into_owned() } })
            }
            EXITED => {
                let (kind, value) = (rest.byte()?, rest.u32()?.cast_signed());
                let status = match kind {
                    0 => ExitStatus::Code(value),
                    1 => ExitStatus::Signal(value),
                    _ => ExitStatus::Lost,
                };
                let oom_killed = rest.byte()? == 1;
                Some(Self::Exited { id, exit: Exit { status, oom_killed, cpu_ms: rest.u64()?, max_rss_bytes: rest.u64()? } })
            }
            _ => None,
        }
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    fn u64(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    fn string(&mut self) -> Option<&'a CStr> {
        let string = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = &self.0[string.count_bytes() + 1..];
        Some(string)
    }

    fn strings(&mut self) -> Option<Vec<*const c_char>> {
        let count = self.u32()? as usize;
        // Every string has at least its NUL, so a count beyond the bytes left is a lie not worth allocating for.
        let mut strings = Vec::with_capacity(count.min(self.0.len()) + 1);
        for _ in 0..count {
            strings.push(self.string()?.as_ptr());
        }
        Some(strings)
    }

    fn start(&mut self) -> Option<StartRequest<'a>> {
        let id = self.u64()?;
        let mut limit = || self.u64().map(|limit| (limit != u64::MAX).then_some(limit));
        let limits = Limits { memory_bytes: limit()?, pids: limit()?, cpu_millis: limit()?, open_files: limit()?, file_bytes: limit()? };
        let live_for = limit()?.map(Duration::from_millis);
        let uid = Some(self.u32()?).filter(|uid| *uid != NO_UID);
        let terminal = self.byte()? == 1;
        let (name, directory, files) = (self.string()?, self.string()?, self.work_dir()?);
        let programs = self.strings()?;
        let (mut argv, mut env) = (self.strings()?, self.strings()?);
        argv.push(std::ptr::null());
        env.push(std::ptr::null());
        Some(StartRequest { id, name, limits, live_for, uid, terminal, directory, files, programs, argv, env })
    }

    /// The outer `None` is a packet cut short, the inner one a work directory that is kept.
    fn work_dir(&mut self) -> Option<Option<Files<'a>>> {
        if self.byte()? == 0 {
            return Some(None);
        }
        let count = self.u32()?;
        let mut files = Vec::new();
        for _ in 0..count {
            let (name, length) = (self.string()?, usize::try_from(self.u64()?).ok()?);
            let (contents, rest) = self.0.split_at_checked(length)?;
            self.0 = rest;
            files.push((name, contents));
        }
        Some(Some(files))
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::id::ExecutionId;
    use runvoy_ports::runner::WorkFile;

    use super::*;

    fn start() -> Start {
        Start {
            execution: ExecutionId::from_bytes([1; 16]),
            attempt: 3,
            argv: vec!["/bin/echo".to_owned(), String::new(), "ü".to_owned()],
            env: [("A".to_owned(), "x=y".to_owned()), ("B".to_owned(), String::new())].into(),
            limits: Limits { pids: Some(9), ..Limits::default() },
            directory: "repo/a".to_owned(),
            work_dir: WorkDir::New(vec![WorkFile { name: ".env".to_owned(), contents: b"A=\0\xff".to_vec() }]),
            live_for: Some(Duration::from_millis(2_500)),
            terminal: true,
            container: None,
        }
    }

    #[test]
    fn a_start_request_arrives_as_it_was_sent() {
        let bytes = encode_start(42, &Wanted { name: "name-3", start: &start(), uid: Some(70_000) });
        let Some(Request::Start(read)) = Request::decode(&bytes) else { panic!("not a start request") };
        assert_eq!((read.id, read.name, read.limits, read.uid), (42, c"name-3", start().limits, Some(70_000)));
        assert_eq!(read.live_for, Some(Duration::from_millis(2_500)));
        assert!(read.terminal);
        assert_eq!((read.directory, read.files), (c"repo/a", Some(vec![(c".env", &b"A=\0\xff"[..])])));
        assert_eq!((read.programs.len(), read.argv.len(), read.env.len()), (1, 4, 3));
        assert!(read.argv[3].is_null() && read.env[2].is_null());
    }

    #[test]
    fn a_kept_work_directory_is_told_from_a_new_one() {
        let start = Start { work_dir: WorkDir::Kept, terminal: false, ..start() };
        let bytes = encode_start(42, &Wanted { name: "name-3", start: &start, uid: None });
        assert!(matches!(Request::decode(&bytes), Some(Request::Start(StartRequest { files: None, uid: None, terminal: false, .. }))));
    }

    #[test]
    fn a_cut_request_is_refused_at_every_length() {
        let bytes = encode_start(42, &Wanted { name: "name-3", start: &start(), uid: None });
        for length in 0..bytes.len() {
            assert!(Request::decode(&bytes[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn no_report_outgrows_its_reader() {
        let failure = Failure { step: Step::SetLimit, errno: 1, detail: "ü".repeat(REPORT_MAX) };
        let mut bytes = Vec::new();
        Report::Failed { id: 1, failure }.encode(&mut bytes);
        assert!(bytes.len() <= REPORT_MAX);
        assert!(matches!(Report::decode(&bytes), Some(Report::Failed { id: 1, .. })));
    }

    #[test]
    fn reports_come_back_as_they_were() {
        let exit = |status| Exit { status, oom_killed: true, cpu_ms: 7, max_rss_bytes: 1 << 40 };
        let failure = Failure { step: Step::Execute, errno: 2, detail: "memory".to_owned() };
        let mut bytes = Vec::new();
        for report in [
            Report::Started { id: 1, pid: 2, start_time: 3 },
            Report::Failed { id: 1, failure },
            Report::Exited { id: u64::MAX, exit: exit(ExitStatus::Code(-1)) },
            Report::Exited { id: 0, exit: exit(ExitStatus::Signal(9)) },
            Report::Exited { id: 0, exit: exit(ExitStatus::Lost) },
        ] {
            report.encode(&mut bytes);
            assert_eq!(Report::decode(&bytes), Some(report));
        }
    }
}
