//! `validate --watch`: checks, and checks again whenever something changed.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

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

/// A save is several events: after the first, this long without another is the end of it.
const QUIET: Duration = Duration::from_millis(10);

/// No longer is waited for the end, whatever goes on.
const LONGEST: Duration = Duration::from_millis(50);

enum News {
    /// These paths changed; none when events were lost.
    Changed(Vec<PathBuf>),
    End,
}

/// Checks until a signal comes or nobody reads on.
/// Errors: those of the first check, and when files cannot be watched. Later a project may be broken for a while.
pub fn watch(reporting: &Reporting, request: &ValidateRequest, environment: &Environment) -> Result<Exit, EngineError> {
    let (send, news) = channel();
    end_on_signals(send.clone())?;
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let changed = match event {
            Ok(event) if event.need_rescan() => Vec::new(),
            // To read a file is no change of it; the check itself does so.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) => event.paths,
            Err(_) => Vec::new(),
        };
        let _ = send.send(News::Changed(changed));
    })
    .map_err(|error| unwatchable(&error))?;
    let mut watched = BTreeSet::new();
    let mut seen = places(request, environment)?;
    let memory = CheckCache::default();
    let mut first = true;
    // What documents name by their paths, which only their check tells.
    let mut named = BTreeSet::new();
    loop {
        // Watched before it is checked: what changes during the check is told after it. While the project is broken, what
        // was watched goes on to be.
        seen = places(request, environment).unwrap_or(seen);
        seen.name(named);
        renew(&mut watcher, &mut watched, &seen)?;
        let found = loop {
            let found = validate_again(request, environment, Some(&memory));
            named = memory.take_named();
            // What was read and not watched may have changed since.
            if !seen.name(named.clone()) {
                break found;
            }
            renew(&mut watcher, &mut watched, &seen)?;
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
        if !next(&news, &seen) {
            return Ok(Exit::Interrupted);
        }
    }
}

/// Waits for a change that matters, and for the end of the save. False when the end is asked for.
fn next(news: &Receiver<News>, places: &WatchedPaths) -> bool {
    let mut until: Option<Instant> = None;
    loop {
        let message = match until {
            None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => news.recv_timeout(QUIET.min(until.saturating_duration_since(Instant::now()))),
        };
        match message {
            Ok(News::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(News::Changed(paths)) => {
                if paths.is_empty() || paths.iter().any(|path| places.matters(path)) {
                    until.get_or_insert_with(|| Instant::now() + LONGEST);
                }
            }
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}

/// Watches the folders that are new, and no longer those that are none of our business now.
fn renew(
    watcher: &mut RecommendedWatcher,
    watched: &mut BTreeSet<PathBuf>,
    places: &WatchedPaths,
) -> Result<(), EngineError> {
    for gone in watched.difference(&places.folders) {
        let _ = watcher.unwatch(gone);
    }
    // A folder that was removed and made again has a new watch to get, which costs nothing where it is there.
    let mut now = BTreeSet::new();
    for folder in &places.folders {
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {
                now.insert(folder.clone());
            }
            // It was there a moment ago; its own folder tells when it comes back.
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

/// A line between two reports for people; a program tells them apart by themselves.
fn separate(reporting: &Reporting) {
    if reporting.format != FindingsFormat::Human {
        return;
    }
    let time = jiff::Zoned::new(now(), jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
    let clear = if std::io::stdout().is_terminal() { "\u{1b}[2J\u{1b}[3J\u{1b}[H" } else { "" };
    let line = filled("── checked again at {time} ──", &[("time", &time)]);
    let _ = write!(std::io::stdout().lock(), "{clear}{line}\n\n");
}

fn end_on_signals(news: Sender<News>) -> Result<(), EngineError> {
    let failed = |error: std::io::Error| EngineError::failed(msg!("cannot wait for signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new().map_err(failed)?
    };
    std::thread::spawn(move || {
        runtime.block_on(signals.any());
        let _ = news.send(News::End);
    });
    Ok(())
}
