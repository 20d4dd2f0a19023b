//! Finds and ends the processes that a program started, also those that left its process group or lost their parent.
//!
//! A process belongs to a command if its environment has the mark of the command, or if it descends from one that does. Where the
//! program adopts orphans ([`adopt_orphans`]), those that removed the mark from their environment are found as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use tokio::time::{Instant, sleep};

/// The environment variable with the mark of a command.
pub(crate) const MARK: &str = "BCC_SCRIPT_COMMAND";

/// How often processes are looked for that are ending.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often it is checked whether the processes that are left are just ending by themselves.
const ENDING_POLLS: usize = 3;

/// How often processes are killed that a command leaves behind: each time may find those that were started meanwhile.
const MAX_ROUNDS: usize = 50;

/// Whether orphans of commands become children of this process.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The children that this process started itself.
static CHILDREN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Numbers the commands of this process.
static COMMANDS: AtomicU64 = AtomicU64::new(0);

/// From the first command on, processes of commands that lose their parent become children of this process (Linux), and are ended
/// with their command. Only for programs that start children by commands, kernels and servers of tools alone: the children of others would be ended
/// or waited for as well.
pub fn adopt_orphans() {
    ADOPTS.store(true, Ordering::Relaxed);
}

/// Keeps a child of this process from being taken for an orphan.
#[derive(Debug)]
pub(crate) struct OwnChild(i32);

impl OwnChild {
    pub(crate) fn new(pid: Option<Pid>) -> Option<Self> {
        let pid = pid?.as_raw_pid();
        CHILDREN.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        Some(Self(pid))
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        CHILDREN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// A process, as `/proc` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    pid: i32,
    parent: i32,
    /// Whether it has ended and waits for its parent.
    is_zombie: bool,
    /// When it started, in a unit of the system. With the id, it identifies the process.
    started: u64,
}

/// The mark of a command that is about to start.
pub(crate) fn new_mark() -> String {
    #[cfg(target_os = "linux")]
    if ADOPTS.load(Ordering::Relaxed) {
        // Without it, orphans that removed their mark survive.
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
    }
    let own = getpid().as_raw_pid();
    let started = stat(own).map_or(0, |found| found.started);
    format!("{own}-{started}-{}", COMMANDS.fetch_add(1, Ordering::Relaxed))
}

/// The processes of one command. Dropping it kills those that have not ended.
pub(crate) struct Descendants {
    mark: String,
    /// The program itself.
    root: Option<i32>,
    /// Whether it was waited for: its id may be used again.
    has_root_ended: bool,
    /// When it started.
    since: u64,
    /// Whether all processes have ended.
    is_done: bool,
    /// Processes that cannot be ended, such as those of another user.
    unreachable: BTreeSet<(i32, u64)>,
    /// The processes that were signalled, other than the program itself.
    signalled: BTreeSet<(i32, u64)>,
}

impl Descendants {
    /// For a program that was just started with this mark.
    pub(crate) fn new(mark: &str, root: Option<Pid>) -> Self {
        let root = root.map(Pid::as_raw_pid);
        let since = root.and_then(stat).map_or(0, |found| found.started);
        let (unreachable, signalled) = (BTreeSet::new(), BTreeSet::new());
        let mark = mark.to_owned();
        Self { mark, root, has_root_ended: false, since, is_done: false, unreachable, signalled }
    }

    /// The program was waited for.
    pub(crate) fn root_ended(&mut self) {
        self.has_root_ended = true;
    }

    /// How many processes were left when the program ended, or had to be ended with it.
    pub(crate) fn count(&self) -> usize {
        self.signalled.len()
    }

    /// Ends all processes: SIGTERM, and SIGKILL after `grace`.
    pub(crate) async fn end(&mut self, grace: Duration) {
        for _ in 0..ENDING_POLLS {
            if !self.is_any_left() {
                break;
            }
            sleep(POLL_INTERVAL).await;
        }
        let deadline = Instant::now() + grace;
        self.signal(Signal::TERM);
        while self.is_any_left() && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
        for _ in 0..MAX_ROUNDS {
            if !self.is_any_left() {
                self.is_done = true;
                return;
            }
            self.signal(Signal::KILL);
            sleep(POLL_INTERVAL).await;
        }
        tracing::warn!("processes that a command left behind cannot be ended");
    }

    /// Kills all processes without waiting for them.
    pub(crate) fn kill(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.signalled.len();
            self.signal(Signal::KILL);
            if self.signalled.len() == before {
                return;
            }
        }
    }

    /// Sends a signal to each of the processes.
    pub(crate) fn signal(&mut self, signal: Signal) {
        for found in self.find() {
            if send(found, signal).is_ok() {
                if Some(found.pid) != self.root {
                    self.signalled.insert((found.pid, found.started));
                }
            } else {
                self.unreachable.insert((found.pid, found.started));
            }
        }
    }

    fn is_any_left(&self) -> bool {
        reap();
        !self.find().is_empty()
    }

    /// The processes that run and can be ended.
    fn find(&self) -> Vec<Found> {
        let all = processes();
        let own = getpid().as_raw_pid();
        let is_reachable = |found: &Found| !self.unreachable.contains(&(found.pid, found.started));
        let adopted = self.adopted(&all);
        let mut ours: BTreeSet<i32> = all
            .values()
            .filter(|found| {
                found.pid != own
                    && !found.is_zombie
                    && found.started >= self.since
                    && ((self.root == Some(found.pid) && !self.has_root_ended)
                        || adopted.contains(&found.pid)
                        || mark_of(found.pid).is_some_and(|mark| mark == self.mark))
            })
            .map(|found| found.pid)
            .collect();
        // Their children, and the children of those.
        loop {
            let is_new = |found: &&Found| ours.contains(&found.parent) && !ours.contains(&found.pid);
            let more: Vec<i32> = all.values().filter(is_new).map(|found| found.pid).collect();
            if more.is_empty() {
                break;
            }
            ours.extend(more);
        }
        let found = ours.iter().filter_map(|pid| all.get(pid).copied());
        found.filter(|found| !found.is_zombie && is_reachable(found)).collect()
    }

    /// Adopted orphans without a mark. They are those of this command if nothing else runs that could have started them.
    fn adopted(&self, all: &BTreeMap<i32, Found>) -> BTreeSet<i32> {
        if !ADOPTS.load(Ordering::Relaxed) {
            return BTreeSet::new();
        }
        let own = getpid().as_raw_pid();
        let children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
        if children.iter().any(|child| Some(*child) != self.root) {
            return BTreeSet::new();
        }
        let is_orphan = |found: &&Found| found.parent == own && !children.contains(&found.pid) && !found.is_zombie;
        let orphans = all.values().filter(is_orphan).map(|found| found.pid);
        orphans.filter(|pid| mark_of(*pid).is_none()).collect()
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        if !self.is_done {
            self.kill();
        }
    }
}

/// Waits for adopted orphans that have ended, so that they do not remain as zombies. The children that this process started itself
/// are waited for by those who started them.
pub(crate) fn reap() {
    // A look at any ended child costs less than one at all processes.
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !ADOPTS.load(Ordering::Relaxed) || !matches!(waitid(WaitId::All, peek), Ok(Some(_))) {
        return;
    }
    let own = getpid().as_raw_pid();
    let ended = processes().into_values().filter(|found| found.parent == own && found.is_zombie);
    let children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    for pid in ended.filter(|found| !children.contains(&found.pid)).filter_map(|found| Pid::from_raw(found.pid)) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// Sends a signal to the process that was found, and to no later one with its id.
fn send(found: Found, signal: Signal) -> rustix::io::Result<()> {
    let pid = Pid::from_raw(found.pid).ok_or(rustix::io::Errno::SRCH)?;
    let is_same = || stat(found.pid).is_some_and(|now| now.started == found.started);
    #[cfg(target_os = "linux")]
    if let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        return if is_same() { accept_gone(rustix::process::pidfd_send_signal(process, signal)) } else { Ok(()) };
    }
    if is_same() { accept_gone(kill_process(pid, signal)) } else { Ok(()) }
}

/// A process that has ended meanwhile needs no signal.
fn accept_gone(sent: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match sent {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        sent => sent,
    }
}

/// All processes; none where there is no `/proc`.
fn processes() -> BTreeMap<i32, Found> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, stat(pid)?))).collect()
}

fn stat(pid: i32) -> Option<Found> {
    read_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`. The name of the program, in parentheses, may contain anything.
fn read_stat(pid: i32, text: &str) -> Option<Found> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Found { pid, parent, is_zombie: matches!(state, "Z" | "X"), started })
}

/// The mark in the environment of a process; none also if it must not be read.
fn mark_of(pid: i32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{MARK}=");
    let marks = environment.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(prefix.as_bytes()));
    marks.map(|mark| String::from_utf8_lossy(mark).into_owned()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_program_is_called() {
        let rest = "S 12 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 2 3";
        let expected = Found { pid: 5, parent: 12, is_zombie: false, started: 777 };
        for name in ["sh", "a b", "x) Z 1 (", ")"] {
            assert_eq!(read_stat(5, &format!("5 ({name}) {rest}")), Some(expected), "{name}");
        }
        assert!(read_stat(5, &format!("5 (a) {}", rest.replacen('S', "Z", 1))).unwrap().is_zombie);
        for wrong in ["", "5", "5 (a)", "5 (a) S", "5 (a) S x 1"] {
            assert_eq!(read_stat(5, wrong), None);
        }
        let own = getpid().as_raw_pid();
        assert_eq!(stat(own).map(|found| found.pid), Some(own));
    }
}
