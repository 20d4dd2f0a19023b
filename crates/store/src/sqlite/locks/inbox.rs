//! What other processes ask the owner of locks: to release the lock of a session, or to end its turn.
//!
//! An owner that can be asked has a directory next to its file. Whoever asks creates an empty file there, whose name is the request; the
//! owner looks for such files while it has locks, and removes them. A look writes nothing, and without locks there is none.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::contract::{LockReply, LockRequest};
use crate::lock_signals::LockSignals;
use crate::sqlite::disk::{new_private_file, private_directory};
use crate::sqlite::locks::owner::new_token;

/// What the names of these directories end with.
pub(crate) const EXTENSION: &str = "inbox";

/// How often an owner looks for requests.
const LOOK: Duration = Duration::from_millis(50);

/// The maximum number of requests that are read in one look. The others follow in the next one.
const MAX_READ: usize = 1000;

/// How long a process waits for the reply to a request, and how often it looks.
const REPLY_TIME: Duration = Duration::from_secs(1);
const REPLY_LOOK: Duration = Duration::from_millis(5);

/// After this time, a reply that nobody has read is removed.
const UNREAD_TIME: Duration = Duration::from_secs(60);

/// How often a request is sent again to an owner that has just removed something.
const MAX_ATTEMPTS: u32 = 8;

const RELEASE: &str = "release";
const INTERRUPT: &str = "interrupt";
/// Requests that want a reply have a number, and become the reply.
const IF_IDLE: &str = "if_idle";
const BUSY: &str = "busy";

/// The directory of the owner with this token.
pub(crate) fn path_of(directory: &Path, token: &str) -> PathBuf {
    directory.join(token).with_extension(EXTENSION)
}

/// The name of a session in requests: that of its lock file without the extension.
fn name_of(lock: &Path) -> Option<&str> {
    lock.file_stem()?.to_str()
}

/// Where an owner receives requests. When it is dropped, its directory is removed.
#[derive(Debug)]
pub(crate) struct LockInbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InboxState {
    /// The signals of the locks that the owner has, by name.
    held: HashMap<String, Arc<LockSignals>>,
    is_closed: bool,
}

impl LockInbox {
    /// Creates the directory of the owner with this token, and starts the thread that looks into it.
    pub(crate) fn open(directory: &Path, token: &str) -> io::Result<Self> {
        let path = path_of(directory, token);
        private_directory(&path)?;
        let shared = Arc::new(Shared { path, state: Mutex::default(), changed: Condvar::new() });
        let inbox = Self { shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("lock-requests".to_owned()).spawn(move || shared.run())?;
        Ok(inbox)
    }

    /// The owner has this lock.
    pub(crate) fn add(&self, lock: &Path, signals: &Arc<LockSignals>) {
        let Some(name) = name_of(lock) else { return };
        let mut state = self.shared.state();
        let was_empty = state.held.is_empty();
        state.held.insert(name.to_owned(), Arc::clone(signals));
        drop(state);
        if was_empty {
            self.shared.changed.notify_all();
        }
    }

    /// The owner does not have this lock any more.
    pub(crate) fn remove(&self, lock: &Path, signals: &Arc<LockSignals>) {
        let mut state = self.shared.state();
        if let Some(name) = name_of(lock)
            && state.held.get(name).is_some_and(|held| Arc::ptr_eq(held, signals))
        {
            state.held.remove(name);
        }
    }
}

impl Drop for LockInbox {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
        // What is left is removed by others, when they find the owner dead.
        let _ = fs::remove_dir_all(&self.shared.path);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for requests while there are locks, until the inbox is closed.
    fn run(&self) {
        let mut state = self.state();
        while !state.is_closed {
            if state.held.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            self.look();
            let waiting = self.changed.wait_timeout_while(self.state(), LOOK, |state| !state.is_closed);
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn look(&self) {
        // Without a directory, the lock is lost, which its owner notices.
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for path in entries.take(MAX_READ).filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let parts: Vec<&str> = name.split('.').collect();
            let (session, request) = match parts.as_slice() {
                [session, RELEASE] => (*session, LockRequest::Release),
                [session, INTERRUPT] => (*session, LockRequest::Interrupt),
                [session, _, IF_IDLE] => (*session, LockRequest::ReleaseIfIdle),
                [_, _, BUSY] if is_unread(&path) => {
                    let _ = fs::remove_file(&path);
                    continue;
                }
                _ => continue,
            };
            let signals = self.state().held.get(session).cloned();
            // Whoever asks for a lock that is free already finds that out.
            let reply = signals.map_or(LockReply::Asked, |signals| signals.receive(request));
            let _ = match reply {
                LockReply::Busy => fs::rename(&path, path.with_extension(BUSY)),
                _ => fs::remove_file(&path),
            };
        }
    }
}

fn is_unread(reply: &Path) -> bool {
    let modified = reply.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > UNREAD_TIME))
}

/// Asks the owner with this token for a lock, and waits for its reply if the request wants one.
pub(crate) fn ask(directory: &Path, token: &str, lock: &Path, request: LockRequest) -> io::Result<LockReply> {
    let inbox = path_of(directory, token);
    // A link could lead anywhere.
    if !inbox.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(LockReply::Impossible);
    }
    let Some(session) = name_of(lock) else { return Ok(LockReply::Impossible) };
    let name = match request {
        LockRequest::Release => format!("{session}.{RELEASE}"),
        LockRequest::Interrupt => format!("{session}.{INTERRUPT}"),
        LockRequest::ReleaseIfIdle => format!("{session}.{}.{IF_IDLE}", new_token()),
    };
    let file = inbox.join(name);
    for _ in 0..MAX_ATTEMPTS {
        match new_private_file(&file) {
            Ok(_) if request == LockRequest::ReleaseIfIdle => return Ok(reply_to(&file)),
            Ok(_) => return Ok(LockReply::Asked),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(LockReply::Asked),
            // The owner has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockReply::Asked),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(LockReply::Asked)
}

/// Waits until the request is gone or has become a reply.
fn reply_to(request: &Path) -> LockReply {
    let reply = request.with_extension(BUSY);
    let end = std::time::Instant::now() + REPLY_TIME;
    while std::time::Instant::now() < end {
        if !request.exists() {
            return match fs::remove_file(&reply) {
                Ok(()) => LockReply::Busy,
                Err(_) => LockReply::Asked,
            };
        }
        std::thread::sleep(REPLY_LOOK);
    }
    // The owner may be about to reply.
    match fs::remove_file(request).is_err() && fs::remove_file(&reply).is_ok() {
        true => LockReply::Busy,
        false => LockReply::Asked,
    }
}
