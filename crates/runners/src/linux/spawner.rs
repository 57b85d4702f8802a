//! The spawner: a process with one thread that starts every command of one worker and outlives it by the time it takes to kill
//! all of them. It is told what to do through one socket and reports through it; it never touches a terminal, reads no
//! configuration and holds no state that matters after its end.
//!
//! However the worker ends, the kernel closes its end of the socket, and that is the one signal that this process obeys: all others
//! are blocked. It is the subreaper of everything below, so no orphan escapes and no zombie stays.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::capability;
use super::clone::Stack;
use super::isolation::Protections;
use super::kernel::{self, Pid, Waited};
use super::ladder::Ladder;
use super::message::{Failure, Hello, PACKET_MAX, Report, Request, Setup};
use super::report::Reports;
use super::running::{Ending, Ground, Phase, Running};
use super::socket::{self, Wait};
use super::step::Step;
use super::tree;
use crate::config::User;

/// How long the dying are given: longer only if the kernel itself cannot end a process.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often a command that is being killed is looked at, beside every end of a child.
const TICK_MS: i32 = 5;
/// How often a command that may live for some time is looked at, at least: the kernel's timer stands still while the machine sleeps, and that time does not.
const LOOK_MS: i32 = 1_000;

/// Runs a spawner whose socket is standard input, until that socket closes. To be called before any thread is started.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let worker = io::stdin().as_fd().try_clone_to_owned()?;
    kernel::close_others(&[worker.as_raw_fd()]);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    kernel::replace(null.as_fd(), 0)?;
    kernel::replace(null.as_fd(), 1)?;
    drop(null);
    kernel::new_session();
    kernel::set_name(c"runvoy-spawner");
    kernel::private_umask();
    kernel::become_subreaper()?;
    let signals = kernel::take_signals()?;

    let mut buffer = vec![0; PACKET_MAX];
    let length = socket::receive(worker.as_fd(), &mut buffer, &mut Vec::new(), Wait::Block)?;
    let setup: Setup = serde_json::from_slice(&buffer[..length])?;
    let (hello, ground) = match prepare(setup) {
        Ok(ground) => {
            let ladder = &ground.ladder;
            (
                Hello::Ready {
                    containment: ladder.rung,
                    home: ladder.home(),
                    cgroups: ladder.roots(),
                    protections: ground.protections.report.clone(),
                },
                Some(ground),
            )
        }
        Err(message) => (Hello::Refused { message }, None),
    };
    socket::send(worker.as_fd(), &serde_json::to_vec(&hello)?, &[], Wait::Block)?;
    if let Some(ground) = ground {
        let (running, pids) = (HashMap::new(), HashMap::new());
        Spawner { worker, signals, ground, running, pids, ending: Vec::new(), reports: Reports::default() }.serve(&mut buffer);
    }
    Ok(())
}

fn prepare(setup: Setup) -> Result<Ground, String> {
    let (uid, gid) = kernel::ids();
    let user = match setup.user {
        // Who already is that user has nothing to change, and without root could not.
        User::One(run_as) if uid != 0 && (run_as.uid, run_as.gid) == (uid, gid) => User::Worker,
        User::One(run_as) if uid != 0 => {
            return Err(format!("commands cannot run as uid {}: the worker runs as uid {uid}, and only root can change users", run_as.uid));
        }
        user => user,
    };
    let mut ladder = Ladder::find(&setup.instance, setup.containment)?;
    if let User::Each(range) = user {
        capability::check(range, ladder.rung)?;
    }
    let protections = Protections::find(&user, setup.isolation, &setup.work_root, &mut ladder);
    Ok(Ground { work_root: setup.work_root, user, ladder, protections, stack: Stack::new() })
}

/// Reads the request that travelled in the last file. It must hold a plain one, or this would never end.
fn read_large(files: &mut Vec<OwnedFd>, length: u64) -> io::Result<Vec<u8>> {
    let mut request = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    let mut file = File::from(files.pop().ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))?);
    file.seek(SeekFrom::Start(0))?;
    file.take(length).read_to_end(&mut request)?;
    matches!(Request::decode(&request), Some(Request::Start(_))).then_some(request).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

struct Spawner {
    worker: OwnedFd,
    signals: OwnedFd,
    ground: Ground,
    running: HashMap<Pid, Running>,
    /// The process of each running command by the number that the worker gave it.
    pids: HashMap<u64, Pid>,
    ending: Vec<Ending>,
    reports: Reports,
}

impl Spawner {
    fn serve(mut self, buffer: &mut [u8]) {
        let (mut fds, mut starting) = (Vec::new(), Vec::new());
        loop {
            fds.clear();
            starting.clear();
            fds.push(self.reports.watch(self.worker.as_fd()));
            fds.push(kernel::readable(self.signals.as_raw_fd()));
            let mut tick = !self.ending.is_empty() || self.reports.try_again();
            for running in self.running.values() {
                tick |= running.is_killed();
                if let Some(status) = running.awaited() {
                    fds.push(kernel::readable(status));
                    starting.push(running.pid);
                }
            }
            kernel::poll(&mut fds, if tick { Some(TICK_MS) } else { self.next_end_ms() });
            // Before anything else: what a dead worker has asked for must not be started.
            if fds[0].revents & (libc::POLLHUP | libc::POLLERR) != 0 {
                break;
            }
            for (pid, fd) in starting.iter().zip(&fds[2..]) {
                if fd.revents != 0 {
                    self.settle(*pid);
                }
            }
            if fds[1].revents != 0 {
                kernel::clear_signals(self.signals.as_fd());
                self.reap();
            }
            self.advance();
            self.reports.send(self.worker.as_fd());
            if fds[0].revents & libc::POLLIN != 0 && !self.receive(buffer) {
                break;
            }
        }
        self.end();
    }

    /// How long until the first command may have lived for as long as it may.
    fn next_end_ms(&self) -> Option<i32> {
        let now = kernel::boot_time();
        let next = self.running.values().filter_map(|running| running.lives_for(now)).min()?;
        // Rounded up: woken too early, it would be asked again at once.
        Some(i32::try_from(next.as_millis()).unwrap_or(LOOK_MS).saturating_add(1).min(LOOK_MS))
    }

    /// Reads a request; false when the worker is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> bool {
        let mut files = Vec::new();
        match socket::receive(self.worker.as_fd(), buffer, &mut files, Wait::Never) {
            Ok(0) => false,
            Ok(length) => {
                self.obey(&buffer[..length], &mut files);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    fn obey(&mut self, packet: &[u8], files: &mut Vec<OwnedFd>) {
        match Request::decode(packet) {
            Some(Request::Start(request)) => match Running::start(&mut self.ground, &request, files) {
                Ok(running) => {
                    let pid = running.pid;
                    self.pids.insert(running.id, pid);
                    self.running.insert(pid, running);
                    self.announce(pid);
                }
                Err(failure) => self.report(&Report::Failed { id: request.id, failure }),
            },
            Some(Request::StartLarge { id, length }) => match read_large(files, length) {
                Ok(request) => self.obey(&request, files),
                Err(error) => self.report(&Report::Failed { id, failure: Failure::new(Step::Prepare, &error, "large request") }),
            },
            Some(Request::Terminate(id)) => self.find(id).into_iter().for_each(Running::terminate),
            Some(Request::Kill(id)) => self.find_mut(id).into_iter().for_each(Running::kill_on),
            Some(Request::Live { id, time_ms }) => {
                self.find_mut(id).into_iter().for_each(|running| running.live_for(Duration::from_millis(time_ms)));
            }
            None => {}
        }
    }

    fn find(&self, id: u64) -> Option<&Running> {
        self.running.get(self.pids.get(&id)?)
    }

    fn find_mut(&mut self, id: u64) -> Option<&mut Running> {
        self.running.get_mut(self.pids.get(&id)?)
    }

    /// A command that is starting has something to say.
    fn settle(&mut self, pid: Pid) {
        if let Some(running) = self.running.get_mut(&pid) {
            running.read_status();
            self.announce(pid);
        }
    }

    /// Reports a command as started if it is.
    fn announce(&mut self, pid: Pid) {
        let Some(running) = self.running.get(&pid).filter(|running| running.phase == Phase::Executed) else { return };
        // The process has not been reaped, so this is its own entry even if it has ended.
        let start_time = tree::look(pid).map_or(0, |process| process.start_time);
        self.report(&Report::Started { id: running.id, pid: pid.cast_unsigned(), start_time });
    }

    fn reap(&mut self) {
        while let Waited::Reaped(reaped) = kernel::reap() {
            if let Some(running) = self.running.get(&reaped.pid)
                && running.phase == Phase::Starting
            {
                self.settle(reaped.pid);
            }
            if let Some(mut running) = self.running.remove(&reaped.pid) {
                self.pids.remove(&running.id);
                if running.phase == Phase::Starting {
                    // It ended without a word, so something killed it before its program ran.
                    running.phase = Phase::Executed;
                    self.report(&Report::Started { id: running.id, pid: reaped.pid.cast_unsigned(), start_time: 0 });
                }
                self.ending.push(running.end(&reaped));
            }
        }
    }

    /// Ends what is ending.
    fn advance(&mut self) {
        // A worker that says nothing may be frozen, and its server may have given the work to somebody else.
        let now = kernel::boot_time();
        let is_over = |running: &&mut Running| running.lives_for(now).is_some_and(|left| left.is_zero());
        self.running.values_mut().filter(is_over).for_each(Running::kill_on);
        // Again and again: what forks faster than it is found is found at last.
        self.running.values().filter(|running| running.is_killed()).for_each(Running::kill);
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain_mut(|command| {
            let Some(outcome) = command.advance(|pid| self.running.contains_key(&pid)) else { return true };
            let id = command.id;
            match outcome {
                Ok(exit) => self.report(&Report::Exited { id, exit }),
                Err(failure) => self.report(&Report::Failed { id, failure }),
            }
            false
        });
        self.ending = ending;
    }

    fn report(&mut self, report: &Report) {
        self.reports.give(self.worker.as_fd(), report);
    }

    /// The worker is gone: kills everything and waits until nothing is left.
    fn end(mut self) {
        let deadline = Instant::now() + FAREWELL;
        while !(self.running.is_empty() && self.ending.is_empty()) && Instant::now() < deadline {
            self.running.values().for_each(Running::kill);
            kernel::poll(&mut [kernel::readable(self.signals.as_raw_fd())], Some(TICK_MS));
            kernel::clear_signals(self.signals.as_fd());
            self.reap();
            self.advance();
        }
        self.ground.ladder.retire();
    }
}
