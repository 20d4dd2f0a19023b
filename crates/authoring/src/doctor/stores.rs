//! Where sessions are kept: whether it can be read and written, what lies there and who holds it.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use crate::doctor::finding::DoctorFinding;
use bcc_store::error::StoreError;
use bcc_store::sqlite::inspect::{StoreInspection, look};

/// Less free space than this is told, in bytes.
const LITTLE: u64 = 100 * 1024 * 1024;

/// A log larger than this was not folded in for long, in bytes.
const LONG_LOG: u64 = 64 * 1024 * 1024;

pub fn store(path: &Path) -> Vec<DoctorFinding> {
    let shown = path.display();
    let mut found = Vec::new();
    match look(path) {
        Ok(None) => {
            found.push(DoctorFinding::ok("store", msg!("{shown} does not exist yet: the first session creates it")))
        }
        Ok(Some(seen)) => found.extend(told(path, &seen)),
        Err(error) => {
            let help = match error {
                StoreError::Newer { .. } => {
                    "install the release that wrote it, or specify another store with `--store`"
                }
                _ => "specify another store with `--store` or BCC_STORE",
            };
            found.push(DoctorFinding::problem("store", error.to_message()).with_help(help));
        }
    }
    found.extend(room(path));
    found
}

fn told(path: &Path, seen: &StoreInspection) -> Vec<DoctorFinding> {
    let shown = path.display();
    let total: u64 = seen.sessions.values().sum();
    let by_status = seen.sessions.iter().map(|(status, count)| msg!("{count} {status}"));
    let by_status = match seen.sessions.is_empty() {
        true => Message::default(),
        false => msg!(" ({})", Message::list(Joint::Item, by_status)),
    };
    let size = size(seen.bytes + seen.log_bytes);
    let mut found =
        vec![DoctorFinding::ok("store", msg!("{shown}: layout {}, {size}, sessions: {total}{by_status}", seen.layout))];
    if seen.layout != 0 && seen.layout < seen.newest {
        let message =
            msg!("the store has the older layout {}: the next session upgrades it to {}", seen.layout, seen.newest);
        found.push(
            DoctorFinding::note("store", message)
                .with_help("make a copy first if an older release still has to read it"),
        );
    }
    if access(path, Access::WRITE_OK).is_err() {
        let problem = DoctorFinding::problem("store", msg!("{shown} cannot be written: no session can continue"));
        found.push(
            problem.with_help("give yourself permission to write to it, or specify another store with `--store`"),
        );
    }
    if seen.log_bytes > 0 {
        let message = msg!(
            "its write-ahead log contains {}: the latest changes are not counted here",
            self::size(seen.log_bytes)
        );
        let long = seen.log_bytes > LONG_LOG;
        let help = "it shrinks when the next session ends; processes that keep running prevent this";
        found.push(DoctorFinding::note("store", message).with_any_help(long.then_some(Message::word(help))));
    }
    for holder in &seen.holders {
        let message = match alive(holder) {
            Some(false) => msg!("{holder} left a lock behind and is no longer running; the lock has no effect"),
            _ => msg!("a session is in use by {holder}"),
        };
        found.push(DoctorFinding::note("store", message));
    }
    found
}

/// Whether the process that a lock names lives, where the system tells.
fn alive(holder: &str) -> Option<bool> {
    let id: u32 = holder.strip_prefix("process ")?.split(' ').next()?.parse().ok()?;
    let processes = Path::new("/proc");
    processes.join("self").exists().then(|| processes.join(id.to_string()).exists())
}

/// The free space where the store lies or will lie, and whether something can be made there.
fn room(path: &Path) -> Vec<DoctorFinding> {
    let Some(place) = path.ancestors().skip(1).find(|directory| directory.is_dir()) else { return vec![] };
    let mut found = Vec::new();
    if access(place, Access::WRITE_OK).is_err() {
        let problem =
            DoctorFinding::problem("store", msg!("no files can be created in {path}", path = place.display()));
        found.push(problem.with_help(
            "a store needs its log and its locks in the same directory; specify another location with `--store`",
        ));
    }
    if let Ok(disk) = statvfs(place) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let message = msg!("{} free on the disk of the store", size(free));
        found.push(if free < LITTLE {
            DoctorFinding::problem("disk", message)
                .with_help("free some disk space: a session stops if its turn cannot be stored")
        } else {
            DoctorFinding::ok("disk", message)
        });
    }
    found
}

fn size(bytes: u64) -> Message {
    const STEP: u64 = 1024;
    match bytes {
        ..STEP => msg!("{bytes} bytes"),
        _ if bytes < STEP * STEP => msg!("{} KB", bytes / STEP),
        _ if bytes < STEP * STEP * STEP => msg!("{} MB", bytes / STEP / STEP),
        _ => msg!("{} GB", bytes / STEP / STEP / STEP),
    }
}
