//! Tells a process that runs from one that is ending: a killed process holds its locks until the system has removed its memory.

use std::fs;

/// The maximum number of times that a lock is looked at while the process that holds it is ending.
const MAX_RELEASE_ATTEMPTS: u32 = 1000;

/// How often a lock was found held.
#[derive(Default)]
pub(crate) struct Waits {
    total: u32,
    /// Whether its holder ran the last time.
    was_running: bool,
}

impl Waits {
    /// Whether to try again: the holder is ending, or may have begun to end while its state was read.
    pub(crate) fn once_more(&mut self, holder: &str) -> bool {
        self.total += 1;
        let is_running = process_of(holder).is_none_or(is_running);
        let once_more = self.total <= MAX_RELEASE_ATTEMPTS && !(is_running && self.was_running);
        self.was_running = is_running;
        once_more && process_of(holder) != Some(std::process::id())
    }
}

/// The process that a holder describes.
fn process_of(holder: &str) -> Option<u32> {
    holder.strip_prefix("pid ")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether a process exists and is not about to end.
pub(crate) fn is_running(process: u32) -> bool {
    let Ok(pid) = i32::try_from(process) else { return false };
    let exists = rustix::process::Pid::from_raw(pid).is_some_and(|pid| {
        // Without the permission to send a signal, there is a process.
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
    });
    exists && !is_ending(process)
}

/// Whether Linux says that a process is ending; other systems do not say.
fn is_ending(process: u32) -> bool {
    /// The flag of a process that is ending, and the bit of SIGKILL among pending signals.
    const EXITING: u64 = 0x4;
    const KILLED: u64 = 1 << 8;
    // The name of the program, which may contain any character, is in parentheses.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let is_dead = fields.first().is_some_and(|state| matches!(*state, "Z" | "X" | "x"));
    let is_exiting =
        fields.get(6).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING != 0);
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let is_killed = status
        .lines()
        .filter_map(|line| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")))
        .filter_map(|signals| u64::from_str_radix(signals.trim(), 16).ok())
        .any(|signals| signals & KILLED != 0);
    is_dead || is_exiting || is_killed
}
