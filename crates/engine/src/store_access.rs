//! Checks who else can read or change a session store: owners and permissions of the file, its directory and the directories above.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::process::geteuid;

use bcc_store::contract::Store;

use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::within::resolve_within;
use crate::project::Project;
use crate::store_place::StorePlace;

/// The permission of everyone to write.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// The permissions of everyone to read a file, and to reach what is in a directory.
const READABLE_BY_OTHERS: u32 = 0o004;
const SEARCHABLE_BY_OTHERS: u32 = 0o001;

/// In such a directory, only the owner of a file may rename or remove it.
const STICKY: u32 = 0o1000;

const ROOT: u32 = 0;

/// Checks the store at `place` before it is opened. The default store of a project (`is_named` is false) is rejected if someone else
/// can read or change it: whoever provided the project may have put it there. For a store that the person named, and for the
/// directories above, [`notice`] is enough.
///
/// # Errors
/// `Usage`, which names the file and how to change it.
pub fn check_store(place: &StorePlace, project: &Project, is_named: bool) -> Result<(), EngineError> {
    let Some(path) = place.file().filter(|_| !is_named) else { return Ok(()) };
    let Some(directory) = path.parent() else { return Ok(()) };
    for part in [directory, path].into_iter().filter(|part| part.symlink_metadata().is_ok()) {
        let shown = part.display();
        resolve_within(&project.directory, part).map_err(|error| {
            EngineError::usage(msg!("the store {shown} cannot be used: {error}"))
                .with_help("remove it, or specify another store with `--store`")
        })?;
        let Ok(metadata) = part.metadata() else { continue };
        let help = match risk(&metadata) {
            // The administrator can read everything anyway, and often works on the files of others, as in a container.
            Some(Risk::Owner) if geteuid().is_root() => continue,
            Some(Risk::Owner) => msg!("remove it, or specify another store with `--store`"),
            Some(Risk::Writable) => msg!("if the sessions in it are yours, run `chmod o-w {shown}`"),
            None => continue,
        };
        return Err(EngineError::usage(describe(part, &metadata)).with_help(help));
    }
    Ok(())
}

/// The store of a project: `--store`, then `BCC_STORE`, then the default path in the project.
pub fn store_place(project: &Project, environment: &Environment, store: Option<&Path>) -> StorePlace {
    let requested = store.or_else(|| environment.get("BCC_STORE").map(Path::new));
    requested.map_or_else(|| StorePlace::File(project.store()), StorePlace::of)
}

/// Opens the store at `store`, or the default one of the project, after [`check_store`].
pub(crate) fn open_store(
    project: &Project,
    environment: &Environment,
    store: Option<&Path>,
    open: fn(&StorePlace) -> Result<Arc<dyn Store>, EngineError>,
) -> Result<Arc<dyn Store>, EngineError> {
    let place = store_place(project, environment, store);
    check_store(&place, project, is_named(store, environment))?;
    open(&place)
}

/// Whether a person named the store, with `--store` (`given`) or `BCC_STORE`.
pub fn is_named(given: Option<&Path>, environment: &Environment) -> bool {
    given.is_some() || environment.get("BCC_STORE").is_some()
}

/// What someone else can do with the file of a store, also through a directory above it. Missing parts are skipped.
pub fn notice(place: &StorePlace) -> Option<Message> {
    let mut parts = place.file()?.ancestors().filter_map(|part| Some((part, part.metadata().ok()?)));
    parts.find(|(_, metadata)| risk(metadata).is_some()).map(|(part, metadata)| describe(part, &metadata))
}

/// The file of a store that everyone can read: itself, and each directory on the way to it.
pub fn readable_by_everyone(place: &StorePlace) -> Option<&Path> {
    let path = place.file()?;
    let has = |path: &Path, permission: u32| path.metadata().is_ok_and(|metadata| metadata.mode() & permission != 0);
    let is_reached = path
        .ancestors()
        .skip(1)
        .all(|directory| directory.as_os_str().is_empty() || has(directory, SEARCHABLE_BY_OTHERS));
    (has(path, READABLE_BY_OTHERS) && is_reached).then_some(path)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Risk {
    /// It belongs to someone other than this user and the administrator.
    Owner,
    /// Everyone may change it.
    Writable,
}

fn risk(metadata: &Metadata) -> Option<Risk> {
    let is_shared = metadata.is_dir() && metadata.mode() & STICKY != 0;
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 && !is_shared {
        return Some(Risk::Writable);
    }
    (metadata.uid() != geteuid().as_raw() && metadata.uid() != ROOT).then_some(Risk::Owner)
}

fn describe(part: &Path, metadata: &Metadata) -> Message {
    let shown = part.display();
    match risk(metadata) {
        Some(Risk::Owner) => {
            let owner = metadata.uid();
            msg!("{shown} belongs to another user (id {owner}), who can read and change the sessions of the store")
        }
        _ => msg!("everyone may change {shown}, and with it the sessions of the store"),
    }
}
