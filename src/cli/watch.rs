//! `validate --watch`: checks, and checks again whenever a file changes.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::cli::async_runtime::start_thread;
use crate::cli::exit::Exit;
use crate::cli::findings::{FindingsFormat, Reporting};
use crate::cli::language::filled;
use crate::cli::report;
use crate::cli::signals::Signals;
use bcc_authoring::validate::cache::CheckCache;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate_again;
use bcc_authoring::validate::watched_paths::{WatchedPaths, places};
use bcc_engine::clock::now;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;

/// Saving a file causes several events. It is complete after this time without another event.
const QUIET_TIME: Duration = Duration::from_millis(10);

/// The limit on waiting for the end of a save.
const MAX_WAIT: Duration = Duration::from_millis(50);

enum WatchMessage {
    /// These paths changed; empty if events were lost.
    Changed(Vec<PathBuf>),
    End,
}

/// Checks until a signal is received or standard output is closed.
/// Errors: those of the first check, and when files cannot be watched. Errors of later checks are only reported.
pub fn watch(reporting: &Reporting, request: &ValidateRequest, environment: &Environment) -> Result<Exit, EngineError> {
    let (send, messages) = channel();
    end_on_signals(send.clone())?;
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let changed = match event {
            Ok(event) if event.need_rescan() => Vec::new(),
            // Read access is not a change; the check itself reads files.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) => event.paths,
            Err(_) => Vec::new(),
        };
        let _ = send.send(WatchMessage::Changed(changed));
    })
    .map_err(|error| unwatchable(&error))?;
    let mut watched = BTreeSet::new();
    let mut paths = places(request, environment)?;
    let cache = CheckCache::default();
    let mut first = true;
    // The paths that documents refer to, which are known after the check.
    let mut referenced = BTreeSet::new();
    loop {
        // Files are watched before the check, so that changes during the check are detected. While the project is invalid, the
        // previous paths stay watched.
        paths = places(request, environment).unwrap_or(paths);
        paths.add_files(referenced);
        update_watches(&mut watcher, &mut watched, &paths)?;
        let found = loop {
            let found = validate_again(request, environment, Some(&cache));
            referenced = cache.take_named();
            // A file that was read and is not yet watched may have changed meanwhile.
            if !paths.add_files(referenced.clone()) {
                break found;
            }
            update_watches(&mut watcher, &mut watched, &paths)?;
        };
        match found {
            Ok(found) => {
                if !first {
                    separate(reporting);
                }
                if !reporting.write(&found)? {
                    return Ok(Exit::Done);
                }
            }
            Err(error) if first => return Err(error),
            Err(error) => report::error(&error),
        }
        first = false;
        if !wait_for_change(&messages, &paths) {
            return Ok(Exit::Interrupted);
        }
    }
}

/// Waits for a relevant change, and for the end of the save. Returns false on a signal.
fn wait_for_change(messages: &Receiver<WatchMessage>, places: &WatchedPaths) -> bool {
    let mut deadline: Option<Instant> = None;
    loop {
        let message = match deadline {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => messages.recv_timeout(QUIET_TIME.min(deadline.saturating_duration_since(Instant::now()))),
        };
        match message {
            Ok(WatchMessage::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(WatchMessage::Changed(paths)) => {
                if paths.is_empty() || paths.iter().any(|path| places.matters(path)) {
                    deadline.get_or_insert_with(|| Instant::now() + MAX_WAIT);
                }
            }
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}

/// Watches new folders, and stops watching those that are no longer relevant.
fn update_watches(
    watcher: &mut RecommendedWatcher,
    watched: &mut BTreeSet<PathBuf>,
    places: &WatchedPaths,
) -> Result<(), EngineError> {
    for gone in watched.difference(&places.folders) {
        let _ = watcher.unwatch(gone);
    }
    // All folders are watched again, because a folder may have been removed and created again. For others, this has no effect.
    let mut now = BTreeSet::new();
    for folder in &places.folders {
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {
                now.insert(folder.clone());
            }
            // The folder was just removed; its parent reports when it is created again.
            Err(_) if !folder.exists() => {}
            Err(error) => return Err(unwatchable(&error)),
        }
    }
    *watched = now;
    Ok(())
}

fn unwatchable(error: &notify::Error) -> EngineError {
    EngineError::failed(msg!("the folders cannot be watched: {error}"))
        .with_help("omit `--watch`, or specify fewer folders")
}

/// Prints a line between two reports, in the format for people.
fn separate(reporting: &Reporting) {
    if reporting.format != FindingsFormat::Human {
        return;
    }
    let time = jiff::Zoned::new(now(), jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
    let clear = if std::io::stdout().is_terminal() { "\u{1b}[2J\u{1b}[3J\u{1b}[H" } else { "" };
    let line = filled("── checked again at {time} ──", &[("time", &time)]);
    let _ = write!(std::io::stdout().lock(), "{clear}{line}\n\n");
}

fn end_on_signals(messages: Sender<WatchMessage>) -> Result<(), EngineError> {
    let failed = |error: std::io::Error| EngineError::failed(msg!("cannot wait for signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _guard = runtime.enter();
        Signals::new().map_err(failed)?
    };
    start_thread("signals", move || {
        runtime.block_on(signals.any());
        let _ = messages.send(WatchMessage::End);
    })
}
