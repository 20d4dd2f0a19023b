//! Checks the session store: access, contents, lock holders and free disk space.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use crate::doctor::finding::DoctorFinding;
use bcc_engine::error::EngineError;
use bcc_engine::store_access::{notice, readable_by_everyone};
use bcc_engine::store_place::StorePlace;
use bcc_store::error::StoreError;
use bcc_store::rows::SessionFilter;
use bcc_store::sqlite::inspect::{StoreInspection, inspect};

/// Less free space than this is reported as a problem, in bytes.
const MIN_FREE_BYTES: u64 = 100 * 1024 * 1024;

/// A write-ahead log larger than this has not been checkpointed for a long time, in bytes.
const LARGE_LOG_BYTES: u64 = 64 * 1024 * 1024;

const INSTALL_RELEASE: &str = "install the release that wrote it, or specify another store with `--store`";

pub(crate) async fn store(place: &StorePlace) -> Vec<DoctorFinding> {
    let Some(path) = place.file() else { return database(place).await };
    let shown = path.display();
    let mut found = Vec::new();
    match inspect(path) {
        Ok(None) => {
            found.push(DoctorFinding::ok("store", msg!("{shown} does not exist yet: the first session creates it")))
        }
        Ok(Some(inspection)) => found.extend(describe(path, &inspection)),
        Err(error) => {
            let help = match error {
                StoreError::Newer { .. } => INSTALL_RELEASE,
                _ => "specify another store with `--store` or BCC_STORE",
            };
            found.push(DoctorFinding::problem("store", error.to_message()).with_help(help));
        }
    }
    if let Some(notice) = notice(place) {
        let help = "give it to yourself, and remove the permission of others to write there; or specify another store with `--store`";
        found.push(DoctorFinding::note("store", notice).with_help(help));
    }
    if let Some(path) = readable_by_everyone(place) {
        let shown = path.display();
        let note = DoctorFinding::note(
            "store",
            msg!("everyone on this machine can read {shown}, and the conversations in it"),
        );
        found.push(note.with_help(msg!("run `chmod go-rwx {shown}`, also for `{shown}-wal` if it exists")));
    }
    found.extend(free_space(path));
    found
}

/// Checks that a database can be reached and has a layout that this version knows. Nothing is created or changed.
async fn database(place: &StorePlace) -> Vec<DoctorFinding> {
    let named = place.named();
    let shown = named.display();
    let help = "specify another store with `--store` or BCC_STORE";
    let problem = |error: &EngineError| vec![DoctorFinding::problem("store", error.to_message()).with_help(help)];
    let (found, newest) = match place.layouts().await {
        Ok(layouts) => layouts.unwrap_or_default(),
        Err(error) => return problem(&error),
    };
    if found == 0 {
        let message = msg!("{shown} can be reached, and has no store yet: the first session creates it");
        return vec![DoctorFinding::ok("store", message)];
    }
    if found > newest {
        let newer = StoreError::Newer { store: named.to_string_lossy().into_owned(), found, known: newest };
        return vec![DoctorFinding::problem("store", newer.to_message()).with_help(INSTALL_RELEASE)];
    }
    let reached = DoctorFinding::ok("store", msg!("{shown} can be reached"));
    if found < newest {
        return vec![reached, older(found, newest)];
    }
    let read = async { Ok::<_, EngineError>(place.open()?.sessions_page(&SessionFilter::default(), None, 1).await?) };
    match read.await {
        Ok(_) => vec![reached],
        Err(error) => problem(&error),
    }
}

/// The note about a store of an earlier release.
fn older(found: u32, newest: u32) -> DoctorFinding {
    let message = msg!("the store has the older layout {}: the next session upgrades it to {}", found, newest);
    DoctorFinding::note("store", message).with_help("make a copy first if an older release still has to read it")
}

fn describe(path: &Path, inspection: &StoreInspection) -> Vec<DoctorFinding> {
    let shown = path.display();
    let total: u64 = inspection.sessions.values().sum();
    let by_status = inspection.sessions.iter().map(|(status, count)| msg!("{count} {status}"));
    let by_status = match inspection.sessions.is_empty() {
        true => Message::default(),
        false => msg!(" ({})", Message::list(Joint::Item, by_status)),
    };
    let size = size(inspection.bytes + inspection.log_bytes);
    let mut found = vec![DoctorFinding::ok(
        "store",
        msg!("{shown}: layout {}, {size}, sessions: {total}{by_status}", inspection.layout),
    )];
    if inspection.layout != 0 && inspection.layout < inspection.newest_layout {
        found.push(older(inspection.layout, inspection.newest_layout));
    }
    if access(path, Access::WRITE_OK).is_err() {
        let problem = DoctorFinding::problem("store", msg!("{shown} cannot be written: no session can continue"));
        found.push(
            problem.with_help("give yourself permission to write to it, or specify another store with `--store`"),
        );
    }
    if inspection.log_bytes > 0 {
        let message = msg!(
            "its write-ahead log contains {}: the latest changes are not counted here",
            self::size(inspection.log_bytes)
        );
        let is_large = inspection.log_bytes > LARGE_LOG_BYTES;
        let help = "it shrinks when the next session ends; processes that keep running prevent this";
        found.push(DoctorFinding::note("store", message).with_any_help(is_large.then_some(Message::word(help))));
    }
    for holder in &inspection.holders {
        let message = match alive(holder) {
            Some(false) => msg!("{holder} left a lock behind and is no longer running; the lock has no effect"),
            _ => msg!("a session is in use by {holder}"),
        };
        found.push(DoctorFinding::note("store", message));
    }
    found
}

/// Whether the process named by a lock is running; `None` if the system cannot tell.
fn alive(holder: &str) -> Option<bool> {
    let id: u32 = holder.strip_prefix("pid ")?.split(' ').next()?.parse().ok()?;
    let processes = Path::new("/proc");
    processes.join("self").exists().then(|| processes.join(id.to_string()).exists())
}

/// Checks the free space at the location of the store, and whether files can be created there.
fn free_space(path: &Path) -> Vec<DoctorFinding> {
    let Some(directory) = path.ancestors().skip(1).find(|directory| directory.is_dir()) else { return vec![] };
    let mut found = Vec::new();
    if access(directory, Access::WRITE_OK).is_err() {
        let problem =
            DoctorFinding::problem("store", msg!("no files can be created in {path}", path = directory.display()));
        found.push(problem.with_help(
            "a store needs its log and its locks in the same directory; specify another location with `--store`",
        ));
    }
    if let Ok(disk) = statvfs(directory) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let message = msg!("{} free on the disk of the store", size(free));
        found.push(if free < MIN_FREE_BYTES {
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
